"""SBML: semantic cases that others wrote, simulated: passed, refused by name, or wrong?

    python -m benchmarks sbml ZIP [--only NUMBERS] [--write]

ZIP is an archive or a folder of cases as in the SBML Test Suite: for each case a model, settings, results and a page
that tells which features it tests.  A case passes if every variable agrees with the results at every time within the
tolerances of its settings; it is refused if the reader says in a sentence what it does not support, or if the
simulation says why it ends; anything else is wrong.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import odejet as oj
from odejet.io.sbml import read_network
from odejet.io.sbml.building import model_of
from odejet.io.sbml.network import Network
from odejet.model.expressions import Expression, Symbol

RESULTS = Path(__file__).parent / "results" / "sbml"
PASSED, REFUSED, WRONG = "passed", "refused", "wrong"
_OUTPUT = "variable_{}"


@dataclass(frozen=True)
class Case:
    """One case: a model, what is asked of it and what it should answer."""

    number: str
    model: Path
    times: np.ndarray
    expected: dict[str, np.ndarray]
    amounts: frozenset[str]
    concentrations: frozenset[str]
    absolute: float
    relative: float
    features: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Answer:
    number: str
    verdict: str
    reason: str = ""
    features: tuple[str, ...] = field(default=(), repr=False)


# --- cases ------------------------------------------------------------------------------------------------------------


def cases(folder: Path, only: Iterable[str] = ()) -> Iterator[Case]:
    """The cases in a folder, by number."""
    wanted = set(only)
    for settings in sorted(folder.rglob("*-settings.txt")):
        number = settings.name.removesuffix("-settings.txt")
        if not wanted or number in wanted:
            yield _case(number, settings)


def _case(number: str, path: Path) -> Case:
    told = dict(re.findall(r"^(\w+):[ \t]*(.*?)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE))
    page = (path.parent / f"{number}-model.m").read_text(encoding="utf-8", errors="replace")
    tags = dict(re.findall(r"^(\w+):[ \t]*(.*?)\s*$", page, re.MULTILINE))
    # Flux balances have no times, and their models are read all the same, to see what is said of them.
    start, duration, steps = (float(told.get(key) or 0) for key in ("start", "duration", "steps"))
    return Case(
        number,
        max(path.parent.glob(f"{number}-sbml-l?v?.xml")),
        np.linspace(start, start + duration, int(steps) + 1),
        _results(path.parent / f"{number}-results.csv"),
        frozenset(_listed(told.get("amount", ""))),
        frozenset(_listed(told.get("concentration", ""))),
        float(told["absolute"]),
        float(told["relative"]),
        tuple(sorted({*_listed(tags.get("componentTags", "")), *_listed(tags.get("testTags", ""))})),
        tags.get("testType", "TimeCourse"),
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _results(path: Path) -> dict[str, np.ndarray]:
    rows = [row for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8"))) if row]
    columns = zip(*rows[1:], strict=True)
    return {
        name.strip(): np.array([float(cell) for cell in column])
        for name, column in zip(rows[0], columns, strict=True)
        if name.strip().lower() != "time"
    }


# --- answers ----------------------------------------------------------------------------------------------------------


def answer(case: Case) -> Answer:
    """What odejet makes of a case."""
    try:
        network = read_network(case.model)
        outputs = {_OUTPUT.format(i): _asked(network, name, case) for i, name in enumerate(case.expected)}
        model = model_of(network, outputs)
        simulation = oj.simulate(model, {}, {}, case.times, start=0.0)
    except oj.ModelError as error:
        reason = " ".join(str(error).splitlines()[0].replace(f"{case.model}: ", "").split())
        return Answer(case.number, REFUSED, reason, case.features)
    if not simulation.success:
        return Answer(case.number, REFUSED, simulation.message, case.features)
    for i, (name, expected) in enumerate(case.expected.items()):
        found = simulation[_OUTPUT.format(i)]
        allowed = case.absolute + case.relative * np.abs(expected)
        bad = ~(np.abs(found - expected) <= allowed)
        if bad.any():
            k = int(np.argmax(bad))
            reason = f"{name} at t = {case.times[k]:g} is {found[k]:g}, not {expected[k]:g}"
            return Answer(case.number, WRONG, reason, case.features)
    return Answer(case.number, PASSED, "", case.features)


def _asked(network: Network, id_: str, case: Case) -> Expression:
    """What the settings ask for: an amount, a concentration, or what the id means."""
    network.expression(id_)
    name = network.name_of[id_]
    table = network.amounts if id_ in case.amounts else network.concentrations if id_ in case.concentrations else {}
    return table.get(name, Symbol(name))


# --- the whole --------------------------------------------------------------------------------------------------------


def by_feature(answers: Iterable[Answer]) -> dict[str, Counter[str]]:
    """How many cases of each feature passed, were refused and were wrong."""
    table: dict[str, Counter[str]] = {}
    for one in answers:
        for feature in one.features:
            table.setdefault(feature, Counter())[one.verdict] += 1
    return dict(sorted(table.items(), key=lambda item: (":" in item[0], item[0].lower())))


def table(answers: list[Answer]) -> str:
    """The counts as a table in Markdown."""
    lines = ["| feature | cases | passed | refused | wrong |", "|---|---:|---:|---:|---:|"]
    total = Counter(one.verdict for one in answers)
    for feature, counts in [("**all**", total), *by_feature(answers).items()]:
        cells = [sum(counts.values()), *(counts[verdict] for verdict in (PASSED, REFUSED, WRONG))]
        lines.append(f"| {feature} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def unpacked(path: Path, into: Path) -> Path:
    """The folder of the cases: as given, or what is in an archive."""
    if path.is_dir():
        return path
    with zipfile.ZipFile(path) as archive:
        archive.extractall(into)
    return into


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sbml", description=__doc__.split("\n", 1)[0])
    parser.add_argument("path", type=Path, metavar="ZIP", help="an archive or a folder of cases")
    parser.add_argument("--only", default="", help="numbers of cases, separated by commas")
    parser.add_argument("--write", action="store_true", help=f"keep the answers and the table in {RESULTS}")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpacked(arguments.path, Path(scratch))
        begun, answers = time.process_time(), []
        for case in cases(folder, _listed(arguments.only)):
            one = answer(case)
            answers.append(one)
            if one.verdict != PASSED:
                print(f"{one.number} {one.verdict}: {one.reason}", flush=True)
    print(f"\n{table(answers)}\n")
    counts = Counter(one.verdict for one in answers)
    share = 100 * counts[PASSED] / max(len(answers), 1)
    seconds = time.process_time() - begun
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (PASSED, REFUSED, WRONG))
    print(f"{told}; {share:.1f} % passed, {seconds:.0f} CPU s")
    if arguments.write:
        RESULTS.mkdir(parents=True, exist_ok=True)
        lines = ["case,verdict,reason", *(f'{one.number},{one.verdict},"{_quoted(one.reason)}"' for one in answers)]
        (RESULTS / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (RESULTS / "features.md").write_text(table(answers) + "\n", encoding="utf-8")
    return int(counts[WRONG] > 0)


def _quoted(text: str) -> str:
    return text.replace('"', "'")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
