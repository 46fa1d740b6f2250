"""Misfit: how far a model with given values is from the data, with the exact derivative of every residual.

A residual is model minus measurement, in units of the shape of its noise (see `noise`); what is left to know of the
noise is one level per output, given or estimated.

    cost(z) = sum_j N_j log(level_j) + SSE_j / (2 level_j^2) + constants

is the negative logarithm of the likelihood; with `weights="none"` it is half the sum of squares, as plain least squares
has it.  A model that cannot be simulated to the last measurement is an evaluation that says how far it got.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from odejet.model import Model
from odejet.problem.conditions import Condition
from odejet.problem.courses import (
    GLANCE,
    ROUGH,
    THOROUGH,
    Blocks,
    Course,
    Effort,
    completed,
    courses,
    runs,
    work,
)
from odejet.problem.measurements import Measurements
from odejet.problem.unknowns import Unknown, Unknowns
from odejet.simulate.flow import Flow, Outcome

ROUGH_POINTS = 30
"""Measurements per series that are compared at a glance."""

MANY_EXPERIMENTS, MANY_UNKNOWNS = 8, 48
"""From so many on a Jacobian is kept in blocks: below, one dense matrix is as fast."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Residuals in units of their noise's shape and their derivative by z; None where the simulation broke off."""

    residuals: np.ndarray | None
    jacobian: np.ndarray | Blocks | None
    outcome: Outcome
    message: str
    reached: float  # the fraction of the time span that was simulated, the least of all experiments
    work: int = 1  # in units of an ordinary simulation

    @property
    def complete(self) -> bool:
        return self.residuals is not None

    @property
    def dense(self) -> np.ndarray:
        """The Jacobian as one matrix."""
        assert self.jacobian is not None
        return self.jacobian.dense() if isinstance(self.jacobian, Blocks) else self.jacobian


@dataclass(frozen=True, eq=False)
class Simulator:
    """What the experiments of a problem need to be simulated, whichever of their measurements are looked at."""

    model: Model
    conditions: tuple[Condition, ...]
    flows: tuple[Flow, ...]
    unknowns: Unknowns
    feelings: tuple[int, ...]  # how many unknowns each output feels


@dataclass(frozen=True, eq=False)
class Misfit:
    """Residuals, their Jacobian and the likelihood of all experiments as functions of z."""

    simulator: Simulator
    measurements: Measurements
    known: np.ndarray  # noise level per output; NaN where it is to be estimated
    weighted: bool = True  # by the likelihood, or plain squares
    effort: Effort = THOROUGH
    jobs: int = 1  # cores on which experiments are simulated

    # --- what it is a function of ---

    @property
    def model(self) -> Model:
        return self.simulator.model

    @property
    def unknowns(self) -> Sequence[Unknown]:
        return self.simulator.unknowns

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.unknowns)

    @property
    def points(self) -> int:
        return len(self.values)

    # --- what it is compared with ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.measurements.outputs

    @property
    def values(self) -> np.ndarray:
        return self.measurements.values

    @property
    def times(self) -> np.ndarray:
        return self.measurements.times

    @property
    def shapes(self) -> np.ndarray:
        return self.measurements.shapes

    @property
    def groups(self) -> tuple[slice, ...]:
        return self.measurements.groups

    @property
    def counts(self) -> np.ndarray:
        return self.measurements.counts

    @property
    def floors(self) -> np.ndarray:
        return self.measurements.floors

    @property
    def scales(self) -> np.ndarray:
        return self.measurements.scales

    @cached_property
    def estimated(self) -> np.ndarray:
        """Which outputs have a noise level that is to be estimated."""
        return np.isnan(self.known)

    @cached_property
    def borrowing(self) -> np.ndarray:
        """Outputs with no degrees of freedom of their own: no more points than unknowns that could fit them exactly."""
        return self.estimated & (self.counts <= np.array(self.simulator.feelings))

    @cached_property
    def pool(self) -> np.ndarray:
        """Outputs that share a noise level, relative to their spread: those that borrow, and one with most points."""
        if not self.borrowing.any():
            return self.borrowing
        lenders = self.estimated & ~self.borrowing
        most = np.argmax(np.where(lenders if lenders.any() else self.estimated, self.counts, -1))
        return self.borrowing | (np.arange(len(self.outputs)) == most)

    # --- evaluation ---

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        s = self.simulator
        return courses(s.conditions, s.flows, s.unknowns, self.measurements)

    @cached_property
    def in_blocks(self) -> bool:
        """Whether Jacobians are kept in blocks."""
        return len(self.courses) >= MANY_EXPERIMENTS and len(self.unknowns) >= MANY_UNKNOWNS

    def evaluate(self, z: np.ndarray, jacobian: bool = True) -> Evaluation:
        """Residuals at z and, unless it is not wanted, their derivative."""
        residuals, parts, total = np.empty(self.points), [], 1
        whole = np.zeros((self.points, len(z))) if jacobian and not self.in_blocks else None
        measured = [course for course in self.courses if course.series]
        for course, run in runs(measured, z, self.effort, jacobian, self.jobs):
            total += work(run)
            if not completed(run):
                return Evaluation(None, None, run.outcome, run.message, course.reached(run), total)
            for rows, output, positions in course.series:
                residuals[rows] = run.outputs[positions, output, 0]
                if whole is not None:
                    whole[rows, course.columns] = run.outputs[positions, output][:, course.lanes]
            if jacobian and whole is None:
                parts.append(_part(course, run.outputs))
        residuals -= self.values
        derivative = (whole if whole is not None else Blocks((self.points, len(z)), tuple(parts))) if jacobian else None
        if not self.measurements.plain:
            residuals /= self.shapes
            derivative = _divided(derivative, self.shapes)
        return Evaluation(residuals, derivative, Outcome.COMPLETED, Outcome.COMPLETED.value, 1.0, total)

    # --- noise and likelihood ---

    def squares(self, residuals: np.ndarray) -> np.ndarray:
        """The sum of squares per output, safe against overflow."""
        with np.errstate(over="ignore"):
            return np.array([float(residuals[rows] @ residuals[rows]) for rows in self.groups])

    def levels(self, residuals: np.ndarray) -> np.ndarray:
        """The most likely noise level per output: its rms residual where it is not known, never below rounding.

        A few points can be fitted exactly, which says nothing of their noise: an output without degrees of freedom of
        its own shares one level, relative to its spread, with the output that has most.
        """
        squares = self.squares(residuals)
        rms = np.sqrt(squares / np.maximum(self.counts, 1))
        if self.pool.any():
            spreads, counts = self.scales[self.pool], self.counts[self.pool]
            rms[self.pool] = spreads * math.sqrt(float((squares[self.pool] / spreads**2).sum()) / counts.sum())
        return np.where(self.estimated, np.maximum(rms, self.floors), self.known)

    def cost(self, residuals: np.ndarray, levels: np.ndarray | None = None) -> float:
        """The negative log-likelihood (half the sum of squares with weights "none"); levels as likely as possible."""
        squares = self.squares(residuals)
        if not self.weighted:
            return 0.5 * float(squares.sum())
        levels = self.levels(residuals) if levels is None else levels
        # Below rounding all residuals are as good.
        squares = np.where(self.estimated, np.maximum(squares, self.counts * self.floors**2), squares)
        constant = 0.5 * self.points * math.log(2 * math.pi) + float(np.log(self.shapes).sum())
        with np.errstate(over="ignore"):
            return float(self.counts @ np.log(levels) + 0.5 * (squares / levels**2).sum()) + constant

    def row_levels(self, levels: np.ndarray) -> np.ndarray:
        """A level per output, repeated for every residual."""
        return np.repeat(levels, self.counts)

    def score(self, z: np.ndarray, levels: np.ndarray | None = None) -> float:
        """The cost of a candidate, without derivatives; infinite where it cannot be simulated."""
        evaluation = self.evaluate(z, jacobian=False)
        if evaluation.residuals is None or not np.all(np.isfinite(evaluation.residuals)):
            return math.inf
        return self.cost(evaluation.residuals, levels)

    def screen(self, candidates: Sequence[np.ndarray], levels: np.ndarray | None = None) -> np.ndarray:
        """The costs of many candidates on a few of the times, simulated roughly: for ranking, at 0.1 ms each.

        A stiff one may need a second look, which finds out that it is stiff.
        """
        glance, rough = (self.window(1.0, ROUGH_POINTS, effort=effort) for effort in (GLANCE, ROUGH))
        costs = np.array([glance.score(z, levels) for z in candidates])
        for i in np.flatnonzero(~np.isfinite(costs)).tolist():
            costs[i] = rough.score(candidates[i], levels)
        return costs

    # --- parts ---

    def _with(self, **changes: Any) -> Misfit:
        """A plain misfit like this one, but for these parts."""
        return Misfit(**{one.name: getattr(self, one.name) for one in fields(Misfit)} | changes)

    def window(
        self,
        fraction: float,
        points: int | None = None,
        levels: np.ndarray | None = None,
        effort: Effort | None = None,
    ) -> Misfit:
        """The misfit of the first part of every experiment, thinned to so many points per series, with these noise
        levels taken as known and with this effort; all as they are, if not given."""
        spans = [(course.start, course.end) for course in self.courses]
        return self._with(
            measurements=self.measurements.part(spans, fraction, points),
            known=self.known if levels is None else np.array(levels, dtype=float),
            effort=effort or self.effort,
        )

    def only(self, experiment: int) -> Misfit:
        """The misfit of one experiment; the unknowns of others may have any value."""
        return self._with(measurements=self.measurements.only(experiment))

    def by_rounding(self) -> Misfit | None:
        """The misfit with residuals relative to the output at the time, as rounding is; None where this is no other."""
        fine = self.measurements.by_rounding() if self.weighted else None
        return None if fine is None else self._with(measurements=fine, known=np.full(len(self.outputs), math.nan))


def _part(course: Course, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and derivatives of one experiment."""
    rows = np.concatenate([np.arange(own.start, own.stop) for own, _, _ in course.series])
    values = np.concatenate([outputs[positions, output][:, course.lanes] for _, output, positions in course.series])
    return rows, course.columns, values


def _divided(jacobian: np.ndarray | Blocks | None, shapes: np.ndarray) -> np.ndarray | Blocks | None:
    if isinstance(jacobian, Blocks):
        parts = tuple((rows, columns, values / shapes[rows, None]) for rows, columns, values in jacobian.parts)
        return Blocks(jacobian.shape, parts)
    return None if jacobian is None else jacobian / shapes[:, None]
