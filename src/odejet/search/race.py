"""Race: many starts, of which those go on that have come down farthest.

After a few evaluations the cost tells which of several starts are worth more.  So each is refined for one lap at a time
and begins the next only if it is among the best of all that ever ended this one: successive halving that waits for
nobody (Li et al. 2020).  The first start goes all the way, so that there is an answer early; later ones go on the
farther, the better they are.  Simulations are rough on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.clock import now
from odejet.objective.courses import ROUGH, Effort
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import Ending, Refined, refine

LAPS = (30, 60, 120, 300)
"""Evaluations in each lap: as much work in each, if half go on."""

KEPT = 2
"""One of so many begins the next lap."""

PACE = 3.0
"""Times the pace of its last lap, at which a start must come to the best in the next one to begin it."""


@dataclass
class Runner:
    """A start at the end of a lap."""

    at: Refined
    gained: float = math.inf  # in this lap, where it was not the first
    gone: bool = False  # whether it has begun the next lap

    @property
    def waits(self) -> bool:
        """Whether it could go on."""
        return not self.gone and self.at.ending is Ending.EVALUATION_LIMIT


@dataclass
class Race:
    """The starts that have ended each lap."""

    misfit: Misfit
    frame: Coordinates
    levels: np.ndarray | None
    deadline: float
    laps: list[list[Runner]] = field(default_factory=lambda: [[] for _ in LAPS])
    spent: int = 0  # evaluations

    @classmethod
    def on(
        cls, misfit: Misfit, frame: Coordinates, levels: np.ndarray | None, deadline: float, effort: Effort = ROUGH
    ) -> Race:
        return cls(misfit.window(1.0, effort=effort), frame, levels, deadline)

    def enter(self, start: np.ndarray, first: Refined | None = None) -> Iterator[Refined]:
        """Where a new start ends, and those that go on now that it has run; its first lap may be known already."""
        yield from self.ended(start, self.run(start, 0) if first is None else first, 0)
        while (found := self.next()) is not None and now() < self.deadline:
            lap, runner = found
            runner.gone = True
            yield from self.ended(runner.at.start, self.run(runner.at.z, lap + 1), lap + 1, runner.at.cost)

    def run(self, z: np.ndarray, lap: int) -> Refined:
        """One lap from where a start has come."""
        return refine(
            self.misfit,
            z,
            levels=self.levels,
            time_limit=self.deadline - now(),
            max_evaluations=LAPS[lap],
            frame=self.frame,
        )

    def ended(self, start: np.ndarray, end: Refined, lap: int, before: float = math.inf) -> Iterator[Refined]:
        """The end of a lap, if the start does not go on from there."""
        self.spent += end.evaluations
        if math.isinf(end.cost):
            return
        end = replace(end, start=start)
        self.laps[lap].append(Runner(end, before - end.cost))
        if end.ending is not Ending.EVALUATION_LIMIT or lap + 1 == len(LAPS):
            yield end

    @property
    def least(self) -> float:
        """The lowest cost at the end of any lap."""
        return min((runner.at.cost for lap in self.laps for runner in lap), default=math.inf)

    @property
    def standing(self) -> list[Refined]:
        """Where starts have come that have not gone on."""
        return [runner.at for lap in self.laps for runner in lap if not runner.gone]

    def next(self) -> tuple[int, Runner] | None:
        """Who goes on: of those that have come farthest the best, if it is among the best that came as far and has not
        come to creep where it cannot reach the best of all."""
        best = self.least
        for lap in reversed(range(len(LAPS) - 1)):
            ranked = sorted(self.laps[lap], key=lambda runner: runner.at.cost)
            for runner in ranked[: math.ceil(len(ranked) / KEPT)]:
                reach = PACE * runner.gained * LAPS[lap + 1] / LAPS[lap]
                if runner.waits and runner.at.cost - reach <= best:
                    return lap, runner
        return None
