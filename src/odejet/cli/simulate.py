"""Simulate: a solution of a model as a table and as a plot, with noise if wanted."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odejet.cli.arguments import add_values, check_files, described, read_times, read_values, whole_number
from odejet.cli.console import Status, complain, told
from odejet.cli.course import add_course, check_plot, write_course
from odejet.cli.posing import read_inputs
from odejet.errors import ModelError, clipped
from odejet.progress import doing

if TYPE_CHECKING:
    import numpy as np

    from odejet.model import Model
    from odejet.simulate import Simulation


def describe(commands: Any) -> None:
    details = "The table has the columns time, the outputs and, if asked for, the states, in full double precision."
    parser = described(commands, run, "simulate", "solve a model and write its outputs as CSV", details)
    add_values(parser)
    add = parser.add_argument
    add(
        "--times",
        metavar="TIMES",
        required=True,
        help="START:STOP:COUNT, evenly spaced with both ends, or a list such as 0,0.5,2",
    )
    add(
        "--inputs",
        metavar="FILE",
        help="samples of inputs (CSV): a column time and one per input; a time that stands twice is a jump",
    )
    add(
        "--noise",
        metavar="ETA",
        type=_eta,
        default=0.0,
        help="add to each output Gaussian noise whose standard deviation is ETA times the absolute mean of that output",
    )
    add("--seed", metavar="S", type=whole_number(), default=0, help="seed of the noise (default %(default)s)")
    add("--states", action="store_true", help="write the states too, always without noise")
    add("--max-steps", metavar="N", type=whole_number(1), help="give up after so many steps")
    add_course(parser, "the outputs")
    add("-q", "--quiet", action="store_true", help="no summary on stderr")


def _eta(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"expected a number that is not negative, such as 0.05, not {clipped(text)}")
    return value


def run(arguments: argparse.Namespace) -> int:
    from odejet.io.formats import read_model

    model = read_model(arguments.model, arguments.free)
    _check(arguments, model)
    values, times = read_values(arguments.set, model), read_times(arguments.times)
    inputs = read_inputs(arguments.inputs, model, times.min(), times.max()) if arguments.inputs else None

    from odejet.simulate import simulate

    with doing("simulating", not arguments.quiet):
        simulation = simulate(
            model,
            {name: values[name] for name in model.parameters},
            {name: values[name] for name in model.unknowns if name in model.states},
            times,
            inputs=inputs,
            max_steps=arguments.max_steps,
        )
    if not simulation.success:
        return complain(simulation.message, Status.UNSOLVED)
    outputs = _noisy(simulation.outputs, arguments.noise, arguments.seed)
    columns = {"time": simulation.times, **outputs, **(simulation.states if arguments.states else {})}
    measured = outputs if arguments.noise else None
    files = write_course(columns, lambda: simulation.plot(measured=measured), arguments)
    if not arguments.quiet:
        _summarise(simulation, outputs, files)
    return Status.DONE


def _check(arguments: argparse.Namespace, model: Model) -> None:
    """Refuse what makes no sense, before any work."""
    if not model.outputs and not arguments.states:
        raise ModelError(f"{arguments.model}: the model has no outputs; add a table [outputs], or ask for --states")
    missing = [name for name, expression in model.inputs.items() if expression is None]
    if missing and not arguments.inputs:
        raise ModelError(f"{arguments.model}: the input '{missing[0]}' is sampled; give its samples with --inputs FILE")
    check_plot(arguments)
    check_files(arguments)


def _noisy(outputs: Mapping[str, np.ndarray], eta: float, seed: int) -> dict[str, np.ndarray]:
    """Outputs as they would be measured; the noise of each is proportional to the size of its mean."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return {
        name: values + eta * abs(np.nanmean(values)) * rng.standard_normal(len(values))
        for name, values in outputs.items()
    }


def _summarise(simulation: Simulation, outputs: Mapping[str, np.ndarray], files: Sequence[str]) -> None:
    """What was done, for people: the range of each output, and the files."""
    import numpy as np

    from odejet.tables import table

    times = simulation.times
    span = f"{len(times)} times from {times.min():.6g} to {times.max():.6g}"
    print(f"{simulation.model.name}: {span}, solved by {simulation.method}", file=sys.stderr)
    if simulation.message != simulation.trajectory.message:
        print(f"note: {simulation.message}", file=sys.stderr)
    if outputs:
        rows: list[tuple[str, ...]] = [("output", "min", "mean", "max")]
        for name, values in outputs.items():
            rows.append((name, *(f"{number(values):.6g}" for number in (np.nanmin, np.nanmean, np.nanmax))))
        print("\n" + "\n".join(f"  {line}" for line in table(rows, right=(1, 2, 3))) + "\n", file=sys.stderr)
    told(*files)
