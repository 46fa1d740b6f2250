"""Successive halving: many starts, of which those go on that have come down farthest.

After a few evaluations the cost tells which of several starts are worth more.  So each is refined for one lap at a time
and begins the next only if it is among the best of all that ever ended this one: successive halving that waits for
nobody (Li et al. 2020).  The first start goes all the way, so that there is an answer early; later ones go on the
farther, the better they are.  Simulations are rough on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.clock import now
from odejet.search.ground import Ground, roughly
from odejet.search.refine import MAX_EVALUATIONS, Ending, Refined
from odejet.search.workers import Question, Workers


@dataclass(frozen=True)
class Halving:
    """How starts are halved; one lap for all is a plain multistart."""

    laps: tuple[int, ...] = (30, 60, 120, 300)  # evaluations: as much work in each, if half go on
    kept: int = 2  # one of so many begins the next lap
    pace: float = 3.0  # times that of its last lap, at which a start must come to the best in the next to begin it


HALVING = Halving()
PLAIN = Halving(laps=(MAX_EVALUATIONS,))
"""Every start is refined to its end."""


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


class Race:
    """The starts that have ended each lap."""

    def __init__(self, ground: Ground, settings: Halving, workers: Workers) -> None:
        self.ground, self.settings, self.workers = ground, settings, workers
        self.laps: list[list[Runner]] = [[] for _ in settings.laps]
        self.spent = 0  # evaluations

    def enter(self, start: np.ndarray, first: Refined | None = None) -> Iterator[Refined]:
        """Where a new start ends, and those that go on now that it has run; its first lap may be known already."""
        yield from self.ended(start, self.run(start, 0) if first is None else first, 0)
        while (found := self.next()) is not None and now() < self.ground.deadline:
            lap, runner = found
            runner.gone = True
            yield from self.ended(runner.at.start, self.run(runner.at.z, lap + 1), lap + 1, runner.at.cost)

    def run(self, z: np.ndarray, lap: int) -> Refined:
        """One lap from where a start has come."""
        return self.workers.ask(roughly(z, self.settings.laps[lap]))

    def ended(self, start: np.ndarray, end: Refined, lap: int, before: float = math.inf) -> Iterator[Refined]:
        """The end of a lap, if the start does not go on from there."""
        self.spent += end.evaluations
        if math.isinf(end.cost):
            return
        end = replace(end, start=start)
        self.laps[lap].append(Runner(end, before - end.cost))
        if end.ending is not Ending.EVALUATION_LIMIT or lap + 1 == len(self.laps):
            yield end

    def rehearsed(self, entrants: Sequence[tuple[np.ndarray, Refined]]) -> tuple[list[Question], list[Refined]]:
        """Return laps that will probably be run when these starts enter, and ends that they will probably have.

        The same happens as when they do, as far as the outcomes of laps are known; whose is not goes on by himself.
        """
        copy, questions, ends = Race(self.ground, self.settings, self.workers), list[Question](), list[Refined]()
        copy.laps = [[replace(runner) for runner in lap] for lap in self.laps]
        for start, first in entrants:
            ends += copy.ended(start, first, 0)
            while (found := copy.next()) is not None:
                lap, runner = found
                runner.gone = True
                question = roughly(runner.at.z, self.settings.laps[lap + 1])
                if (known := self.workers.known(question.key)) is None:
                    questions.append(question)
                else:
                    ends += copy.ended(runner.at.start, known, lap + 1, runner.at.cost)
        return questions, ends

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
        best, laps = self.least, self.settings.laps
        for lap in reversed(range(len(self.laps) - 1)):
            ranked = sorted(self.laps[lap], key=lambda runner: runner.at.cost)
            for runner in ranked[: math.ceil(len(ranked) / self.settings.kept)]:
                reach = self.settings.pace * runner.gained * laps[lap + 1] / laps[lap]
                if runner.waits and runner.at.cost - reach <= best:
                    return lap, runner
        return None
