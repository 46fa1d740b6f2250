"""Vanishing: the way back of unknowns that have all but vanished on a logarithmic scale.

A step of theta multiplies such an unknown, and what is next to nothing stays so: on that scale the misfit looks flat,
and a corner of the box passes for an optimum.  In z itself it may well have a slope.  So wherever a search has come to
its end, unknowns that the linear model would make several times larger move by z, and all others on their own scales.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.objective.arrow import ArrowSolver
from odejet.objective.evaluation import Evaluation
from odejet.objective.linear_model import LinearModel
from odejet.objective.trust import Solver
from odejet.problem.coordinates import Coordinates

LARGER = 2.0
"""An unknown has vanished if the data want it larger by more than so many times what it is."""

WORTH = 1e-3
"""The decrease of the misfit, in units of the noise, for which it is worth an evaluation."""


def way_back(
    frame: Coordinates,
    theta: np.ndarray,
    found: Evaluation,
    groups: tuple[slice, ...],
    levels: np.ndarray,
    unit: float,
) -> WayBack | None:
    """The way on which what has vanished comes back; None where nothing has."""
    assert found.residuals is not None and found.jacobian is not None
    z = frame.back(theta)
    # The gradient of half the weighted squares by z, and the squares of the columns of the Jacobian.
    weighted, residuals, _ = found.jacobian.weighted(found.residuals, groups, levels)
    gradient, bends = residuals @ weighted, (weighted**2).sum(axis=0)
    room = np.where(frame.signs > 0, frame.high - z, z - frame.low)
    wanted = np.minimum(-frame.signs * gradient / np.maximum(bends, 1e-300), room)
    vanished = (wanted > LARGER * np.abs(z)) & (gradient**2 > 2 * WORTH * unit * bends)
    if not vanished.any():
        return None
    slopes = np.where(vanished, wanted, frame.slopes(z))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not chosen may be no number
        low = np.where(vanished, (frame.low - z) / slopes, frame.box[0] - theta)
        high = np.where(vanished, (frame.high - z) / slopes, frame.box[1] - theta)
    solver = LinearModel(found.jacobian, found.residuals, groups, slopes).solver(levels, low, high)
    return WayBack(frame, theta, vanished, slopes, solver, WORTH * unit)


@dataclass(frozen=True, eq=False)
class WayBack:
    """The linear model in which unknowns that have vanished move by z, and all others on their own scales."""

    frame: Coordinates
    theta: np.ndarray
    vanished: np.ndarray
    slopes: np.ndarray
    solver: Solver | ArrowSolver
    worth: float  # the decrease that is worth an evaluation

    def up_to(self, reach: float) -> np.ndarray | None:
        """Where what has vanished is back, up to so many times as large as the data want it; None where that is not
        worth it."""
        step = self.solver.step(reach)
        if not step.decrease > self.worth:
            return None
        z = self.frame.back(self.theta)
        grown = self.frame.to(self.frame.inside(np.where(self.vanished, z + self.slopes * step.move, z)))
        return np.clip(np.where(self.vanished, grown, self.theta + step.move), *self.frame.box)
