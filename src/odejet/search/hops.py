"""Hops: from the best that was found so far to what lies beyond it.

A poor optimum of a model with many unknowns mostly has some of them right.  So a few of its values are drawn anew in
the box, the best of several such draws is refined, and where that ends lower, the next hop begins there: an iterated
local search (Lourenço et al. 2003).  What a hop comes back to is no witness of an optimum, since it began there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from odejet.jets.compilation import now
from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Misfit
from odejet.search.projection import Projected, projected
from odejet.search.refine import Ending, Refined, refine

DRAWS = 4
"""Points of which the best is refined."""

PARTS = (0.1, 0.2, 0.4)
"""Of the unknowns, those that are drawn anew; each part in turn."""

RANKS = 1.5
"""About how many of the best are hopped from."""

FIRST, FURTHER, BEHIND = 60, 150, 10.0
"""Evaluations of a hop, and those that follow if it has not ended by then and is no farther behind where it began."""

SAME = 1e-3
"""Costs that differ by less are of one optimum."""


@dataclass
class Hops:
    """Where hops have led so far."""

    misfit: Misfit
    frame: Coordinates
    levels: np.ndarray | None
    deadline: float
    rng: np.random.Generator
    box: tuple[np.ndarray, np.ndarray]  # of theta, where values are drawn
    ends: list[Refined] = field(default_factory=list)
    count: int = 0

    def hop(self, elites: Sequence[Refined]) -> Refined | None:
        """Where a hop from one of these, or from the end of another hop, leads, if that is anywhere else."""
        begin = self.chosen([*elites, *self.ends])
        start = None if begin is None else self.drawn(begin)
        if begin is None or start is None:
            return None
        end = self.refined(start, FIRST)
        if end.ending is Ending.EVALUATION_LIMIT and end.cost <= begin.cost + BEHIND:
            end = self.refined(end.z, FURTHER)
        if math.isinf(end.cost) or abs(end.cost - begin.cost) <= SAME:
            return None
        self.ends = sorted([*self.ends, end], key=lambda one: one.cost)[: len(PARTS) * DRAWS]
        return end

    def chosen(self, elites: Sequence[Refined]) -> Refined | None:
        """One of the best that differ."""
        apart: list[Refined] = []
        for one in sorted(elites, key=lambda one: one.cost):
            if not apart or one.cost > apart[-1].cost + SAME:
                apart.append(one)
        rank = int(self.rng.exponential(RANKS))
        return apart[min(rank, len(apart) - 1)] if apart else None

    def drawn(self, begin: Refined) -> np.ndarray | None:
        """The best of several points that share most values with this one."""
        part, self.count = PARTS[self.count % len(PARTS)], self.count + 1
        theta, (low, high) = np.clip(self.frame.to(self.frame.inside(begin.z)), *self.frame.box), self.box
        points, size = [], len(theta)
        for _ in range(DRAWS):
            anew = self.rng.random(size) < part
            anew[self.rng.integers(size)] = True
            points.append(self.frame.back(np.where(anew, low + self.rng.random(size) * (high - low), theta)))
        costs = [cost_of(self.misfit, self.frame, z, self.deadline) for z in points]
        best = int(np.argmin(costs))
        return points[best] if math.isfinite(costs[best]) else None

    def refined(self, z: np.ndarray, evaluations: int) -> Refined:
        left = self.deadline - now()
        return refine(
            self.misfit, z, levels=self.levels, time_limit=left, max_evaluations=evaluations, frame=self.frame
        )


def cost_of(misfit: Misfit, frame: Coordinates, z: np.ndarray, deadline: float = math.inf) -> float:
    """The cost of a point with the best scales, offsets and noise that it can have; infinite without a simulation."""
    if now() > deadline:
        return math.inf
    part = projected(misfit, frame)
    own = part if part is not None else misfit
    z = z[part.kept] if isinstance(part, Projected) else z
    with np.errstate(over="ignore", invalid="ignore"):
        found = own.evaluate(z, jacobian=False, deadline=deadline)
        if part is None:
            found = misfit.tuned(z, found, box=(frame.low, frame.high))[1]
        if found.residuals is None:
            return math.inf
        cost = misfit.cost(found.residuals, rest=found.rest)
    return cost if math.isfinite(cost) else math.inf
