"""Distributions: the laws of a measurement around its prediction.

Every law has a location, the prediction mu, and most have a scale s.  What a fit needs of it are its negative
log-likelihood with the derivatives by both and the expected information on both; what people need are its sd, its
quantiles and, to judge a measurement as noise, the *normal score*: the residual that normal noise of unit size would
have with the same probability.  In all laws here the information on location and scale is orthogonal, so that a
measurement tells of each by itself.

    normal(s), laplace(s)                 sd s; mean absolute deviation s
    student(s, dof)                       scale s and so many degrees of freedom
    lognormal(s), log10normal(s), loglaplace(s), log10laplace(s)   the same of the logarithm; mu is the median
    poisson                               whole numbers of mean mu
    negbinomial(a)                        whole numbers of mean mu and variance mu + a mu^2
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

Array = np.ndarray
Method = TypeVar("Method", bound=Callable[..., Any])

_KINK = 1e-6
"""Of the scale: how near to its prediction a measurement of Laplace noise is taken as met.  There the modulus, whose
slope jumps, is a parabola."""

_EMPTY = 1e-12
"""A mean of counts below this is none."""

_STEEPEST = 1e150
"""Of a logarithm in units of its noise: the largest slope whose square is a number.  A prediction where it is steeper
is nothing beside any measurement."""

_SMALLEST_TAIL = 1e-300
"""The least probability that has a normal score, of 37 sds."""

_LARGEST = 1e300
"""A count beyond which none is looked for."""

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Terms:
    """What measurements say, one by one: the negative log-likelihood, and for location and scale its derivative and a
    positive weight that stands for its curvature in a step of a search."""

    costs: Array
    by_mu: Array
    by_s: Array
    weight_mu: Array
    weight_s: Array


class Distribution(Protocol):
    """A law of measurements y around predictions mu with scales s, all arrays of one shape."""

    @property
    def logarithm(self) -> float:
        """The natural logarithm of the base in which data are compared; zero where they are as they are."""

    @property
    def has_scale(self) -> bool: ...

    @property
    def positive(self) -> bool:
        """Whether only positive predictions make sense."""

    @property
    def whole(self) -> bool:
        """Whether measurements are whole numbers."""

    @property
    def robust(self) -> bool:
        """Whether a few measurements may be far away without having much of a say."""

    def refusal(self, y: Array) -> str:
        """What is wrong with measurements that this law cannot produce; empty if nothing is."""

    def terms(self, y: Array, mu: Array, s: Array) -> Terms: ...

    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        """The expected information on mu and on s of each measurement."""

    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        """Normal scores, positive where the prediction is above the measurement."""

    def sd(self, mu: Array, s: Array) -> Array: ...

    def quantile(self, p: float, mu: Array, s: Array) -> Array: ...


def _silent(method: Method) -> Method:
    """Let what is too large for a number be infinite, without a warning: whoever asked refuses it."""
    return np.errstate(all="ignore")(method)


class _Everywhere:
    """What laws on all numbers have in common."""

    logarithm, has_scale, positive, whole = 0.0, True, False, False

    @property
    def robust(self) -> bool:
        return not isinstance(self, Normal)

    def refusal(self, y: Array) -> str:
        return ""


@dataclass(frozen=True)
class Normal(_Everywhere):
    @_silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        r = (mu - y) / s
        costs = np.log(s) + 0.5 * r * r + _HALF_LOG_2PI
        return Terms(costs, r / s, (1 - r * r) / s, *self.information(mu, s))

    @_silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / s**2, 2 / s**2

    @_silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return (mu - y) / s

    @_silent
    def sd(self, mu: Array, s: Array) -> Array:
        return s

    @_silent
    def quantile(self, p: float, mu: Array, s: Array) -> Array:
        from scipy.special import ndtri

        return np.asarray(mu + s * ndtri(p))


@dataclass(frozen=True)
class Laplace(_Everywhere):
    kink: float = _KINK

    @_silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        r = (mu - y) / s
        size = np.abs(r)
        # The parabola that touches the modulus at r lies above it, so that every step on it goes down.
        weight = 1 / (np.maximum(size, self.kink) * s * s)
        rounded = np.where(size < self.kink, 0.5 * (r * r / self.kink + self.kink), size)
        return Terms(np.log(2 * s) + rounded, r * weight * s, (1 - size) / s, weight, 1 / s**2)

    @_silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / s**2, 1 / s**2

    @_silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        r = (mu - y) / s
        return _score(r, 0.5 * np.exp(-np.abs(r)))

    @_silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.asarray(math.sqrt(2) * s)

    @_silent
    def quantile(self, p: float, mu: Array, s: Array) -> Array:
        return np.asarray(mu - math.copysign(1.0, p - 0.5) * math.log(2 * min(p, 1 - p)) * s)


@dataclass(frozen=True)
class Student(_Everywhere):
    dof: float

    @_silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        nu, r = self.dof, (mu - y) / s
        constant = math.lgamma(nu / 2) - math.lgamma((nu + 1) / 2) + 0.5 * math.log(nu * math.pi)
        pull = (nu + 1) * r / (nu + r * r)
        costs = np.log(s) + 0.5 * (nu + 1) * np.log1p(r * r / nu) + constant
        return Terms(costs, pull / s, (1 - r * pull) / s, *self.information(mu, s))

    @_silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        nu = self.dof
        return (nu + 1) / ((nu + 3) * s**2), 2 * nu / ((nu + 3) * s**2)

    @_silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import stdtr

        r = (mu - y) / s
        return _score(r, stdtr(self.dof, -np.abs(r)))

    @_silent
    def sd(self, mu: Array, s: Array) -> Array:
        """Infinite for two degrees of freedom and fewer."""
        return np.asarray(s * (math.sqrt(self.dof / (self.dof - 2)) if self.dof > 2 else math.inf))

    @_silent
    def quantile(self, p: float, mu: Array, s: Array) -> Array:
        from scipy.special import stdtrit

        return np.asarray(mu + s * stdtrit(self.dof, p))


@dataclass(frozen=True)
class Logarithmic:
    """The law of positive numbers whose logarithm has another law; the median is the prediction."""

    of: Normal | Laplace
    logarithm: float = 1.0  # of the base
    has_scale, positive, whole = True, True, False

    @property
    def robust(self) -> bool:
        return self.of.robust

    def refusal(self, y: Array) -> str:
        return "" if np.all(y > 0) else f"must be positive, and one is {y[y <= 0][0]:g}"

    @_silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        found, slope = self.of.terms(self._log(y), self._log(mu), s), self._slope(mu, s)
        return Terms(
            found.costs + np.log(y * self.logarithm),
            found.by_mu * slope,
            found.by_s,
            found.weight_mu * slope**2,
            found.weight_s,
        )

    @_silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        by_mu, by_s = self.of.information(mu, s)
        return by_mu * self._slope(mu, s) ** 2, by_s

    @_silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return self.of.scores(self._log(y), self._log(mu), s)

    @_silent
    def sd(self, mu: Array, s: Array) -> Array:
        """Infinite where the tails are too heavy to have one."""
        s = s * self.logarithm
        if isinstance(self.of, Normal):
            return np.asarray(mu * np.exp(0.5 * s * s) * np.sqrt(np.expm1(s * s)))
        variance = s * s * (2 + s * s) / ((1 - 4 * s * s) * (1 - s * s) ** 2)
        return np.asarray(mu * np.where(s < 0.5, np.sqrt(np.where(s < 0.5, variance, 0.0)), np.inf))

    @_silent
    def quantile(self, p: float, mu: Array, s: Array) -> Array:
        return np.asarray(np.exp(self.logarithm * self.of.quantile(p, self._log(mu), s)))

    def _slope(self, mu: Array, s: Array) -> Array:
        """The derivative of the logarithm of mu."""
        return np.asarray(1 / np.maximum(mu * self.logarithm, 1 / (_STEEPEST * np.minimum(s, 1.0))))

    def _log(self, values: Array) -> Array:
        return np.asarray(np.log(values) / self.logarithm)


class _Counts:
    """What laws of whole numbers have in common."""

    logarithm, positive, whole, robust = 0.0, True, True, False

    def refusal(self, y: Array) -> str:
        wrong = y[(y < 0) | (y != np.round(y))]
        return f"must be counts, whole numbers from 0 on, and one is {wrong[0]:g}" if len(wrong) else ""


@dataclass(frozen=True)
class Poisson(_Counts):
    has_scale = False

    @_silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        from scipy.special import gammaln, xlogy

        nothing = np.zeros_like(mu)
        weight = self.information(mu, s)[0]
        return Terms(mu - xlogy(y, mu) + gammaln(y + 1), (mu - y) * weight, nothing, weight, nothing)

    @_silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / np.maximum(mu, _EMPTY), np.zeros_like(mu)

    @_silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import pdtr, pdtrc

        below, above = np.where(y > 0, pdtr(np.maximum(y - 1, 0), mu), 0.0), pdtrc(y, mu)
        return _mid_scores(below, above)

    @_silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.sqrt(mu)

    @_silent
    def quantile(self, p: float, mu: Array, s: Array) -> Array:
        from scipy.special import pdtr

        return _least_count(p, lambda y: pdtr(y, mu), mu, self.sd(mu, s))


@dataclass(frozen=True)
class NegativeBinomial(_Counts):
    """With size r = 1/a the probability of y is Gamma(r + y) / (Gamma(r) y!) (mu / (r + mu))^y (r / (r + mu))^r."""

    has_scale = True

    @_silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        from scipy.special import gammaln, xlogy

        x, wide = s * mu, 1 + s * mu
        rising, rising_slope = _rising(y, s)
        # log(1 + a mu) / a and its derivative by a, which both have a limit as a vanishes.
        small = np.minimum(x, 1.0)
        near, far = _excess(small) - small**2 / (1 + small), mu / (1 / s + mu) - np.log1p(x)
        lost, lost_slope = np.log1p(x) / s, np.where(x < 1, near, far) / s / s
        costs = gammaln(y + 1) - rising - xlogy(y, mu) + y * np.log(wide) + lost
        by_s = -rising_slope + y * mu / wide + lost_slope
        by_mu, weight_s = (mu - y) / (np.maximum(mu, _EMPTY) * wide), 0.5 * (mu / wide) ** 2
        return Terms(costs, by_mu, by_s, 1 / (np.maximum(mu, _EMPTY) * wide), weight_s)

    @_silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / (np.maximum(mu, _EMPTY) * (1 + s * mu)), _dispersion_information(mu, s)

    @_silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return _mid_scores(np.where(y > 0, self._cdf(y - 1, mu, s), 0.0), self._tail(y, mu, s))

    @_silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.sqrt(mu) * np.sqrt(1 + s * mu)

    @_silent
    def quantile(self, p: float, mu: Array, s: Array) -> Array:
        return _least_count(p, lambda y: self._cdf(y, mu, s), mu, self.sd(mu, s))

    def _cdf(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import betainc

        return np.asarray(betainc(1 / s, np.maximum(y, 0.0) + 1, 1 / (1 + s * mu)))

    def _tail(self, y: Array, mu: Array, s: Array) -> Array:
        """The probability of more than y."""
        from scipy.special import betainc

        return np.asarray(betainc(y + 1, 1 / s, s * mu / (1 + s * mu)))


# --- parts of the negative binomial law ---

_LARGE_SIZE = 1e4
"""Of a negative binomial law: from here on Stirling's series is exact to rounding, and the law nearly Poisson's."""

_EXACT_TERMS, _NODES, _FAR_NODES = 96, 48, 160
"""Of the sums that are the information on a dispersion: counts that are added up, and nodes for the rest of them."""

_DISPERSED = 0.01
"""A dispersion from which on the information is a sum of tails: below, these cancel."""

_MANY = 1e6
"""A mean of counts from which on those of a smaller dispersion are normal, to a part in three hundred."""


def _excess(x: Array) -> Array:
    """x - log(1 + x) without cancellation."""
    small = np.where(np.abs(x) < 1e-2, x, 0.0)
    series = small**2 * sum((-small) ** k / (k + 2) for k in range(8))
    return np.where(np.abs(x) < 1e-2, series, x - np.log1p(x))


def _rising(y: Array, a: Array) -> tuple[Array, Array]:
    """log of (1)(1 + a)(1 + 2a)...(1 + (y-1) a), and its derivative by a."""
    from scipy.special import gammaln, psi

    r, near = 1 / a, np.minimum(1 / a, _LARGE_SIZE)
    value = gammaln(near + y) - gammaln(near) - y * np.log(near)
    slope = near * (y - near * (psi(near + y) - psi(near)))
    x = y * a
    far = -r * _excess(x) + (y - 0.5) * np.log1p(x) + (1 / (r + y) - a) / 12
    far_slope = r * r * _excess(x) - 0.5 * y / (1 + x) - (1 - 1 / (1 + x) ** 2) / 12
    large = r > _LARGE_SIZE
    return np.where(large, far, value), np.where(large, far_slope, slope)


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
        found = NegativeBinomial().terms(y, np.maximum(mu, _EMPTY), a)
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


# --- scores and quantiles ---


def _score(residuals: Array, tails: Array) -> Array:
    """Normal scores from the probability of a residual of the same sign that is at least as large."""
    from scipy.special import ndtri

    return np.asarray(-np.sign(residuals) * ndtri(np.clip(tails, _SMALLEST_TAIL, 0.5)))


def _mid_scores(below: Array, above: Array) -> Array:
    """Normal scores of counts, from the probabilities of fewer and of more; half of its own counts on either side."""
    own = np.clip(1 - below - above, 0.0, 1.0)
    low, high = below + 0.5 * own, above + 0.5 * own
    return np.where(low < high, 1.0, -1.0) * _score(np.ones_like(low), np.minimum(low, high))


def _least_count(p: float, cdf: Callable[[Array], Array], mu: Array, sd: Array) -> Array:
    """The least count whose distribution function reaches p, by bisection; to rounding, where counts are that many."""
    low, high = np.full(np.shape(mu), -1.0), np.ceil(mu + 10 * sd + 10)
    while np.any(short := (cdf(high) < p) & (high < _LARGEST)):
        high = np.where(short, 2 * high, high)
    while np.any(high - low > np.maximum(1.0, 4 * np.finfo(float).eps * high)):
        middle = np.maximum(np.floor(0.5 * (low + high)), 0.0)
        enough = cdf(middle) >= p
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def is_of_squares(law: Distribution) -> bool:
    """Whether a law is normal, of the measurement or of its logarithm."""
    return isinstance(law.of if isinstance(law, Logarithmic) else law, Normal)


LAWS: Mapping[str, tuple[int, Callable[..., Distribution]]] = {
    "normal": (1, Normal),
    "lognormal": (1, lambda: Logarithmic(Normal())),
    "log10normal": (1, lambda: Logarithmic(Normal(), math.log(10))),
    "laplace": (1, Laplace),
    "loglaplace": (1, lambda: Logarithmic(Laplace())),
    "log10laplace": (1, lambda: Logarithmic(Laplace(), math.log(10))),
    "student": (2, Student),
    "poisson": (0, Poisson),
    "negbinomial": (1, NegativeBinomial),
}
"""By name: how many arguments the text of each has, and what makes it from those that follow the scale."""
