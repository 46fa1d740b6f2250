"""Compressed: the data through a triangular factor, all that polynomials of any degree need of them.

With V the weighted Chebyshev matrix of standardised data,

    [V y] = Q [R z; 0 rho],

whose leading blocks serve every smaller degree: `z[:d]` are the data in an orthonormal basis of the polynomials of
degree below d, and `rho**2 + sum(z[d:]**2)` is the residual sum of squares.  Its cost is linear in the number of
points, and replicates, gaps and irregular times need no special care.

Times that lie symmetrically around their middle, equispaced ones above all, never couple even with odd polynomials.
Sums and differences of mirrored values then make two problems of half the size out of one, and R and everything that
follows from it costs a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from odejet.jets.compilation import compiled

EPSILON = float(np.finfo(float).eps)
BLOCK_ROWS = 2048
"""Rows per block of the factorisation: small enough for the cache, large enough for BLAS."""


@dataclass(frozen=True, eq=False)
class Compressed:
    """The triangular factor of the weighted design, and the data in its orthonormal basis."""

    factor: np.ndarray
    coordinates: np.ndarray
    residual: float
    points: int
    parts: tuple[slice, ...] = (slice(None),)
    """Rows and columns that are not coupled: all of them, or the even and the odd ones of symmetric times."""

    @property
    def size(self) -> int:
        """The number of basis functions of the factorisation."""
        return self.factor.shape[1]

    @cached_property
    def inverse(self) -> np.ndarray:
        """The inverse of the square part of R; its leading blocks are the inverses of those of R.

        It is solved for column by column, so that R times it is one to rounding even where R is ill-conditioned.  A
        pivot of zero, of a basis larger than the different times, is no worse than one of rounding.
        """
        square = self.factor[:, : len(self.coordinates)].copy()
        pivots = np.einsum("ii->i", square)
        pivots[pivots == 0.0] = EPSILON * max(float(np.abs(pivots).max()), EPSILON)
        out = np.zeros_like(square)
        for part in self.parts:
            out[part, part] = lapack.dtrtrs(square[part, part], np.eye(len(pivots[part])))[0]
        return out

    def solve(self, coordinates: np.ndarray) -> np.ndarray:
        """Coefficients of a polynomial from its leading coordinates.

        They are as accurate as their size allows; the inverse would lose as many digits as R is ill-conditioned.
        """
        terms = len(coordinates)
        return np.asarray(lapack.dtrtrs(self.factor[:terms, :terms], coordinates)[0])

    def leading(self, size: int) -> tuple[np.ndarray, np.ndarray, float]:
        """R, z and the residual sum of squares of the first `size` basis functions."""
        rows = min(size, len(self.coordinates))
        tail = self.residual**2 + float(np.sum(self.coordinates[rows:] ** 2))
        return self.factor[:rows, :size], self.coordinates[:rows], tail


def chebyshev_rows(x: np.ndarray, size: int, parity: int | None = None) -> np.ndarray:
    """The Chebyshev polynomials T_0 .. T_{size-1} at x, one row per point; only the even or odd ones with a parity."""
    first, step = (0, 1) if parity is None else (parity, 2)
    count = len(range(first, size, step))
    cosines, sines, turn = (np.empty((rows, len(x))) for rows in (count, count, 2))
    _cosines(np.clip(x, -1.0, 1.0), first, step, cosines, sines, turn)
    return cosines.T


@compiled
def _cosines(
    x: np.ndarray, first: int, step: int, cosines: np.ndarray, sines: np.ndarray, turn: np.ndarray
) -> None:  # pragma: no cover - compiled
    """cos(k arccos x) for k = first, first + step, ..., one row per k.

    The powers of e^{i arccos x} are doubled from block to block: a phase is off by no more than k roundings.
    """
    # Loops throughout: numba would compile whole-array assignments ten times longer.
    count = len(cosines)
    for i in range(len(x) if count else 0):
        cosine, sine = x[i], math.sqrt((1.0 - x[i]) * (1.0 + x[i]))
        cosines[0, i], sines[0, i] = (cosine, sine) if first else (1.0, 0.0)
        turn[0, i], turn[1, i] = cosine, sine
        if step == 2:
            turn[0, i], turn[1, i] = cosine * cosine - sine * sine, 2.0 * cosine * sine
    done = 1
    while done < count:
        for j in range(min(done, count - done)):
            for i in range(len(x)):
                cosines[done + j, i] = turn[0, i] * cosines[j, i] - turn[1, i] * sines[j, i]
                sines[done + j, i] = turn[1, i] * cosines[j, i] + turn[0, i] * sines[j, i]
        for i in range(len(x)):
            cosine, sine = turn[0, i], turn[1, i]
            turn[0, i], turn[1, i] = cosine * cosine - sine * sine, 2.0 * cosine * sine
        done *= 2


def triangle(matrix: np.ndarray) -> np.ndarray:
    """The triangular factor of a QR decomposition."""
    width = matrix.shape[1]
    packed, _, _, _ = lapack.dgeqrf(matrix, lwork=64 * max(width, 1))
    upper = np.zeros((min(matrix.shape), width))
    _copy_upper(packed.T, upper)
    return upper


@compiled
def _copy_upper(columns: np.ndarray, upper: np.ndarray) -> None:  # pragma: no cover - compiled
    """The upper triangle of the first rows of a matrix that is given by its columns."""
    for i in range(upper.shape[0]):
        for j in range(i, upper.shape[1]):
            upper[i, j] = columns[j, i]


class Half(NamedTuple):
    """Measurements and the basis functions they see: all of both, or what is even or odd of symmetric ones."""

    x: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    parity: int | None

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        """The weighted design with the values as its last column, a block of rows at a time."""
        for start in range(0, len(self.x), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            basis = chebyshev_rows(self.x[rows], size, self.parity)
            block = np.empty((len(basis), basis.shape[1] + 1), order="F")
            np.multiply(basis, self.weights[rows, None], out=block[:, :-1])
            block[:, -1] = self.values[rows]
            yield block

    def columns(self, size: int) -> range:
        """Which basis functions of a basis these are; the same rows of R belong to them."""
        return range(size) if self.parity is None else range(self.parity, size, 2)


def halves(x: np.ndarray, values: np.ndarray, weights: np.ndarray, symmetric: bool) -> list[Half]:
    """The measurements, or for symmetric ones the sums and differences of mirrored pairs over the square root of two.

    A measurement in the very middle is its own mirror image, and even.
    """
    if not symmetric:
        return [Half(x, values, weights, None)]
    pairs, middle = len(values) // 2, slice(len(values) // 2, len(values) - len(values) // 2)
    near, far, double = values[:pairs], values[::-1][:pairs], sqrt(2.0) * weights[:pairs]
    mean_x = 0.5 * (x[:pairs] - x[::-1][:pairs])
    even = Half(
        np.append(mean_x, 0.0 * x[middle]),
        np.append((near + far) / sqrt(2.0), values[middle]),
        np.append(double, weights[middle]),
        0,
    )
    return [even, Half(mean_x, (near - far) / sqrt(2.0), double, 1)]


def compress(parts: list[Half], points: int, size: int) -> Compressed:
    """QR of the weighted design with the values as its last column, block of rows by block of rows.

    The residual comes out of the factorisation itself, so that it is accurate to rounding even for noise-free data.
    """
    rank = min(size, points)
    factor, coordinates, residual = np.zeros((rank, size)), np.zeros(rank), 0.0
    for half in parts:
        columns = half.columns(size)
        above = np.empty((0, len(columns) + 1))
        for block in half.blocks(size):
            above = triangle(np.vstack([above, block]) if len(above) else block)
        rows = half.columns(rank)
        factor[np.ix_(rows, columns)] = above[: len(rows), :-1]
        coordinates[rows] = above[: len(rows), -1]
        residual += float(above[len(rows), -1] ** 2) if len(above) > len(rows) else 0.0
    uncoupled = (slice(0, None, 2), slice(1, None, 2)) if len(parts) > 1 else (slice(None),)
    return Compressed(factor, coordinates, sqrt(residual), points, uncoupled)


def orthonormal(parts: list[Half], points: int, size: int) -> np.ndarray:
    """Q of the same factorisation, one row per measurement."""
    out = np.zeros((points, min(size, points)))
    for half in parts:
        rows = half.columns(out.shape[1])
        found = _orthonormal_half(half, size)[:, : len(rows)]
        if half.parity is None:
            return found
        pairs = points // 2
        mirrored = found[:pairs] / sqrt(2.0)
        out[:pairs, rows.start :: 2], out[::-1][:pairs, rows.start :: 2] = mirrored, (1 - 2 * half.parity) * mirrored
        if half.parity == 0:
            out[pairs : points - pairs, 0::2] = found[pairs:]
    return out


def _orthonormal_half(half: Half, size: int) -> np.ndarray:
    """Each block's rows are multiplied by the factors of all later steps."""
    above = np.empty((0, len(half.columns(size)) + 1))
    steps = []
    for block in half.blocks(size):
        q, r = np.linalg.qr(np.vstack([above, block]))
        steps.append((len(above), q))
        above = r
    later = np.eye(len(above))
    rows = []
    for kept, q in reversed(steps):
        rows.append(q[kept:] @ later)
        later = q[:kept] @ later
    return np.vstack(rows[::-1])
