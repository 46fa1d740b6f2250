"""The command line: `odejet fit`, `report`, `identify`, `simulate`, `design` and `show`.

A command is a pair of functions: one describes its arguments, the other runs it and returns an exit status.  Results go
to files or to stdout, words to stderr.  Bad input gets one sentence and exit status 2, a model that cannot be solved or
fitted exit status 3, and then nothing is written.  A fit without a certificate is written, with exit status 1.

What takes long to import is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from odejet.errors import DataError
from odejet.expressions import ModelError, clipped, nearest

if TYPE_CHECKING:
    import matplotlib.figure
    import numpy as np

    from odejet.io.files import Writer
    from odejet.model import Model
    from odejet.simulation import Simulation

MAX_TIMES = 10_000_000
PLOTS = (".png", ".pdf", ".svg")


class Status(IntEnum):
    """Exit statuses; those of interruptions are what shells use."""

    DONE = 0
    UNCERTIFIED = 1
    BAD_INPUT = 2
    UNSOLVED = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        arguments = _parser().parse_args(_spelled_out(sys.argv[1:] if argv is None else argv))
        status: int = arguments.run(arguments)
        return status
    except (ModelError, DataError) as error:
        return _complain(str(error), Status.BAD_INPUT)
    except MemoryError:
        return _complain("the memory is not large enough for this; ask for fewer times", Status.BAD_INPUT)
    except KeyboardInterrupt:
        return _complain("interrupted", Status.INTERRUPTED)
    except BrokenPipeError:
        return Status.BROKEN_PIPE


def _complain(message: str, status: Status) -> int:
    print(f"odejet: {message}", file=sys.stderr)
    return status


# --- arguments --------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are like all others."""

    def error(self, message: str) -> NoReturn:
        raise ModelError(f"{message}; see {self.prog} --help")


@functools.cache
def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="odejet",
        description="Ordinary differential equations, their outputs and what data say about them.",
        epilog="Exit status: 0 done, 1 fitted without a certificate, 2 bad input, 3 not solved or not fitted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"odejet {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for describe in (
        _describe_fit,
        _describe_report,
        _describe_identify,
        _describe_simulate,
        _describe_design,
        _describe_show,
    ):
        describe(commands)
    return parser


def _version() -> str:
    from odejet import __version__

    return __version__


def _spelled_out(argv: Sequence[str]) -> Iterator[str]:
    """Arguments as `argparse` reads them: one pair per `--set`, and `--times` with the value that may start with -."""
    words = iter(argv)
    option = ""
    for word in words:
        if option == "--set" and "=" in word and not word.startswith("-"):
            yield f"--set={word}"
            continue
        option = word
        if word in ("--set", "--times") and (value := next(words, None)) is not None:
            yield f"{word}={value}"
        else:
            yield word


def _describe(commands: Any, run: Callable[..., int], name: str, summary: str, details: str) -> argparse.ArgumentParser:
    """A command with what all commands have: a model file."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=details, allow_abbrev=False
    )
    parser.add_argument("model", metavar="MODEL", help="model file (TOML)")
    parser.set_defaults(run=run)
    return parser


# --- show -------------------------------------------------------------------------------------------------------------


def _describe_show(commands: Any) -> None:
    details = "A model that is shown is a model without mistakes: everything in the file is checked."
    parser = _describe(commands, _show, "show", "check a model file and show the model", details)
    parser.add_argument("--latex", action="store_true", help="the equations in LaTeX")


def _show(arguments: argparse.Namespace) -> int:
    from odejet.model import Model

    model = Model.from_toml(arguments.model)
    _put(f"{model.latex() if arguments.latex else model!r}\n".encode())
    return Status.DONE


# --- fit --------------------------------------------------------------------------------------------------------------


def _describe_fit(commands: Any) -> None:
    details = "Exit status: 0 certified, 1 fitted without a certificate, 2 bad input, 3 no fit."
    summary = "find all parameters and initial states from data"
    parser = _describe(commands, _fit, "fit", summary, details)
    add = parser.add_argument
    add("data", metavar="DATA", help="measurements (CSV): a column time and one per output, or PEtab's columns")
    add("--bounds", metavar=("LO", "HI"), nargs=2, help="where to look for every unknown; not needed")
    add("--positive", action="store_true", help="all unknowns are positive")
    add(
        "--noise",
        metavar="NOISE",
        nargs="+",
        action="extend",
        default=[],
        help="a known sd such as 0.1, a relative one such as 2%%, or relative; for one output, such as y1=0.1",
    )
    add("--inputs", metavar="FILE", help="samples of inputs (CSV): a column time and one per input")
    add("--effort", choices=("quick", "auto", "full"), default="auto", help="how much to try (default %(default)s)")
    add("--seed", metavar="S", type=int, default=0, help="seed of random starts (default %(default)s)")
    add(
        "--jobs",
        metavar="N",
        type=int,
        default=1,
        help="cores it may use; one fit needs one (default 1)",
    )
    add("--time-limit", metavar="SECONDS", type=float, help="give up after so long (default 120; 1200 for full)")
    add(
        "--profile",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="intervals by the likelihood of unknowns or expressions, such as k1 or k1*k2",
    )
    add(
        "--intervals",
        choices=("fisher", "profile"),
        default="fisher",
        help="intervals of all unknowns by curvature, or by the likelihood too (default %(default)s)",
    )
    add("--json", metavar="FILE", help="write the whole fit into a file")
    add("--report", metavar="FILE", help="write a page with all plots (HTML)")
    add("-q", "--quiet", action="store_true", help="no table on stdout")


def _fit(arguments: argparse.Namespace) -> int:
    from odejet.data import Data
    from odejet.io import csv
    from odejet.io.files import write_all
    from odejet.model import Model

    model = Model.from_toml(arguments.model)
    _check_files(arguments)
    bounds = _box(arguments.bounds)
    noise = _noise(arguments.noise, model)
    data = Data.from_csv(arguments.data)
    if arguments.inputs:
        data = data.driven(csv.read_inputs(arguments.inputs))

    from odejet.data import checked
    from odejet.fitting import fit
    from odejet.io.fits import dumps
    from odejet.misfit import Misfit
    from odejet.report.html import page
    from odejet.uncertainty.quantities import quantity

    try:
        checked(data, model)
    except DataError as error:
        raise DataError(f"{arguments.data}: {error}") from None
    if arguments.profile:
        unknowns = Misfit(model, data, noise).unknowns
        for name in arguments.profile:
            quantity(name, model, unknowns)
    found = fit(
        model,
        data,
        bounds,
        arguments.positive,
        noise,
        arguments.seed,
        arguments.jobs,
        arguments.effort,
        progress=not arguments.quiet,
        time_limit=arguments.time_limit,
    )
    if not found.found:
        return _complain(f"{arguments.data}: {found.message}", Status.UNSOLVED)
    contents: dict[str, Writer] = {}
    if arguments.json:
        contents[arguments.json] = lambda file: file.write(dumps(found).encode())
    if arguments.report:
        contents[arguments.report] = lambda file: file.write(page(found).encode())
    write_all(contents)
    if not arguments.quiet:
        asked = [*(found.labels if arguments.intervals == "profile" else ()), *arguments.profile]
        told = [f"  {found.profile(name).sentence}" for name in dict.fromkeys(asked)]
        _put("\n".join([str(found), *(["", "  by the likelihood:", *told] if told else []), ""]).encode())
        for file in contents:
            print(f"written: {file}", file=sys.stderr)
    return Status.DONE if found.certificate.granted else Status.UNCERTIFIED


def _box(ends: Sequence[str] | None) -> tuple[float, float] | None:
    if ends is None:
        return None
    low, high = (_number(end, f"--bounds {clipped(' '.join(ends))}") for end in ends)
    if not low < high:
        raise ModelError(f"--bounds {low:g} {high:g}: the first must be below the second; exchange them")
    return low, high


def _noise(given: Sequence[str], model: Model) -> Any:
    """What is known of the noise: of all outputs, or by output."""
    if len(given) == 1 and "=" not in given[0]:
        return _noise_of(given[0])
    table: dict[str, float | str] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ModelError(f"--noise {clipped(pair)}: with several outputs expected OUTPUT=NOISE, such as y1=0.1")
        if name not in model.outputs:
            raise ModelError(f"--noise {clipped(pair)}: the model has no output '{name}'{nearest(name, model.outputs)}")
        if name in table:
            raise ModelError(f"--noise {clipped(pair)}: the noise of {name} is already given; give it once")
        table[name] = _noise_of(text)
    return table or None


def _noise_of(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


# --- report -----------------------------------------------------------------------------------------------------------


def _describe_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="a saved fit as a page with all plots",
        description="Write a fit that `odejet fit --json` saved as one HTML page.",
        allow_abbrev=False,
    )
    parser.add_argument("fit", metavar="FIT", help="fit file (JSON)")
    parser.add_argument("output", metavar="OUT", help="file to write to (HTML)")
    parser.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    if os.path.realpath(arguments.fit) == os.path.realpath(arguments.output) or _is_same(
        arguments.fit, arguments.output
    ):
        raise ModelError(f"{arguments.output}: this is the fit file; name another file to write to")

    from odejet.result import Fit

    Fit.load(arguments.fit).report(arguments.output)
    return Status.DONE


# --- identify ---------------------------------------------------------------------------------------------------------


def _describe_identify(commands: Any) -> None:
    details = "The answer holds for data without noise; it comes from the model alone and needs no data."
    summary = "tell which parameters and initial states can be known at all"
    parser = _describe(commands, _identify, "identify", summary, details)
    add = parser.add_argument
    add("--json", action="store_true", help="the verdict as JSON instead of a table")
    add(
        "--functions",
        metavar="EXPRESSION",
        nargs="+",
        action="extend",
        default=[],
        help="expressions in parameters and initial states to be judged too, such as k1*k2",
    )
    add(
        "--inputs",
        choices=("generic", "actual"),
        default="generic",
        help="take inputs to be any that excite the model enough, or those in the file (default %(default)s)",
    )
    add("--budget", metavar="S", type=float, default=60.0, help="seconds for counting solutions (default %(default)s)")
    add("--seed", metavar="S", type=int, default=0, help="seed of the random points (default %(default)s)")


def _identify(arguments: argparse.Namespace) -> int:
    from odejet.model import Model

    model = Model.from_toml(arguments.model)

    from odejet.identify import identify

    verdict = identify(model, arguments.functions, arguments.inputs, arguments.budget, arguments.seed)
    _put(f"{verdict.to_json() if arguments.json else verdict}\n".encode())
    return Status.DONE


# --- simulate ---------------------------------------------------------------------------------------------------------


def _describe_simulate(commands: Any) -> None:
    details = "The table has the columns time, the outputs and, if asked for, the states, in full double precision."
    parser = _describe(commands, _simulate, "simulate", "solve a model and write its outputs as CSV", details)
    add = parser.add_argument
    add(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of a parameter, or of a state at the earliest time; may be repeated and take several pairs",
    )
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


def _simulate(arguments: argparse.Namespace) -> int:
    from odejet.io import csv
    from odejet.io.files import write_all
    from odejet.model import Model

    model = Model.from_toml(arguments.model)
    _check(arguments, model)
    inputs = csv.read_inputs(arguments.inputs) if arguments.inputs else None
    values, times = _values(arguments.set, model), _times(arguments.times)

    from odejet.flow import MAX_STEPS
    from odejet.simulation import simulate

    simulation = simulate(
        model,
        {name: values[name] for name in model.parameters},
        {name: values[name] for name in model.unknowns if name in model.states},
        times,
        inputs=inputs,
        max_steps=arguments.max_steps or MAX_STEPS,
    )
    if not simulation.success:
        return _complain(simulation.message, Status.UNSOLVED)
    outputs = _noisy(simulation.outputs, arguments.noise, arguments.seed)
    columns = {"time": simulation.times, **outputs, **(simulation.states if arguments.states else {})}
    contents: dict[str, Writer] = {}
    if arguments.plot:
        contents[arguments.plot] = _plot(simulation, outputs if arguments.noise else {}, Path(arguments.plot).suffix)
    if arguments.output != "-":
        contents[arguments.output] = lambda file: file.writelines(csv.lines(columns))
    write_all(contents)
    if arguments.output == "-":
        _put(*csv.lines(columns))
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
    _check_files(arguments)


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse to write what is read, or two things into one file."""
    given = vars(arguments)
    reads = {"model": "the model file", "data": "the file of the data", "inputs": "the file of the inputs"}
    writes = {"plot": "--plot", "output": "-o", "json": "--json", "report": "--report"}
    taken = {what: given.get(key) for key, what in reads.items()}
    for what, path in ((f"what {option} writes too", given.get(key)) for key, option in writes.items()):
        if path and path != "-":
            for use, other in taken.items():
                if other and (os.path.realpath(path) == os.path.realpath(other) or _is_same(path, other)):
                    raise ModelError(f"{path}: this is {use}; name another file to write to")
            taken[what] = path


def _is_same(one: str, other: str) -> bool:
    return os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)


def _values(pairs: Sequence[str], model: Model) -> dict[str, float]:
    """The value of every unknown of the model."""
    values: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = unicodedata.normalize("NFKC", name.strip())
        if not name or not equals:
            raise ModelError(f"--set {clipped(pair)}: expected NAME=VALUE, such as k1=0.3")
        if name in values:
            raise ModelError(f"--set {clipped(pair)}: {name} is already set; give it one value")
        if name not in model.unknowns:
            raise ModelError(f"--set {clipped(pair)}: {_why_not(name, model)}")
        values[name] = _number(text, f"--set {clipped(pair)}")
    missing = [name for name in model.unknowns if name not in values]
    if missing:
        raise ModelError(f"no value is given for {', '.join(missing)}; add --set {missing[0]}=VALUE")
    return values


def _why_not(name: str, model: Model) -> str:
    """Why a name cannot be set."""
    if name in model.fixed or name in model.initial:
        kind = "the parameter" if name in model.fixed else "the initial value of the state"
        return f"{kind} '{name}' is known in the model file; change it there"
    for table, kind in ((model.inputs, "an input"), (model.outputs, "an output")):
        if name in table:
            return f"'{name}' is {kind}; only parameters and states are set"
    hint = nearest(name, model.unknowns) or f"; what can be set is {', '.join(model.unknowns[:20]) or 'nothing'}"
    return f"the model has no parameter or state {clipped(name)}{hint}"


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(f"{where}: {clipped(text)} is not a finite number")
    return value


def _times(text: str) -> np.ndarray:
    """START:STOP:COUNT, or numbers separated by commas."""
    import numpy as np

    where = f"--times {clipped(text)}"
    if ":" not in text:
        return np.array([_number(part, where) for part in text.split(",")])
    parts = text.split(":")
    if len(parts) != 3:
        raise ModelError(f"{where}: expected START:STOP:COUNT, such as 0:20:750")
    start, stop = (_number(part, where) for part in parts[:2])
    if not parts[2].strip().isdecimal() or len(parts[2]) > 20 or not 2 <= int(parts[2]) <= MAX_TIMES:
        raise ModelError(f"{where}: the count must be a whole number from 2 to {MAX_TIMES}, not {clipped(parts[2])}")
    return np.linspace(start, stop, int(parts[2]))


def _noisy(outputs: Mapping[str, np.ndarray], eta: float, seed: int) -> dict[str, np.ndarray]:
    """Outputs as they would be measured; the noise of each is proportional to the size of its mean."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return {
        name: values + eta * abs(values.mean()) * rng.standard_normal(len(values)) for name, values in outputs.items()
    }


# --- design -----------------------------------------------------------------------------------------------------------


def _describe_design(commands: Any) -> None:
    details = "No data are needed: the values are what one expects. Changes are judged by what they do to all errors."
    summary = "standard errors to expect of an experiment, and what would make them smaller"
    parser = _describe(commands, _design, "design", summary, details)
    add = parser.add_argument
    add(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of a parameter, or of a state at the earliest time; may be repeated and take several pairs",
    )
    add("--times", metavar="TIMES", required=True, help="of all outputs: START:STOP:COUNT, or a list such as 0,0.5,2")
    add(
        "--noise",
        metavar="NOISE",
        nargs="+",
        action="extend",
        required=True,
        help="an sd such as 0.1, or a relative one such as 2%%; for one output, such as y1=0.1",
    )
    add("--inputs", metavar="FILE", help="samples of inputs (CSV): a column time and one per input")


def _design(arguments: argparse.Namespace) -> int:
    from odejet.io import csv
    from odejet.model import Model

    model = Model.from_toml(arguments.model)
    values, times, noise = _values(arguments.set, model), _times(arguments.times), _noise(arguments.noise, model)
    inputs = csv.read_inputs(arguments.inputs) if arguments.inputs else None

    from odejet.uncertainty.design import design

    parameters = {name: values[name] for name in model.parameters}
    states = {name: value for name, value in values.items() if name in model.states}
    _put(f"{design(model, parameters, states, times, noise, inputs=inputs)}\n".encode())
    return Status.DONE


# --- what comes out ---------------------------------------------------------------------------------------------------


def _put(*chunks: bytes) -> None:
    """Onto stdout, in UTF-8 whatever the terminal is set to."""
    if sys.stdout is None:
        raise ModelError("stdout is closed; name a file with -o")
    try:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.flush()
    except OSError as error:
        # Python would try once more, and complain, when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ModelError(f"stdout cannot be written ({(error.strerror or 'unknown reason').lower()})") from None


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
