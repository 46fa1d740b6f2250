"""Reduction: the rows of a large Jacobian as one triangle per group of rows, made as the rows come.

Householder reflections keep lengths and angles of columns, and the triangle of triangles is that of all rows, to the
same rounding as if made at once.  So whatever asks for J'J, J'r or the singular values of J, with any weights per
group, gets them from as many rows as there are unknowns, and no more than those of one experiment are ever there.

Products with vectors that have a number per row cannot be had from a triangle.  An `Aim` says beforehand what will be
asked of a trial: residuals where its step began, and those that it was to reach.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

ENOUGH = 256
"""Rows that are reduced at once, at least: a triangle is worth while if it is much smaller than they are."""


def triangle(matrix: np.ndarray) -> np.ndarray:
    """R of a QR factorisation."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


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


@dataclass(frozen=True, eq=False)
class Triangles:
    """A Jacobian of which the triangle of every group of rows is left."""

    parts: tuple[
        np.ndarray, ...
    ]  # derivatives, residuals, and if there was an aim what they miss it by and were before
    unknowns: int

    def weighted(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives and residuals of all groups, one below the other, each in units of its level."""
        tall = np.concatenate([part[:, : self.unknowns + 1] / y for part, y in zip(self.parts, levels, strict=True)])
        return tall[:, :-1], tall[:, -1]

    @property
    def groups(self) -> tuple[slice, ...]:
        """Where each of them is there."""
        ends = np.cumsum([0, *map(len, self.parts)]).tolist()
        return tuple(slice(a, b) for a, b in itertools.pairwise(ends))

    def of(self, matrix: np.ndarray) -> Triangles:
        """Derivatives by other unknowns, on which these depend by a matrix."""
        n = self.unknowns
        parts = (np.column_stack([part[:, :n] @ matrix, part[:, n:]]) for part in self.parts)
        return Triangles(tuple(parts), matrix.shape[1])


@dataclass(frozen=True, eq=False)
class Aim:
    """Residuals where a step began, and those that it was to reach."""

    before: np.ndarray
    target: np.ndarray
