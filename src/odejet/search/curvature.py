"""Curvature: second derivatives of the residuals, times these, as steps tell them.

Gauss and Newton's model leaves them out; where residuals stay large they decide how fast a descent converges.  They are
learnt by a structured secant formula (Dennis, Gay and Welsch 1981) and used while they predict better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.objective.arrow import ArrowSolver
from odejet.objective.trust import Solver, Step, secant

_BETTER = 0.7
"""How much closer a prediction must be before the curvature is used."""


@dataclass
class Curvature:
    """A symmetric matrix, empty where none is learnt."""

    matrix: np.ndarray
    used: bool = False

    @classmethod
    def of_size(cls, size: int) -> Curvature:
        return cls(np.zeros((size, size)))

    def __bool__(self) -> bool:
        return bool(self.matrix.size)

    def forget(self) -> None:
        """Begin again, since what residuals are has changed."""
        self.matrix, self.used = np.zeros_like(self.matrix), False

    def step(self, solver: Solver | ArrowSolver, radius: float) -> Step:
        """Return a step of the linear model, or of the one with curvature if that is in use."""
        return (solver.curved(self.matrix) if self.used and isinstance(solver, Solver) else solver).step(radius)

    def judge(self, solver: Solver | ArrowSolver, step: Step, actual: float) -> None:
        """Choose the model for the next step: the one that knew better what this one would bring."""
        if not self:
            return
        linear = solver.predicted(step.move)
        curved = linear - 0.5 * float(step.move @ self.matrix @ step.move)
        errors = abs(actual - linear), abs(actual - curved)
        self.used = errors[1] < errors[0] if self.used else errors[1] < _BETTER * errors[0]

    def learn(self, move: np.ndarray, change: np.ndarray, structured: np.ndarray) -> None:
        """Learn from a move what it did to the gradient, and what of that the linear model does not tell."""
        self.matrix = secant(self.matrix, move, change, structured)
