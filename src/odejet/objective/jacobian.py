"""Jacobian: derivatives of residuals by the unknowns, kept in one of three forms; nobody else asks in which.

- *Dense*: one matrix, for ordinary problems.
- *Blocks*: one matrix for each experiment, in the unknowns that it depends on.  Where many experiments have unknowns of
  their own, J has the form of an arrow: blocks along the diagonal for what is local and a border for what is shared.
- *Streamed*: no rows at all, but the triangle of every group of rows, made as the rows come.  So whatever asks for J'J,
  J'r or the singular values of J, with any weights per group, gets them from as many rows as there are unknowns;
  products with vectors that have a number per row take another simulation.

Simulations give derivatives of predictions.  Laws of noise and priors make rows of residuals of them by a `RowMap`: a
factor for every measurement, a link to the one before where errors persist, rows for scales of noise that depend on
predictions, and rows that depend on unknowns alone, such as those of priors.  All three forms apply it, so that no law
and no prior changes the form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from odejet.objective.arrow import Arrow, Reduced
from odejet.objective.triangles import Groups, Pile, Triangles, by_rows, triangle_of

if TYPE_CHECKING:
    from odejet.objective.linear_model import LinearModel

# --- from predictions to rows ---


NOTHING = np.empty(0, dtype=int)


def _nothing() -> np.ndarray:
    return NOTHING


@dataclass(frozen=True, eq=False)
class ScaleRows:
    """Rows of the scales of noise of some measurements, which depend on their predictions and on unknowns."""

    sources: slice  # the measurements
    rows: slice
    by_prediction: np.ndarray  # a factor per row
    entries: np.ndarray  # of z
    by_entries: np.ndarray  # (entries, rows)


@dataclass(frozen=True, eq=False)
class Links:
    """Rows that have a share of another one: of the measurement before, where errors persist."""

    back: np.ndarray  # how many places before it the other row stands; zero where there is none
    factors: np.ndarray  # of that row, both being in units of their noise; zero where there is none

    def applied(self, values: np.ndarray) -> np.ndarray:
        """Return rows, or a number for each, with the shares of others."""
        linked = np.flatnonzero(self.back)
        found, shares = values.copy(), self.factors[linked]
        found[linked] += (shares if values.ndim == 1 else shares[:, None]) * values[linked - self.back[linked]]
        return found

    def transposed(self, values: np.ndarray) -> np.ndarray:
        """Return a number for each row, with what it has in others; no two have a share of the same."""
        linked = np.flatnonzero(self.back)
        found = values.copy()
        found[linked - self.back[linked]] += self.factors[linked] * values[linked]
        return found

    def enter(self, rows: slice, others: Links) -> None:
        """Enter the links of some rows."""
        self.back[rows], self.factors[rows] = others.back, others.factors

    def at(self, rows: slice | np.ndarray) -> Links:
        """Return the links of some rows, which stand as far from each other as among all."""
        return Links(self.back[rows], self.factors[rows])


@dataclass(frozen=True, eq=False)
class RowMap:
    """How rows of residuals follow from derivatives of predictions."""

    rows: int
    factors: np.ndarray  # of the measurements
    scales: tuple[ScaleRows, ...] = ()
    constant_rows: np.ndarray = field(default_factory=_nothing)  # that depend on unknowns alone, such as priors
    entries: np.ndarray = field(default_factory=_nothing)  # of z
    constants: np.ndarray = field(default_factory=_nothing)  # the derivatives of these rows by these entries
    links: Links | None = None  # of the measurements


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
        points = len(to_rows.factors)
        matrix[:points] *= to_rows.factors[:, None]
        if to_rows.links is not None:
            matrix[:points] = to_rows.links.applied(matrix[:points])
        matrix[to_rows.constant_rows, to_rows.entries] = to_rows.constants
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
class Block:
    """Which rows and columns the derivatives of one experiment fill.

    Measurements come first, then scales of noise that depend on predictions, then rows that depend on unknowns alone.
    """

    rows: np.ndarray
    columns: np.ndarray
    points: int  # how many of the rows are measurements
    places: np.ndarray  # of what is simulated, among the columns
    further: tuple[tuple[int, slice, np.ndarray, np.ndarray, np.ndarray], ...] = ()
    # of each scale: its number, its rows here, their measurements here and among all of it, and its columns here
    constants: tuple[np.ndarray, np.ndarray, np.ndarray] = (NOTHING, NOTHING, NOTHING)
    # which constants of a row map are here, in which rows and columns

    def filled(self, derivatives: np.ndarray) -> np.ndarray:
        """Return room for all rows, with these derivatives of the measurements."""
        values = np.zeros((len(self.rows), len(self.columns)))
        values[: self.points, self.places] = derivatives
        return values

    def mapped(self, values: np.ndarray, to_rows: RowMap) -> np.ndarray:
        """Enter the rows of residuals."""
        for number, rows, here, places, columns in self.further:
            scale = to_rows.scales[number]
            values[rows] = scale.by_prediction[places, None] * values[here]
            values[rows.start : rows.stop, columns] += scale.by_entries[:, places].T
        values[: self.points] *= to_rows.factors[self.rows[: self.points], None]
        if to_rows.links is not None:  # the measurements of a series stand together in a block too
            values[: self.points] = to_rows.links.at(self.rows[: self.points]).applied(values[: self.points])
        chosen, rows_here, columns_here = self.constants
        values[rows_here, columns_here] = to_rows.constants[chosen]
        return values


def laid_out(
    simulated: Sequence[tuple[np.ndarray, np.ndarray]],
    shared: np.ndarray,
    scales: Sequence[tuple[slice, slice, np.ndarray]] = (),
    constant_rows: np.ndarray = NOTHING,
    entries: np.ndarray = NOTHING,
) -> tuple[Block, ...]:
    """Return a block for each experiment, of which rows and columns are simulated, and one for what belongs to none.

    `scales` are measurements, rows and entries of scales that depend on predictions.  A local unknown stays in one
    block, so that what is local can be eliminated block by block.
    """
    local, owner = set(entries.tolist()) - set(shared.tolist()), dict[int, int]()
    for e, (rows, columns) in enumerate(simulated):
        laws = [own for sources, _, own in scales if np.any((rows >= sources.start) & (rows < sources.stop))]
        owner.update({entry: e for entry in np.concatenate([columns, *laws]).tolist() if entry in local})
    # Of every constant row the experiment that an entry of it is local to; the last block has the others.
    home = {int(row): len(simulated) for row in constant_rows}
    for row, entry in zip(constant_rows.tolist(), entries.tolist(), strict=True):
        home[row] = owner.get(entry, home[row])
    homes = np.array([home[row] for row in constant_rows.tolist()], dtype=int)
    blocks = [
        _block(rows, columns, scales, constant_rows, entries, np.flatnonzero(homes == e))
        for e, (rows, columns) in enumerate([*simulated, (NOTHING, NOTHING)])
    ]
    return tuple(block for block in blocks if len(block.rows))


def _block(
    rows: np.ndarray,
    columns: np.ndarray,
    scales: Sequence[tuple[slice, slice, np.ndarray]],
    constant_rows: np.ndarray,
    entries: np.ndarray,
    constants: np.ndarray,
) -> Block:
    """Return the block of one experiment with those of its scales and these constants."""
    own = [
        (number, chosen, rows[chosen] - sources.start, further.start, law_entries)
        for number, (sources, further, law_entries) in enumerate(scales)
        if len(chosen := np.flatnonzero((rows >= sources.start) & (rows < sources.stop)))
    ]
    wide = np.unique(np.concatenate([columns, *(law for *_, law in own), entries[constants]])).astype(int)
    every, further = [rows], []
    for number, chosen, places, start, law_entries in own:
        begin = sum(map(len, every))
        further.append((number, slice(begin, begin + len(chosen)), chosen, places, np.searchsorted(wide, law_entries)))
        every.append(start + places)
    last, positions = np.unique(constant_rows[constants], return_inverse=True)
    held = constants, sum(map(len, every)) + positions, np.searchsorted(wide, entries[constants])
    numbers = np.concatenate([*every, last]).astype(int)
    return Block(numbers, wide, len(rows), np.searchsorted(wide, columns), tuple(further), held)


@dataclass(frozen=True, eq=False)
class BlockJacobian:
    """A matrix for each experiment, and zero elsewhere."""

    shape: tuple[int, int]
    blocks: tuple[Block, ...]
    values: tuple[np.ndarray, ...]  # a matrix for each block
    shared: np.ndarray  # columns that belong to no single experiment
    keeps_rows = True

    @property
    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rows, columns and values of each block."""
        return ((block.rows, block.columns, values) for block, values in zip(self.blocks, self.values, strict=True))

    @property
    def largest(self) -> float:
        return _largest(self.values)

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
        pairs = zip(self.blocks, self.values, strict=True)
        return replace(self, values=tuple(block.mapped(own.copy() if keep else own, to_rows) for block, own in pairs))

    def scaled(self, factors: np.ndarray) -> BlockJacobian:
        return replace(self, values=tuple(values * factors[rows, None] for rows, _, values in self.parts))

    def over(self, levels: np.ndarray, groups: Groups) -> BlockJacobian:
        return self.scaled(1 / by_rows(levels, groups))

    def eliminated(self, column: int, slopes: np.ndarray) -> Jacobian:
        """Return blocks again, or one matrix where following the others would fill what is zero."""
        blocks, every, others = [], [], np.insert(slopes, column, 0.0)
        for rows, columns, values in self.parts:
            kept, follows = columns != column, values
            if not kept.all() and others.any():
                if np.count_nonzero(others[columns]) < np.count_nonzero(others):
                    return DenseJacobian(self.dense()).eliminated(column, slopes)
                follows = values + values[:, ~kept] * others[columns]
            blocks.append(Block(rows, columns[kept] - (columns[kept] > column), len(rows), NOTHING))
            every.append(follows[:, kept])
        shared = self.shared[self.shared != column]
        shape = self.shape[0], self.shape[1] - 1
        return BlockJacobian(shape, tuple(blocks), tuple(every), shared - (shared > column))

    def weighted(
        self, residuals: np.ndarray, groups: Groups, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Groups]:
        rows = by_rows(levels, groups)
        return self.scaled(1 / rows).dense(), residuals / rows, groups

    def reduced(self, slopes: np.ndarray, residuals: np.ndarray, groups: Groups) -> Arrow:
        return Arrow(tuple(self.parts), self.shared, slopes, residuals, groups)

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


def _largest(parts: Sequence[np.ndarray]) -> float:
    return max(float(max(part.max(initial=0), -part.min(initial=0))) for part in parts)
