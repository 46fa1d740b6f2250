"""Series: one measured output, its times, values and, where they are known, standard deviations; checked once.

Of a measurement that is only known to lie between limits, the value is a number that stands for it: whoever compares
values asks for `limits`, or for those that were `observed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.data.censored import Limits
from odejet.errors import DataError

MIN_TIMES = 4
"""Fewer different times than this carry no information on derivatives worth the name."""


@dataclass(frozen=True, eq=False)
class Series:
    """Finite measurements in the order of time, in natural units."""

    times: np.ndarray
    values: np.ndarray
    sds: np.ndarray | None = None
    limits: Limits | None = None  # where some values are censored

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def finite(self) -> Series:
        """Without what was measured at rest, at t = inf."""
        inside = np.isfinite(self.times)
        if inside.all():
            return self
        return self.at(inside)

    def at(self, chosen: np.ndarray) -> Series:
        """Some of the measurements, by their positions or a mask."""
        sds = None if self.sds is None else self.sds[chosen]
        limits = None if self.limits is None else self.limits.at(chosen)
        return Series(self.times[chosen], self.values[chosen], sds, limits)

    @property
    def censored(self) -> np.ndarray:
        """Which measurements are known only to lie between limits."""
        return np.zeros(len(self.times), dtype=bool) if self.limits is None else self.limits.censored

    @cached_property
    def observed(self) -> Series:
        """Without what is censored."""
        return self if self.limits is None else self.at(~self.censored)

    @property
    def distinct(self) -> int:
        """The number of different times."""
        return len(np.unique(self.times))


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
    return Series(t[kept], y[kept], None if s is None else s[kept])


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
