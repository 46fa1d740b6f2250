"""Series: one measured output as every estimator sees it, checked once and compressed once.

Times are mapped to x in [-1, 1], values are centred and scaled, known sds become weights.  Polynomial estimators and
Gaussian processes in a polynomial basis then need the data only through a triangular factor

    [V y] = Q [R z; 0 rho],        V = the weighted Chebyshev matrix,

whose leading blocks serve every smaller degree: `z[:d]` are the data in an orthonormal basis of the polynomials of
degree below d, and `rho**2 + sum(z[d:]**2)` is the residual sum of squares.  Its cost is linear in the number of
points, and replicates, gaps and irregular times need no special care.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odejet.errors import DataError

EPSILON = float(np.finfo(float).eps)
MIN_TIMES = 4
"""Fewer different times than this carry no information on derivatives worth the name."""
BLOCK_ROWS = 2048
"""Rows per block of the factorisation: small enough for the cache, large enough for BLAS."""
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

    @property
    def size(self) -> int:
        """The number of basis functions of the factorisation."""
        return self.factor.shape[1]

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


def chebyshev_rows(x: np.ndarray, size: int) -> np.ndarray:
    """The Chebyshev polynomials T_0 .. T_{size-1} at x, one row per point."""
    return np.cos(np.arccos(np.clip(x, -1.0, 1.0))[:, None] * np.arange(size))


def triangle(matrix: np.ndarray) -> np.ndarray:
    """The triangular factor of a QR decomposition."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _compress(data: Series, size: int) -> Compressed:
    """QR of the weighted design with the values as its last column, block of rows by block of rows.

    The residual comes out of the factorisation itself, so that it is accurate to rounding even for noise-free data.
    """
    above = np.empty((0, size + 1))
    for block in _blocks(data, size):
        above = triangle(np.vstack([above, block]))
    rank = min(size, len(data))
    residual = float(abs(above[rank, size])) if len(above) > rank else 0.0
    return Compressed(above[:rank, :size], above[:rank, size], residual, len(data))


def _blocks(data: Series, size: int) -> Iterator[np.ndarray]:
    x, y = data.x(data.times), data.standardised
    weights = np.broadcast_to(data.weights, y.shape)
    for start in range(0, len(y), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        yield np.column_stack([chebyshev_rows(x[rows], size) * weights[rows, None], y[rows]])


def _orthonormal(data: Series, size: int) -> np.ndarray:
    """Q of the same factorisation: each block's rows are multiplied by the factors of all later steps."""
    above = np.empty((0, size + 1))
    steps = []
    for block in _blocks(data, size):
        q, r = np.linalg.qr(np.vstack([above, block]))
        steps.append((len(above), q))
        above = r
    later = np.eye(len(above))
    rows = []
    for kept, q in reversed(steps):
        rows.append(q[kept:] @ later)
        later = q[:kept] @ later
    return np.vstack(rows[::-1])[:, : min(size, len(data))]
