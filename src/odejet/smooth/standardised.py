"""Standardised: one measured output as every estimator sees it.

Times are mapped to x in [-1, 1], values are centred and scaled, known sds become weights.  The compressed form, which
most estimators need, is computed once and kept here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odejet.data.series import MIN_TIMES, Series, series
from odejet.errors import DataError
from odejet.smooth.compressed import EPSILON, Compressed, Half, compress, halves, orthonormal

ROUNDED = 4.0
"""Mirrored times may differ by this many roundings."""
LARGEST_SIZE = 480
"""The largest polynomial basis: about seventy periods of an oscillation."""


@dataclass(frozen=True, eq=False)
class Standardised:
    """A series with at least as many different times as smoothing needs."""

    series: Series
    _factors: dict[int, Compressed] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.distinct < MIN_TIMES:
            raise DataError(
                f"only {self.distinct} different times have a measurement; smoothing needs at least {MIN_TIMES}"
            )

    def __len__(self) -> int:
        return len(self.series)

    @property
    def times(self) -> np.ndarray:
        return self.series.times

    @property
    def values(self) -> np.ndarray:
        return self.series.values

    @property
    def sds(self) -> np.ndarray | None:
        return self.series.sds

    @cached_property
    def distinct(self) -> int:
        """The number of different times."""
        return self.series.distinct

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

    @cached_property
    def halves(self) -> list[Half]:
        """The standardised measurements, or their even and odd halves where they are symmetric."""
        weights = np.ascontiguousarray(np.broadcast_to(self.weights, self.values.shape))
        return halves(self.x(self.times), self.standardised, weights, self.symmetric)

    def compressed(self, size: int) -> Compressed:
        """The triangular factor of at least `size` basis functions (one factorisation serves all smaller sizes)."""
        for computed in sorted(self._factors):
            if computed >= size:
                return self._factors[computed]
        self._factors[size] = compress(self.halves, len(self), size)
        return self._factors[size]

    def orthonormal(self, size: int) -> np.ndarray:
        """Q of the factorisation of this size, for weight rows; it is run again because few ask for them."""
        return orthonormal(self.halves, len(self), size)


def standardise(times: object, values: object, sds: object = None) -> Standardised:
    """One output from lists or arrays; measurements that are NaN are left out."""
    return Standardised(series(times, values, sds))
