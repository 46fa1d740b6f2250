"""Corrections: steps that follow the bend of a narrow valley.

What residuals have beyond their linear model is their second derivative along a step.  A further move that undoes it
follows the valley's bend: the geodesic acceleration of Transtrum and Sethna (2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odejet.objective.arrow import ArrowSolver
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.linear_model import LinearModel
from odejet.objective.reduced import AnyMisfit
from odejet.objective.trust import Solver, Step
from odejet.problem.coordinates import Coordinates


@dataclass(frozen=True)
class CorrectionSettings:
    """How far corrections may lead, and the differences that tell them."""

    most: int = 6  # corrections of one step
    settling: float = 0.5  # by how much each must shorten the distance to the prediction
    longest: float = 0.75  # relative to the step: a longer one comes from more than curvature
    near: float = 0.05  # of a step, for differences that tell how it bends
    share: float = 1e-3  # of a step, for differences that tell where it goes


@dataclass(frozen=True, eq=False)
class Point:
    """A place on the way, with what is known of the misfit there."""

    misfit: AnyMisfit
    frame: Coordinates
    theta: np.ndarray
    found: Evaluation

    @cached_property
    def linear(self) -> LinearModel:
        """The residuals as a linear function of a move of theta."""
        assert self.found.jacobian is not None and self.found.residuals is not None
        slopes = self.frame.slopes(self.frame.back(self.theta))
        return LinearModel(self.found.jacobian, self.found.residuals, self.misfit.row_groups, slopes)

    def after(self, move: np.ndarray, deadline: float) -> Evaluation:
        """Evaluate after a move, without derivatives."""
        return self.misfit.evaluate(self.frame.back(self.theta + move), False, deadline)


@dataclass(frozen=True)
class Trial:
    """Where a step leads, and the part of its predicted decrease that it brings."""

    theta: np.ndarray
    found: Evaluation
    ratio: float


@dataclass(frozen=True)
class Corrector:
    """What is needed to correct the steps from a point: levels of the noise, bounds, and how a trial is evaluated."""

    settings: CorrectionSettings
    point: Point
    levels: np.ndarray  # of groups of rows
    box: tuple[np.ndarray, np.ndarray]
    deadline: float

    def bend(self, solver: Solver | ArrowSolver, step: Step) -> np.ndarray:
        """Return how far the floor of a valley bends away from a step, by the residuals' second derivative along it.

        Where a valley is so narrow that the end of a straight step tells nothing of it, or cannot be simulated, two
        simulations on the way do, without derivatives.
        """
        here, near = self.point, self.settings.near
        nothing, ends = np.zeros(len(step.move)), []
        if not here.linear.jacobian.keeps_rows:
            return nothing
        for share in (near, 2 * near):
            found = here.after(share * step.move, self.deadline)
            if found.residuals is None or not np.isfinite(found.residuals).all():
                return nothing
            ends.append(found.beyond(here.found, nothing[:1]))
        second = (ends[1] - 2 * ends[0]) / (2 * near**2)
        move = _corrected(solver, step, step.move, here.linear.missing(second, self.levels, *self.box))
        return move if self._is_short(move, step) else nothing

    def aim(self, step: Step) -> Aim | None:
        """Return what a step is to reach by the linear model, where rows of this are not kept.

        Differences of simulations without derivatives tell it to six digits, for a small part of the time of a trial.
        """
        here, share = self.point, self.settings.share
        if not here.misfit.large:
            return None
        first, second = here.after(share * step.move, self.deadline), here.after(2 * share * step.move, self.deadline)
        nothing = np.zeros(here.misfit.rows)
        if not (first.complete and second.complete):
            return here.found.aim(nothing)
        near, far = first.beyond(here.found, nothing), second.beyond(here.found, nothing)
        known = np.isfinite(near @ near + far @ far)
        return here.found.aim((4 * near - far) / (2 * share) if known else nothing)

    def improve(
        self,
        solver: Solver | ArrowSolver,
        step: Step,
        trial: Trial,
        total: np.ndarray,
        aim: Aim | None,
        attempt: Callable[[np.ndarray], Trial | None],
        enough: float,
    ) -> Trial:
        """Return the best of a trial point, `total` away, and of those that its residuals suggest.

        Repeated, corrections come down to the valley's floor as long as each brings the trial much closer to what was
        predicted; `attempt` makes a trial of a move unless there is no more time, and `enough` is a ratio to end with.
        """
        predicted = self.point.linear.matvec(step.move) if aim is None else np.empty(0)
        best, before = trial, math.inf
        for _ in range(self.settings.most):
            move = _corrected(solver, step, total, self._missing(trial, predicted))
            if 1 - trial.ratio > self.settings.settling * before or not self._is_short(move, step):
                break
            total, before = total + move, 1 - trial.ratio
            next_trial = attempt(total)
            if next_trial is None or not next_trial.found.complete:
                break
            trial = next_trial
            if trial.ratio > best.ratio:
                best = trial
            if trial.ratio > enough:
                break
        return best

    def _missing(self, trial: Trial, predicted: np.ndarray) -> Solver | ArrowSolver:
        """Return the linear model at a trial of what its residuals have beyond a prediction."""
        excess = trial.found.beyond(self.point.found, predicted) if len(predicted) else predicted
        there = Point(self.point.misfit, self.point.frame, trial.theta, trial.found)
        return there.linear.missing(excess, self.levels, *self.box)

    def _is_short(self, move: np.ndarray, step: Step) -> bool:
        return float(np.sqrt(move @ move)) <= self.settings.longest * step.length


def _corrected(solver: Any, step: Step, so_far: np.ndarray, there: Any) -> np.ndarray:
    """Return the correction of a step; both models come from one kind of Jacobian."""
    return solver.correction(step, so_far, there)
