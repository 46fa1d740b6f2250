"""Noise: one robust standard deviation per output, from the fits themselves.

Every linear fit comes with its own estimate.  Their median ignores one that oversmooths (too large) or follows the
noise (too small); it is never below what rounding does to numbers of this size, so that noise-free data have a finite
weight.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from odejet.data import Series
from odejet.smooth.smoother import Linear

CLEAN = 1e3
"""Noise below this many roundings is taken for the rounding and integration error of noise-free data."""


def estimate(data: Series, fits: Iterable[Linear]) -> float:
    """The noise sd: in natural units, or as a multiple of the known sds."""
    return max(float(np.median([fit.noise for fit in fits])), floor(data))


def floor(data: Series) -> float:
    """The least noise sd that numbers of this size can have."""
    rounding = max(data.rounding, float(np.finfo(float).tiny))
    return rounding if data.sds is None else rounding / data.typical_sd


def is_clean(data: Series, noise: float) -> bool:
    """Whether the noise is no larger than rounding can explain."""
    return noise <= CLEAN * floor(data)
