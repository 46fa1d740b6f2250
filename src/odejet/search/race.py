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

from odejet.jets.compilation import now
from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import ROUGH, Misfit
from odejet.search.refine import Ending, Refined, refine

LAPS = (60, 150, 300)
"""Evaluations in each lap: after half as many as in the first, the one of three starts of Raia's model that came
nearest to the optimum was the last."""

KEPT = 2
"""One of so many begins the next lap."""


@dataclass
class Runner:
    """A start at the end of a lap."""

    at: Refined
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

    @classmethod
    def on(cls, misfit: Misfit, frame: Coordinates, levels: np.ndarray | None, deadline: float) -> Race:
        return cls(misfit.window(1.0, effort=ROUGH), frame, levels, deadline)

    def enter(self, start: np.ndarray, first: Refined | None = None) -> Iterator[Refined]:
        """Where a new start ends, and those that go on now that it has run; its first lap may be known already."""
        yield from self.ended(start, self.run(start, 0) if first is None else first, 0)
        while (found := self.next()) is not None and now() < self.deadline:
            lap, runner = found
            runner.gone = True
            yield from self.ended(runner.at.start, self.run(runner.at.z, lap + 1), lap + 1)

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

    def ended(self, start: np.ndarray, end: Refined, lap: int) -> Iterator[Refined]:
        """The end of a lap, if the start does not go on from there."""
        if math.isinf(end.cost):
            return
        end = replace(end, start=start)
        self.laps[lap].append(Runner(end))
        if end.ending is not Ending.EVALUATION_LIMIT or lap + 1 == len(LAPS):
            yield end

    @property
    def standing(self) -> list[Refined]:
        """Where starts have come that have not gone on."""
        return [runner.at for lap in self.laps for runner in lap if not runner.gone]

    def next(self) -> tuple[int, Runner] | None:
        """Who goes on: of those that have come farthest the best, if it is among the best that came as far."""
        for lap in reversed(range(len(LAPS) - 1)):
            ranked = sorted(self.laps[lap], key=lambda runner: runner.at.cost)
            for runner in ranked[: math.ceil(len(ranked) / KEPT)]:
                if runner.waits:
                    return lap, runner
        return None
