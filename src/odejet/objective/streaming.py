"""Streaming: evaluations of so many measurements that rows of their Jacobian are not kept.

Rows come experiment by experiment from the simulations, become rows of residuals by the law of their noise, and are
reduced at once to the triangle of their group.  No more than those of one experiment are ever there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.objective.courses import Course, runs, work
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.jacobian import DenseJacobian, StreamedJacobian
from odejet.objective.scoring import Refusal, Scoring, Standing
from odejet.objective.triangles import Pile
from odejet.simulate.flow import Outcome, Trajectory

if TYPE_CHECKING:
    from odejet.objective.misfit import Misfit


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a Jacobian with their residuals, and the positions that these are about."""

    rows: slice
    jacobian: np.ndarray
    residuals: np.ndarray
    positions: np.ndarray

    def tall(self, aim: Aim | None) -> np.ndarray:
        """Return derivatives and residuals, and if there is an aim what they miss it by and were before."""
        if aim is None:
            return np.column_stack([self.jacobian, self.residuals])
        missed = aim.missed(self.rows, self.positions)
        return np.column_stack([self.jacobian, self.residuals, missed, aim.before[self.rows]])


@dataclass(frozen=True, eq=False)
class Streaming:
    """The rows of a misfit as they come."""

    misfit: Misfit

    def evaluate(self, z: np.ndarray, deadline: float, aim: Aim | None) -> Evaluation:
        """Return residuals at z and the triangles of their derivatives, with what an aim asks for."""
        misfit, n, total = self.misfit, len(z), 1.0
        outputs, groups = np.empty(misfit.points), misfit.row_groups
        piles = tuple(Pile(n + (1 if aim is None else 3)) for _ in groups)
        for course, run in runs(misfit.measured, z, misfit.effort, True, misfit.jobs, deadline):
            total += work(run) / len(misfit.measured)
            if (broken := misfit.broken(course, run, total, deadline)) is not None:
                return broken
            for rows, output, positions in course.series:
                outputs[rows] = run.outputs[positions, output, 0]
            for part in self._of_course(z, course, run):
                if isinstance(part, Refusal):
                    return misfit.refused(part, int(total))
                number = next(i for i, group in enumerate(groups) if group.start <= part.rows.start < group.stop)
                piles[number].add(part.tall(aim))
        done = Outcome.COMPLETED
        found = misfit.compared(z, Evaluation(outputs, None, done, done.value, 1.0, int(total)))
        for part in self._constant(found.standing, n):
            piles[-1].add(part.tall(aim))
        triangles = tuple(pile.triangle for pile in piles)
        return replace(found, jacobian=StreamedJacobian(triangles, n, groups, Again(self, z)))

    def rows(self, z: np.ndarray, expected: bool = False) -> Iterator[Rows]:
        """Yield all rows at a z that can be simulated, if wanted with the weights of the expected information."""
        misfit = self.misfit
        for course, run in runs(misfit.measured, z, misfit.effort, True, misfit.jobs, math.inf):
            for part in self._of_course(z, course, run, expected):
                assert isinstance(part, Rows)
                yield part
        if misfit.scoring is not None:
            yield from self._constant(misfit.evaluate(z, jacobian=False).standing, len(z), expected)

    def _of_course(
        self, z: np.ndarray, course: Course, run: Trajectory, expected: bool = False
    ) -> Iterator[Rows | Refusal]:
        """Yield the rows of each series of an experiment, and those of its scales of noise."""
        for rows, output, positions in course.series:
            values = run.outputs[positions, output]
            tall = np.zeros((len(values), len(z)))
            tall[:, course.columns] = values[:, course.lanes]
            if self.misfit.scoring is None:
                yield self._squares(rows, values[:, 0], tall)
            else:
                yield from self._scored(self.misfit.scoring, z, rows, values[:, 0], tall, expected)

    def _squares(self, rows: slice, predicted: np.ndarray, tall: np.ndarray) -> Rows:
        residuals = predicted - self.misfit.values[rows]
        if not self.misfit.measurements.plain:
            shapes = self.misfit.shapes[rows]
            tall, residuals = tall / shapes[:, None], residuals / shapes
        return Rows(rows, tall, residuals, residuals)

    def _scored(
        self, scoring: Scoring, z: np.ndarray, rows: slice, predicted: np.ndarray, tall: np.ndarray, expected: bool
    ) -> Iterator[Rows | Refusal]:
        """Yield the rows of a law and those of its scale."""
        alone, size = scoring.of_block(self._numbers[rows.start]), len(predicted)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = alone.score(z, predicted)
            if isinstance(found, Refusal):
                yield replace(found, row=rows.start + found.row)
                return
            room = np.concatenate([tall, np.zeros((alone.rows - size, len(z)))])
            # A row that stands for the scales of all experiments comes once, at the end.
            further = alone.rows - size if scoring.scale_rows.get(rows.start) is not None else 0
            matrix = DenseJacobian(room).mapped(found.to_rows, keep=False).matrix
            matrix = matrix * found.information_ratio[:, None] if expected else matrix
        yield Rows(rows, matrix[:size], found.residuals[:size], found.positions[:size])
        if further:
            start = scoring.scale_rows[rows.start]
            yield Rows(slice(start, start + further), matrix[size:], found.residuals[size:], found.positions[size:])

    def _constant(self, found: Standing | None, n: int, expected: bool = False) -> Iterator[Rows]:
        """Yield the rows that depend on unknowns alone, those that follow each other together."""
        if found is None or not len(found.to_rows.constant_rows):
            return
        to_rows, rows = found.to_rows, np.unique(found.to_rows.constant_rows)
        for part in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
            here = slice(int(part[0]), int(part[-1]) + 1)
            chosen = (to_rows.constant_rows >= here.start) & (to_rows.constant_rows < here.stop)
            tall = np.zeros((len(part), n))
            tall[to_rows.constant_rows[chosen] - here.start, to_rows.entries[chosen]] = to_rows.constants[chosen]
            tall = tall * found.information_ratio[here, None] if expected else tall
            yield Rows(here, tall, found.residuals[here], found.positions[here])

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """Blocks of measurements by the first of their rows."""
        return {rows.start: number for number, rows in enumerate(self.misfit.measurements.rows)}


@dataclass(frozen=True, eq=False)
class Again:
    """All rows once more."""

    streaming: Streaming
    z: np.ndarray

    def __call__(self) -> Iterator[tuple[slice, np.ndarray]]:
        for part in self.streaming.rows(self.z):
            yield part.rows, part.jacobian
