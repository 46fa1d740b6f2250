"""Factor: J = QR by blocks, where J has the form of an arrow.

With the unknowns that are local to an experiment first, block by block, and the shared ones last,

    J = [ L_e  S_e ]_e = [ Q_e  P_e ]_e [ R_e  B_e ]
                                        [  0    T  ]

Q_e spans what the local unknowns of an experiment fit and P_e what the shared ones fit beside it, so that leverages and
the errors of unknowns cost as much as there are experiments, not the square of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.objective.jacobian import Block
from odejet.objective.triangles import triangle

FIRM = 1e-8
"""The least singular value, of columns of unit length, with which a block is taken to have full rank; a matrix with
less is factored as a whole, by singular values."""


@dataclass(frozen=True, eq=False)
class BlockFactor:
    """The factors of one experiment."""

    rows: np.ndarray
    local: np.ndarray  # columns
    own: np.ndarray  # Q_e
    border: np.ndarray  # P_e
    triangle: np.ndarray  # R_e
    beside: np.ndarray  # B_e


@dataclass(frozen=True, eq=False)
class ArrowFactor:
    """The factors of a matrix of full rank, its columns scaled to unit length."""

    blocks: tuple[BlockFactor, ...]
    shared: np.ndarray  # columns
    corner: np.ndarray  # T
    units: np.ndarray  # one over the length of each column

    @classmethod
    def of(
        cls, jacobian: np.ndarray, layout: Sequence[Block], shared: np.ndarray, free: np.ndarray | None = None
    ) -> ArrowFactor | None:
        """Return the factors of the free columns; None where they are not clearly of full rank."""
        free = np.ones(jacobian.shape[1], dtype=bool) if free is None else free
        sizes = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
        if not np.all(np.isfinite(sizes[free])) or np.any(sizes[free] == 0):
            return None
        units, border = 1 / np.where(free, sizes, 1.0), shared[free[shared]]
        parts, lefts = [], []
        for block in layout:
            local = np.setdiff1d(block.columns[free[block.columns]], shared)
            own, upper = np.linalg.qr(jacobian[np.ix_(block.rows, local)] * units[local])
            if len(block.rows) < len(local) or not _is_firm(upper):
                return None
            outer = jacobian[np.ix_(block.rows, border)] * units[border]
            beside = own.T @ outer
            left = outer - own @ beside
            again = own.T @ left  # what rounding has left of it
            parts.append((block.rows, local, own, upper, beside + again))
            lefts.append(left - own @ again)
        outer_rows, corner = np.linalg.qr(np.concatenate(lefts))
        if len(outer_rows) < len(border) or not _is_firm(corner):
            return None
        pieces = np.split(outer_rows, np.cumsum([len(left) for left in lefts])[:-1])
        blocks = tuple(
            BlockFactor(rows, local, own, piece, upper, beside)
            for (rows, local, own, upper, beside), piece in zip(parts, pieces, strict=True)
        )
        return cls(blocks, border, corner, units)

    @property
    def rank(self) -> int:
        return len(self.shared) + sum(len(block.local) for block in self.blocks)

    @cached_property
    def home(self) -> tuple[np.ndarray, np.ndarray]:
        """The block of every row, and its place there."""
        count = sum(len(block.rows) for block in self.blocks)
        numbers, places = np.zeros(count, dtype=int), np.zeros(count, dtype=int)
        for number, block in enumerate(self.blocks):
            numbers[block.rows], places[block.rows] = number, np.arange(len(block.rows))
        return numbers, places

    def root(self, rows: slice, sd: float) -> np.ndarray:
        """Return a square root of what the noise of these rows, of one sd, adds to the covariance of all columns."""
        wide = self._by_border
        found = []
        for block in self.blocks:
            here = np.flatnonzero((block.rows >= rows.start) & (block.rows < rows.stop))
            if not len(here):
                continue
            tall = np.column_stack([block.own[here], block.border[here]])
            small = triangle(tall) if len(tall) > tall.shape[1] else tall
            part = small[:, len(block.local) :] @ wide
            part[:, block.local] += np.linalg.solve(block.triangle, small[:, : len(block.local)].T).T
            found.append(part)
        root = np.concatenate(found) if found else np.zeros((0, len(self.units)))
        return np.asarray(sd * root * self.units)

    @cached_property
    def _by_border(self) -> np.ndarray:
        """What a move of the rows of P does to all columns: T^-T at the shared ones, and what follows at the others."""
        wide = np.zeros((len(self.shared), len(self.units)))
        inverse = np.linalg.inv(self.corner).T
        wide[:, self.shared] = inverse
        for block in self.blocks:
            wide[:, block.local] = -np.linalg.solve(block.triangle, block.beside @ inverse.T).T
        return wide


def count_below(jacobian: np.ndarray, layout: Sequence[Block], shared: np.ndarray, least: float) -> int:
    """Return how many singular values of an arrow are below a number, by Sylvester's law of inertia.

    J'J - least^2 has as many negative eigenvalues as its local blocks and what is left of the shared one have.
    """
    square = least**2
    outer = jacobian[:, shared]
    left = outer.T @ outer - square * np.eye(len(shared))
    count = 0
    for block in layout:
        local = np.setdiff1d(block.columns, shared)
        if not len(local):
            continue
        own = jacobian[np.ix_(block.rows, local)]
        values, vectors = np.linalg.eigh(own.T @ own - square * np.eye(len(local)))
        count += int(np.count_nonzero(values < 0))
        values = np.where(values == 0, np.finfo(float).tiny, values)
        across = vectors.T @ (own.T @ outer[block.rows])
        left -= (across.T / values) @ across
    return count + int(np.count_nonzero(np.linalg.eigvalsh(left) < 0))


def _is_firm(upper: np.ndarray) -> bool:
    """Whether a triangle of columns of unit length, or of what is left of them, has full rank beyond doubt."""
    return not upper.size or float(np.linalg.svd(upper, compute_uv=False)[-1]) > FIRM
