"""Jacobian: derivatives of residuals by the unknowns, kept in one of three forms; nobody else asks in which.

- *Dense*: one matrix, for ordinary problems.
- *Blocks*: one matrix for each experiment, in the unknowns that it depends on.  Where many experiments have unknowns of
  their own, J has the form of an arrow: blocks along the diagonal for what is local and a border for what is shared.
- *Streamed*: no rows at all, but the triangle of every group of rows, made as the rows come.  So whatever asks for J'J,
  J'r or the singular values of J, with any weights per group, gets them from as many rows as there are unknowns;
  products with vectors that have a number per row take another simulation.

Simulations give derivatives of predictions.  Laws of noise and priors make rows of residuals of them by a `RowMap`: a
factor for every measurement, rows for scales of noise that depend on predictions and unknowns, and a row per prior.
All three forms apply it, so that no law and no prior changes the form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from odejet.objective.arrow import Arrow, Reduced
from odejet.objective.triangles import Groups, Pile, Triangles, by_rows, triangle_of

if TYPE_CHECKING:
    from odejet.objective.linear_model import LinearModel

# --- from predictions to rows ---


@dataclass(frozen=True, eq=False)
class ScaleRows:
    """Rows of the scales of noise of some measurements, which depend on their predictions and on unknowns."""

    sources: slice  # the measurements
    rows: slice
    by_prediction: np.ndarray  # a factor per row
    entries: np.ndarray  # of z
    by_entries: np.ndarray  # (entries, rows)

    def part(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which of these rows are sources, and their positions among all sources."""
        chosen = np.flatnonzero((rows >= self.sources.start) & (rows < self.sources.stop))
        return chosen, rows[chosen] - self.sources.start


@dataclass(frozen=True, eq=False)
class RowMap:
    """How rows of residuals follow from derivatives of predictions."""

    rows: int
    factors: np.ndarray | None = None  # of the measurements; None where all are one
    scales: tuple[ScaleRows, ...] = ()
    priors: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # rows, entries of z and derivatives


# --- forms of a Jacobian ---


class Jacobian(Protocol):
    """Derivatives of residuals by z."""

    @property
    def keeps_rows(self) -> bool:
        """Whether there is a row for every residual."""

    @property
    def largest(self) -> float:
        """The largest modulus of all numbers."""

    def dense(self) -> np.ndarray:
        """Return all rows as one matrix."""

    def matvec(self, move: np.ndarray) -> np.ndarray:
        """Return J d."""

    def rmatvec(self, rows: np.ndarray) -> np.ndarray:
        """Return J'w."""

    def mapped(self, to_rows: RowMap, keep: bool) -> Jacobian:
        """Return rows of residuals from those of predictions, which may be used up unless they are to be kept."""

    def scaled(self, factors: np.ndarray) -> Jacobian:
        """Return the Jacobian with every row times its factor."""

    def over(self, levels: np.ndarray, groups: Groups) -> Jacobian:
        """Return the Jacobian with the rows of every group in units of its level."""

    def eliminated(self, column: int, slopes: np.ndarray) -> Jacobian:
        """Return the derivatives by all other unknowns, where one follows them with these slopes."""

    def weighted(
        self, residuals: np.ndarray, groups: Groups, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Groups]:
        """Return J and r in units of the level of each group, or rows with the same J'J and J'r, and their groups."""

    def reduced(self, slopes: np.ndarray, residuals: np.ndarray, groups: Groups) -> Reduced:
        """Return what steps need of r + J diag(slopes) d."""

    def missing(self, slopes: np.ndarray, excess: np.ndarray, groups: Groups) -> Reduced:
        """Return the same of what residuals have beyond an aim, `excess` where rows are kept."""

    def gradient(self, residuals: np.ndarray, groups: Groups, levels: np.ndarray) -> np.ndarray:
        """Return J'r with groups weighted by their levels."""

    def change_since(self, before: LinearModel, here: LinearModel, levels: np.ndarray) -> np.ndarray:
        """Return what the change of J alone did to the gradient, by residuals that are there still."""


@dataclass(frozen=True, eq=False)
class DenseJacobian:
    """One matrix."""

    matrix: np.ndarray
    keeps_rows = True

    @property
    def largest(self) -> float:
        return _largest([self.matrix])

    def dense(self) -> np.ndarray:
        return self.matrix

    def matvec(self, move: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ move)

    def rmatvec(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows @ self.matrix)

    def mapped(self, to_rows: RowMap, keep: bool) -> DenseJacobian:
        """Return rows of residuals; the matrix has room for all of them, those of predictions first."""
        matrix = self.matrix.copy() if keep else self.matrix
        for scale in to_rows.scales:
            matrix[scale.rows] = scale.by_prediction[:, None] * matrix[scale.sources]
            matrix[scale.rows.start : scale.rows.stop, scale.entries] += scale.by_entries.T
        if to_rows.factors is not None:
            matrix[: len(to_rows.factors)] *= to_rows.factors[:, None]
        if to_rows.priors is not None:
            rows, entries, values = to_rows.priors
            matrix[rows, entries] = values
        return DenseJacobian(matrix)

    def scaled(self, factors: np.ndarray) -> DenseJacobian:
        return DenseJacobian(self.matrix * factors[:, None])

    def over(self, levels: np.ndarray, groups: Groups) -> DenseJacobian:
        return self.scaled(1 / by_rows(levels, groups))

    def eliminated(self, column: int, slopes: np.ndarray) -> DenseJacobian:
        return DenseJacobian(np.delete(self.matrix, column, axis=1) + np.outer(self.matrix[:, column], slopes))

    def weighted(
        self, residuals: np.ndarray, groups: Groups, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Groups]:
        rows = by_rows(levels, groups)
        return self.matrix / rows[:, None], residuals / rows, groups

    def reduced(self, slopes: np.ndarray, residuals: np.ndarray, groups: Groups) -> Triangles:
        return Triangles(tuple(triangle_of(self.matrix, slopes, residuals, rows) for rows in groups))

    def gradient(self, residuals: np.ndarray, groups: Groups, levels: np.ndarray) -> np.ndarray:
        return self.rmatvec(residuals / by_rows(levels, groups) ** 2)

    def change_since(self, before: LinearModel, here: LinearModel, levels: np.ndarray) -> np.ndarray:
        return _change_by_new_residuals(before, here, levels)

    missing = reduced


@dataclass(frozen=True, eq=False)
class BlockJacobian:
    """A matrix for each experiment, and zero elsewhere."""

    shape: tuple[int, int]
    parts: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]  # rows, columns and values of an experiment
    shared: np.ndarray  # columns that belong to no single experiment
    keeps_rows = True

    @property
    def largest(self) -> float:
        return _largest([values for _, _, values in self.parts])

    def dense(self) -> np.ndarray:
        whole = np.zeros(self.shape)
        for rows, columns, values in self.parts:
            whole[np.ix_(rows, columns)] = values
        return whole

    def matvec(self, move: np.ndarray) -> np.ndarray:
        result = np.zeros(self.shape[0])
        for rows, columns, values in self.parts:
            result[rows] = values @ move[columns]
        return result

    def rmatvec(self, rows: np.ndarray) -> np.ndarray:
        result = np.zeros(self.shape[1])
        for own, columns, values in self.parts:
            result[columns] += rows[own] @ values
        return result

    def mapped(self, to_rows: RowMap, keep: bool) -> BlockJacobian:
        parts = [_mapped_part(rows, columns, values, to_rows) for rows, columns, values in self.parts]
        return replace(self, shape=(to_rows.rows, self.shape[1]), parts=tuple(self._with_priors(parts, to_rows)))

    def _with_priors(
        self, parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], to_rows: RowMap
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the parts with the priors of their local unknowns, and last a part of all other priors.

        A local unknown stays in one part, so that what is local can be eliminated part by part.
        """
        if to_rows.priors is None:
            yield from parts
            return
        prior_rows, entries, derivatives = to_rows.priors
        left = np.ones(len(entries), dtype=bool)
        local = ~np.isin(entries, self.shared)
        for rows, columns, values in parts:
            order = {int(column): i for i, column in enumerate(columns)}
            own = [i for i in np.flatnonzero(local & left).tolist() if int(entries[i]) in order]
            if not own:
                yield rows, columns, values
                continue
            left[own] = False
            further = np.zeros((len(own), len(columns)))
            further[np.arange(len(own)), [order[int(entries[i])] for i in own]] = derivatives[own]
            yield np.concatenate([rows, prior_rows[own]]), columns, np.concatenate([values, further])
        if left.any():
            columns, places = np.unique(entries[left], return_inverse=True)
            rows_of_rest = np.zeros((int(left.sum()), len(columns)))
            rows_of_rest[np.arange(len(places)), places] = derivatives[left]
            yield prior_rows[left], columns, rows_of_rest

    def scaled(self, factors: np.ndarray) -> BlockJacobian:
        parts = ((rows, columns, values * factors[rows, None]) for rows, columns, values in self.parts)
        return replace(self, parts=tuple(parts))

    def over(self, levels: np.ndarray, groups: Groups) -> BlockJacobian:
        return self.scaled(1 / by_rows(levels, groups))

    def eliminated(self, column: int, slopes: np.ndarray) -> Jacobian:
        """Return blocks again, or one matrix where following the others would fill what is zero."""
        parts, others = [], np.insert(slopes, column, 0.0)
        for rows, columns, values in self.parts:
            kept, follows = columns != column, values
            if not kept.all() and others.any():
                if np.count_nonzero(others[columns]) < np.count_nonzero(others):
                    return DenseJacobian(self.dense()).eliminated(column, slopes)
                follows = values + values[:, ~kept] * others[columns]
            parts.append((rows, columns[kept] - (columns[kept] > column), follows[:, kept]))
        shared = self.shared[self.shared != column]
        return BlockJacobian((self.shape[0], self.shape[1] - 1), tuple(parts), shared - (shared > column))

    def weighted(
        self, residuals: np.ndarray, groups: Groups, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Groups]:
        return DenseJacobian(self.dense()).weighted(residuals, groups, levels)

    def reduced(self, slopes: np.ndarray, residuals: np.ndarray, groups: Groups) -> Arrow:
        return Arrow(self.parts, self.shared, slopes, residuals, groups)

    def gradient(self, residuals: np.ndarray, groups: Groups, levels: np.ndarray) -> np.ndarray:
        return self.rmatvec(residuals / by_rows(levels, groups) ** 2)

    def change_since(self, before: LinearModel, here: LinearModel, levels: np.ndarray) -> np.ndarray:
        return _change_by_new_residuals(before, here, levels)

    missing = reduced


@dataclass(frozen=True, eq=False)
class StreamedJacobian:
    """The triangle of every group of rows, with columns for residuals and, if there was an aim, what they miss it by
    and were before."""

    parts: tuple[np.ndarray, ...]
    unknowns: int
    groups: Groups  # where the rows were
    stream: Callable[[], Iterator[tuple[slice, np.ndarray]]]  # all rows once more, by another simulation
    keeps_rows = False

    @property
    def rows(self) -> int:
        return self.groups[-1].stop

    @property
    def largest(self) -> float:
        return _largest(self.parts)

    def dense(self) -> np.ndarray:
        whole = np.zeros((self.rows, self.unknowns))
        for rows, values in self.stream():
            whole[rows] = values
        return whole

    def matvec(self, move: np.ndarray) -> np.ndarray:
        result = np.zeros(self.rows)
        for rows, values in self.stream():
            result[rows] = values @ move
        return result

    def rmatvec(self, rows: np.ndarray) -> np.ndarray:
        result = np.zeros(self.unknowns)
        for some, values in self.stream():
            result += rows[some] @ values
        return result

    def mapped(self, to_rows: RowMap, keep: bool) -> StreamedJacobian:
        """Return the triangles themselves: rows are mapped as they come."""
        return self

    def scaled(self, factors: np.ndarray) -> StreamedJacobian:
        """Return the triangles of the rows that come again, each times its factor, without residuals."""
        piles, stream = tuple(Pile(self.unknowns + 1) for _ in self.parts), self.stream

        def times() -> Iterator[tuple[slice, np.ndarray]]:
            for rows, values in stream():
                yield rows, values * factors[rows, None]

        for rows, values in times():
            group = next(i for i, some in enumerate(self.groups) if some.start <= rows.start < some.stop)
            piles[group].add(np.column_stack([values, np.zeros(len(values))]))
        return replace(self, parts=tuple(pile.triangle for pile in piles), stream=times)

    def over(self, levels: np.ndarray, groups: Groups) -> StreamedJacobian:
        factors, stream = 1 / by_rows(levels, groups), self.stream

        def divided() -> Iterator[tuple[slice, np.ndarray]]:
            for rows, values in stream():
                yield rows, values * factors[rows, None]

        parts = tuple(part / level for part, level in zip(self.parts, levels, strict=True))
        return replace(self, parts=parts, stream=divided)

    def eliminated(self, column: int, slopes: np.ndarray) -> StreamedJacobian:
        return self.by(np.insert(np.eye(self.unknowns - 1), column, slopes, axis=0))

    def by(self, matrix: np.ndarray) -> StreamedJacobian:
        """Return the derivatives by other unknowns, on which these depend by a matrix."""
        n, stream = self.unknowns, self.stream
        parts = tuple(np.column_stack([part[:, :n] @ matrix, part[:, n:]]) for part in self.parts)

        def turned() -> Iterator[tuple[slice, np.ndarray]]:
            for rows, values in stream():
                yield rows, values @ matrix

        return StreamedJacobian(parts, matrix.shape[1], self.groups, turned)

    def weighted(
        self, residuals: np.ndarray, groups: Groups, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Groups]:
        tall = np.concatenate([part[:, : self.unknowns + 1] / y for part, y in zip(self.parts, levels, strict=True)])
        ends = np.cumsum([0, *map(len, self.parts)]).tolist()
        return tall[:, :-1], tall[:, -1], tuple(slice(a, b) for a, b in itertools.pairwise(ends))

    def reduced(self, slopes: np.ndarray, residuals: np.ndarray, groups: Groups) -> Triangles:
        return self._columns(slopes, self.unknowns)

    def missing(self, slopes: np.ndarray, excess: np.ndarray, groups: Groups) -> Triangles:
        return self._columns(slopes, self.unknowns + 1)

    def gradient(self, residuals: np.ndarray, groups: Groups, levels: np.ndarray) -> np.ndarray:
        return self._times(self.unknowns, levels)

    def change_since(self, before: LinearModel, here: LinearModel, levels: np.ndarray) -> np.ndarray:
        # The residuals where the step began are the last column.
        return here.slopes * self._times(self.unknowns + 2, levels) - before.gradient(levels)

    def _times(self, column: int, levels: np.ndarray) -> np.ndarray:
        result = np.zeros(self.unknowns)
        for part, level in zip(self.parts, levels, strict=True):
            result += (part[:, column] / level) @ (part[:, : self.unknowns] / level)
        return result

    def _columns(self, slopes: np.ndarray, column: int) -> Triangles:
        n = self.unknowns
        return Triangles(tuple(np.column_stack([part[:, :n] * slopes, part[:, column]]) for part in self.parts))


def _change_by_new_residuals(before: LinearModel, here: LinearModel, levels: np.ndarray) -> np.ndarray:
    """Return (J_here - J_before)' r_here."""
    return here.gradient(levels) - before.rmatvec(here.residuals / by_rows(levels, here.groups) ** 2)


def _mapped_part(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, to_rows: RowMap
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one block with its rows of residuals, below them those of its scales of noise."""
    factored = values if to_rows.factors is None else values * to_rows.factors[rows, None]
    further = [(scale, *scale.part(rows)) for scale in to_rows.scales]
    further = [(scale, chosen, places) for scale, chosen, places in further if len(chosen)]
    if not further:
        return rows, columns, factored
    wide = np.union1d(columns, np.concatenate([scale.entries for scale, _, _ in further])).astype(int)
    here = np.searchsorted(wide, columns)
    blocks, numbers = [_widened(factored, here, len(wide))], [rows]
    for scale, chosen, places in further:
        block = _widened(scale.by_prediction[places, None] * values[chosen], here, len(wide))
        block[:, np.searchsorted(wide, scale.entries)] += scale.by_entries[:, places].T
        blocks.append(block)
        numbers.append(scale.rows.start + places)
    return np.concatenate(numbers), wide, np.concatenate(blocks)


def _widened(values: np.ndarray, places: np.ndarray, columns: int) -> np.ndarray:
    wide = np.zeros((len(values), columns))
    wide[:, places] = values
    return wide


def _largest(parts: Sequence[np.ndarray]) -> float:
    return max(float(max(part.max(initial=0), -part.min(initial=0))) for part in parts)
