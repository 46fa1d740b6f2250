"""Task: what is to be fitted, with which options, within which time, and the record of what was done."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from odejet.budget import Budget
from odejet.clock import worked
from odejet.jets import compilation
from odejet.objective.misfit import Misfit
from odejet.problem import Problem
from odejet.progress import Progress
from odejet.search.box import sampled_box
from odejet.search.candidates import Census
from odejet.search.local_search import IteratedLocalSearch
from odejet.search.multistart import Multistart
from odejet.search.roughness import curves
from odejet.search.strategies import EVERY, Named
from odejet.search.strategy import Strategy
from odejet.search.windows import GrowingWindows

Kind = TypeVar("Kind")

LIMITS = {"quick": 60.0, "auto": 120.0, "full": 1200.0}
"""Seconds after which a fit gives up, unless told otherwise; what it tries is counted and mostly ends long before."""

SHARES = {
    "look": 0.1,
    "apart": 0.8,
    "identify": 0.1,
    "smooth": 0.1,
    "algebra": 0.1,
    "match": 0.1,
    "rank": 0.1,
    "refine": 0.25,
    "alternatives": 0.1,
    "stretches": 0.5,
}
"""Parts of the time limit that a stage may take each time it runs; the search of the box may take all that is left.
Mostly a stage tells what it can in a fraction of this, and no stage keeps the others from being tried."""

NOTABLE = 0.1
"""Seconds of compiling kernels that are told; below, they were only loaded."""


@dataclass(frozen=True)
class Options:
    """How a fit is searched for."""

    seed: int = 0
    jobs: int = 1
    effort: str = "auto"
    refine: bool = True
    estimators: tuple[str, ...] | None = None
    time_limit: float = LIMITS["auto"]
    strategies: tuple[Named, ...] = EVERY
    executor: Executor | None = None  # works ahead of the search

    def strategy(self, kind: type[Kind]) -> Kind | None:
        """The settings of a strategy; None where it is not wanted."""
        return next((one for one in self.strategies if isinstance(one, kind)), None)

    @property
    def box(self) -> tuple[Strategy, ...]:
        """Those strategies that search the box."""
        kinds = Multistart, GrowingWindows, IteratedLocalSearch
        return tuple(one for one in self.strategies if isinstance(one, kinds))


@dataclass
class Record:
    """What became of everything that was tried, and how long it took; written by all stages, read by none."""

    progress: Progress
    census: Census = field(default_factory=Census)
    stages: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=worked)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.progress.stage(name)
        begin, compiled = worked(), compilation.seconds()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + worked() - begin
            if (compiling := compilation.seconds() - compiled) > NOTABLE:
                self.stages["compile"] = self.stages.get("compile", 0.0) + compiling

    @property
    def seconds(self) -> float:
        return worked() - self.began + self.stages.get("compile", 0.0)


@dataclass(frozen=True, eq=False)
class Task:
    """A question to the search; nothing of it changes but the record and what is left of the budget."""

    problem: Problem
    options: Options
    budget: Budget
    record: Record

    @cached_property
    def misfit(self) -> Misfit:
        return replace(self.problem.misfit, jobs=self.options.jobs)

    @cached_property
    def curves(self) -> float:
        """How many essentially different curves the box has."""
        frame = self.problem.frame()
        return curves(self.misfit, frame, sampled_box(frame, self.problem.sizes), self.budget.deadline)

    @contextmanager
    def stage(self, name: str, last: bool = False) -> Iterator[Budget]:
        """Work that is recorded under a name, and what it may take: its share, or all that is left for the last."""
        with self.record.stage(name):
            share = 1.0 if last else SHARES.get(name, 1.0)
            yield self.budget.at_most(seconds=share * self.options.time_limit)

    @property
    def left(self) -> float:
        """Seconds before the fit gives up; compiling kernels does not count."""
        return self.budget.seconds
