"""Intervals: what a measurement says that is known only to lie between two limits.

Its likelihood is the probability P of the interval, and by Fisher's identity

    d log P = E[d log f(y) | interval],        -d^2 log P = E[-d^2 log f | interval] - Cov[d log f | interval]

where f is the law of the measurement itself.  All that a fit needs are thus means over the law within the interval: the
derivatives exactly and, with the expected information of a measurement in the first place of the second formula, the
information that is left of it (Orchard and Woodbury 1972), whose mean over all measurements, those within and those
outside of limits, is the expected information of the censored experiment.  Of a single measurement it may have a
mixed part that is too large beside the others: it is cut, since every one is a row of least squares.

The means are sums over counts, or integrals over a coordinate in which the law is unimodal and decays at least as
exp(-|t|): by Gauss and Legendre from the most likely place within the interval to where nothing is left, on either
side.  Everything is relative to the density at that place, so that nothing cancels or vanishes, however far away the
interval is and however narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from odejet.problem.distributions.binomial import BetaBinomial, OfSoMany
from odejet.problem.distributions.continuous import Laplace, Logarithmic, Normal, Student
from odejet.problem.distributions.counts import Counts, NegativeBinomial
from odejet.problem.distributions.gamma import Gamma
from odejet.problem.distributions.law import Array, Distribution, Terms, silent

_DROP = 46.0
"""Of the logarithm of a density: less by so much is nothing beside rounding."""

_NODES = 48
"""On either side: an exponential that falls by e^-46 is integrated to 1e-14 by them, a normal density too."""

_NODES_OF_UNIT, _WEIGHTS_OF_UNIT = (
    0.5 * one for one in (np.array(np.polynomial.legendre.leggauss(_NODES)) + np.array([[1.0], [0.0]]))
)

_SHORT = (1.5, 5.0)
"""Lengths up to which the first parts of a stretch go, where a density has poles near the real axis."""

_MOST_COUNTS = 20_000
"""Counts that are added up one by one; of more, those at the ends and as many nodes between them."""

_ENDS = 400
"""Counts at either end of an interval that are added up in any case: between them a law of so many is smooth."""

_CHUNK = 1 << 19
"""Numbers in a table of nodes at a time."""

_FARTHEST = 1e100
"""In units of the scale: farther away, nothing has a square that is a number."""

_SCORED = 0.1
"""Of the square of a derivative: the least weight that stands for its curvature, so that no residual is above 3.2."""

_GOLDEN = 0.5 * (math.sqrt(5) - 1)
"""Multiples of it fill the unit interval evenly."""

_LEAST_SHARE = 1e-15
"""Of a probability: where a value within an interval is not drawn from its ends."""


@dataclass(frozen=True, eq=False)
class Within:
    """A law within intervals: places of each in a row, their shares of the probability, and its logarithm."""

    places: Array
    shares: Array
    log_probability: Array


def is_supported(law: Distribution) -> bool:
    """Whether a law knows the probability of an interval."""
    return isinstance(law, (Normal, Laplace, Student, Logarithmic, Gamma, Counts))


@silent
def interval_terms(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> Terms:
    """Return what measurements within these limits say; half-lines end at an infinity."""
    parts = [_terms(law, *(one[rows] for one in (low, high, mu, s))) for rows in _chunks(law, low, high, mu, s)]
    found = Terms(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    lost = ~np.all(np.isfinite([getattr(found, one.name) for one in fields(Terms)]), axis=0)
    if lost.any():  # as far away as numbers reach, nobody goes on from
        for one in fields(Terms):
            getattr(found, one.name)[lost] = np.inf if one.name == "costs" else 0.0
    return found


@silent
def drawn_within(law: Distribution, low: Array, high: Array, mu: Array, s: Array, first: int = 0) -> Array:
    """Return a value of each measurement within its limits, at probabilities that are the same every time and evenly
    spread over the measurements."""
    share = np.clip(np.mod(_GOLDEN * (first + 1 + np.arange(len(mu))), 1.0), _LEAST_SHARE, 1 - _LEAST_SHARE)
    found = np.empty(len(mu))
    for rows in _chunks(law, low, high, mu, s):
        within = _within(law, low[rows], high[rows], mu[rows], s[rows])
        reached = np.cumsum(within.shares, axis=1) >= share[rows, None]
        chosen = np.where(reached.any(axis=1), reached.argmax(axis=1), within.places.shape[1] - 1)
        found[rows] = np.take_along_axis(within.places, chosen[:, None], axis=1)[:, 0]
    return found


def _terms(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> tuple[Array, ...]:
    if isinstance(law, Logarithmic):
        slope = law.slope(mu, s)
        found = _terms(law.of, law.log(np.maximum(low, 0.0)), law.log(high), law.log(mu), s)
        costs, by_mu, by_s, weight_mu, weight_s, cross = found
        return costs, by_mu * slope, by_s, weight_mu * slope**2, weight_s, cross * slope
    within = _within(law, low, high, mu, s)
    _, *slopes = _derivatives(law, within.places, mu, s)
    # Places that have no share may be ones at which nothing is known.
    by_mu, by_s = (np.where(within.shares > 0, one, 0.0) for one in slopes)
    mean_mu, mean_s = ((within.shares * one).sum(axis=1) for one in (by_mu, by_s))
    by_mu, by_s = by_mu - mean_mu[:, None], by_s - mean_s[:, None]
    *whole, mixed = _expected(law, mu, s)
    weight_mu, weight_s = (
        np.maximum(full - (within.shares * one**2).sum(axis=1), np.minimum(_SCORED * mean**2, full))
        for full, one, mean in ((whole[0], by_mu, mean_mu), (whole[1], by_s, mean_s))
    )
    most = 0.99 * np.sqrt(weight_mu * weight_s)
    cross = np.clip(mixed - (within.shares * by_mu * by_s).sum(axis=1), -most, most)
    return -within.log_probability, mean_mu, mean_s, weight_mu, weight_s, cross


def _expected(law: Distribution, mu: Array, s: Array) -> tuple[Array, Array, Array | float]:
    """The information of a measurement without limits on mu, on s and on both."""
    if isinstance(law, BetaBinomial):
        return law.expected(mu, s)
    if isinstance(law, NegativeBinomial):  # that of a step: the exact one is a sum of hundreds of tails
        terms = law.terms(np.zeros_like(mu), mu, s)
        return terms.weight_mu, terms.weight_s, 0.0
    return *law.information(mu, s), 0.0


def _derivatives(law: Distribution, y: Array, mu: Array, s: Array) -> tuple[Array, Array, Array]:
    """The negative log-density at places in rows, and its derivatives; what depends on a row alone is computed once."""
    if isinstance(law, BetaBinomial):
        return law.derivatives(y, mu[:, None], s[:, None])
    terms = law.terms(y, mu[:, None], s[:, None])
    return terms.costs, terms.by_mu, terms.by_s


def _chunks(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> list[slice]:
    """Rows whose nodes are together no more than a table may hold."""
    width = 2 * _NODES
    if law.whole and len(mu):
        first, last = _window_of_counts(law, low, high, mu, s)
        width = int(min(float((last - first).max()) + 1, _MOST_COUNTS))
    step = max(_CHUNK // max(width, 1), 1)
    return [slice(start, start + step) for start in range(0, len(mu), step)] or [slice(0, 0)]


def _within(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> Within:
    places, logs = _counted(law, low, high, mu, s) if law.whole else _integrated(law, low, high, mu, s)
    most = logs.max(axis=1, keepdims=True)
    relative = np.exp(logs - np.where(np.isfinite(most), most, 0.0))
    total = relative.sum(axis=1, keepdims=True)
    # Where counts are too many to be told apart, what is left of rounding may be above one.
    logarithm = np.minimum(most[:, 0] + np.log(total[:, 0]), 0.0)
    return Within(places, relative / np.where(total > 0, total, 1.0), logarithm)


# --- counts ---


def _counted(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> tuple[Array, Array]:
    """Counts in the intervals, and the logarithms of their probabilities."""
    first, last = _window_of_counts(law, low, high, mu, s)
    size = int(max(float((last - first).max(initial=0.0)) + 1, 1.0))
    if size <= _MOST_COUNTS:
        places = first[:, None] + np.arange(size)
        logs = np.where(places <= last[:, None], 0.0, -np.inf)
    else:
        places, logs = _nodes_of_counts(first, last)
    inside = np.minimum(places, np.maximum(last, first)[:, None])
    costs = _derivatives(law, inside, mu, s)[0]
    return inside, np.where(last[:, None] >= first[:, None], logs - costs, -np.inf)


def _nodes_of_counts(first: Array, last: Array) -> tuple[Array, Array]:
    """Places in the intervals, and the logarithms of how many counts each stands for."""
    nodes, weights = np.polynomial.legendre.leggauss(_ENDS)
    ends, inner = np.arange(_ENDS), np.maximum(last - first + 1 - 2 * _ENDS, 0.0)[:, None]
    low, high = first[:, None] + ends, last[:, None] - ends[::-1]
    middle = first[:, None] + _ENDS - 0.5 + 0.5 * inner * (1 + nodes)
    count = [
        np.where(low <= last[:, None], 1.0, 0.0),
        0.5 * inner * weights,
        np.where(high >= low[:, -1:] + 1, 1.0, 0.0),
    ]
    return np.concatenate([low, middle, high], axis=1), np.log(np.concatenate(count, axis=1))


def _window_of_counts(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> tuple[Array, Array]:
    """The counts of each interval beyond which nothing is left of its probability."""
    low = np.maximum(low, 0.0)
    high = np.minimum(high, law.largest) if isinstance(law, OfSoMany) else high
    likely = np.clip(np.round(mu), low, high)
    reach = np.ceil(12 * law.sd(mu, s) + 50 * (1 + np.where(law.has_scale, s * mu, 0.0)) + 50)
    return np.maximum(low, likely - reach), np.minimum(high, likely + reach)


# --- continuous laws ---


def _integrated(law: Distribution, low: Array, high: Array, mu: Array, s: Array) -> tuple[Array, Array]:
    """Places in the intervals in their order, and the logarithms of density times weight."""
    if isinstance(law, Logarithmic):
        places, logs = _integrated(law.of, law.log(np.maximum(low, 0.0)), law.log(high), law.log(mu), s)
        return np.exp(places * law.logarithm), logs
    first, last = (_coordinate(law, one, mu, s) for one in (low, high))
    likely = np.clip(0.0, first, last)
    down, up = _reach(law, likely, s)
    left, right = np.maximum(first, down), np.minimum(last, up)
    lower, lower_widths = _panels(law, likely - left)
    upper, upper_widths = _panels(law, right - likely)
    t = np.concatenate([likely[:, None] - lower[:, ::-1], likely[:, None] + upper], axis=1)
    widths = np.concatenate([lower_widths[:, ::-1], upper_widths], axis=1)
    places, slopes = _natural(law, t, mu[:, None], s[:, None])
    return places, np.log(widths) + slopes - _derivatives(law, places, mu, s)[0]


def _panels(law: Distribution, length: Array) -> tuple[Array, Array]:
    """Nodes and weights on stretches from zero to a length, in rows.

    Student's law has poles near the real axis, and that of a wide gamma law two scales: short parts come first.
    """
    inner = _SHORT if isinstance(law, (Student, Gamma)) else ()
    edges = np.stack([np.zeros_like(length), *(np.minimum(one, length) for one in inner), length])
    widths = np.diff(edges, axis=0)[:, :, None]
    places = edges[:-1, :, None] + widths * _NODES_OF_UNIT
    return np.concatenate(list(places), axis=1), np.concatenate(list(widths * _WEIGHTS_OF_UNIT), axis=1)


def _coordinate(law: Distribution, y: Array, mu: Array, s: Array) -> Array:
    """The coordinate of a measurement, zero where the density in it is largest."""
    if isinstance(law, Gamma):
        return np.log(np.maximum(y / mu, 0.0))
    x = np.clip((y - mu) / s, -_FARTHEST, _FARTHEST)
    return np.arcsinh(x / math.sqrt(law.dof)) if isinstance(law, Student) else x


def _natural(law: Distribution, t: Array, mu: Array, s: Array) -> tuple[Array, Array]:
    """The measurement at a coordinate, and the logarithm of its derivative."""
    if isinstance(law, Gamma):
        y = mu * np.exp(t)
        return y, np.log(mu) + t
    if isinstance(law, Student):
        root = math.sqrt(law.dof)
        return mu + s * root * np.sinh(t), np.log(s * root) + np.logaddexp(t, -t) - math.log(2)
    return mu + s * t, np.log(s) + 0 * t


def _reach(law: Distribution, likely: Array, s: Array) -> tuple[Array, Array]:
    """How far down and up from the most likely coordinates the density has fallen to nothing."""
    if isinstance(law, Gamma):
        depth = _DROP * s * s + np.expm1(likely) - likely
        return _solve_down(depth), _solve_up(depth)
    if isinstance(law, Normal):
        far = np.sqrt(likely**2 + 2 * _DROP)
    elif isinstance(law, Student):
        # In this coordinate the density is as cosh(t)^-dof, and log cosh t is |t| - log 2 far away.
        depth = _DROP / law.dof + np.logaddexp(likely, -likely) - math.log(2)
        near = np.expm1(np.minimum(depth, 300.0))
        far = np.where(depth > 300, depth + math.log(2), np.log1p(near + np.sqrt(near * (near + 2))))
    else:
        far = np.abs(likely) + _DROP
    return -far, far


def _solve_up(depth: Array) -> Array:
    """Return the u > 0 at which exp(u) - 1 - u has this depth, by Newton's method from above."""
    u = np.minimum(np.sqrt(2 * depth), np.log1p(depth) + 2)
    for _ in range(8):
        u = u - (np.expm1(u) - u - depth) / np.maximum(np.expm1(u), 1e-300)
    return u


def _solve_down(depth: Array) -> Array:
    """Return the u < 0 at which exp(u) - 1 - u has this depth, by Newton's method from beyond."""
    u = -(np.sqrt(2 * depth) + depth)
    for _ in range(8):
        u = u - (np.expm1(u) - u - depth) / np.minimum(np.expm1(u), -1e-300)
    return u
