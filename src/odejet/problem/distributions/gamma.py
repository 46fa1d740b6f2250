"""The gamma law: positive values whose standard deviation is a share of their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odejet.problem.distributions.law import (
    HALF_LOG_2PI,
    Array,
    Terms,
    excess,
    score_of_sides,
    score_of_tail,
    silent,
)

_LARGE_SHAPE = 64.0
"""From here on Stirling's series with five terms is exact to rounding: the next one is 5e-23 of the first."""

_FLATTEST, _LARGEST = 1e-150, 1e300
"""An sd whose inverse has a square that is a number, and what stands for all larger numbers."""

_NEARLY_NORMAL = 1e10
"""A shape from which on quantiles and scores are those of the signed root of the deviance, to 1e-11."""


@dataclass(frozen=True)
class Gamma:
    """With shape k = 1/s^2 the density of y is (k/mu)^k y^(k-1) exp(-k y/mu) / Gamma(k): mean mu and sd s mu."""

    logarithm, has_scale, positive, whole, robust = 1.0, True, True, False, False
    largest, orthogonal = math.inf, True

    def refusal(self, y: Array) -> str:
        return "" if np.all(y > 0) else f"must be positive, and one is {y[y <= 0][0]:g}"

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        k, x = 1 / s**2, (y - mu) / mu
        normaliser, slope = _normaliser(k)
        # Far below the mean, y - mu is -mu to rounding, but the logarithm still tells y.
        lost = np.where(np.abs(x) < 1e-2, excess(x), x - np.log(y / mu))
        costs = np.minimum(np.log(y) + k * lost + normaliser, _LARGEST)
        by_mu, by_s = -(x / s) / np.maximum(s * mu, _FLATTEST), -2 * (k * lost + k * slope) / s
        by_mu, by_s = (np.clip(one, -_LARGEST, _LARGEST) for one in (by_mu, by_s))
        return Terms(costs, by_mu, by_s, *self.information(mu, s))

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / np.maximum(s * mu, _FLATTEST) ** 2, 4 * _shape_information(1 / s**2) / s**2

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import gammainc, gammaincc

        k, ratio = 1 / s**2, y / mu
        near = np.minimum(k, _NEARLY_NORMAL)
        exact = score_of_sides(gammainc(near, near * ratio), gammaincc(near, near * ratio))
        root = np.sign(ratio - 1) * np.sqrt(2 * k * excess(ratio - 1))
        # Beyond the smallest probability that is a number, the deviance still tells how far away a value is.
        far = (k > _NEARLY_NORMAL) | ~np.isfinite(exact)
        return np.clip(np.where(far, -root - s / 3, exact), *_ENDS)

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.asarray(s * mu)

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        from scipy.special import gammaincinv, ndtri

        k = 1 / s**2
        near = np.minimum(k, _NEARLY_NORMAL)
        ratio = np.where(k > _NEARLY_NORMAL, np.exp(s * ndtri(p)), gammaincinv(near, p) / near)
        return np.asarray(mu * ratio)


_ENDS = tuple(score_of_tail(np.array([-1.0, 1.0]), np.zeros(2)).tolist())
"""The scores of the smallest probability that has one, on either side."""


def _normaliser(k: Array) -> tuple[Array, Array]:
    """Return log Gamma(k) - k log k + k and its derivative by k."""
    from scipy.special import gammaln, psi

    near, far = np.minimum(k, _LARGE_SHAPE), np.maximum(k, _LARGE_SHAPE)
    value, slope = gammaln(near) - near * np.log(near) + near, psi(near) - np.log(near)
    u = 1 / far
    series = HALF_LOG_2PI + 0.5 * np.log(u) + u / 12 - u**3 / 360 + u**5 / 1260 - u**7 / 1680
    series_slope = -u / 2 - u**2 / 12 + u**4 / 120 - u**6 / 252 + u**8 / 240
    return np.where(k > _LARGE_SHAPE, series, value), np.where(k > _LARGE_SHAPE, series_slope, slope)


def _shape_information(k: Array) -> Array:
    """Return k^2 (psi'(k) - 1/k), the expected information on log k."""
    from scipy.special import polygamma

    near, u = np.clip(k, 1e-6, _LARGE_SHAPE), 1 / np.maximum(k, _LARGE_SHAPE)
    value = near**2 * polygamma(1, near) - near
    series = 0.5 + u / 6 - u**3 / 30 + u**5 / 42 - u**7 / 30
    # As k vanishes, psi'(k) is 1/k^2.
    return np.where(k < 1e-6, 1.0 - k, np.where(k > _LARGE_SHAPE, series, value))
