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

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.jets.compilation import now
from odejet.model import Model
from odejet.objective.affine import Affine, affine
from odejet.objective.courses import (
    GLANCE,
    ROUGH,
    THOROUGH,
    Blocks,
    Course,
    Effort,
    completed,
    courses,
    runs,
    together,
    work,
)
from odejet.objective.evaluation import Evaluation, NoiseAt
from odejet.objective.reduction import Aim, Pile, Triangles
from odejet.objective.scoring import Refusal, Scoring, tuned
from odejet.problem.conditions import Condition
from odejet.problem.distributions import Logarithmic, Normal
from odejet.problem.measurements import Measurements
from odejet.problem.priors import Truncated
from odejet.problem.unknowns import Unknown, Unknowns
from odejet.simulate.flow import Flow, Outcome, Trajectory

ROUGH_POINTS = 30
"""Measurements per series that are compared at a glance."""

MANY_EXPERIMENTS, MANY_UNKNOWNS = 8, 48
"""From so many on a Jacobian is kept in blocks: below, one dense matrix is as fast."""

LARGE = 1 << 20
"""Numbers of a Jacobian from which on its rows are not kept: below, one matrix is as fast, and some may be kept."""


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
    priors: tuple[Truncated, ...] = ()

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
    def scoring(self) -> Scoring | None:
        """The rows of what is no level times a shape; None where there is nothing of the kind."""
        if self.measurements.usual and not self.priors:
            return None
        return Scoring(self.measurements, self.priors)

    @property
    def rows(self) -> int:
        """How many residuals there are: one per measurement, then those of scales and of priors."""
        return self.points if self.scoring is None else self.scoring.rows

    @property
    def row_groups(self) -> tuple[slice, ...]:
        """Where the residuals of each output stand, and after them all others, if there are any."""
        return self.groups if self.rows == self.points else (*self.groups, slice(self.points, self.rows))

    @cached_property
    def estimated(self) -> np.ndarray:
        """Which outputs have a noise level that is to be estimated."""
        return np.isnan(self.known)

    @cached_property
    def free_noise(self) -> np.ndarray:
        """Which outputs have noise whose size the fit has to find: a level, or a scale that depends on unknowns."""
        free = {block.output for block in self.measurements.blocks if block.density and block.density.varies}
        return self.estimated | np.array([name in free for name in self.outputs])

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

    @property
    def shared(self) -> np.ndarray:
        """Entries of z that belong to no single experiment."""
        return self.simulator.unknowns.shared

    @cached_property
    def in_blocks(self) -> bool:
        """Whether Jacobians are kept in blocks."""
        return self.scoring is None and len(self.courses) >= MANY_EXPERIMENTS and len(self.unknowns) >= MANY_UNKNOWNS

    def evaluate(self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf) -> Evaluation:
        """Residuals at z and, unless it is not wanted, their derivative."""
        return self.compared(z, self.predicted(z, jacobian, deadline))

    def predicted(self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf) -> Evaluation:
        """What is simulated at the measured times, in place of residuals, and its derivative.

        The clock is looked at between experiments: where there are hundreds, one evaluation can take seconds.
        """
        outputs, parts, total = np.empty(self.rows), [], 1.0
        whole = np.zeros((self.rows, len(z))) if jacobian and not self.in_blocks else None
        for course, run in runs(self.measured, z, self.effort, jacobian, self.jobs, deadline):
            total += work(run) / len(self.measured)
            if (broken := self._broken(course, run, total, deadline)) is not None:
                return broken
            for rows, output, positions in course.series:
                outputs[rows] = run.outputs[positions, output, 0]
                if whole is not None:
                    whole[rows, course.columns] = run.outputs[positions, output][:, course.lanes]
            if jacobian and whole is None:
                parts.append(_part(course, run.outputs))
        derivative = (whole if whole is not None else Blocks((self.points, len(z)), tuple(parts))) if jacobian else None
        return Evaluation(outputs, derivative, Outcome.COMPLETED, Outcome.COMPLETED.value, 1.0, int(total))

    @cached_property
    def measured(self) -> tuple[Course, ...]:
        """The simulations of the experiments with measurements."""
        return together([course for course in self.courses if course.series])

    def _broken(self, course: Course, run: Trajectory, total: float, deadline: float) -> Evaluation | None:
        """What is left of an evaluation that a simulation, or the clock after it, breaks off."""
        if not completed(run):
            return Evaluation(None, None, run.outcome, run.message, course.reached(run), int(total))
        if course is self.measured[-1] or now() <= deadline:
            return None
        return Evaluation(None, None, Outcome.OUT_OF_TIME, Outcome.OUT_OF_TIME.value, 0.0, int(total))

    @cached_property
    def large(self) -> bool:
        """Whether rows of a Jacobian are reduced as they come, so that no more than one experiment's are there."""
        return self.scoring is None and not self.in_blocks and self.points * len(self.unknowns) > LARGE

    def reduced(self, z: np.ndarray, deadline: float = math.inf, aim: Aim | None = None) -> Evaluation:
        """Residuals at z and the triangles of their derivatives, with what an aim asks for."""
        n, total = len(z), 1.0
        residuals = np.empty(self.points)
        piles = tuple(Pile(n + (1 if aim is None else 3)) for _ in self.groups)
        for course, run in runs(self.measured, z, self.effort, True, self.jobs, deadline):
            total += work(run) / len(self.measured)
            if (broken := self._broken(course, run, total, deadline)) is not None:
                return broken
            for group, rows, tall in self._rows(course, run, n, piles[0].columns):
                residuals[rows] = tall[:, n]
                if aim is not None:
                    tall[:, n + 1], tall[:, n + 2] = tall[:, n] - aim.target[rows], aim.before[rows]
                piles[group].add(tall)
        triangles = Triangles(tuple(pile.triangle for pile in piles), n)
        return Evaluation(residuals, triangles, Outcome.COMPLETED, Outcome.COMPLETED.value, 1.0, int(total))

    def derivatives(self, z: np.ndarray) -> Iterator[tuple[int, slice, np.ndarray]]:
        """The Jacobian at a z that can be simulated, series by series: the output's number, rows, and their values."""
        n = len(z)
        for course, run in runs(self.measured, z, self.effort, True, self.jobs, math.inf):
            yield from self._rows(course, run, n, n + 1)

    def _rows(self, course: Course, run: Trajectory, n: int, columns: int) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Of each series of an experiment the output's number, rows, derivatives, residuals and a place for more."""
        for rows, output, positions in course.series:
            tall, values = np.zeros((rows.stop - rows.start, columns)), run.outputs[positions, output]
            tall[:, course.columns] = values[:, course.lanes]
            tall[:, n] = values[:, 0] - self.values[rows]
            if not self.measurements.plain:
                tall /= self.shapes[rows, None]
            yield next(i for i, own in enumerate(self.groups) if own.start <= rows.start < own.stop), rows, tall

    def compared(self, z: np.ndarray, found: Evaluation) -> Evaluation:
        """Residuals from predictions at z, which are used up."""
        if found.residuals is None:
            return found
        if self.scoring is not None:
            assert not isinstance(found.jacobian, Blocks | Triangles)
            return self._scored(self.scoring, z, found.residuals, found.jacobian, found.work)
        residuals, derivative = found.residuals, found.jacobian
        residuals -= self.values
        if not self.measurements.plain:
            residuals /= self.shapes
            assert not isinstance(derivative, Triangles)
            derivative = _divided(derivative, self.shapes)
        return replace(found, residuals=residuals, jacobian=derivative)

    def _scored(
        self, scoring: Scoring, z: np.ndarray, residuals: np.ndarray, jacobian: np.ndarray | None, work: int
    ) -> Evaluation:
        """The evaluation from predictions and their derivatives."""
        predicted = (residuals, jacobian) if len(self.noise_entries) else None
        if predicted is not None:
            residuals, jacobian = residuals.copy(), None if jacobian is None else jacobian.copy()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = scoring.score(z, residuals, jacobian)
        if isinstance(found, Refusal):
            message = f"{found.message}, at t = {self.times[found.row]:.6g}"
            return Evaluation(None, None, Outcome.SINGULAR, message, self._reached(found.row), work)
        return Evaluation(residuals, jacobian, Outcome.COMPLETED, Outcome.COMPLETED.value, 1.0, work, found, predicted)

    def _reached(self, row: int) -> float:
        """How far into its experiment a measurement stands."""
        pairs = zip(self.measurements.rows, self.measurements.blocks, strict=True)
        course = self.courses[next(block.experiment for rows, block in pairs if rows.start <= row < rows.stop)]
        return float((self.times[row] - course.start) / max(course.end - course.start, 1e-300))

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
        return z, self._scored(self.scoring, z, *found.predicted, found.work)

    # --- noise and likelihood ---

    def squares(self, residuals: np.ndarray) -> np.ndarray:
        """The sum of squares per output, safe against overflow."""
        with np.errstate(over="ignore"):
            return np.array([float(residuals[rows] @ residuals[rows]) for rows in self.groups])

    def is_exact(self, found: Evaluation) -> bool:
        """Whether the residuals of every output are down to rounding."""
        assert found.residuals is not None
        rms = np.sqrt(self.squares(found.residuals) / np.maximum(self.counts, 1))
        own = self.measurements.densities if found.standing is not None else np.zeros(len(rms), dtype=bool)
        parts = () if found.standing is None else found.standing.parts
        return bool(np.all((rms <= self.floors) | own)) and all(part.is_exact for part in parts)

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

    def cost(self, residuals: np.ndarray, levels: np.ndarray | None = None, rest: float = 0.0) -> float:
        """The negative log-likelihood (half the sum of squares with weights "none"); levels as likely as possible.

        `rest` is what an evaluation has beside squares.
        """
        squares = np.where(self.measurements.densities, 0.0, self.squares(residuals))
        if not self.weighted:
            return 0.5 * float(squares.sum()) + rest
        levels = self.levels(residuals) if levels is None else levels
        # Below rounding all residuals are as good.
        squares = np.where(self.estimated, np.maximum(squares, self.counts * self.floors**2), squares)
        with np.errstate(over="ignore"):
            return float(self.counts @ np.log(levels) + 0.5 * (squares / levels**2).sum()) + self.constant + rest

    @cached_property
    def constant(self) -> float:
        """What no value changes of the cost of squares."""
        points = self.points - int(self.counts[self.measurements.densities].sum())
        logarithms = sum(
            float(np.log(block.values * block.logarithm).sum())
            for block in self.measurements.blocks
            if block.logarithm and block.density is None
        )
        return 0.5 * points * math.log(2 * math.pi) + float(np.log(self.shapes).sum()) + logarithms

    def noise_at(self, found: Evaluation, levels: np.ndarray) -> NoiseAt:
        """The noise of every measurement, with these levels where it is a level times a shape."""
        assert found.residuals is not None
        rows = np.repeat(levels, self.counts)
        scores, sds = found.residuals[: self.points] / rows, rows * self.shapes
        scales = sds.copy()
        for own, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            if block.logarithm and block.density is None:
                mu = np.exp(block.logarithm * (found.residuals[own] * block.shapes + block.targets))
                sds[own] = Logarithmic(Normal(), block.logarithm).sd(mu, sds[own])
        for part in () if found.standing is None else found.standing.parts:
            law = part.density.law
            scores[part.rows] = law.scores(part.values, part.mu, part.s)
            sds[part.rows] = law.sd(part.mu, part.s)
            scales[part.rows] = sds[part.rows] if law.whole else part.s
        return NoiseAt(scores, sds, scales)

    def row_levels(self, levels: np.ndarray) -> np.ndarray:
        """A level per output, repeated for every residual; one for those that belong to no output."""
        rows = np.repeat(levels, self.counts)
        return rows if self.rows == self.points else np.concatenate([rows, np.ones(self.rows - self.points)])

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

        A stiff one may need a second look, which finds out that it is stiff.
        """
        # What noise of other laws is like is not known yet: beside it, candidates are compared by their squares.
        known = None if self.measurements.usual else self.scales
        levels = levels if known is None else known
        glance, rough = (self.window(1.0, ROUGH_POINTS, known, effort) for effort in (GLANCE, ROUGH))
        costs = np.full(len(candidates), math.inf)
        for misfit, (i, z) in itertools.product((glance, rough), enumerate(candidates)):
            if math.isinf(costs[i]) and now() <= deadline:
                costs[i] = misfit.score(z, levels, deadline)
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
