"""Strategy: a way from a box to local optima, and the evidence that all strategies of a search share.

A strategy is a value: a frozen class of settings with a name.  It explores the ground of a search and hands over each
local optimum as it comes to it; with nothing to hand over it pauses, so that others have their turn.  Nobody but the
portfolio keeps optima, so that none of the strategies knows of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odejet.search.ground import Ground, exactly
from odejet.search.halving import Halving, Race
from odejet.search.refine import SAME, Refined
from odejet.search.workers import Workers


class Strategy(Protocol):
    """A way to local optima of a box."""

    @property
    def name(self) -> str: ...

    def explore(self, ground: Ground, evidence: Evidence, starts: Iterator[np.ndarray]) -> Iterator[Refined | None]:
        """Local optima of the rough objective, with their starts, from batches of starts; None at a pause."""


class Counted(Protocol):
    """What counts evaluations."""

    spent: int


@dataclass(frozen=True)
class Polish:
    """How the end of a rough refinement is refined by exact simulations."""

    behind: float = 3.0  # an end that is behind the best by more is taken as it is
    first: int = 120  # evaluations after which it is asked whether more could lead to the best: most need fewer
    pace: float = 3.0  # times that so far, at which an end must come to the best to go on


class Evidence:
    """The optima that a search knows, and what they took."""

    def __init__(
        self,
        ground: Ground,
        workers: Workers,
        sizes: np.ndarray,
        before: Sequence[Refined] = (),
        seed: Sequence[int] = (0,),
        polish: Polish = Polish(),
    ) -> None:
        self.polish = polish
        self.ground, self.workers, self.sizes, self.before, self.seed = ground, workers, sizes, before, seed
        self.ends: list[Refined] = []  # as they came
        self.optima: list[Refined] = []  # the best first
        self.closest = math.inf  # rms of the best fit to coarse data, in units of the outputs' spread
        self.others = 0  # evaluations that no counter has
        self.counters: list[Counted] = []
        self._races: dict[Halving, Race] = {}

    def add(self, end: Refined) -> None:
        if math.isfinite(end.cost):
            self.ends.append(end)
            self.optima = sorted([*self.optima, end], key=lambda refined: refined.cost)

    def race(self, halving: Halving) -> Race:
        """The race of all starts that are halved alike, whichever strategy they come from."""
        if halving not in self._races:
            self._races[halving] = Race(self.ground, halving, self.workers)
            self.counters.append(self._races[halving])
        return self._races[halving]

    def foresee(self, topic: str, race: Race, entrants: Sequence[tuple[np.ndarray, Refined]]) -> None:
        """Have workers begin what will probably follow when these starts enter a race: laps, and then exact
        refinements of the ends that come near the best."""
        if self.workers.executor is None:
            return
        laps, ends = race.rehearsed(entrants)
        near = max(self.best_cost, self.least) + self.polish.behind
        exact = [exactly(end.z, self.polish.first) for end in ends if end.cost <= near]
        self.workers.foresee(topic, [*exact, *laps])

    @property
    def standing(self) -> list[Refined]:
        """Where starts have come that did not go on."""
        return [end for race in self._races.values() for end in race.standing]

    @property
    def least(self) -> float:
        """The lowest cost of any rough refinement."""
        return min((race.least for race in self._races.values()), default=math.inf)

    @property
    def best_cost(self) -> float:
        return min((one.cost for one in (*self.optima[:1], *self.before)), default=math.inf)

    @property
    def spent(self) -> int:
        """Evaluations so far, with derivatives: beside these, others take little time."""
        return self.others + sum(counter.spent for counter in self.counters)


def agreeing(optima: Sequence[Refined], cost: float) -> int:
    """How many of these are optima of this cost."""
    return sum(abs(one.cost - cost) <= SAME and one.ending.settled for one in optima)


Plausible = Callable[[Refined], bool]
