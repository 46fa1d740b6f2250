"""Gate: whether this code is slower than a reference commit, by more than a tenth, at anything that people wait for.

python -m benchmarks gate [--reference COMMIT] [--rounds 7] [--limit 1.10] [--only TASK ...]

Both states of the code run in processes of their own, in turns, on the same machine and with the same packages, so that
only ratios count and no number has to be kept from one machine to the next.  The time of a task is the least processor
time of its rounds: whatever else runs can only add to it.  A task that seems slower is measured again, and only one
that stays slower fails: the exit status is then 1.

The reference commit is `REFERENCE`.  Move it when a release is made, or when a measured loss is accepted; the commit
message says why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from benchmarks.sideby import ROOT, Worker

REFERENCE = "ffeccde2b0a8640e1899c25e2c442b08f701cbd3"
LIMIT = 1.10
ROUNDS = 7
AGAIN = 2
"""Further measurements of a task that seems slower."""

PROGRAM = Path(__file__).with_name("gate_worker.py")
KEPT = ROOT / "out" / "gate"
"""Where checkouts of reference commits stay, with their compiled kernels."""

TASKS = ("simulate", "sensitivities", "stiff", "identify", "decay", "enzyme", "predators", "experiments", "profile")


@dataclass(frozen=True)
class Timed:
    """The least processor seconds of a task in the reference and in this code."""

    task: str
    reference: float
    current: float

    @property
    def ratio(self) -> float:
        return self.current / self.reference


def checkout(commit: str) -> Path:
    """Return a folder with the files of a commit; made once."""
    place = KEPT / commit[:12]
    if not (place / "src").is_dir():
        told = subprocess.run(["git", "archive", commit, "src", "examples"], cwd=ROOT, capture_output=True, check=False)
        if told.returncode:
            raise SystemExit(f"commit {commit[:12]} is not in this copy of the repository; try git fetch --unshallow")
        place.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=BytesIO(told.stdout)) as files:
            files.extractall(place, filter="data")
    return place


def measure(task: str, workers: Sequence[Worker], rounds: int) -> Timed:
    """Time a task in both codes, in turns; the first answer of each compiles kernels and does not count."""
    least = [float("inf")] * len(workers)
    for number in range(rounds + 1):
        # The order alternates: whoever comes second may find caches warm, or the machine busy.
        for place in (0, 1) if number % 2 else (1, 0):
            answer = workers[place].ask({"task": task})
            if "failure" in answer:
                raise SystemExit(f"{task} failed in {workers[place].directory}: {answer['failure']}")
            if number:
                least[place] = min(least[place], answer["seconds"])
    return Timed(task, *least)


def judged(task: str, workers: Sequence[Worker], rounds: int, limit: float) -> Timed:
    """Time a task, again while it seems slower; the best of the measurements counts."""
    timed = measure(task, workers, rounds)
    for _ in range(AGAIN):
        if timed.ratio <= limit:
            break
        again = measure(task, workers, rounds)
        timed = Timed(task, min(timed.reference, again.reference), min(timed.current, again.current))
    return timed


def table(rows: Sequence[Timed], limit: float) -> str:
    lines = [f"{'task':14} {'reference s':>12} {'this s':>10} {'ratio':>7}"]
    for row in rows:
        mark = "  slower" if row.ratio > limit else ""
        lines.append(f"{row.task:14} {row.reference:12.4f} {row.current:10.4f} {row.ratio:7.3f}{mark}")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gate", description=__doc__)
    parser.add_argument("--reference", default=REFERENCE, metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="how often each task is timed")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="RATIO", help="the largest ratio that passes")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=TASKS, metavar="TASK", help="some of the tasks")
    options = parser.parse_args(argv)
    workers = [Worker(folder, PROGRAM) for folder in (checkout(options.reference), ROOT)]
    try:
        rows = [judged(task, workers, options.rounds, options.limit) for task in options.only]
    finally:
        for worker in workers:
            worker.close()
    print(table(rows, options.limit))
    slower = [row.task for row in rows if row.ratio > options.limit]
    if slower:
        print(f"slower than {options.reference[:12]} by more than the limit: {', '.join(slower)}", file=sys.stderr)
    return 1 if slower else 0
