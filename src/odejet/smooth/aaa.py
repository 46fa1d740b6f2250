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
from math import factorial, sqrt
from typing import cast

import numpy as np
from scipy.linalg import eigvals, lapack

from odejet.jets.compilation import compiled
from odejet.smooth import noise as noise_of
from odejet.smooth.compressed import EPSILON, triangle
from odejet.smooth.estimator import Estimator, Workspace, register
from odejet.smooth.smoother import ChebyshevSeries, Smoother
from odejet.smooth.standardised import Standardised

MOST_TERMS = 45
MOST_POINTS = 250
"""Samples used at most: an interpolant gains nothing from more."""
STALLED = 1e-9
"""Below this share of the largest value, terms that bring no progress end the search."""
TINY = 1e-30
"""Pivots of a triangular matrix relative to its largest entry that count as zero."""
ITERATIONS = 2
TRIED, PATIENCE = 20, 2.0
"""After so many terms an approximation that converges too slowly is given up; see `_pointless`."""
ROUNDED = 16.0
"""Roundings in a barycentric sum of a dozen terms: no error can be told from zero below."""
UNCONVERGED = 30.0
"""A rational function may miss its samples by this many noise sds (or tolerances) before it is refused."""
PAID = 100.0
"""A pole in the interval is believed only where it makes the error smaller by this factor.  Terms beyond what rounding
or noise lets one see come as poles with a zero beside them, Froissart doublets, and gain next to nothing."""
MARGIN = 1.02
"""Poles on the real line within this many halves of the time span spoil the approximation."""


@dataclass(frozen=True, eq=False)
class Rational(Smoother):
    """A barycentric rational function of x, scaled back to natural units."""

    name: str
    data: Standardised
    support: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    error: float
    """The largest error at the samples, in natural units."""
    description: str = ""

    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        data = self.data
        x = data.inside(times)
        taylor, sums = np.zeros((len(x), order + 1)), np.empty((2, order + 1))
        _taylor(self.support, self.values, self.weights, x, taylor, sums)
        factorials = np.array([float(factorial(j)) for j in range(order + 1)])
        out = taylor * factorials * (data.scale / data.half_width ** np.arange(order + 1))
        out[:, 0] += data.center
        return out

    def poles(self) -> np.ndarray:
        """The poles in x."""
        return poles(self.support, self.weights)

    def has_real_pole(self) -> bool:
        """Whether a pole lies on the data's own interval (or so close to it that rounding cannot tell)."""
        return has_real_pole(self.support, self.weights)


class Interpolant(Estimator):
    """AAA on the data themselves, where there is no noise."""

    name, rank = "aaa", 8.0

    def unsuited(self, given: Workspace) -> str | None:
        if given.clean:
            return None
        times = given.noise / noise_of.floor(given.data)
        return f"an interpolant would differentiate the noise, whose sd {given.noise:.2g} is {times:.0e} times rounding"

    def fit(self, given: Workspace) -> Rational:
        return interpolate(given.data, 4.0 * given.noise * given.data.typical_sd)

    def refusal(self, given: Workspace, fitted: Smoother) -> str | None:
        return _refusal(given, fitted)


class RationalBlend(Estimator):
    """AAA on the blend, the data freed of noise, to a tolerance well below the noise that is left in it."""

    name, rank = "aaa_blend", 9.0

    def unsuited(self, given: Workspace) -> str | None:
        return "there is no noise to be freed of: aaa takes the data themselves" if given.clean else None

    def fit(self, given: Workspace) -> Rational:
        data, blend = given.data, cast(ChebyshevSeries, given.fitted("blend"))
        places = data.middle + data.half_width * np.linspace(-0.8, 0.8, 9)
        left = given.noise * float(np.median([jet.gains[0] for jet in blend.jets(places, 0)]))
        return of_smoother(data, blend, min(2 * len(blend.operator), MOST_POINTS), 0.1 * left)

    def refusal(self, given: Workspace, fitted: Smoother) -> str | None:
        return _refusal(given, fitted)


register(Interpolant())
register(RationalBlend())


def _refusal(given: Workspace, fitted: Smoother) -> str | None:
    assert isinstance(fitted, Rational)
    data, noise = given.data, given.noise
    allowed = UNCONVERGED * max(noise if data.sds is None else noise * float(data.sds.max()), data.rounding)
    if given.clean:
        allowed = max(allowed, 1e-10 * data.scale)
    if fitted.error > allowed:
        return f"it misses the values by {fitted.error:.2g}"
    return "it has a pole between the data" if fitted.has_real_pole() else None


def poles(support: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Zeros of the denominator, as generalised eigenvalues of an arrowhead pencil."""
    size = len(support) + 1
    pencil, mass = np.zeros((size, size)), np.eye(size)
    mass[0, 0] = 0.0
    pencil[0, 1:], pencil[1:, 0] = weights, 1.0
    pencil[1:, 1:] = np.diag(support)
    found = eigvals(pencil, mass)
    return found[np.isfinite(found) & (np.abs(found) < 1e8)]


def has_real_pole(support: np.ndarray, weights: np.ndarray) -> bool:
    """Whether there is a pole in the interval, or so close to it that rounding cannot tell."""
    signs = np.sign(weights[np.argsort(support)])
    if np.any(signs[1:] == signs[:-1]):
        # The denominator has opposite signs at the ends of this gap between support points.
        return True
    found = poles(support, weights)
    return bool(np.any((np.abs(found.imag) < 1e-9) & (np.abs(found.real) < MARGIN)))


def interpolate(data: Standardised, tolerance: float, points: int = MOST_POINTS) -> Rational:
    """AAA on the data themselves (means of replicates), to a tolerance in natural units."""
    times, places = np.unique(data.times, return_inverse=True)
    means = np.bincount(places, data.values) / np.bincount(places)
    if len(times) > points:
        chosen = np.unique(np.linspace(0, len(times) - 1, points).round().astype(int))
        times, means = times[chosen], means[chosen]
    return _rational(data, "aaa", data.x(times), means, tolerance)


def of_smoother(data: Standardised, smoother: Smoother, terms: int, tolerance: float) -> Rational:
    """AAA on the values of another estimator at Chebyshev points dense enough for a polynomial of `terms` terms."""
    x = np.cos(np.pi * (np.arange(terms) + 0.5) / terms)[::-1]
    values = smoother(data.middle + data.half_width * x)
    return _rational(data, f"aaa_{smoother.name}", x, values, tolerance)


def _rational(data: Standardised, name: str, x: np.ndarray, values: np.ndarray, tolerance: float) -> Rational:
    standard = (values - data.center) / data.scale
    floor = ROUNDED * EPSILON * max(np.abs(standard).max(), abs(data.center) / data.scale)
    support, heights, weights, error = approximate(x, standard, max(tolerance / data.scale, floor))
    described = f"{len(support)} support points"
    return Rational(name, data, support, heights, weights, error * data.scale, described)


def approximate(
    x: np.ndarray, values: np.ndarray, tolerance: float, most: int = MOST_TERMS
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Support points, their values, weights, and the largest error left."""
    most = min(most, (len(x) + 1) // 2)
    scale = float(np.abs(values).max())
    chosen: list[int] = []
    tried: list[tuple[float, int, np.ndarray]] = []
    cauchy, loewner = np.empty((len(x), most), order="F"), np.empty((len(x), most), order="F")
    left = np.abs(values - values.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        for terms in range(1, most + 1):
            new = int(np.argmax(left))
            chosen.append(new)
            cauchy[:, terms - 1] = 1.0 / (x - x[new])
            # A support point is met by construction: its row is zero and says nothing.
            cauchy[new] = cauchy[chosen, terms - 1] = 0.0
            loewner[:, terms - 1] = (values - values[new]) * cauchy[:, terms - 1]
            loewner[new] = 0.0
            weights = smallest_vector(triangle(loewner[:, :terms]), x[chosen])
            current = (cauchy[:, :terms] @ (weights * values[chosen])) / (cauchy[:, :terms] @ weights)
            left = np.abs(values - current)
            left[chosen] = 0.0
            largest = float(left.max())
            if np.isfinite(largest):
                tried.append((largest, terms, weights))
            if largest <= tolerance:
                break
            if tried and _pointless(*_smallest(tried, scale), terms, most, tolerance / scale):
                break
    error, kept, weights = _calmest(tried, x[chosen])
    return x[chosen[:kept]], values[chosen[:kept]], weights, error


def _smallest(tried: list[tuple[float, int, np.ndarray]], scale: float) -> tuple[float, int]:
    """The smallest relative error, and the terms that first reached it."""
    error, terms, _ = min(tried, key=lambda one: one[:2])
    return error / scale, terms


def _calmest(tried: list[tuple[float, int, np.ndarray]], support: np.ndarray) -> tuple[float, int, np.ndarray]:
    """The approximation of least error, or the next best without a pole in the interval if that is nearly as good."""
    by_error = sorted(tried, key=lambda one: one[:2])
    for error, terms, weights in by_error:
        if error > PAID * by_error[0][0]:
            break
        if not has_real_pole(support[:terms], weights):
            return error, terms, weights
    return by_error[0]


def _pointless(error: float, reached: int, terms: int, most: int, tolerance: float) -> bool:
    """Whether more terms are no use, with the best relative error so far and the number of terms that reached it.

    Once rounding dominates, they only add poles that come with zeros; and where they bring so little that even a
    PATIENCE times faster fall of the error would not end at the tolerance, the function is not for few poles.
    """
    if error < STALLED and terms > reached + 5:
        return True
    expected = np.log(max(error, EPSILON)) * (1.0 + PATIENCE * (most - terms) / terms)
    return bool(terms >= TRIED and expected > np.log(max(tolerance, EPSILON)))


def smallest_vector(upper: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Weights that a triangular matrix makes as small as its smallest singular value, by inverse iteration.

    Where several singular values are at rounding, any mixture of their vectors does.  The iteration starts from signs
    that alternate from support point to support point, as they do when there is no pole between them, and so leans to
    mixtures without such poles.
    """
    pivots = np.einsum("ii->i", upper)
    smallest = TINY * max(abs(upper.max()), abs(upper.min()), TINY)
    pivots[np.abs(pivots) < smallest] = smallest
    vector = np.empty(len(upper))
    vector[np.argsort(support)] = (-1.0) ** np.arange(len(upper))
    for _ in range(ITERATIONS):
        vector, _ = lapack.dtrtrs(upper, vector, trans=1)
        vector, _ = lapack.dtrtrs(upper, vector / max(vector.max(), -vector.min()))
        vector /= sqrt(vector @ vector)
    return np.asarray(vector)


@compiled
def _taylor(
    support: np.ndarray, values: np.ndarray, weights: np.ndarray, places: np.ndarray, out: np.ndarray, sums: np.ndarray
) -> None:  # pragma: no cover - compiled
    """Taylor coefficients of r at each place up to the order.

    With x_i the nearest support point and e = x - x_i, the terms w_j f_j (e + h)/(x - x_j + h), j != i, have the series
    w_j f_j [e/d_j + sum_k (-1)^(k-1) (d_j - e)/d_j^(k+1) h^k], where d_j = x - x_j and d_j - e = x_i - x_j.  Values are
    taken relative to the nearest one, so that a flat function keeps its digits.
    """
    orders, above, below = out.shape[1], sums[0], sums[1]
    for row in range(len(places)):
        x, nearest = places[row], 0
        for j in range(len(support)):
            if abs(x - support[j]) < abs(x - support[nearest]):
                nearest = j
        for k in range(orders):
            above[k] = below[k] = 0.0
        below[0] = weights[nearest]
        for j in range(len(support)):
            if j == nearest:
                continue
            distance, height = x - support[j], values[j] - values[nearest]
            term = weights[j] * (x - support[nearest]) / distance
            below[0] += term
            above[0] += term * height
            term = weights[j] * (support[nearest] - support[j]) / (distance * distance)
            for k in range(1, orders):
                below[k] += term
                above[k] += term * height
                term = -term / distance
        for k in range(orders):
            total = above[k]
            for i in range(1, k + 1):
                total -= below[i] * out[row, k - i]
            out[row, k] = total / below[0]
        out[row, 0] += values[nearest]
