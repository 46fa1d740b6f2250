"""Nodes: points and weights for integrals over the random effects of a subject.

    integral of g(x) dx  =  sum_k exp(log_weights_k) g(x_k)

Gauss's and Hermite's rule on a grid is exact for polynomials times the normal density that it is adapted to; its size
grows as a power of the number of effects.  Quasi-random nodes are drawn from a mixture of that density, a little wider,
and of the law of the population, so that no weight is large where a subject's measurements say little.  They come in
several independent shifts of one sequence with their mirror images: how much the shifts differ tells the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

Array = np.ndarray

LOG_2PI = math.log(2 * math.pi)
NEGLIGIBLE = 1e-7
"""The share of a node's weight in the largest below which it is left out."""

SHIFTS, SCRAMBLED = 8, 97
"""Independent sequences of nodes of a subject, and how many there are to choose from."""

WIDER = 1.05
"""The sd of the adapted part of the mixture, beside that of the density it is adapted to."""

OF_POPULATION = 0.125
"""Nodes that come from the law of the population, beside those that are adapted."""

LARGEST = 60_000
"""Nodes of a grid before those of negligible weight are left out."""

ROUNDS, LEAST_SHARE = 12, 0.03
"""Of expectation maximisation, and the least share of a part of a mixture."""


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal law by its mean and the lower triangle of its covariance."""

    mean: Array
    factor: Array

    @classmethod
    def of(cls, mean: Array, covariance: Array) -> Normal:
        return cls(mean, np.linalg.cholesky(covariance))

    def standard(self, x: Array) -> Array:
        """Rows of x as standard normal numbers."""
        return np.linalg.solve(self.factor, (x - self.mean).T).T

    @property
    def log_scale(self) -> float:
        return float(np.log(np.diag(self.factor)).sum())

    def log_density(self, x: Array) -> Array:
        squares = (self.standard(x) ** 2).sum(axis=1)
        return -0.5 * squares - self.log_scale - 0.5 * len(self.mean) * LOG_2PI


Mixture = tuple[tuple[float, Normal], ...]
"""Normal laws with their shares."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points with logarithms of their weights, and the shift that each belongs to."""

    x: Array
    log_weights: Array
    shifts: Array
    parts: Array | None = None  # logarithms of the densities of what they were drawn from
    counts: Array | None = None  # and how many were drawn from each


def grid(order: int, around: Normal) -> Nodes:
    """Return Gauss's and Hermite's rule adapted to a normal law."""
    z, logs = _grid(order, len(around.mean))
    x = around.mean + z @ around.factor.T
    return Nodes(x, logs + around.log_scale, np.zeros(len(x), int))


@cache
def _grid(order: int, effects: int) -> tuple[Array, Array]:
    points, weights = np.polynomial.hermite_e.hermegauss(order)
    axes = np.meshgrid(*[np.arange(order)] * effects, indexing="ij")
    places = np.stack([axis.ravel() for axis in axes], axis=1)
    logs, z = np.log(weights)[places].sum(axis=1), points[places]
    kept = logs > logs.max() + math.log(NEGLIGIBLE)
    return z[kept], logs[kept] + 0.5 * (z[kept] ** 2).sum(axis=1)


def grid_size(order: int, effects: int) -> int:
    """Return how many nodes a grid has."""
    return len(_grid(order, effects)[0]) if order**effects <= LARGEST else order**effects


def drawn(
    begin: int, end: int, around: Mixture, population: Normal, seed: tuple[int, ...], shifts: int = SHIFTS
) -> Nodes:
    """Return quasi-random nodes, those of each shift from `begin` to `end`, with weights as if they were all.

    Every part of the mixture has nodes of its own, so that what is integrated is smooth.  The seed tells subjects
    apart: with the same shifts for all, errors would add up.
    """
    from scipy.special import ndtri

    laws = [Normal(law.mean, WIDER * law.factor) for _, law in around] + [population]
    shares = [share for share, _ in around] + [OF_POPULATION]
    effects, rng = len(population.mean), np.random.default_rng(seed)
    points, which, counts = [], [], []
    for law, share in zip(laws, shares, strict=True):
        first, last = (_power(share * count / 2) if count else 0 for count in (begin, end))
        scrambled = rng.choice(SCRAMBLED, shifts, replace=False)
        places = np.concatenate([_sequence(last, effects, int(one))[first:] for one in scrambled])
        z = ndtri(np.clip(places, 1e-12, 1 - 1e-12))
        points.append(law.mean + np.concatenate([z, -z]) @ law.factor.T)
        which.append(np.tile(np.repeat(np.arange(shifts), last - first), 2))
        counts.append(len(points[-1]))
    x = np.concatenate(points)
    parts = np.stack([law.log_density(x) for law in laws], axis=1)
    return _weighed(x, np.concatenate(which), parts, np.array(counts))


def _power(count: float) -> int:
    """The power of two nearest to a count: sequences of such lengths are the most even."""
    return 1 << max(round(math.log2(max(count, 1.0))), 0)


def _weighed(x: Array, shifts: Array, parts: Array, counts: Array) -> Nodes:
    """Nodes whose weights are one over the density of all together."""
    with np.errstate(divide="ignore"):
        logs = parts + np.log(counts)
    largest = logs.max(axis=1)
    weights = -largest - np.log(np.exp(logs - largest[:, None]).sum(axis=1))
    return Nodes(x, weights, shifts, parts, counts)


def joined(first: Nodes, more: Nodes) -> Nodes:
    """Return nodes of two draws from the same laws as one."""
    assert first.parts is not None and more.parts is not None and first.counts is not None and more.counts is not None
    return _weighed(
        np.concatenate([first.x, more.x]),
        np.concatenate([first.shifts, more.shifts]),
        np.concatenate([first.parts, more.parts]),
        first.counts + more.counts,
    )


@cache
def _sequence(count: int, dimensions: int, which: int) -> Array:
    """One of the scrambled sequences of Sobol."""
    from scipy.stats import qmc

    generator = np.random.default_rng([which, dimensions])
    return np.asarray(qmc.Sobol(dimensions, scramble=True, rng=generator).random(count))


# --- mixtures that follow nodes ---


def mixture(x: Array, shares: Array, floor: Array, most: int) -> Mixture:
    """Return normal laws that follow nodes with these shares: one, or more where one would leave out much.

    `floor` is added to covariances.  Parts are those of expectation maximisation from nodes far apart.
    """
    if most == 1:
        return ((1.0, _moments(x, shares, floor)),)
    scale = np.sqrt(np.diag(_moments(x, shares, floor).factor @ _moments(x, shares, floor).factor.T))
    centres = [x[int(shares.argmax())]]
    for _ in range(most - 1):
        away = np.min([(((x - centre) / scale) ** 2).sum(axis=1) for centre in centres], axis=0)
        centres.append(x[int((shares * away).argmax())])
    spread = np.diag(scale**2) / most
    parts = [(1 / most, Normal.of(centre, spread + floor)) for centre in centres]
    for _ in range(ROUNDS):
        logs = np.stack([math.log(share) + law.log_density(x) for share, law in parts], axis=1)
        logs -= logs.max(axis=1, keepdims=True)
        belongs = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True) * shares[:, None]
        totals = belongs.sum(axis=0)
        kept = [j for j in range(len(parts)) if totals[j] > LEAST_SHARE and _effective(belongs[:, j]) > 2 * x.shape[1]]
        if not kept:
            return ((1.0, _moments(x, shares, floor)),)
        whole = totals[kept].sum()
        parts = [(totals[j] / whole, _moments(x, belongs[:, j] / totals[j], floor)) for j in kept]
    return tuple((float(share), law) for share, law in parts)


def whole(parts: Mixture) -> Normal:
    """Return the normal law with the mean and the covariance of a mixture."""
    mean = sum((share * law.mean for share, law in parts), np.zeros(len(parts[0][1].mean)))
    covariance = np.zeros((len(mean), len(mean)))
    for share, law in parts:
        covariance += share * (law.factor @ law.factor.T + np.outer(law.mean - mean, law.mean - mean))
    return Normal.of(mean, covariance)


def _effective(weights: Array) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def _moments(x: Array, shares: Array, floor: Array) -> Normal:
    mean = shares @ x
    away = x - mean
    return Normal.of(mean, (away.T * shares) @ away + floor)
