"""Misfit: how far a model with given values is from the data, with the exact derivative of every residual.

A residual is model minus measurement, in units of the shape of its noise (see `noise`); what is left to know of the
noise is one level per output, given or estimated.

    cost(z) = sum_j N_j log(level_j) + SSE_j / (2 level_j^2) + constants

is the negative logarithm of the likelihood; with `weights="none"` it is half the sum of squares, as plain least squares
has it.  Noise of other laws and priors enter as rows that stand for their gradient and curvature (see `scoring`), and
with their exact value into the cost.  A model that cannot be simulated to the last measurement is an evaluation that
says how far it got.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.clock import now
from odejet.objective.affine import Affine, affine
from odejet.objective.courses import (
    GLANCE,
    ROUGH,
    THOROUGH,
    Course,
    Effort,
    completed,
    courses,
    runs,
    together,
    work,
)
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.jacobian import Block, BlockJacobian, DenseJacobian, Jacobian, RowMap, laid_out
from odejet.objective.noise_model import NoiseModel, Simulator
from odejet.objective.scoring import Refusal, Scoring, tuned
from odejet.objective.streaming import Rows, Streaming
from odejet.problem.measurements import Measurements
from odejet.problem.priors import Truncated
from odejet.simulate.flow import Outcome, Trajectory
from odejet.simulate.repeated import Repeated

ROUGH_POINTS = 30
"""Measurements per series that are compared at a glance."""

MANY_EXPERIMENTS, MANY_UNKNOWNS, MOSTLY_LOCAL = 8, 48, 0.5
"""From so many on, of which this share belongs to single experiments, a Jacobian is kept in blocks: below, one dense
matrix is as fast."""

WORTH_STREAMING = 1.0
"""The decrease of the negative log-likelihood by better noise for which all rows are simulated once more."""

LARGE = 1 << 20
"""Numbers of a Jacobian from which on its rows are not kept: below, one matrix is as fast, and some may be kept."""


@dataclass(frozen=True, eq=False)
class Misfit(NoiseModel):
    """Residuals, their Jacobian and the likelihood of all experiments as functions of z."""

    simulator: Simulator
    measurements: Measurements
    known: np.ndarray  # noise level per output; NaN where it is to be estimated
    weighted: bool = True  # by the likelihood, or plain squares
    effort: Effort = THOROUGH
    jobs: int = 1  # cores on which experiments are simulated
    priors: tuple[Truncated, ...] = ()

    # --- evaluation ---

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        s = self.simulator
        return courses(s.conditions, s.flows, s.unknowns, self.measurements)

    @property
    def shared(self) -> np.ndarray:
        """Entries of z that belong to no single experiment."""
        return self.simulator.unknowns.shared

    @cached_property
    def in_blocks(self) -> bool:
        """Whether Jacobians are kept in blocks."""
        unknowns = len(self.unknowns)
        if len(self.courses) < MANY_EXPERIMENTS or unknowns < MANY_UNKNOWNS:
            return False
        return unknowns - len(self.shared) >= MOSTLY_LOCAL * unknowns

    @cached_property
    def large(self) -> bool:
        """Whether rows of a Jacobian are reduced as they come, so that no more than one experiment's are there."""
        return not self.in_blocks and self.points * len(self.unknowns) > LARGE

    def evaluate(
        self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf, aim: Aim | None = None
    ) -> Evaluation:
        """Return residuals at z and, unless it is not wanted, their derivative, with what an aim asks for."""
        if jacobian and self.large:
            return Streaming(self).evaluate(z, deadline, aim)
        return self.compared(z, self.predicted(z, jacobian, deadline))

    def predicted(self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf) -> Evaluation:
        """Return what is simulated at the measured times, in place of residuals, and its derivative.

        The clock is looked at between experiments: where there are hundreds, one evaluation can take seconds.
        """
        outputs, parts, total = np.empty(self.points), list[np.ndarray](), 1.0
        whole = np.zeros((self.rows, len(z))) if jacobian and not self.in_blocks else None
        for course, run in runs(self.measured, z, self.effort, jacobian, self.jobs, deadline):
            total += work(run) / len(self.measured)
            if (broken := self.broken(course, run, total, deadline)) is not None:
                return broken
            for rows, output, positions in course.series:
                outputs[rows] = run.outputs[positions, output, 0]
                if whole is not None:
                    whole[rows, course.columns] = run.outputs[positions, output][:, course.lanes]
            if jacobian and whole is None:
                parts.append(self.blocks[len(parts)].filled(_derivatives(course, run.outputs)))
        derivative: Jacobian | None = None
        if jacobian:
            derivative = self._in_blocks(parts) if whole is None else DenseJacobian(whole)
        return Evaluation(outputs, derivative, Outcome.COMPLETED, Outcome.COMPLETED.value, 1.0, int(total))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Where the derivatives of every simulation stand, and last those that belong to none."""
        simulated = [(_rows(course), course.columns) for course in self.measured]
        if self.scoring is None:
            return laid_out(simulated, self.shared)
        scales = [(a, b, density.entries) for a, b, density, _ in self.scoring.blocks if density.scale_each]
        return laid_out(simulated, self.shared, scales, *self.scoring.constant_rows)

    def _in_blocks(self, parts: list[np.ndarray]) -> BlockJacobian:
        parts += [block.filled(np.empty((0, 0))) for block in self.blocks[len(parts) :]]
        return BlockJacobian((self.rows, len(self.unknowns)), self.blocks, tuple(parts), self.shared)

    @cached_property
    def measured(self) -> tuple[Course, ...]:
        """The simulations of the experiments with measurements."""
        return together([course for course in self.courses if course.series])

    @cached_property
    def repeated(self) -> tuple[Repeated | None, ...]:
        """What simulates each of these for many z at once, without derivatives; None where that takes more."""
        return tuple(
            None if course.windows else Repeated.of(course.flow, course.start, course.times, self.effort.tolerance)
            for course in self.measured
        )

    @cached_property
    def brief(self) -> Misfit:
        """The misfit whose simulations break off where they take many times as long as most do."""
        if self.effort.brief == self.effort:
            return self
        found = self._with(effort=self.effort.brief)
        # The rows and the simulations behind them are those of all others of its kind.
        found.__dict__.update({"courses": self.courses, "measured": self.measured, "scoring": self.scoring})
        return found

    def broken(self, course: Course, run: Trajectory, total: float, deadline: float) -> Evaluation | None:
        """What is left of an evaluation that a simulation, or the clock after it, breaks off."""
        if not completed(run):
            return Evaluation(None, None, run.outcome, run.message, course.reached(run), int(total))
        if course is self.measured[-1] or now() <= deadline:
            return None
        return Evaluation(None, None, Outcome.OUT_OF_TIME, Outcome.OUT_OF_TIME.value, 0.0, int(total))

    def compared(self, z: np.ndarray, found: Evaluation) -> Evaluation:
        """Return residuals from predictions at z, which are used up."""
        if found.residuals is None:
            return found
        if self.scoring is not None:
            return self._scored(self.scoring, z, found.residuals, found.jacobian, found.work)
        residuals, derivative = found.residuals, found.jacobian
        residuals -= self.values
        if not self.measurements.plain:
            residuals /= self.shapes
            derivative = derivative and derivative.mapped(RowMap(self.points, 1 / self.shapes), keep=False)
        return replace(found, residuals=residuals, jacobian=derivative)

    def _scored(
        self, scoring: Scoring, z: np.ndarray, predicted: np.ndarray, jacobian: Jacobian | None, work: int
    ) -> Evaluation:
        """The evaluation from predictions and their derivatives."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = scoring.score(z, predicted)
            if isinstance(found, Refusal):
                return self.refused(found, work)
            keep = len(self.noise_entries) > 0
            rows = None if jacobian is None else jacobian.mapped(found.to_rows, keep)
        done = Outcome.COMPLETED
        kept = (predicted, jacobian) if keep else None
        return Evaluation(found.residuals, rows, done, done.value, 1.0, work, found, kept)

    def refused(self, refusal: Refusal, work: int) -> Evaluation:
        message = f"{refusal.message}, at t = {self.times[refusal.row]:.6g}"
        return Evaluation(None, None, Outcome.SINGULAR, message, self._reached(refusal.row), work)

    def _reached(self, row: int) -> float:
        """How far into its experiment a measurement stands."""
        pairs = zip(self.measurements.rows, self.measurements.blocks, strict=True)
        course = self.courses[next(block.experiment for rows, block in pairs if rows.start <= row < rows.stop)]
        return float((self.times[row] - course.start) / max(course.end - course.start, 1e-300))

    def stream(self, z: np.ndarray, expected: bool = False) -> Iterator[Rows]:
        """Yield the Jacobian at a z that can be simulated, some rows at a time; with the weights of the expected
        information, if these are wanted."""
        return Streaming(self).rows(z, expected)

    @cached_property
    def affine(self) -> tuple[Affine, ...]:
        """The scales and offsets of outputs."""
        return affine(self.simulator.conditions, self.simulator.unknowns, self.measurements)

    @cached_property
    def noise_entries(self) -> np.ndarray:
        """Entries of z that only the noise depends on."""
        used = {int(entry) for course in self.courses for entry in (*course.parameters, *course.entries)}
        own = {int(i) for b in self.measurements.blocks if b.density is not None for i in b.density.entries}
        return np.array(sorted(own - used), dtype=int)

    def tuned(
        self,
        z: np.ndarray,
        found: Evaluation,
        entries: np.ndarray | None = None,
        box: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, Evaluation]:
        """z with what only the noise depends on, or these entries of it, at its most likely values for the predictions
        of an evaluation, within a box, and the evaluation there, for which nothing is simulated."""
        entries = self.noise_entries if entries is None else entries
        if found.predicted is None or found.standing is None or not len(entries):
            return z, found
        z = tuned(z, found.standing.parts, entries, box)
        assert self.scoring is not None
        outputs, derivatives = found.predicted
        if derivatives is not None or found.jacobian is None:
            return z, self._scored(self.scoring, z, outputs, derivatives, found.work)
        better = self._scored(self.scoring, z, outputs, None, found.work)
        worth = better.complete and found.rest - better.rest > WORTH_STREAMING
        return (z, self.evaluate(z)) if worth else (z, found)

    def why(self, z: np.ndarray, deadline: float = math.inf) -> str | None:
        """Return why residuals at z are no finite numbers, by the first experiment that shows it; None if they are."""
        conditions = self.simulator.conditions
        for number, condition in enumerate(conditions):
            found, name = self.only(number).evaluate(z, jacobian=False, deadline=deadline), condition.experiment.name
            if found.residuals is None:
                return f"{name}: {found.message}" if len(conditions) > 1 else found.message
            if not np.all(np.isfinite(found.residuals)):
                return f"a prediction in {name} is too far from its measurement for numbers to tell"
        return None

    def score(self, z: np.ndarray, levels: np.ndarray | None = None, deadline: float = math.inf) -> float:
        """The cost of a candidate, without derivatives; infinite where it cannot be simulated in time."""
        evaluation = self.evaluate(z, jacobian=False, deadline=deadline)
        if evaluation.residuals is None or not np.all(np.isfinite(evaluation.residuals)):
            return math.inf
        return self.cost(evaluation.residuals, levels, evaluation.rest)

    def screen(
        self, candidates: Sequence[np.ndarray], levels: np.ndarray | None = None, deadline: float = math.inf
    ) -> np.ndarray:
        """The costs of many candidates on a few of the times, simulated roughly: for ranking, at 0.1 ms each.

        A stiff one may need a second look, which finds out that it is stiff; and where none has come to its end, all
        of them a long one.
        """
        # What noise of other laws is like is not known yet: beside it, candidates are compared by their squares.
        known = None if self.measurements.usual else self.scales
        levels = levels if known is None else known
        costs = np.full(len(candidates), math.inf)
        for effort in (GLANCE.brief, ROUGH.brief, ROUGH):
            if np.isfinite(costs).all() or (effort is ROUGH and np.isfinite(costs).any()):
                break
            misfit = self.window(1.0, ROUGH_POINTS, known, effort)
            for i in np.flatnonzero(np.isinf(costs)).tolist():
                if now() <= deadline:
                    costs[i] = misfit.score(candidates[i], levels, deadline)
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
        levels taken as known, for squares alone, and with this effort; all as they are, if not given."""
        spans = [(course.start, course.end) for course in self.courses]
        part = self.measurements.part(spans, fraction, points)
        return self._with(
            measurements=part if levels is None else part.squares(levels),
            priors=self.priors if levels is None else (),
            known=self._levels_of(part, levels),
            effort=effort or self.effort,
        )

    def _levels_of(self, part: Measurements, levels: np.ndarray | None) -> np.ndarray:
        """Known levels where these are given; a law that stays has its own scale."""
        if levels is None:
            return self.known
        return np.where(part.squares(levels).densities, 1.0, np.array(levels, dtype=float))

    def only(self, experiment: int) -> Misfit:
        """The misfit of one experiment; the unknowns of others may have any value."""
        return self._with(measurements=self.measurements.only(experiment))

    def by_rounding(self) -> Misfit | None:
        """The misfit with residuals relative to the output at the time, as rounding is; None where this is no other."""
        fine = self.measurements.by_rounding() if self.weighted else None
        return None if fine is None else self._with(measurements=fine, known=np.full(len(self.outputs), math.nan))


def _rows(course: Course) -> np.ndarray:
    """The rows of the measurements of a simulation."""
    return np.concatenate([np.arange(rows.start, rows.stop) for rows, _, _ in course.series])


def _derivatives(course: Course, outputs: np.ndarray) -> np.ndarray:
    """Their derivatives, by the unknowns that it depends on."""
    return np.concatenate([outputs[positions, output][:, course.lanes] for _, output, positions in course.series])
