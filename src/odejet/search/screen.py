"""Screen: what a point of the box costs at once, with the best scales, offsets and noise that it can have."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet import journal
from odejet.clock import now
from odejet.objective.courses import ROUGH, Effort
from odejet.objective.misfit import Misfit
from odejet.objective.projection import Elimination, projected
from odejet.objective.reduced import Reduced
from odejet.problem.coordinates import Coordinates
from odejet.search.identity import identity, whereabouts

WORTH_KEEPING = 3e-4
"""Seconds that a simulation takes at least to be kept in a journal: others are as soon simulated again."""

_NUMBER = struct.Struct("<d")

TRIED = 8
"""Points that tell how long simulations have to be; mostly the first does."""


def rough_effort(misfit: Misfit, points: Sequence[np.ndarray], deadline: float = math.inf) -> Effort:
    """Return the effort of first looks: a brief one, unless it brings none of some points to their end."""
    brief = misfit.window(1.0, effort=ROUGH.brief)
    tried = points[:TRIED]
    if any(now() <= deadline and brief.predicted(z, False, deadline).complete for z in tried) or not len(tried):
        return ROUGH.brief
    return ROUGH


@dataclass(frozen=True, eq=False)
class Effects:
    """What small changes of the free unknowns do to the residuals at a point."""

    sizes: np.ndarray  # of all residuals together, by a factor e of each, relative to what one of them is
    unit: float  # the squares of these: those of the noise, or of the residuals if they are larger


@dataclass(frozen=True, eq=False)
class Screen:
    """A misfit to look at points with, without derivatives."""

    misfit: Misfit
    frame: Coordinates
    part: Reduced[Elimination] | None  # the misfit without what follows from all other unknowns, if anything does

    @classmethod
    def of(cls, misfit: Misfit, frame: Coordinates) -> Screen:
        return cls(misfit, frame, projected(misfit, frame))

    @property
    def free(self) -> np.ndarray:
        """The entries of z that a cost depends on; the others follow from these."""
        return np.arange(len(self.misfit.unknowns)) if self.part is None else self.part.kept

    def cost(self, z: np.ndarray, deadline: float = math.inf) -> float:
        """The cost of a point; infinite where it has no simulation, or no time is left for one."""
        begin = now()
        if begin > deadline:
            return math.inf
        keeper = journal.keeper()
        if keeper is None:
            return self._cost(z, deadline)
        key = journal.digest(self.key, z)
        if (known := keeper.recall(key)) is not None:
            return float(_NUMBER.unpack(known)[0])
        cost = self._cost(z, deadline)
        if (end := now()) - begin > WORTH_KEEPING and end <= deadline:
            keeper.keep(key, _NUMBER.pack(cost))
        return cost

    @cached_property
    def key(self) -> bytes:
        return journal.digest("cost", identity(self.misfit), *whereabouts(self.frame))

    def _cost(self, z: np.ndarray, deadline: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            if self.part is not None:
                found = self.part.evaluate(z[self.part.kept], jacobian=False, deadline=deadline)
            else:
                found = self.misfit.evaluate(z, jacobian=False, deadline=deadline)
                found = self.misfit.tuned(z, found, box=(self.frame.low, self.frame.high))[1]
            if found.residuals is None:
                return math.inf
            cost = self.misfit.cost(found.residuals, rest=found.rest)
        return cost if math.isfinite(cost) else math.inf

    def effects(self, z: np.ndarray, deadline: float = math.inf) -> Effects | None:
        """What each free unknown does there; None where that is not known, or would take too much memory."""
        if self.misfit.large or self.misfit.in_blocks or now() > deadline:
            return None
        part = self.misfit if self.part is None else self.part
        with np.errstate(over="ignore", invalid="ignore"):
            found = part.evaluate(z[self.free], deadline=deadline)
            if found.residuals is None:
                return None
            rows = part.row_levels(part.levels(found.residuals))
            reduced = float(np.mean((found.residuals / rows) ** 2))
            columns = found.dense * self.frame.slopes(z)[self.free] / rows[:, None]
            unit = max(reduced, 1.0) if part.weighted else reduced
            return Effects(np.sqrt((columns**2).sum(axis=0) / max(unit, 1e-300)), unit)

    def best(
        self, points: Sequence[np.ndarray], deadline: float = math.inf, but: tuple[float, float] | None = None
    ) -> np.ndarray | None:
        """The point that costs least, but for those that cost as much as is given, up to a difference; None where none
        has a simulation."""
        costs = [self.cost(z, deadline) for z in points]
        if but is not None:
            costs = [math.inf if abs(cost - but[0]) <= but[1] else cost for cost in costs]
        least = int(np.argmin(costs))
        return points[least] if math.isfinite(costs[least]) else None
