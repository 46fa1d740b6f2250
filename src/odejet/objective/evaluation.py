"""Evaluation: what a misfit is at a point, with derivatives.

Residuals are one number per measurement and are kept; their derivatives are that many times as many as there are
unknowns.  Where that is much, the rows of a Jacobian are reduced as they come to a triangle per group of rows (see
`reduction`), which is all that a step and an error need to know of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.objective.courses import Blocks
from odejet.objective.reduction import Triangles
from odejet.objective.scoring import Standing
from odejet.simulate.flow import Outcome


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Residuals in units of their noise's shape and their derivative by z; None where the simulation broke off."""

    residuals: np.ndarray | None  # of all measurements, then of scales of the noise and of priors
    jacobian: np.ndarray | Blocks | Triangles | None
    outcome: Outcome
    message: str
    reached: float  # the fraction of the time span that was simulated, the least of all experiments
    work: int = 1  # in units of an ordinary simulation of all experiments
    standing: Standing | None = None  # of what is no sum of squares
    predicted: tuple[np.ndarray, np.ndarray | None] | None = None  # outputs and their derivatives, if noise may change
    eliminated: Eliminated | None = None  # what is no unknown of a search

    @property
    def rest(self) -> float:
        """What the cost has beside squares."""
        return 0.0 if self.standing is None else self.standing.cost + self.standing.prior

    def beyond(self, here: Evaluation, predicted: np.ndarray) -> np.ndarray:
        """What the residuals have changed by since `here` beyond the change that a linear model predicted."""
        assert self.residuals is not None and here.residuals is not None
        if self.standing is None or here.standing is None:
            return np.asarray(self.residuals - (here.residuals + predicted))
        return (self.standing.positions - here.standing.positions) * here.standing.roots - predicted

    @property
    def complete(self) -> bool:
        return self.residuals is not None

    @property
    def dense(self) -> np.ndarray:
        """The Jacobian as one matrix."""
        assert self.jacobian is not None and not isinstance(self.jacobian, Triangles)
        return self.jacobian.dense() if isinstance(self.jacobian, Blocks) else self.jacobian

    @property
    def expected(self) -> np.ndarray:
        """The same with weights by the expected information, which is what the data are worth."""
        if self.standing is None:
            return self.dense
        roots = self.standing.roots
        return self.dense * (self.standing.information_roots / np.where(roots > 0, roots, 1.0))[:, None]


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Unknowns that follow from the others: their best values, and the derivatives of the residuals there by all."""

    values: np.ndarray
    jacobian: np.ndarray


@dataclass(frozen=True, eq=False)
class NoiseAt:
    """The noise of every measurement at a point."""

    scores: np.ndarray  # residuals that normal noise of unit size would have with the same probability
    sds: np.ndarray  # in the units of the measurement
    scales: np.ndarray  # of the law, in the units in which values are compared
