"""AAA: adaptive rational approximation in barycentric form, with exact derivatives.

    r(x) = sum_j w_j f_j/(x - x_j)  /  sum_j w_j/(x - x_j)

The algorithm (Nakatsukasa, Sete and Trefethen 2018) adds the sample with the largest error as a support point and
takes the weights as the smallest singular vector of the Loewner matrix, until the error is below a tolerance.  It
interpolates, noise and all, so it is meant for noise-free data, or for values another estimator has freed of noise.

Derivatives come from the Taylor series of numerator and denominator, both multiplied by x - x_i with x_i the nearest
support point: then neither is singular, at a support point or near one, and their quotient is the series of r.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from scipy.linalg import eigvals

from odejet.smooth.series import EPSILON, Series, triangle
from odejet.smooth.smoother import Smoother

MOST_TERMS = 45
MOST_POINTS = 250
"""Samples used at most: an interpolant gains nothing from more."""
STALLED = 1e-9
"""Below this share of the largest value, terms that bring no progress end the search."""
MARGIN = 1.02
"""Poles on the real line within this many halves of the time span spoil the approximation."""


@dataclass(frozen=True, eq=False)
class Rational(Smoother):
    """A barycentric rational function of x, scaled back to natural units."""

    name: str
    series: Series
    support: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    error: float
    """The largest error at the samples, in natural units."""
    description: str = ""

    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        data = self.series
        x = data.inside(times)
        taylor = np.array([_taylor(self.support, self.values, self.weights, place, order) for place in x])
        factorials = np.array([float(factorial(j)) for j in range(order + 1)])
        out = taylor * factorials * (data.scale / data.half_width ** np.arange(order + 1))
        out[:, 0] += data.center
        return out

    def poles(self) -> np.ndarray:
        """The poles in x: zeros of the denominator, as generalised eigenvalues of an arrowhead pencil."""
        size = len(self.support) + 1
        pencil, mass = np.zeros((size, size)), np.eye(size)
        mass[0, 0] = 0.0
        pencil[0, 1:], pencil[1:, 0] = self.weights, 1.0
        pencil[1:, 1:] = np.diag(self.support)
        found = eigvals(pencil, mass)
        return found[np.isfinite(found) & (np.abs(found) < 1e8)]

    def has_real_pole(self) -> bool:
        """Whether a pole lies on the data's own interval (or so close to it that rounding cannot tell)."""
        poles = self.poles()
        return bool(np.any((np.abs(poles.imag) < 1e-9) & (np.abs(poles.real) < MARGIN)))


def interpolate(data: Series, tolerance: float, points: int = MOST_POINTS) -> Rational:
    """AAA on the data themselves (means of replicates), to a tolerance in natural units."""
    times, places = np.unique(data.times, return_inverse=True)
    means = np.bincount(places, data.values) / np.bincount(places)
    if len(times) > points:
        chosen = np.unique(np.linspace(0, len(times) - 1, points).round().astype(int))
        times, means = times[chosen], means[chosen]
    return _rational(data, "aaa", data.x(times), means, tolerance)


def of_smoother(data: Series, smoother: Smoother, terms: int, tolerance: float) -> Rational:
    """AAA on the values of another estimator at Chebyshev points dense enough for a polynomial of `terms` terms."""
    x = np.cos(np.pi * (np.arange(terms) + 0.5) / terms)[::-1]
    values = smoother(data.middle + data.half_width * x)
    return _rational(data, f"aaa_{smoother.name}", x, values, tolerance)


def _rational(data: Series, name: str, x: np.ndarray, values: np.ndarray, tolerance: float) -> Rational:
    standard = (values - data.center) / data.scale
    floor = 4.0 * EPSILON * max(np.abs(standard).max(), abs(data.center) / data.scale)
    support, heights, weights, error = approximate(x, standard, max(tolerance / data.scale, floor))
    described = f"{len(support)} support points"
    return Rational(name, data, support, heights, weights, error * data.scale, described)


def approximate(
    x: np.ndarray, values: np.ndarray, tolerance: float, most: int = MOST_TERMS
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Support points, their values, weights, and the largest error left."""
    most = min(most, (len(x) + 1) // 2)
    others = np.ones(len(x), dtype=bool)
    current = np.full(len(x), values.mean())
    columns: list[np.ndarray] = []
    chosen: list[int] = []
    best: tuple[float, list[int], np.ndarray] | None = None
    scale = float(np.abs(values).max())
    for _ in range(most):
        error = np.where(others, np.abs(values - current), -1.0)
        new = int(np.argmax(error))
        chosen.append(new)
        others[new] = False
        with np.errstate(divide="ignore"):
            columns.append(1.0 / (x - x[new]))
        cauchy = np.column_stack(columns)[others]
        heights = values[chosen]
        loewner = (values[others, None] - heights) * cauchy
        weights = np.linalg.svd(triangle(loewner), full_matrices=True)[2][-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            current = values.copy()
            current[others] = (cauchy @ (weights * heights)) / (cauchy @ weights)
        largest = float(np.max(np.abs(values - current), initial=0.0))
        if np.isfinite(largest) and (best is None or largest < best[0]):
            best = (largest, list(chosen), weights)
        if largest <= tolerance:
            break
        # Once rounding dominates, more terms only add poles that come with zeros.
        if best is not None and best[0] < STALLED * scale and len(chosen) > len(best[1]) + 5:
            break
    assert best is not None
    error_left, kept, weights = best
    return x[kept], values[kept], weights, error_left


def _taylor(support: np.ndarray, values: np.ndarray, weights: np.ndarray, x: float, order: int) -> np.ndarray:
    """Taylor coefficients of r at x up to the order.

    With x_i the nearest support point and e = x - x_i, the terms w_j f_j (e + h)/(x - x_j + h), j != i, have the series
    w_j f_j [e/d_j + sum_k (-1)^(k-1) (d_j - e)/d_j^(k+1) h^k], where d_j = x - x_j and d_j - e = x_i - x_j.
    """
    nearest = int(np.argmin(np.abs(x - support)))
    offset = x - support[nearest]
    rest = np.arange(len(support)) != nearest
    distances = x - support[rest]
    gaps = support[nearest] - support[rest]
    powers = np.empty((order + 1, len(distances)))
    powers[0] = offset / distances
    if order:
        powers[1] = gaps / distances**2
        for k in range(2, order + 1):
            powers[k] = -powers[k - 1] / distances
    # Relative to the nearest value, so that a flat function keeps its digits.
    below = powers @ weights[rest]
    above = powers @ (weights[rest] * (values[rest] - values[nearest]))
    below[0] += weights[nearest]
    out = np.empty(order + 1)
    for k in range(order + 1):
        out[k] = (above[k] - below[1 : k + 1] @ out[k - 1 :: -1][:k] if k else above[0]) / below[0]
    out[0] += values[nearest]
    return out
