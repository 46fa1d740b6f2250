"""Series: one measured output as every estimator sees it, checked once and compressed once.

Times are mapped to x in [-1, 1], values are centred and scaled, known sds become weights.  Polynomial estimators and
Gaussian processes in a polynomial basis then need the data only through a triangular factor

    [V y] = Q [R z; 0 rho],        V = the weighted Chebyshev matrix,

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
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numba
import numpy as np
from scipy.linalg import lapack

from odejet.errors import DataError

EPSILON = float(np.finfo(float).eps)
MIN_TIMES = 4
"""Fewer different times than this carry no information on derivatives worth the name."""
BLOCK_ROWS = 2048
"""Rows per block of the factorisation: small enough for the cache, large enough for BLAS."""
ROUNDED = 4.0
"""Mirrored times may differ by this many roundings."""
LARGEST_SIZE = 480
"""The largest polynomial basis: about seventy periods of an oscillation."""


@dataclass(frozen=True, eq=False)
class Series:
    """Finite measurements in the order of time, in natural units."""

    times: np.ndarray
    values: np.ndarray
    sds: np.ndarray | None = None
    _factors: dict[int, Compressed] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def distinct(self) -> int:
        """The number of different times."""
        return 1 + int(np.count_nonzero(np.diff(self.times)))

    @property
    def middle(self) -> float:
        return 0.5 * (self.times[0] + self.times[-1])

    @property
    def half_width(self) -> float:
        return 0.5 * (self.times[-1] - self.times[0])

    def x(self, t: np.ndarray | float) -> np.ndarray:
        """Times mapped so that the data span [-1, 1]."""
        return (np.asarray(t, dtype=float) - self.middle) / self.half_width

    def inside(self, t: np.ndarray | float) -> np.ndarray:
        """Times mapped to [-1, 1]; a sentence if some are not between the first and the last measurement."""
        x = self.x(np.atleast_1d(t))
        if not np.all(np.abs(x) <= 1.0 + 1e-9):
            outside = float(np.atleast_1d(t)[~(np.abs(x) <= 1.0 + 1e-9)][0])
            raise DataError(f"t = {outside:g} is outside the data, which span {self.times[0]:g} to {self.times[-1]:g}")
        return x

    @cached_property
    def center(self) -> float:
        """The mean of the values, weighted where sds are known: the prior mean m of every Gaussian process."""
        weights = None if self.sds is None else (self.sds.min() / self.sds) ** 2
        return float(np.average(self.values, weights=weights))

    @cached_property
    def scale(self) -> float:
        """The sd of the values around their centre, safe against overflow."""
        largest = float(np.abs(self.values - self.center).max())
        return largest * float(np.sqrt(np.mean(((self.values - self.center) / largest) ** 2))) if largest else 0.0

    @cached_property
    def rounding(self) -> float:
        """What rounding does to a value of this size in doubles: no measurement is more precise."""
        return EPSILON * float(np.abs(self.values).max())

    @property
    def constant(self) -> bool:
        """Whether the values do not vary beyond rounding."""
        return bool(np.ptp(self.values) <= 4.0 * self.rounding)

    @property
    def unit(self) -> float:
        """The sd of the noise, in natural units of `sds` if they are known, when the standardised noise has sd one."""
        return self.scale if self.sds is None else 1.0

    @property
    def typical_sd(self) -> float:
        """The median of the known sds; one if there are none, for then noise is in natural units anyway."""
        return 1.0 if self.sds is None else float(np.median(self.sds))

    @cached_property
    def floor(self) -> float:
        """The sum of squares that rounding leaves in the standardised values."""
        weights = np.broadcast_to(self.weights, self.values.shape)
        return float(np.sum((weights * self.rounding / self.scale) ** 2))

    @cached_property
    def weights(self) -> np.ndarray | float:
        """What a centred and scaled value is multiplied by so that its noise has the same sd everywhere."""
        return 1.0 if self.sds is None else self.scale / self.sds

    @cached_property
    def standardised(self) -> np.ndarray:
        """Centred, scaled and weighted values."""
        return (self.values - self.center) / self.scale * self.weights

    @cached_property
    def symmetric(self) -> bool:
        """Whether times (and known sds) are mirrored around the middle."""
        x = self.x(self.times)
        weights = np.broadcast_to(self.weights, x.shape)
        allowed = ROUNDED * EPSILON * (1.0 + max(abs(self.times[0]), abs(self.times[-1])) / self.half_width)
        return bool(np.all(np.abs(x + x[::-1]) <= allowed) and np.all(weights == weights[::-1]))

    def largest_size(self) -> int:
        """The largest basis for polynomials without a prior.

        On n equispaced points polynomials of degree d are tame for |x| < sqrt(1 - (d/n)^2) and explode outside, so that
        half the points leave them the inner 85 % of the interval.
        """
        return min(LARGEST_SIZE, max(self.distinct // 2, min(6, self.distinct - 2)))

    def compressed(self, size: int) -> Compressed:
        """The triangular factor of at least `size` basis functions (one factorisation serves all smaller sizes)."""
        for computed in sorted(self._factors):
            if computed >= size:
                return self._factors[computed]
        self._factors[size] = _compress(self, size)
        return self._factors[size]

    def orthonormal(self, size: int) -> np.ndarray:
        """Q of the factorisation of this size, for weight rows; it is run again because few ask for them."""
        return _orthonormal(self, size)


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


def series(times: object, values: object, sds: object = None) -> Series:
    """Check and sort one output; measurements that are NaN are left out."""
    t, y = _column(times, "times"), _column(values, "values")
    if len(t) != len(y):
        raise DataError(f"there are {len(t)} times but {len(y)} values")
    if np.isinf(y).any():
        raise DataError(f"value {int(np.isinf(y).argmax())} is infinite; mark missing measurements with NaN")
    if not np.isfinite(t).all():
        raise DataError(f"time {int((~np.isfinite(t)).argmax())} is not a finite number")
    s = None if sds is None else _spread(sds, y)
    kept = np.flatnonzero(~np.isnan(y))
    kept = kept[np.argsort(t[kept], kind="stable")]
    if s is not None and not (np.isfinite(s[kept]) & (s[kept] > 0)).all():
        raise DataError("standard deviations must be positive finite numbers wherever there is a measurement")
    clean = Series(t[kept], y[kept], None if s is None else s[kept])
    distinct = clean.distinct if len(clean) else 0
    if distinct < MIN_TIMES:
        raise DataError(f"only {distinct} different times have a measurement; smoothing needs at least {MIN_TIMES}")
    return clean


def _spread(sds: object, values: np.ndarray) -> np.ndarray:
    try:
        array = np.asarray(sds, dtype=float)
    except (TypeError, ValueError):
        raise DataError("the standard deviations must be numbers") from None
    if array.shape not in ((), values.shape):
        raise DataError(f"there are {len(values)} values but the standard deviations have shape {array.shape}")
    return np.broadcast_to(array, values.shape)


def _column(numbers: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(numbers, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"the {what} must be numbers") from None
    if array.ndim != 1:
        raise DataError(f"the {what} must be a one-dimensional list, not of shape {array.shape}")
    return array


def chebyshev_rows(x: np.ndarray, size: int, parity: int | None = None) -> np.ndarray:
    """The Chebyshev polynomials T_0 .. T_{size-1} at x, one row per point; only the even or odd ones with a parity."""
    first, step = (0, 1) if parity is None else (parity, 2)
    return np.asarray(_cosines(np.clip(x, -1.0, 1.0), len(range(first, size, step)), first, step)).T


@numba.njit(cache=True)
def _cosines(x: np.ndarray, count: int, first: int, step: int) -> np.ndarray:  # pragma: no cover - compiled
    """cos(k arccos x) for k = first, first + step, ..., one row per k.

    The powers of e^{i arccos x} are doubled from block to block: a phase is off by no more than k roundings.
    """
    # Loops throughout: numba would compile whole-array assignments ten times longer.
    cosines, sines, turn = np.empty((count, len(x))), np.empty((count, len(x))), np.empty((2, len(x)))
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
    return cosines


def triangle(matrix: np.ndarray) -> np.ndarray:
    """The triangular factor of a QR decomposition."""
    width = matrix.shape[1]
    packed, _, _, _ = lapack.dgeqrf(matrix, lwork=64 * max(width, 1))
    return np.asarray(_upper(packed, min(matrix.shape)))


@numba.njit(cache=True)
def _upper(packed: np.ndarray, rows: int) -> np.ndarray:  # pragma: no cover - compiled
    """The upper triangle of the first rows."""
    out = np.zeros((rows, packed.shape[1]))
    for i in range(rows):
        for j in range(i, packed.shape[1]):
            out[i, j] = packed[i, j]
    return out


class _Half(NamedTuple):
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


def _halves(data: Series) -> list[_Half]:
    """The measurements, or for symmetric ones the sums and differences of mirrored pairs over the square root of two.

    A measurement in the very middle is its own mirror image, and even.
    """
    x, y = data.x(data.times), data.standardised
    weights = np.ascontiguousarray(np.broadcast_to(data.weights, y.shape))
    if not data.symmetric:
        return [_Half(x, y, weights, None)]
    pairs, middle = len(y) // 2, slice(len(y) // 2, len(y) - len(y) // 2)
    near, far, double = y[:pairs], y[::-1][:pairs], sqrt(2.0) * weights[:pairs]
    mean_x = 0.5 * (x[:pairs] - x[::-1][:pairs])
    even = _Half(
        np.append(mean_x, 0.0 * x[middle]),
        np.append((near + far) / sqrt(2.0), y[middle]),
        np.append(double, weights[middle]),
        0,
    )
    return [even, _Half(mean_x, (near - far) / sqrt(2.0), double, 1)]


def _compress(data: Series, size: int) -> Compressed:
    """QR of the weighted design with the values as its last column, block of rows by block of rows.

    The residual comes out of the factorisation itself, so that it is accurate to rounding even for noise-free data.
    """
    rank = min(size, len(data))
    factor, coordinates, residual = np.zeros((rank, size)), np.zeros(rank), 0.0
    for half in _halves(data):
        columns = half.columns(size)
        above = np.empty((0, len(columns) + 1))
        for block in half.blocks(size):
            above = triangle(np.vstack([above, block]) if len(above) else block)
        rows = half.columns(rank)
        factor[np.ix_(rows, columns)] = above[: len(rows), :-1]
        coordinates[rows] = above[: len(rows), -1]
        residual += float(above[len(rows), -1] ** 2) if len(above) > len(rows) else 0.0
    parts = (slice(0, None, 2), slice(1, None, 2)) if data.symmetric else (slice(None),)
    return Compressed(factor, coordinates, sqrt(residual), len(data), parts)


def _orthonormal(data: Series, size: int) -> np.ndarray:
    """Q of the same factorisation, one row per measurement."""
    out = np.zeros((len(data), min(size, len(data))))
    for half in _halves(data):
        rows = half.columns(out.shape[1])
        found = _orthonormal_half(half, size)[:, : len(rows)]
        if half.parity is None:
            return found
        pairs = len(data) // 2
        mirrored = found[:pairs] / sqrt(2.0)
        out[:pairs, rows.start :: 2], out[::-1][:pairs, rows.start :: 2] = mirrored, (1 - 2 * half.parity) * mirrored
        if half.parity == 0:
            out[pairs : len(data) - pairs, 0::2] = found[pairs:]
    return out


def _orthonormal_half(half: _Half, size: int) -> np.ndarray:
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
