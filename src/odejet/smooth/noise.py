"""Noise: what counts as none.

Every linear fit comes with its own estimate of the noise.  The median of several ignores one that oversmooths (too
large) or follows the noise (too small); it is never below what rounding does to numbers of this size, so that
noise-free data have a finite weight.
"""

from __future__ import annotations

import numpy as np

from odejet.smooth.standardised import Standardised

CLEAN = 1e3
"""Noise below this many roundings is taken for the rounding and integration error of noise-free data."""


def floor(data: Standardised) -> float:
    """The least noise sd that numbers of this size can have."""
    rounding = max(data.rounding, float(np.finfo(float).tiny))
    return rounding if data.sds is None else rounding / data.typical_sd


def is_clean(data: Standardised, noise: float) -> bool:
    """Whether the noise is no larger than rounding can explain."""
    return noise <= CLEAN * floor(data)
