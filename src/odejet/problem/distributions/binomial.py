"""Laws of counts of so many: the binomial and, where trials are more alike than by chance, the beta-binomial.

The prediction mu is the mean count, between none and all of n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odejet.problem.distributions.counts import EMPTY, Counts, least_count, rising
from odejet.problem.distributions.law import Array, Terms, excess, score_of_sides, silent

_REACH, _EXACT, _NODES = 40.0, 400, 160
"""Of sums over counts: how many sds from the mean they reach, how many counts are added up one by one, and how many
stand for more."""

_CHUNK = 1 << 20
"""Numbers of a table of probabilities at a time."""


class OfSoMany(Counts):
    """What counts of n have in common."""

    n: float

    @property
    def largest(self) -> float:  # type: ignore[override]
        return self.n

    def refusal(self, y: Array) -> str:
        wrong = super().refusal(y)
        if wrong or not np.any(y > self.n):
            return wrong
        return f"must be at most {self.n:g}, the number of trials, and one is {y[y > self.n][0]:g}"


@dataclass(frozen=True)
class Binomial(OfSoMany):
    n: float
    has_scale = False

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        nothing, weight = np.zeros_like(mu), self.information(mu, s)[0]
        return Terms(self._costs(y, mu), (mu - y) * weight, nothing, weight, nothing)

    def _costs(self, y: Array, mu: Array) -> Array:
        """By the deviance of both outcomes and Stirling's remainders, of which nothing cancels (Loader 2000)."""
        n = self.n
        other = n - y
        both = (y > 0) & (other > 0)
        inside, rest = np.where(both, y, 1.0), np.where(both, other, max(n - 1.0, 1.0))
        spread = 0.5 * np.log(2 * math.pi * inside * (rest / n))
        remainders = _remainder(inside) + _remainder(rest) - _remainder(np.full_like(inside, n))
        deviances = inside * excess((mu - inside) / inside) + rest * excess((n - mu - rest) / rest)
        none, all_ = -n * np.log1p(-mu / n), -n * np.log(mu / n)
        costs = np.where(both, spread + remainders + deviances, np.where(y <= 0, none, all_))
        return np.where((y < 0) | (y > n), np.inf, costs)

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / _spread(mu, self.n), np.zeros_like(mu)

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return score_of_sides(self._below(y - 1, mu), self._above(y, mu))

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.sqrt(np.maximum(mu * (1 - mu / self.n), 0.0))

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        return np.minimum(least_count(p, lambda y: self._below(y, mu), mu, self.sd(mu, s)), self.n)

    def _below(self, y: Array, mu: Array) -> Array:
        """The probability of at most y."""
        from scipy.special import betainc

        share, inside = np.clip(mu / self.n, 0.0, 1.0), np.clip(y, 0.0, max(self.n - 1, 0.0))
        found = betainc(self.n - inside, inside + 1, 1 - share)
        return np.where(y < 0, 0.0, np.where(y >= self.n, 1.0, found))

    def _above(self, y: Array, mu: Array) -> Array:
        """The probability of more than y."""
        from scipy.special import betainc

        share, inside = np.clip(mu / self.n, 0.0, 1.0), np.clip(y, 0.0, max(self.n - 1, 0.0))
        found = betainc(inside + 1, self.n - inside, share)
        return np.where(y < 0, 1.0, np.where(y >= self.n, 0.0, found))


@dataclass(frozen=True)
class BetaBinomial(OfSoMany):
    """Counts of n whose probability varies by a beta law of mean p = mu/n, with p/a and (1 - p)/a as its exponents.

    The variance is that of the binomial law times (1 + n a)/(1 + a), and a that vanishes leaves this.
    """

    n: float
    has_scale, orthogonal = True, False

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        costs, by_mu, by_s = self.derivatives(y, mu, s)
        return Terms(costs, by_mu, by_s, *self.expected(mu, s))

    def derivatives(self, y: Array, mu: Array, s: Array) -> tuple[Array, Array, Array]:
        """The negative log-likelihood and its derivatives: that of the binomial law, and what rising factors add."""
        n, other = self.n, self.n - y
        p = np.clip(mu / n, EMPTY / n, 1 - 1e-16)
        q = 1 - p
        plain = Binomial(n).terms(y, n * p, s)
        (up, up_slope), (down, down_slope), (all_, all_slope) = (
            rising(y, s / p),
            rising(other, s / q),
            rising(n + 0 * y, s),
        )
        costs = plain.costs - up - down + all_
        by_mu = plain.by_mu + (up_slope * (s / p) / p - down_slope * (s / q) / q) / n
        return costs, by_mu, -(up_slope / p + down_slope / q - all_slope)

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        by_mu, by_s, _ = self.expected(mu, s)
        return by_mu, by_s

    def expected(self, mu: Array, s: Array) -> tuple[Array, Array, Array]:
        """The expected information on mu, on s and on both: means of squares and products of derivatives."""
        found = [np.empty(np.shape(mu)) for _ in range(3)]
        for rows, y, weights in self._tables(mu, s):
            _, by_mu, by_s = self.derivatives(y, mu[rows, None], s[rows, None])
            for one, square in zip(found, (by_mu**2, by_s**2, by_mu * by_s), strict=True):
                one[rows] = np.where(weights > 0, weights * square, 0.0).sum(axis=1)
        return found[0], found[1], found[2]

    def _tables(self, mu: Array, s: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield, for some measurements at a time, counts in columns and their probabilities."""
        size = min(int(self.n) + 1, _EXACT + 2 * _NODES)
        step = max(_CHUNK // size, 1)
        for start in range(0, len(mu), step):
            rows = slice(start, start + step)
            y, widths = self._nodes(mu[rows], s[rows])
            costs, _, _ = self.derivatives(y, mu[rows, None], s[rows, None])
            weights = np.where(widths > 0, np.exp(-costs) * widths, 0.0)
            yield rows, y, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)

    def _nodes(self, mu: Array, s: Array) -> tuple[Array, Array]:
        """Counts in columns, and for how many each stands: all, or those at both ends and nodes between them."""
        n = self.n
        if n < _EXACT + 2 * _NODES:
            y = np.broadcast_to(np.arange(n + 1), (len(mu), int(n) + 1))
            return y, np.ones(y.shape)
        reach = _REACH * self.sd(mu, s) + 10
        low, high = np.floor(np.maximum(mu - reach, 0.0)), np.ceil(np.minimum(mu + reach, n))
        ends, (nodes, weights) = np.arange(_EXACT // 2), np.polynomial.legendre.leggauss(2 * _NODES)
        inner = np.maximum(high - low + 1 - _EXACT, 0.0)
        places = low[:, None] + _EXACT // 2 - 0.5 + 0.5 * inner[:, None] * (1 + nodes)
        y = np.concatenate([low[:, None] + ends, places, high[:, None] - ends[::-1]], axis=1)
        lower = np.where(low[:, None] + ends <= high[:, None], 1.0, 0.0)
        widths = np.concatenate([lower, 0.5 * inner[:, None] * weights], axis=1)
        # Where all counts are few enough for the ends, those of the upper end are left out if the lower has them.
        upper = np.where(high[:, None] - ends[::-1] >= low[:, None] + _EXACT // 2, 1.0, 0.0)
        return np.clip(y, 0.0, n), np.concatenate([widths, upper], axis=1)

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return score_of_sides(self._sum(y - 1, mu, s), self._sum(self.n - y - 1, self.n - mu, s))

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        widened = (1 + self.n * s) / (1 + s)
        return np.sqrt(np.maximum(mu * (1 - mu / self.n), 0.0)) * np.sqrt(np.where(s > 1e100, self.n, widened))

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        found = least_count(p, lambda y: self._sum(y, mu, s), mu, self.sd(mu, s))
        return np.minimum(found, self.n)

    def _sum(self, y: Array, mu: Array, s: Array) -> Array:
        """The probability of at most y; that of at least n - y of counts of the other outcome."""
        y, mu, s = (np.atleast_1d(np.asarray(one, dtype=float)) for one in np.broadcast_arrays(y, mu, s))
        found = np.zeros(y.shape)
        for i in np.ndindex(y.shape):
            last = min(float(y[i]), self.n)
            # From the last count on downwards, in parts, until nothing is added.
            while last >= 0:
                counts = np.arange(max(last - _CHUNK + 1, 0.0), last + 1)
                costs, _, _ = self.derivatives(counts, np.full_like(counts, mu[i]), np.full_like(counts, s[i]))
                part = float(np.exp(-costs).sum())
                found[i], last = found[i] + part, counts[0] - 1
                if part <= 1e-18 * found[i]:
                    break
        return np.minimum(found, 1.0)


def _spread(mu: Array, n: float) -> Array:
    """The variance of a binomial count, above zero."""
    return np.asarray(np.maximum(mu, EMPTY) * np.maximum(1 - mu / n, EMPTY / max(n, 1.0)))


def _remainder(n: Array) -> Array:
    """Return log n! less Stirling's (n + 1/2) log n - n + log(2 pi)/2."""
    from scipy.special import gammaln

    near, u = np.minimum(n, 64.0), 1 / np.maximum(n, 64.0)
    value = gammaln(near + 1) - (near + 0.5) * np.log(near) + near - 0.5 * math.log(2 * math.pi)
    series = u / 12 - u**3 / 360 + u**5 / 1260 - u**7 / 1680
    return np.where(n > 64.0, series, value)
