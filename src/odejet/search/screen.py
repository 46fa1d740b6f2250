"""Screen: what a point of the box costs at once, with the best scales, offsets and noise that it can have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odejet.jets.compilation import now
from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Misfit
from odejet.search.projection import Projected, projected


@dataclass(frozen=True, eq=False)
class Screen:
    """A misfit to look at points with, without derivatives."""

    misfit: Misfit
    frame: Coordinates
    part: Projected | None  # the misfit without what follows from all other unknowns, if anything does

    @classmethod
    def of(cls, misfit: Misfit, frame: Coordinates) -> Screen:
        return cls(misfit, frame, projected(misfit, frame))

    @property
    def free(self) -> np.ndarray:
        """The entries of z that a cost depends on; the others follow from these."""
        return np.arange(len(self.misfit.unknowns)) if self.part is None else self.part.kept

    def cost(self, z: np.ndarray, deadline: float = math.inf) -> float:
        """The cost of a point; infinite where it has no simulation, or no time is left for one."""
        if now() > deadline:
            return math.inf
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

    def best(self, points: Sequence[np.ndarray], deadline: float = math.inf) -> np.ndarray | None:
        """The point that costs least; None where none has a simulation."""
        costs = [self.cost(z, deadline) for z in points]
        least = int(np.argmin(costs))
        return points[least] if math.isfinite(costs[least]) else None
