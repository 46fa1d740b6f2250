"""Simulate: a solution of a model as a table and as a plot, with noise if wanted."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from odejet.cli.arguments import PLOTS, add_values, check_files, described, read_times, read_values
from odejet.cli.console import Status, complain, put
from odejet.errors import ModelError

if TYPE_CHECKING:
    import matplotlib.figure
    import numpy as np

    from odejet.io.files import Writer
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
        type=float,
        default=0.0,
        help="add to each output Gaussian noise whose standard deviation is ETA times the absolute mean of that output",
    )
    add("--seed", metavar="S", type=int, default=0, help="seed of the noise (default %(default)s)")
    add("--states", action="store_true", help="write the states too, always without noise")
    add("--max-steps", metavar="N", type=int, help="give up after so many steps")
    add("--plot", metavar="FILE", help=f"plot the outputs into a file ({', '.join(PLOTS)})")
    add("-o", "--output", metavar="FILE", default="-", help="write the CSV into a file instead of stdout")
    add("-q", "--quiet", action="store_true", help="no summary on stderr")


def run(arguments: argparse.Namespace) -> int:
    from odejet.io import csv
    from odejet.io.files import write_all
    from odejet.io.formats import read_model

    model = read_model(arguments.model, arguments.free)
    _check(arguments, model)
    inputs = csv.read_inputs(arguments.inputs) if arguments.inputs else None
    values, times = read_values(arguments.set, model), read_times(arguments.times)

    from odejet.simulate import simulate
    from odejet.simulate.flow import MAX_STEPS

    simulation = simulate(
        model,
        {name: values[name] for name in model.parameters},
        {name: values[name] for name in model.unknowns if name in model.states},
        times,
        inputs=inputs,
        max_steps=arguments.max_steps or MAX_STEPS,
    )
    if not simulation.success:
        return complain(simulation.message, Status.UNSOLVED)
    outputs = _noisy(simulation.outputs, arguments.noise, arguments.seed)
    columns = {"time": simulation.times, **outputs, **(simulation.states if arguments.states else {})}
    contents: dict[str, Writer] = {}
    if arguments.plot:
        contents[arguments.plot] = _plot(simulation, outputs if arguments.noise else {}, Path(arguments.plot).suffix)
    if arguments.output != "-":
        contents[arguments.output] = lambda file: file.writelines(csv.lines(columns))
    write_all(contents)
    if arguments.output == "-":
        put(*csv.lines(columns))
    if not arguments.quiet:
        _summarise(simulation, outputs, list(contents))
    return Status.DONE


def _check(arguments: argparse.Namespace, model: Model) -> None:
    """Refuse what makes no sense, before any work."""
    if not (math.isfinite(arguments.noise) and arguments.noise >= 0):
        raise ModelError(f"--noise: expected a number that is not negative, not {arguments.noise:g}")
    if arguments.seed < 0:
        raise ModelError(f"--seed: expected a whole number that is not negative, not {arguments.seed}")
    if arguments.max_steps is not None and arguments.max_steps < 1:
        raise ModelError(f"--max-steps: expected a whole number of at least 1, not {arguments.max_steps}")
    if not model.outputs and not arguments.states:
        raise ModelError(f"{arguments.model}: the model has no outputs; add a table [outputs], or ask for --states")
    missing = [name for name, expression in model.inputs.items() if expression is None]
    if missing and not arguments.inputs:
        raise ModelError(f"{arguments.model}: the input '{missing[0]}' is sampled; give its samples with --inputs FILE")
    if arguments.plot and Path(arguments.plot).suffix.lower() not in PLOTS:
        raise ModelError(f"--plot {arguments.plot}: the name must end in one of {', '.join(PLOTS)}")
    check_files(arguments)


def _noisy(outputs: Mapping[str, np.ndarray], eta: float, seed: int) -> dict[str, np.ndarray]:
    """Outputs as they would be measured; the noise of each is proportional to the size of its mean."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return {
        name: values + eta * abs(values.mean()) * rng.standard_normal(len(values)) for name, values in outputs.items()
    }


def _plot(simulation: Simulation, measured: Mapping[str, np.ndarray], suffix: str) -> Writer:
    """The outputs as curves, with the noisy values as points."""

    def write(file: BinaryIO) -> None:
        figure: matplotlib.figure.Figure = simulation.plot()
        for panel, values in zip(figure.axes, measured.values(), strict=False):
            panel.plot(simulation.times, values, ".", color="#c46a2b", markersize=3, alpha=0.6, zorder=1)
        figure.savefig(file, format=suffix.lower().removeprefix("."), dpi=150)

    return write


def _summarise(simulation: Simulation, outputs: Mapping[str, np.ndarray], files: Sequence[str]) -> None:
    """What was done, for people: the range of each output, and the files."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    times = simulation.times
    span = f"{len(times)} times from {times.min():.6g} to {times.max():.6g}"
    print(f"{simulation.model.name}: {span}, solved by {simulation.method}", file=sys.stderr)
    if outputs:
        table = Table("output", box=box.SIMPLE_HEAD)
        for heading in ("min", "mean", "max"):
            table.add_column(heading, justify="right")
        for name, values in outputs.items():
            table.add_row(name, *(f"{number:.6g}" for number in (values.min(), values.mean(), values.max())))
        Console(stderr=True).print(table)
    for file in files:
        print(f"written: {file}", file=sys.stderr)
