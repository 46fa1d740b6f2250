"""Workers: how much sooner further processes bring a fit to its optimum, in processor seconds.

    python -m benchmarks workers [FOLDER] [--only NAMES] [--seeds S ...] [--limit SECONDS] [--jobs N] [--output FILE]

On a machine that others use seconds on the wall tell nothing.  So a fit is made by one process, which also does what
the others would do, and two clocks are kept by its processor seconds: that of a fit alone, to which everything that it
asks for counts, and that of the process that asks when others work ahead, to which counts what it does itself, what it
takes to pack and unpack, and how long it waits.  What others do that nobody asks for in the end counts for neither, but
keeps them from other work.  The answers are those of any number of workers, so that both clocks belong to one fit.  An
arrival is when the search first has an optimum within 0.1 of the best that is known of a problem.  The collection of
published problems must be beside the project; every fit is one line of a file, so that stopping and starting again
repeats nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import pickle
import statistics
import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import odejet as oj
from benchmarks import lines as records
from benchmarks.collection import FOLDER, names, yaml_of
from odejet import clock
from odejet.jets import compilation
from odejet.search import pool, portfolio
from odejet.search import workers as module
from odejet.search.refine import Refined
from odejet.search.strategy import Evidence
from odejet.search.workers import Question, Timed, Workers

OUTPUT = Path(__file__).parent / "results" / "workers.jsonl"
BEST = Path(__file__).parent / "results" / "collection" / "collection.jsonl"

SHORT = 0.1
"""Units of the log-likelihood below the best known that count as arriving."""

SLOWER = (
    "Alkan_SciSignal2018",
    "Bachmann_MSB2011",
    "Borghans_BiophysChem1997",
    "Crauste_CellSystems2017",
    "Elowitz_Nature2000",
    "Fujita_SciSignal2010",
    "Isensee_JCB2018",
    "Raia_CancerResearch2011",
    "Weber_BMC2015",
    "Zheng_PNAS2012",
)
"""The problems that took longest to arrive when the collection was fitted on one core."""


@dataclass
class Timeline:
    """The clocks of a fit, in processor seconds."""

    others: int  # processes beside the one that asks
    goal: float = -math.inf
    elsewhere: float = 0.0  # done by others
    asked: float = 0.0  # of that, what was asked for
    waited: float = 0.0
    free: list[float] = field(default_factory=list)  # when each of the others has nothing to do
    arrived: tuple[float, float] | None = None
    best: float = math.inf

    def __post_init__(self) -> None:
        self.free = [0.0] * self.others
        self.began = _processor()

    @property
    def here(self) -> float:
        """What this process has done itself."""
        return _processor() - self.began - self.elsewhere

    @property
    def now(self) -> float:
        """Where the process that asks would be."""
        return self.here + self.waited

    @property
    def alone(self) -> float:
        """Where a process without others would be."""
        return self.here + self.asked

    def take_note(self, end: Refined) -> None:
        self.best = min(self.best, end.cost)
        if self.arrived is None and end.cost <= self.goal:
            self.arrived = self.alone, self.now
            clock.hurry()  # the rest is of no interest


def _processor() -> float:
    return time.process_time() - compilation.seconds()


class Simulated(Workers):
    """Others whose work is done here, at the times of a timeline."""

    timeline: Timeline

    def __init__(self, subject: Timed, executor: Any = None) -> None:
        super().__init__(subject, executor)
        self._done: dict[Hashable, tuple[bytes, float, float]] = {}  # the answer, what it took and when it is there

    def foresee(self, topic: Hashable, questions: Iterable[Question]) -> None:
        self.feed()
        self._topics.pop(topic, None)
        if waiting := deque(one for one in questions if one.key not in self._done):
            self._topics[topic] = waiting
        self.feed()

    def feed(self) -> None:
        """Do what others would have begun by now."""
        line = self.timeline
        if not line.free or clock.now() - self.began <= module.PATIENCE:
            return
        while (begin := min(line.free)) <= line.now:
            who, question = line.free.index(begin), self._next()
            if question is None:
                line.free = [max(one, line.now) for one in line.free]
                return
            if question.key in self._done:
                continue
            message = pool.dumped((question.asked, question.item))
            start = _processor()
            asked, item = pickle.loads(message)
            reply = pool.dumped(asked(self.subject, item))
            seconds = _processor() - start
            line.elsewhere += seconds
            line.free[who] = begin + seconds
            self._done[question.key] = reply, seconds, line.free[who]

    def known(self, key: Hashable) -> Any:
        reply, _, when = self._done.get(key, (b"", 0.0, math.inf))
        return pickle.loads(reply) if when <= self.timeline.now else None

    def ask(self, question: Question) -> Any:
        self.feed()
        for topic, waiting in self._topics.items():
            self._topics[topic] = deque(one for one in waiting if one.key != question.key)
        if question.key not in self._done:
            return question.asked(self.subject, question.item)
        reply, seconds, when = self._done.pop(question.key)
        line = self.timeline
        line.asked += seconds
        line.waited += max(when - line.now, 0.0)
        return pickle.loads(reply)


@contextmanager
def simulated(line: Timeline) -> Iterator[None]:
    """Let all searches have others, and all limits count the time of the process that asks."""
    plain = Evidence.add

    def add(self: Evidence, end: Refined) -> None:
        plain(self, end)
        line.take_note(end)

    Simulated.timeline = line
    ticks = SimpleNamespace(perf_counter=lambda: time.process_time() - line.elsewhere + line.waited)
    with (
        mock.patch.object(portfolio, "Workers", Simulated),
        mock.patch.object(Evidence, "add", add),
        mock.patch.object(clock, "time", ticks),
    ):
        yield


class Someone(pool.Pool):
    """An executor that is never asked: its work is done here."""

    def __init__(self) -> None:
        super().__init__(0)


def measured(folder: Path, seed: int, limit: float, jobs: int, goal: float) -> dict[str, Any]:
    """One fit, up to its arrival."""
    problem = oj.read_petab(yaml_of(folder))
    line = Timeline(jobs - 1, goal)
    with simulated(line), contextlib.suppress(KeyboardInterrupt):  # which is how a fit ends that has arrived
        oj.fit(problem, seed=seed, time_limit=limit, executor=Someone())
    alone, together = line.arrived or (line.alone, line.now)
    return {
        "problem": folder.name,
        "seed": seed,
        "jobs": jobs,
        "limit": limit,
        "arrived": line.arrived is not None,
        "short": round(line.best - goal + SHORT, 3),
        "alone": round(alone, 2),
        "together": round(together, 2),
        "waited": round(line.waited, 2),
        "dropped": round(line.elsewhere - line.asked, 2),
    }


def goals() -> dict[str, float]:
    """The lowest cost of each problem that any fit of the collection has found."""
    found: dict[str, float] = {}
    for text in BEST.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        if "course" in row:
            found[row["problem"]] = min(found.get(row["problem"], math.inf), row["course"][-1][1])
    return found


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line per fit, and how much sooner the median is."""
    told = ["| problem | seed | arrived | alone, s | together, s | times as soon |", "|---|---|---|---|---|---|"]
    ratios = []
    for row in sorted(rows, key=lambda row: (row["problem"], row["seed"])):
        ratios.append(row["alone"] / row["together"])
        name = row["problem"].partition("_")[0]
        arrived = "yes" if row["arrived"] else f"no, {row['short']:.1f} short"
        told.append(
            f"| {name} | {row['seed']} | {arrived} | {row['alone']:.1f} | {row['together']:.1f} | {ratios[-1]:.2f} |"
        )
    if ratios:
        told += ["", f"median of {len(ratios)}: {statistics.median(ratios):.2f}, least {min(ratios):.2f}"]
    return "\n".join(told)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks workers", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    told = parser.parse_args(argv)
    if not names(told.folder):
        print(f"the published problems are not here: {told.folder} is missing")
        return 2
    done, known = records.read(told.output), goals()
    for name in [one for one in SLOWER if not told.only or any(one.startswith(start) for start in told.only)]:
        for seed in told.seeds:
            if any((row["problem"], row["seed"], row["jobs"]) == (name, seed, told.jobs) for row in done):
                continue
            done.append(measured(told.folder / name, seed, told.limit, told.jobs, known[name] + SHORT))
            records.add(told.output, done[-1])
            print(done[-1], flush=True)
    print(table([row for row in done if row["jobs"] == told.jobs]))
    return 0
