"""Laws of counts without a largest one: Poisson's and the negative binomial."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odejet.problem.distributions.law import Array, Terms, excess, score_of_sides, silent

EMPTY = 1e-12
"""A mean of counts below this is none."""

_LARGEST = 1e300
"""A count beyond which none is looked for."""


class Counts:
    """What laws of whole numbers have in common."""

    logarithm, positive, whole, robust = 0.0, True, True, False
    largest, orthogonal = math.inf, True

    def refusal(self, y: Array) -> str:
        wrong = y[(y < 0) | (y != np.round(y))]
        return f"must be counts, whole numbers from 0 on, and one is {wrong[0]:g}" if len(wrong) else ""


@dataclass(frozen=True)
class Poisson(Counts):
    has_scale = False

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        from scipy.special import gammaln, xlogy

        nothing = np.zeros_like(mu)
        weight = self.information(mu, s)[0]
        return Terms(mu - xlogy(y, mu) + gammaln(y + 1), (mu - y) * weight, nothing, weight, nothing)

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / np.maximum(mu, EMPTY), np.zeros_like(mu)

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import pdtr, pdtrc

        below, above = np.where(y > 0, pdtr(np.maximum(y - 1, 0), mu), 0.0), pdtrc(y, mu)
        return score_of_sides(below, above)

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.sqrt(mu)

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        from scipy.special import pdtr

        return least_count(p, lambda y: pdtr(y, mu), mu, self.sd(mu, s))


@dataclass(frozen=True)
class NegativeBinomial(Counts):
    """With size r = 1/a the probability of y is Gamma(r + y) / (Gamma(r) y!) (mu / (r + mu))^y (r / (r + mu))^r."""

    has_scale = True

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        from scipy.special import gammaln, xlogy

        x, wide = s * mu, 1 + s * mu
        product, product_slope = rising(y, s)
        # log(1 + a mu) / a and its derivative by a, which both have a limit as a vanishes.
        small = np.minimum(x, 1.0)
        near, far = excess(small) - small**2 / (1 + small), mu / (1 / s + mu) - np.log1p(x)
        lost, lost_slope = np.log1p(x) / s, np.where(x < 1, near, far) / s / s
        costs = gammaln(y + 1) - product - xlogy(y, mu) + y * np.log(wide) + lost
        by_s = -product_slope + y * mu / wide + lost_slope
        by_mu, weight_s = (mu - y) / (np.maximum(mu, EMPTY) * wide), 0.5 * (mu / wide) ** 2
        return Terms(costs, by_mu, by_s, 1 / (np.maximum(mu, EMPTY) * wide), weight_s)

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / (np.maximum(mu, EMPTY) * (1 + s * mu)), _dispersion_information(mu, s)

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return score_of_sides(np.where(y > 0, self._cdf(y - 1, mu, s), 0.0), self._tail(y, mu, s))

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.sqrt(mu) * np.sqrt(1 + s * mu)

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        return least_count(p, lambda y: self._cdf(y, mu, s), mu, self.sd(mu, s))

    def _cdf(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import betainc

        return np.asarray(betainc(1 / s, np.maximum(y, 0.0) + 1, 1 / (1 + s * mu)))

    def _tail(self, y: Array, mu: Array, s: Array) -> Array:
        """The probability of more than y."""
        from scipy.special import betainc

        return np.asarray(betainc(y + 1, 1 / s, s * mu / (1 + s * mu)))


# --- parts of the negative binomial law ---

_LARGE_SIZE = 64.0
"""Of a negative binomial law: from here on Stirling's series is exact to rounding."""

_EXACT_TERMS, _NODES, _FAR_NODES = 96, 48, 160
"""Of the sums that are the information on a dispersion: counts that are added up, and nodes for the rest of them."""

_DISPERSED = 0.01
"""A dispersion from which on the information is a sum of tails: below, these cancel."""

_MANY = 1e6
"""A mean of counts from which on those of a smaller dispersion are normal, to a part in three hundred."""


def rising(y: Array, a: Array) -> tuple[Array, Array]:
    """log of (1)(1 + a)(1 + 2a)...(1 + (y-1) a), and its derivative by a."""
    from scipy.special import gammaln, psi

    r, near = 1 / a, np.minimum(1 / a, _LARGE_SIZE)
    value = gammaln(near + y) - gammaln(near) - y * np.log(near)
    slope = near * (y - near * (psi(near + y) - psi(near)))
    x, far_a = y * a, np.minimum(a, 1 / _LARGE_SIZE)
    u = far_a / (1 + y * far_a)
    far = -r * excess(x) + (y - 0.5) * np.log1p(x) + _stirling(u) - _stirling(far_a)
    far_slope = r * r * excess(x) - 0.5 * y / (1 + x) + _stirling_slope(u) / (1 + x) ** 2 - _stirling_slope(far_a)
    large = r > _LARGE_SIZE
    return np.where(large, far, value), np.where(large, far_slope, slope)


def _stirling(u: Array) -> Array:
    """Return what Stirling's series adds to log Gamma(1/u)."""
    return np.asarray(u / 12 - u**3 / 360 + u**5 / 1260 - u**7 / 1680)


def _stirling_slope(u: Array) -> Array:
    return np.asarray(1 / 12 - u**2 / 120 + u**4 / 252 - u**6 / 240)


def _dispersion_information(mu: Array, a: Array) -> Array:
    """The expected information on a dispersion: the mean square of the derivative of the log-likelihood."""
    mu, a = (np.array(one, dtype=float) for one in np.broadcast_arrays(mu, a))
    information = np.asarray(0.5 * (mu / (1 + a * mu)) ** 2)
    dispersed = (a > _DISPERSED) & (a * mu > 1e-3)
    counted = ~dispersed & (mu < _MANY)
    information[dispersed] = _by_tails(mu[dispersed], a[dispersed])
    information[counted] = _by_counts(mu[counted], a[counted])
    return information


def _by_counts(mu: Array, a: Array) -> Array:
    """The information on a dispersion as a sum over counts.

    From eight sds below the mean on, counts are added up one by one; where these are many, the law is smooth beyond the
    first of them, and the rest is integrated.
    """
    mu, a = mu[..., None], a[..., None]
    sd = NegativeBinomial().sd(mu, a)
    first = np.floor(np.maximum(mu - 8 * sd, 0.0))

    def squares(y: Array) -> Array:
        found = NegativeBinomial().terms(y, np.maximum(mu, EMPTY), a)
        return np.asarray(np.exp(-found.costs) * found.by_s**2)

    added = squares(first + np.arange(_EXACT_TERMS)).sum(axis=-1)
    end = mu + 12 * sd + 40 * (1 + a * mu)
    return np.asarray(added + _integrated(squares, first + _EXACT_TERMS - 0.5, end, _NODES))


def _by_tails(mu: Array, a: Array) -> Array:
    """The information on a dispersion as a sum over the probabilities of more than so many counts (Fisher 1941):

        r^4 (sum_j P(Y > j) / (r + j)^2 - mu / (r (r + mu)))        with r = 1/a

    It has no terms that are too large for a number, however wide the law is.
    """
    mu, a = mu[..., None], a[..., None]
    r, law = 1 / a, NegativeBinomial()

    def tails(j: Array) -> Array:
        return np.asarray(law._tail(j, mu, a) * (r / (r + j)) ** 2)

    # No counts, by far the most likely ones of a wide law, would cancel with what is taken away.
    none = -np.expm1(-r * np.log1p(a * mu)) - r * (mu / (r + mu))
    added = none[..., 0] + tails(np.arange(1.0, _EXACT_TERMS)).sum(axis=-1)
    low = np.full(mu.shape, _EXACT_TERMS - 0.5)
    end = np.minimum(mu + 12 * law.sd(mu, a) + 40 * (1 + a * mu), 1e8 * (1 + r))
    total = added + _integrated(tails, low, end, _FAR_NODES)
    return np.asarray(np.maximum(total, 0.0) * r[..., 0] ** 2)


def _integrated(function: Callable[[Array], Array], low: Array, high: Array, count: int) -> Array:
    """The integral of a function that is smooth in the logarithm of its argument."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    span = np.log(np.maximum(high, low + 1) / low)
    places = low * np.exp(0.5 * span * (1 + nodes))
    return np.asarray((function(places) * places * 0.5 * span) @ weights)


# --- quantiles ---


def least_count(p: float | Array, cdf: Callable[[Array], Array], mu: Array, sd: Array) -> Array:
    """The least count whose distribution function reaches p, by bisection; to rounding, where counts are that many."""
    low, high = np.full(np.shape(mu), -1.0), np.ceil(mu + 10 * sd + 10)
    while np.any(short := (cdf(high) < p) & (high < _LARGEST)):
        high = np.where(short, 2 * high, high)
    while np.any(high - low > np.maximum(1.0, 4 * np.finfo(float).eps * high)):
        middle = np.maximum(np.floor(0.5 * (low + high)), 0.0)
        enough = cdf(middle) >= p
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
