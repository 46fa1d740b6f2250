"""BioModels: published models simulated beside libroadrunner: right, wrong, ended early, or refused by name?

    python -m benchmarks biomodels ZIP [--only NAMES] [--limit SECONDS] [--jobs N] [--kept FILE] [--write]

ZIP is an archive or a folder with, for each model, NAME.xml, the course that libroadrunner computes (NAME.npz: `names`
and `a`, one row per time) and how that went (NAME.json).  Every quantity that libroadrunner shows is compared at every
time: it agrees if it differs by less than 1e-4 of itself, or of a thousandth of the largest that it becomes.  Answers
are kept in FILE as they come, and a run that was interrupted goes on from there.  libroadrunner is a peer and not the
truth: a difference that was looked into is written down in the table of judgements, with its reason.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from benchmarks.sbml import unpacked

RESULTS = Path(__file__).parent / "results" / "biomodels"
JUDGEMENTS = RESULTS / "judgements.csv"
RIGHT, WRONG, JUDGED, EARLY, REFUSED, SILENT = "right", "wrong", "judged", "ends early", "refused", "no reference"
VERDICTS = (RIGHT, WRONG, JUDGED, EARLY, REFUSED, SILENT)
AGREE = 1e-4
SMALL = 1e-3
"""Of the largest value of a quantity: below it, differences are relative to this."""

ABSOLUTE = 1e-12
"""Below it both are zero: libroadrunner's absolute tolerance is 1e-16 at best, of states that may be summed up."""


@dataclass(frozen=True)
class Answer:
    name: str
    verdict: str
    reason: str = ""
    reading: float = 0.0  # seconds to the model
    simulating: float = 0.0
    their_reading: float = 0.0
    states: int = 0


# --- one model --------------------------------------------------------------------------------------------------------


def answer(folder: Path, name: str) -> Answer:
    """What odejet makes of a model, beside what libroadrunner made of it."""
    import odejet as oj
    from odejet.io.sbml import read_network
    from odejet.io.sbml.building import model_of

    told = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    theirs = float(told.get("load") or 0)
    begun = time.perf_counter()
    try:
        network = read_network(folder / f"{name}.xml")
        wanted, times, expected = (
            course(folder / f"{name}.npz", network) if told["ok"] else ({}, np.linspace(0, 100, 101), {})
        )
        model = model_of(network, wanted or None)
        read = time.perf_counter() - begun
        begun = time.perf_counter()
        found = oj.simulate(model, {}, {}, times, start=0.0)
        simulated = time.perf_counter() - begun
    except (oj.ModelError, oj.DataError) as error:
        reason = " ".join(str(error).replace(str(folder / f"{name}.xml"), "").strip(": ").split())
        return Answer(name, REFUSED, reason[:300], time.perf_counter() - begun, 0.0, theirs)
    clock = read, simulated, theirs, len(model.states)
    if not found.success:
        return Answer(name, EARLY, found.message, *clock)
    if not told["ok"]:
        return Answer(name, SILENT, str(told.get("err") or told.get("errtight") or "")[:200], *clock)
    reason = difference(found, times, expected)
    return Answer(name, WRONG if reason else RIGHT, reason, *clock)


def course(path: Path, network):
    """Expressions of what libroadrunner shows, the times, and its values: brackets are concentrations."""
    from odejet.model.expressions import Symbol

    kept = np.load(path, allow_pickle=False)
    wanted, expected = {}, {}
    for i, shown in enumerate(map(str, kept["names"])):
        id_ = shown.strip("[]")
        if shown == "time" or id_ not in network.name_of:
            continue
        own = network.name_of[id_]
        table = network.concentrations if shown.startswith("[") else network.amounts
        wanted[f"shown_{i}"] = table.get(own, Symbol(own))
        expected[f"shown_{i}"] = (shown, kept["a"][:, i])
    return wanted, kept["a"][:, 0], expected


def difference(found, times: np.ndarray, expected: dict[str, tuple[str, np.ndarray]]) -> str:
    """The largest difference in words; nothing, if everything agrees."""
    worst, reason, count = 1.0, "", 0
    for output, (shown, values) in expected.items():
        largest = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 0.0
        allowed = AGREE * np.maximum(np.abs(values), SMALL * largest) + ABSOLUTE
        excess = np.abs(found[output] - values) / allowed
        excess[np.isnan(values) & np.isnan(found[output])] = 0.0
        excess[np.isnan(excess)] = np.inf
        count += bool(excess.max() > 1)
        if excess.max() > worst:
            k, worst = int(np.argmax(excess)), float(excess.max())
            reason = f"{shown} at t = {times[k]:g} is {found[output][k]:.7g}, not {values[k]:.7g}"
    return f"{reason} ({count} of {len(expected)})" if reason else ""


# --- all, each for a limited time -------------------------------------------------------------------------------------


def _serve(pipe: Connection, folder: Path) -> None:
    while (name := pipe.recv()) is not None:
        try:
            pipe.send(answer(folder, name))
        except Exception as error:  # whatever it is, it is an answer that somebody has to look at
            pipe.send(Answer(name, WRONG, f"{type(error).__name__}: {error}"[:300]))


class Worker:
    """A process that answers one model after the other, and is replaced where one takes too long."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, self.folder), daemon=True)
        self.process.start()
        there.close()

    def ask(self, name: str) -> Answer:
        self.pipe.send(name)
        try:
            if self.pipe.poll(self.limit):
                found: Answer = self.pipe.recv()
                return found
            reason = f"not done after {self.limit:g} s"
        except EOFError:
            reason = "the process died"
        self.process.kill()
        self.process.join()
        self._begin()
        return Answer(name, EARLY, reason)

    def end(self) -> None:
        self.pipe.send(None)
        self.process.join()


def answered(folder: Path, names: list[str], limit: float, jobs: int) -> Iterator[Answer]:
    """The answers to all models, in their order."""
    idle = [Worker(folder, limit) for _ in range(jobs)]

    def ask(name: str) -> Answer:
        worker = idle.pop()
        try:
            return worker.ask(name)
        finally:
            idle.append(worker)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(ask, names)
    for worker in idle:
        worker.end()


# --- tables -----------------------------------------------------------------------------------------------------------


def kept_answers(path: Path) -> dict[str, Answer]:
    if not path.exists():
        return {}
    kinds = {field.name: {"str": str, "float": float, "int": int}[str(field.type)] for field in fields(Answer)}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{key: kinds[key](cell) for key, cell in row.items()} for row in csv.DictReader(file)]
    return {row["name"]: Answer(**row) for row in rows}


def judgements(path: Path) -> dict[str, str]:
    """What was found out about differences, by model."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: row["judgement"] for row in csv.DictReader(file)}


def table(answers: Iterable[Answer]) -> str:
    answers = list(answers)
    counts = Counter(one.verdict for one in answers)
    lines = ["| verdict | models | share |", "|---|---:|---:|"]
    lines += [
        f"| {verdict} | {counts[verdict]} | {100 * counts[verdict] / max(len(answers), 1):.1f} % |"
        for verdict in VERDICTS
    ]
    read = [one for one in answers if one.verdict != REFUSED and one.reading]
    if read:
        ours, theirs = (np.median([getattr(one, key) for one in read]) for key in ("reading", "their_reading"))
        lines += ["", f"reading: {ours:.3f} s in the median, libroadrunner {theirs:.3f} s"]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks biomodels", description=__doc__.split("\n", 1)[0])
    parser.add_argument("path", type=Path, metavar="ZIP", help="an archive or a folder of models with their courses")
    parser.add_argument("--only", default="", help="beginnings of names, separated by commas")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one model")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kept", type=Path, default=RESULTS / "answers.csv", help="where answers are kept")
    parser.add_argument("--judged", type=Path, default=JUDGEMENTS, help="the table of judgements")
    parser.add_argument("--again", action="store_true", help="forget the answers that are kept")
    parser.add_argument("--write", action="store_true", help="keep the table of counts beside the answers")
    arguments = parser.parse_args(argv)
    arguments.kept.parent.mkdir(parents=True, exist_ok=True)
    if arguments.again:
        arguments.kept.unlink(missing_ok=True)
    judged, known = judgements(arguments.judged), kept_answers(arguments.kept)
    begins = tuple(part for part in arguments.only.split(",") if part) or ("",)
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpacked(arguments.path, Path(scratch))
        names = [name for name in sorted(path.stem for path in folder.glob("*.xml")) if name.startswith(begins)]
        new = not known
        with arguments.kept.open("a", encoding="utf-8", newline="") as file:
            rows = csv.DictWriter(file, [field.name for field in fields(Answer)])
            if new:
                rows.writeheader()
            for one in answered(folder, [name for name in names if name not in known], arguments.limit, arguments.jobs):
                if one.verdict == WRONG and one.name in judged:
                    one = Answer(**{**asdict(one), "verdict": JUDGED, "reason": f"{one.reason}: {judged[one.name]}"})
                rows.writerow(asdict(one))
                file.flush()
                known[one.name] = one
                if one.verdict not in (RIGHT, SILENT):
                    print(f"{one.name} {one.verdict}: {one.reason}", flush=True)
    told = table(known[name] for name in names)
    print(f"\n{told}")
    if arguments.write:
        (arguments.kept.parent / "table.md").write_text(told + "\n", encoding="utf-8")
    return int(any(known[name].verdict == WRONG for name in names))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
