"""Arguments: what the words of a command line mean, and complaints about those that mean nothing."""

from __future__ import annotations

import argparse
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from odejet.errors import ModelError, clipped, nearest
from odejet.io.files import check_writable

if TYPE_CHECKING:
    import numpy as np

    from odejet.model import Model

MAX_TIMES = 10_000_000


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are like all others, and to which -1e3, -inf and -2% are values, not options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)

    def error(self, message: str) -> NoReturn:
        raise ModelError(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, left = super().parse_known_args(args, namespace)
        if left:
            hint = nearest(left[0], self._option_string_actions, cutoff=0.6) if left[0].startswith("-") else ""
            self.error(f"{clipped(' '.join(left))} is not understood here{hint.removesuffix('?')}")
        return found, left


def whole_number(least: int = 0) -> Callable[[str], int]:
    """What reads a whole number that is not too small."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, not {clipped(text)}")
        return value

    return read


def seconds(text: str) -> float:
    """A time limit; infinity is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, not {clipped(text)}")
    return value


def spelled_out(argv: Sequence[str]) -> Iterator[str]:
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


def described(
    commands: Any, run: Callable[..., int], name: str, summary: str, details: str, problems: bool = False
) -> argparse.ArgumentParser:
    """A command with what all commands have: a model file, or perhaps that of a problem, and what in it is not
    believed."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=details, allow_abbrev=False
    )
    files = "model file (TOML, SBML or Antimony)"
    parser.add_argument("model", metavar="MODEL", help=f"{files}, or a PEtab problem (YAML)" if problems else files)
    parser.add_argument(
        "--free",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="look for these although the file has numbers for them: parameters, or states for their initial values",
    )
    parser.set_defaults(run=run)
    return parser


# --- values ---


def add_values(parser: argparse.ArgumentParser) -> None:
    """The option that `read_values` reads."""
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of a parameter, or of a state at the earliest time; may be repeated and take several pairs",
    )


def read_values(pairs: Sequence[str], model: Model) -> dict[str, float]:
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
        values[name] = read_number(text, f"--set {clipped(pair)}")
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


def read_number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(f"{where}: {clipped(text)} is not a finite number")
    return value


def read_times(text: str) -> np.ndarray:
    """START:STOP:COUNT, or numbers separated by commas."""
    import numpy as np

    where = f"--times {clipped(text)}"
    if ":" not in text:
        return np.array([read_number(part, where) for part in text.split(",")])
    parts = text.split(":")
    if len(parts) != 3:
        raise ModelError(f"{where}: expected START:STOP:COUNT, such as 0:20:750")
    start, stop = (read_number(part, where) for part in parts[:2])
    if not parts[2].strip().isdecimal() or len(parts[2]) > 20 or not 2 <= int(parts[2]) <= MAX_TIMES:
        raise ModelError(f"{where}: the count must be a whole number from 2 to {MAX_TIMES}, not {clipped(parts[2])}")
    return np.linspace(start, stop, int(parts[2]))


def read_box(ends: Sequence[str] | None) -> tuple[float, float] | None:
    if ends is None:
        return None
    low, high = (read_number(end, f"--bounds {clipped(' '.join(ends))}") for end in ends)
    if not low < high:
        raise ModelError(f"--bounds {low:g} {high:g}: the first must be below the second; exchange them")
    return low, high


def read_noise(given: Sequence[str], model: Model) -> Any:
    """What is known of the noise: of all outputs, or by output."""
    if len(given) == 1 and "=" not in given[0]:
        return _number_or_text(given[0])
    table: dict[str, float | str] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ModelError(f"--noise {clipped(pair)}: with several outputs expected OUTPUT=NOISE, such as y1=0.1")
        if name not in model.outputs:
            raise ModelError(f"--noise {clipped(pair)}: the model has no output '{name}'{nearest(name, model.outputs)}")
        if name in table:
            raise ModelError(f"--noise {clipped(pair)}: the noise of {name} is already given; give it once")
        table[name] = _number_or_text(text)
    return table or None


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def read_texts(pairs: Sequence[str], option: str, expected: str) -> dict[str, str]:
    """NAME=TEXT pairs; what is none of these is told what was expected."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = unicodedata.normalize("NFKC", name.strip())
        if not name or not equals or not text.strip():
            raise ModelError(f"{option} {clipped(pair)}: expected {expected}")
        if name in found:
            raise ModelError(f"{option} {clipped(pair)}: {name} is already given; give it once")
        found[name] = text
    return found


def read_known(pairs: Sequence[str], option: str) -> dict[str, float | str]:
    """NAME=VALUE pairs, the values numbers or expressions in parameters."""
    told = read_texts(pairs, option, "NAME=VALUE, such as k1=0.3 or k3=k1")
    return {name: _number_or_text(text) for name, text in told.items()}


def read_values_by_experiment(pairs: Sequence[str]) -> dict[str, dict[str, float | str]]:
    """EXPERIMENT:NAME=VALUE pairs, by experiment."""
    tables: dict[str, list[str]] = {}
    for pair in pairs:
        experiment, colon, rest = pair.partition(":")
        if not colon or not experiment.strip():
            raise ModelError(f"--values {clipped(pair)}: expected EXPERIMENT:NAME=VALUE, such as hot:T=310")
        tables.setdefault(experiment.strip(), []).append(rest)
    return {experiment: read_known(rest, "--values") for experiment, rest in tables.items()}


# --- files ---


def check_files(arguments: argparse.Namespace) -> None:
    """Refuse, before any work, to write what is read, two things into one file, or what cannot be written."""
    given = vars(arguments)
    reads = {"model": "the model file", "data": "the file of the data", "inputs": "the file of the inputs"}
    reads["doses"] = "the file of the doses"
    writes = {"plot": "--plot", "output": "-o", "json": "--json", "report": "--report", "pypesto": "--pypesto"}
    taken = {what: given.get(key) for key, what in reads.items()}
    if [given.get("json"), given.get("report")] == ["-", "-"]:
        raise ModelError("--json and --report cannot both be stdout; name a file for one of them")
    for option, path in ((option, given.get(key)) for key, option in writes.items()):
        if path == "":
            raise ModelError(f"{option}: the name of the file is empty; name one")
        if path and path != "-":
            for use, other in taken.items():
                if other and is_same(path, other):
                    raise ModelError(f"{path}: this is {use}; name another file to write to")
            check_writable(path)
            taken[f"what {option} writes too"] = path


def is_same(one: str, other: str) -> bool:
    """Whether two names are those of one file, which need not exist."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)
