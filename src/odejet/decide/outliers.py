"""Outliers: measurements that lie too far from a fit, and residuals with heavier tails than normal noise.

Least squares follow a gross error wherever it leads, and then call it noise.  A residual is judged against the spread
of all others: with leverage h and s the noise level without this measurement, r / (s sqrt(1 - h)) follows Student's law
(Cook and Weisberg 1982), and the largest of n is as unlikely as n times its tail.  Many outliers hide each other
from this test, but not from the kurtosis of the residuals, judged as Anscombe and Glynn (1983) do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FEWEST_DEGREES, FEWEST = 3, 20
"""Degrees of freedom that judge the largest residual, and residuals whose kurtosis tells anything."""

GROSS = 20.0
"""Standard deviations that only a gross error is away: a wrong model leaves autocorrelated residuals, some of them
large, and does not make their measurements suspicious."""

FAR = 5.0
"""Residuals beyond so many robust standard deviations are named where tails are too heavy."""

_ROBUST = 1.4826  # the sd of normal noise, in units of its median absolute deviation
_DETERMINED = 1e-9  # of a residual's variance: what is less belongs to a point that the fit goes through by itself


@dataclass(frozen=True)
class Measurement:
    """One measurement that a fit does not explain as normal noise."""

    output: str
    experiment: str
    time: float
    value: float
    deviation: float  # model minus measurement, in sds of the noise that the other measurements tell


def deviations(residuals: np.ndarray, leverages: np.ndarray, degrees: float, known: bool) -> np.ndarray:
    """Residuals, given in units of the noise level, in units of what they would vary by in a fit without them.

    Where the level is `known` these are standard normal, otherwise they follow Student's law with one degree of
    freedom less than the fit.
    """
    free = 1 - leverages
    inside = np.where(free > _DETERMINED, residuals / np.sqrt(np.maximum(free, _DETERMINED)), 0.0)
    if known or degrees < FEWEST_DEGREES:
        return inside
    with np.errstate(divide="ignore"):
        return inside * np.sqrt((degrees - 1) / np.maximum(degrees - inside**2, 0.0))


def largest_p(deviations: np.ndarray, degrees: float, known: bool) -> np.ndarray:
    """For each deviation, the probability that one of as many is so large or larger (Bonferroni)."""
    from scipy.special import ndtr, stdtr

    sizes = np.abs(deviations)
    if not known and degrees < FEWEST_DEGREES:
        return np.ones_like(sizes)
    tails = ndtr(-sizes) if known else stdtr(degrees - 1, -sizes)
    return np.minimum(2 * len(sizes) * tails, 1.0)


def tails_p(residuals: np.ndarray) -> float:
    """The probability that normal noise has so large a kurtosis or larger."""
    n = len(residuals)
    centred = residuals - residuals.mean()
    variance = float(np.mean(centred**2))
    if n < FEWEST or variance == 0:
        return 1.0
    kurtosis = float(np.mean(centred**4)) / variance**2
    expected = 3 * (n - 1) / (n + 1)
    sd = math.sqrt(24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5)))
    skewness = (
        6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    )
    shape = 6 + 8 / skewness * (2 / skewness + math.sqrt(1 + 4 / skewness**2))
    ratio = (1 - 2 / shape) / (1 + (kurtosis - expected) / sd * math.sqrt(2 / (shape - 4)))
    z = (1 - 2 / (9 * shape) - math.copysign(abs(ratio) ** (1 / 3), ratio)) / math.sqrt(2 / (9 * shape))
    return 0.5 * math.erfc(z / math.sqrt(2))


def far(residuals: np.ndarray) -> np.ndarray:
    """Which residuals are many sds away, by a spread that outliers do not change; the largest in any case."""
    centred = np.abs(residuals - np.median(residuals))
    return (centred > FAR * _ROBUST * float(np.median(centred))) | (centred == centred.max())
