"""Average: predictions of several models together, each with its weight.

The prediction is the weighted mean.  Its band holds the quantiles of the mixture of what the models say, each of them
normal to either side of its value as far as its own band reaches: it is as wide as the models disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri

from odejet.errors import ModelError
from odejet.result.prediction import Band, Prediction

LEAST = 1e-3
"""The weight below which a model is left out: it would move no end by a visible amount."""

HALVINGS = 80
"""Steps of the bisection for a quantile: down to rounding."""


def averaged(predictions: Sequence[Prediction], weights: Sequence[float]) -> Prediction:
    """Average predictions of the same experiment at the same times."""
    first, shares = predictions[0], np.asarray(weights, dtype=float) / np.sum(weights)
    if any(len(one.times) != len(first.times) for one in predictions):
        raise ModelError("some of the models cannot be simulated to the last of these times; ask for earlier ones")
    return replace(
        first,
        outputs=_all([one.outputs for one in predictions], shares, first.level),
        states=_all([one.states for one in predictions], shares, first.level),
        message="",
    )


def _all(tables: Sequence[Mapping[str, Band]], shares: np.ndarray, level: float) -> dict[str, Band]:
    return {name: _band([table[name] for table in tables], shares, level) for name in tables[0]}


def _band(bands: Sequence[Band], shares: np.ndarray, level: float) -> Band:
    values = np.stack([band.values for band in bands])
    mean = shares @ values
    spread = np.stack([band.stderr for band in bands]) ** 2 + (values - mean) ** 2
    ends = _mixture(values, [(band.low, band.high) for band in bands], shares, level)
    measured = _mixture(values, [(band.measured_low, band.measured_high) for band in bands], shares, level)
    return Band(
        bands[0].name,
        bands[0].times,
        mean,
        np.sqrt(shares @ spread),
        *ends,
        *measured,
        np.any([band.profiled for band in bands], axis=0),
        np.all([band.trusted for band in bands], axis=0),
    )


def _mixture(
    values: np.ndarray, ends: Sequence[tuple[np.ndarray, np.ndarray]], shares: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper quantile of a mixture of two-sided normal laws, at every time."""
    tail = (1 - level) / 2
    far = ndtri(1 - tail)
    lows, highs = (np.stack(side) for side in zip(*ends, strict=True))
    if np.isnan(lows).any() or np.isnan(highs).any():
        missing = np.full(values.shape[1], np.nan)
        return missing, missing
    below, above = (values - lows) / far, (highs - values) / far

    def probability(at: np.ndarray) -> np.ndarray:
        distance = at - values
        scale = np.where(distance < 0, below, above)
        # An end that is open lies at infinity: half of that law is beyond every number.
        with np.errstate(divide="ignore", invalid="ignore"):
            deviation = np.where(scale > 0, distance / scale, np.sign(distance) * np.inf)
        return np.asarray(shares @ ndtr(np.where(np.isnan(deviation), 0.0, deviation)))

    return _quantile(probability, lows, tail), _quantile(probability, highs, 1 - tail)


def _quantile(probability: Callable[[np.ndarray], np.ndarray], ends: np.ndarray, wanted: float) -> np.ndarray:
    """Where the mixture has a probability: between the least and the largest of the quantiles of its parts."""
    low, high = ends.min(axis=0), ends.max(axis=0)
    open_ = ~(np.isfinite(low) & np.isfinite(high))
    # Where a part is open the whole is: parts too light to matter were left out before.
    a, b = np.where(open_, 0.0, low), np.where(open_, 0.0, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (a + b)
        beyond = probability(middle) < wanted
        a, b = np.where(beyond, middle, a), np.where(beyond, b, middle)
    found = 0.5 * (a + b)
    return np.where(open_, np.where(np.isfinite(low), high, low), found)
