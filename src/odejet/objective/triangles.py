"""Triangles: rows of least squares reduced to as many as there are unknowns, group by group.

Householder reflections keep lengths and angles of columns, and the triangle of triangles is that of all rows, to the
same rounding as if made at once.  Weights per group may change afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from odejet.objective.trust import Solver

ENOUGH = 256
"""Rows that are reduced at once, at least: a triangle is worth while if it is much smaller than they are."""

AT_ONCE = 1 << 22
"""Numbers that are copied at once to be reduced: those of most problems, and few beside those of large ones."""

Groups = tuple[slice, ...]
"""Where the rows of each output stand, and after them all others."""


def triangle(matrix: np.ndarray) -> np.ndarray:
    """Return R of a QR factorisation."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def by_rows(levels: np.ndarray, groups: Groups) -> np.ndarray:
    """Return the level of every row."""
    return np.repeat(levels, [rows.stop - rows.start for rows in groups])


@dataclass(eq=False)
class Pile:
    """Rows of one group, reduced whenever there are many."""

    columns: int
    parts: list[np.ndarray] = field(default_factory=list)

    def add(self, rows: np.ndarray) -> None:
        self.parts.append(rows)
        if sum(map(len, self.parts)) >= max(ENOUGH, 4 * self.columns):
            self.parts = [self.triangle]

    @property
    def triangle(self) -> np.ndarray:
        """The triangle of all rows; these themselves, where there are no more of them than columns."""
        tall = self.parts[0] if len(self.parts) == 1 else np.concatenate([np.zeros((0, self.columns)), *self.parts])
        return tall if len(tall) <= self.columns else triangle(tall)


def triangle_of(jacobian: np.ndarray, slopes: np.ndarray, residuals: np.ndarray, rows: slice) -> np.ndarray:
    """Return the triangle of the rows of one group, so many at a time that the copy which is reduced stays small."""
    columns = len(slopes) + 1
    found = np.zeros((0, columns))
    for first in range(rows.start, rows.stop, length := max(AT_ONCE // columns, columns)):
        last = min(first + length, rows.stop)
        tall = np.empty((len(found) + last - first, columns))
        tall[: len(found)] = found
        np.multiply(jacobian[first:last], slopes, out=tall[len(found) :, :-1])
        tall[len(found) :, -1] = residuals[first:last]
        # A block with no more rows than columns is as small as its triangle.
        found = tall if len(tall) <= columns else triangle(tall)
    return found


@dataclass(frozen=True, eq=False)
class Triangles:
    """The triangle of every group of rows, derivatives first and residuals in the last column."""

    parts: tuple[np.ndarray, ...]

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver:
        weighted = np.concatenate([part / level for part, level in zip(self.parts, levels, strict=True)])
        reduced = triangle(weighted) if len(self.parts) > 1 else weighted
        return Solver(reduced[:, :-1], reduced[:, -1], low, high)
