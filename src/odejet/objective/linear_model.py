"""Linear model: residuals near a point as a linear function of a move.

    residuals(theta + d) = r + J diag(slopes) d

A step of a search, the gradient, the information and the way curvature is learnt all ask this and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.objective.arrow import ArrowSolver, Reduced
from odejet.objective.jacobian import DenseJacobian, Jacobian
from odejet.objective.triangles import Groups, by_rows, triangle
from odejet.objective.trust import Solver


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Residuals as a linear function of a move of theta, on which z depends with these slopes: r + J diag(slopes) d."""

    jacobian: Jacobian
    residuals: np.ndarray
    groups: Groups
    slopes: np.ndarray

    def matvec(self, move: np.ndarray) -> np.ndarray:
        """Return J d."""
        return self.jacobian.matvec(self.slopes * move)

    def rmatvec(self, rows: np.ndarray) -> np.ndarray:
        """Return J'w."""
        return self.jacobian.rmatvec(rows) * self.slopes

    def dense(self) -> np.ndarray:
        """Return J as one matrix."""
        return self.jacobian.dense() * self.slopes

    def gradient(self, levels: np.ndarray | None = None) -> np.ndarray:
        """Return J'r, with groups weighted by these levels."""
        levels = np.ones(len(self.groups)) if levels is None else levels
        return self.jacobian.gradient(self.residuals, self.groups, levels) * self.slopes

    def factor(self) -> np.ndarray:
        """Return R with R'R = J'J."""
        matrix, _, _ = self.jacobian.weighted(self.residuals, self.groups, np.ones(len(self.groups)))
        return triangle(matrix * self.slopes)

    def with_columns(self, matrix: np.ndarray) -> LinearModel:
        """Return the linear model of a move on which this one depends by a matrix."""
        return LinearModel(DenseJacobian(self.dense() @ matrix), self.residuals, self.groups, np.ones(matrix.shape[1]))

    @cached_property
    def reduced(self) -> Reduced:
        """What is left to do when weights change."""
        return self.jacobian.reduced(self.slopes, self.residuals, self.groups)

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver | ArrowSolver:
        """Return steps within these bounds of the move, with groups weighted by their noise levels."""
        return self.reduced.solver(levels, low, high)

    def missing(
        self, excess: np.ndarray, levels: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> Solver | ArrowSolver:
        """Return steps that undo what residuals have beyond an aim."""
        return self.jacobian.missing(self.slopes, excess, self.groups).solver(levels, low, high)

    def secant_terms(
        self, before: LinearModel, move: np.ndarray, levels: np.ndarray, squares: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what a move did to the gradient, and what of it came of the change of J.

        Where rows stand for laws that are no squares, that is all which J'J before the move does not tell.
        """
        change = self.gradient(levels) - before.gradient(levels)
        if squares:
            return change, self.jacobian.change_since(before, self, levels)
        weights = by_rows(levels, self.groups) ** -2
        return change, change - before.rmatvec(before.matvec(move) * weights)
