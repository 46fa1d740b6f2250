"""Hops: from the best that was found so far to what lies beyond it.

A poor optimum of a model with many unknowns mostly has some of them right, and another one others.  So some of its
values are drawn anew in the box or taken from another, such a point is refined, and where that ends lower, the next hop
begins there: an iterated local search (Lourenço et al. 2003) with recombination, as scatter search has it (Egea et al.
2009).  Points are drawn in three ways in turn.  Of many values that change at once most points are hopeless, so that
the best of several is refined.  One value that changes, each in turn, and a point between two optima are refined
however well they fit.  What costs as much as before is not: it has changed what the data do not tell, and leads back.
As many evaluations go to waking such unknowns (see `waking`), one after the other, until one of them leads lower.

What a hop comes back to is no witness of an optimum, since it began there, and one that is on its way back is not
followed: from where it is the misfit only falls towards what is known already.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from odejet.clock import now
from odejet.search.refine import Ending, Refined, refine
from odejet.search.screen import Screen
from odejet.search.waking import woken

DRAWS = 8
"""Points of which the best is refined, where many values change."""

PARTS = (0.1, 0.2, 0.4)
"""Of the unknowns, those that change then; each part in turn."""

RANKS = 1.5
"""About how many of the best are hopped from."""

OTHERS = 12
"""Of the best, those that others may have values from."""

FIRST, FURTHER, BEHIND = 60, 150, 10.0
"""Evaluations of a hop, and those that follow if it has not ended by then and is no farther behind where it began."""

ONWARD = 2
"""How often as many follow again while it is the best of all."""

WOKEN, BRIEF = 5, 20
"""Unknowns that a hop wakes at most, and evaluations that tell whether one leads lower: most that do need fewer."""

SAME, ALIKE = 1e-3, 0.5
"""Costs that differ by less are of one optimum; and of places that are as good to hop from."""

BETWEEN = (0.5, 0.25, 0.75)
"""Of the way to a better point, where a hill would show."""


@dataclass
class Hops:
    """Where hops have led so far."""

    screen: Screen
    levels: np.ndarray | None
    deadline: float
    rng: np.random.Generator
    box: tuple[np.ndarray, np.ndarray]  # of theta, where values are drawn
    ends: list[Refined] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # unknowns whose turn to change alone is still to come
    count: int = 0
    awakened: Counter[float] = field(default_factory=Counter)  # how often from where, by cost
    spent: int = 0  # evaluations
    waking: int = 0  # those of them that look for unknowns which lead lower

    def hop(self, elites: Sequence[Refined]) -> Refined | None:
        """Where a hop from one of these, or from the end of another hop, leads, if that is anywhere else."""
        apart = self.apart([*elites, *self.ends])
        if not apart:
            return None
        if 2 * self.waking <= self.spent:
            begin = self.next_woken(apart)
            start = self.woken(begin)
        else:
            begin = apart[min(int(self.rng.exponential(RANKS)), len(apart) - 1)]
            start = self.drawn(begin, [one for one in apart[:OTHERS] if one is not begin])
        end = None if start is None else self.followed(start, begin, apart)
        if end is not None:
            self.ends = sorted([*self.ends, end], key=lambda one: one.cost)[:OTHERS]
        return end

    def followed(self, start: np.ndarray, begin: Refined, apart: Sequence[Refined]) -> Refined | None:
        """Where a hop leads from where it came down, as long as it is worth it, if that is anywhere else."""
        end = self.refined(start, FIRST)
        # Exact simulations would not bring what is still on its way down any farther in the same time.
        for behind in (begin.cost + BEHIND, *ONWARD * [apart[0].cost - ALIKE]):
            if end.ending is not Ending.EVALUATION_LIMIT or end.cost > behind or self.returns(end, apart):
                break
            end = self.refined(end.z, FURTHER)
        return None if self.returns(end, apart) else end

    def next_woken(self, apart: Sequence[Refined]) -> Refined:
        """Where unknowns are woken next: at all of these, at the best ones the sooner and the more often.

        The best has its second turn when those up to the eighth have had one: which of them leads on is not told by
        the cost.
        """
        turns = [(self.awakened[one.cost] + 1) ** 3 * rank for rank, one in enumerate(apart, 1)]
        return apart[turns.index(min(turns))]

    def woken(self, begin: Refined) -> np.ndarray | None:
        """Where an unknown leads lower that has made no difference; None where none of several does."""
        self.awakened[begin.cost] += 1
        self.waking += 1  # also where none sleeps
        starts = woken(self.screen, self._theta(begin), self.box, self.rng, self.deadline)
        for start in itertools.islice(starts, WOKEN):
            end = self.refined(start, BRIEF)
            self.waking += end.evaluations
            if end.cost < begin.cost - ALIKE:
                return end.z
        return None

    def apart(self, elites: Sequence[Refined]) -> list[Refined]:
        """Those that differ, the best first."""
        apart: list[Refined] = []
        for one in sorted(elites, key=lambda one: one.cost):
            if not apart or one.cost > apart[-1].cost + ALIKE:
                apart.append(one)
        return apart

    def returns(self, end: Refined, known: Sequence[Refined]) -> bool:
        """Whether a hop leads to one of the best that are known, or nowhere: there is no hill on the way to it."""
        if math.isinf(end.cost) or any(abs(end.cost - one.cost) <= SAME for one in known):
            return True
        here, back = self._theta(end), self.screen.frame.back
        for one in known[:OTHERS]:
            way = self._theta(one) - here
            if one.cost < end.cost and all(
                self.screen.cost(back(here + part * way), self.deadline) <= end.cost for part in BETWEEN
            ):
                return True
        return False

    def drawn(self, begin: Refined, others: Sequence[Refined]) -> np.ndarray | None:
        """A point to refine, in each way in turn; None where none has a simulation, or makes a difference."""
        turn, self.count = self.count, self.count + 1
        theta = self._theta(begin)
        if turn % 3 == 0:
            points = [self._one_anew(theta)]
        elif turn % 3 == 1 and others:
            points = [self._between(theta, self._theta(self._any_of(others)))]
        else:
            part = PARTS[turn // 3 % len(PARTS)]
            points = [self._some_anew(theta, part, others if number % 2 else ()) for number in range(DRAWS)]
        here, *points = (self.screen.frame.back(point) for point in (theta, *points))
        return self.screen.best(points, self.deadline, (self.screen.cost(here, self.deadline), ALIKE))

    def _any_of(self, others: Sequence[Refined]) -> Refined:
        return others[int(self.rng.integers(len(others)))]

    def _one_anew(self, theta: np.ndarray) -> np.ndarray:
        """One value anew, that of each unknown in turn."""
        if not self.waiting:
            self.waiting = self.rng.permutation(self.screen.free).tolist()
        i, (low, high) = self.waiting.pop(), self.box
        moved = theta.copy()
        moved[i] = low[i] + self.rng.random() * (high[i] - low[i])
        return moved

    def _between(self, theta: np.ndarray, there: np.ndarray) -> np.ndarray:
        """A point on the line to another."""
        free, moved = self.screen.free, theta.copy()
        moved[free] += self.rng.random() * (there - theta)[free]
        return moved

    def _some_anew(self, theta: np.ndarray, part: float, others: Sequence[Refined]) -> np.ndarray:
        """A point that shares most values with this one, the rest anew, or from one of others if there are any."""
        free, (low, high) = self.screen.free, self.box
        changed = np.zeros(len(theta), dtype=bool)
        changed[free] = self.rng.random(len(free)) < part
        changed[self.rng.choice(free)] = True
        source = self._theta(self._any_of(others)) if others else low + self.rng.random(len(theta)) * (high - low)
        return np.where(changed, source, theta)

    def _theta(self, one: Refined) -> np.ndarray:
        """Where it is, in the coordinates of the search."""
        frame = self.screen.frame
        return np.clip(frame.to(frame.inside(one.z)), *frame.box)

    def refined(self, z: np.ndarray, evaluations: int) -> Refined:
        left, frame = self.deadline - now(), self.screen.frame
        found = refine(
            self.screen.misfit, z, levels=self.levels, time_limit=left, max_evaluations=evaluations, frame=frame
        )
        self.spent += found.evaluations
        return found
