"""Weighting: what the residuals of each output weigh on the way, and what a decrease is worth.

Far from an optimum the noise levels stay as they are given; near it those that are not known follow the residuals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from odejet.objective.evaluation import Evaluation
from odejet.objective.reduced import AnyMisfit


@dataclass(frozen=True, eq=False)
class Weighting:
    """The noise level of every output, and whether they follow the residuals."""

    misfit: AnyMisfit
    levels: np.ndarray
    adaptive: bool = False

    @classmethod
    def of(cls, misfit: AnyMisfit, levels: np.ndarray) -> Weighting:
        """Begin with these levels where none are known."""
        return cls(misfit, np.where(misfit.estimated, levels, misfit.known))

    def following(self, here: Evaluation) -> Weighting:
        """Return levels of the size that the residuals have."""
        assert here.residuals is not None
        return replace(self, levels=self.misfit.levels(here.residuals))

    @property
    def of_groups(self) -> np.ndarray:
        """Levels of all groups of rows."""
        return self.misfit.group_levels(self.levels)

    def squares(self, here: Evaluation) -> float:
        """Return half the weighted squares."""
        assert here.residuals is not None
        return 0.5 * float((self.misfit.squares(here.residuals) / self.levels**2).sum())

    def unit(self, here: Evaluation) -> float:
        """Return what a decrease is compared with: the noise, or the residuals if they are larger or without noise."""
        reduced = 2 * self.squares(here) / max(self.misfit.points, 1)
        return reduced if not self.misfit.weighted else max(1.0, reduced)

    def rounding(self, here: Evaluation) -> float:
        """Return what rounding of the residuals does to half their weighted squares.

        An output that is down to rounding already has no more to gain or to lose, unless all are.
        """
        above = self.levels > self.misfit.floors
        counts = self.misfit.counts * above if above.any() else self.misfit.counts
        errors = np.sqrt((self.misfit.floors / self.levels) ** 2 @ counts)
        size = math.sqrt(2 * self.squares(here))
        return 0.05 * float(errors) * max(size, float(errors)) / math.sqrt(max(self.misfit.points, 1))

    def decrease(self, here: Evaluation, there: Evaluation) -> float:
        """Return how much less the misfit is there than here."""
        assert there.residuals is not None and here.residuals is not None
        if not self.adaptive:
            before, after = self.misfit.squares(here.residuals), self.misfit.squares(there.residuals)
            squares = np.where(self.misfit.measurements.densities, 0.0, (before - after) / self.levels**2)
            return 0.5 * float(squares.sum()) + here.rest - there.rest
        least = self.misfit.cost(there.residuals, rest=there.rest)
        return self.misfit.cost(here.residuals, rest=here.rest) - least
