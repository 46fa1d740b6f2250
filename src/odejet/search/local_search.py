"""Iterated local search: from the best that was found so far to what lies beyond it.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.search.box import sampled_box
from odejet.search.ground import Ground
from odejet.search.refine import MAX_EVALUATIONS, SAME, Ending, Refined
from odejet.search.strategy import Evidence
from odejet.search.waking import woken


@dataclass(frozen=True)
class IteratedLocalSearch:
    """Hops from the best optima so far; only one that leads to a better optimum tells anything."""

    kinds: tuple[str, ...] = ("one", "between", "some")  # how points are drawn, in turn
    waking: bool = True  # whether as many evaluations go to unknowns that make no difference
    draws: int = 8  # points of which the best is refined, where many values change
    parts: tuple[float, ...] = (0.1, 0.2, 0.4)  # of the unknowns, those that change then, in turn
    ranks: float = 1.5  # about how many of the best are hopped from
    others: int = 12  # of the best, those that others may have values from
    first: int = 60  # evaluations of a hop
    further: int = 150  # that follow if it has not ended by then and is not too far behind where it began
    behind: float = 10.0  # how far that is
    onward: int = 2  # how often as many follow again while it is the best of all
    woken: int = 5  # unknowns that a hop wakes at most
    brief: int = 20  # evaluations that tell whether one leads lower: most that do need fewer
    alike: float = 0.5  # costs that differ by less are of places that are as good to hop from
    between: tuple[float, ...] = (0.5, 0.25, 0.75)  # of the way to a better point, where a hill would show
    name: str = "iterated local search"

    def explore(self, ground: Ground, evidence: Evidence, starts: Iterator[np.ndarray]) -> Iterator[Refined | None]:
        """Better optima, as hops lead to them, from the first start if there is nothing else; then a pause."""
        rng = np.random.default_rng([*evidence.seed, len(evidence.sizes)])
        hops = Hops(ground, self, rng, sampled_box(ground.frame, evidence.sizes))
        evidence.counters.append(hops)
        for start in itertools.chain.from_iterable(starts):
            if evidence.optima or evidence.before:
                break
            yield replace(hops.refined(start, MAX_EVALUATIONS), start=start)
        while True:
            end = hops.hop([*evidence.optima, *evidence.before, *evidence.standing])
            yield end if end is not None and end.cost < evidence.best_cost - SAME else None


@dataclass
class Hops:
    """Where hops have led so far."""

    ground: Ground
    settings: IteratedLocalSearch
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
        if self.settings.waking and 2 * self.waking <= self.spent:
            begin = self.next_woken(apart)
            start = self.woken(begin)
        else:
            begin = apart[min(int(self.rng.exponential(self.settings.ranks)), len(apart) - 1)]
            start = self.drawn(begin, [one for one in apart[: self.settings.others] if one is not begin])
        end = None if start is None else self.followed(start, begin, apart)
        if end is not None:
            self.ends = sorted([*self.ends, end], key=lambda one: one.cost)[: self.settings.others]
        return end

    def followed(self, start: np.ndarray, begin: Refined, apart: Sequence[Refined]) -> Refined | None:
        """Where a hop leads from where it came down, as long as it is worth it, if that is anywhere else."""
        end = self.refined(start, self.settings.first)
        # Exact simulations would not bring what is still on its way down any farther in the same time.
        own = self.settings
        for behind in (begin.cost + own.behind, *own.onward * [apart[0].cost - own.alike]):
            if end.ending is not Ending.EVALUATION_LIMIT or end.cost > behind or self.returns(end, apart):
                break
            end = self.refined(end.z, self.settings.further)
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
        starts = woken(self.ground.screen, self._theta(begin), self.box, self.rng, self.ground.deadline)
        for start in itertools.islice(starts, self.settings.woken):
            end = self.refined(start, self.settings.brief)
            self.waking += end.evaluations
            if end.cost < begin.cost - self.settings.alike:
                return end.z
        return None

    def apart(self, elites: Sequence[Refined]) -> list[Refined]:
        """Those that differ, the best first."""
        apart: list[Refined] = []
        for one in sorted(elites, key=lambda one: one.cost):
            if not apart or one.cost > apart[-1].cost + self.settings.alike:
                apart.append(one)
        return apart

    def returns(self, end: Refined, known: Sequence[Refined]) -> bool:
        """Whether a hop leads to one of the best that are known, or nowhere: there is no hill on the way to it."""
        if math.isinf(end.cost) or any(abs(end.cost - one.cost) <= SAME for one in known):
            return True
        here, back = self._theta(end), self.ground.frame.back
        for one in known[: self.settings.others]:
            way, parts = self._theta(one) - here, self.settings.between
            if one.cost < end.cost and all(self.cost(back(here + part * way)) <= end.cost for part in parts):
                return True
        return False

    def drawn(self, begin: Refined, others: Sequence[Refined]) -> np.ndarray | None:
        """A point to refine, in each way in turn; None where none has a simulation, or makes a difference."""
        turn, self.count = self.count, self.count + 1
        theta, kinds = self._theta(begin), self.settings.kinds
        kind = kinds[turn % len(kinds)]
        if kind == "one":
            points = [self._one_anew(theta)]
        elif kind == "between" and others:
            points = [self._between(theta, self._theta(self._any_of(others)))]
        else:
            parts = self.settings.parts
            part = parts[turn // len(kinds) % len(parts)]
            points = [
                self._some_anew(theta, part, others if number % 2 else ()) for number in range(self.settings.draws)
            ]
        here, *points = (self.ground.frame.back(point) for point in (theta, *points))
        return self.ground.screen.best(points, self.ground.deadline, (self.cost(here), self.settings.alike))

    def _any_of(self, others: Sequence[Refined]) -> Refined:
        return others[int(self.rng.integers(len(others)))]

    def _one_anew(self, theta: np.ndarray) -> np.ndarray:
        """One value anew, that of each unknown in turn."""
        if not self.waiting:
            self.waiting = self.rng.permutation(self.ground.screen.free).tolist()
        i, (low, high) = self.waiting.pop(), self.box
        moved = theta.copy()
        moved[i] = low[i] + self.rng.random() * (high[i] - low[i])
        return moved

    def _between(self, theta: np.ndarray, there: np.ndarray) -> np.ndarray:
        """A point on the line to another."""
        free, moved = self.ground.screen.free, theta.copy()
        moved[free] += self.rng.random() * (there - theta)[free]
        return moved

    def _some_anew(self, theta: np.ndarray, part: float, others: Sequence[Refined]) -> np.ndarray:
        """A point that shares most values with this one, the rest anew, or from one of others if there are any."""
        free, (low, high) = self.ground.screen.free, self.box
        changed = np.zeros(len(theta), dtype=bool)
        changed[free] = self.rng.random(len(free)) < part
        changed[self.rng.choice(free)] = True
        source = self._theta(self._any_of(others)) if others else low + self.rng.random(len(theta)) * (high - low)
        return np.where(changed, source, theta)

    def _theta(self, one: Refined) -> np.ndarray:
        """Where it is, in the coordinates of the search."""
        frame = self.ground.frame
        return np.clip(frame.to(frame.inside(one.z)), *frame.box)

    def cost(self, z: np.ndarray) -> float:
        return self.ground.screen.cost(z, self.ground.deadline)

    def refined(self, z: np.ndarray, evaluations: int) -> Refined:
        found = self.ground.roughly(z, evaluations)
        self.spent += found.evaluations
        return found
