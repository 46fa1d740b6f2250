"""Nodes: points and weights for integrals over the random effects of a subject.

    integral of g(x) dx  =  sum_k exp(log_weights_k) g(x_k)

Gauss's and Hermite's rule on a grid is exact for polynomials times the normal density that it is adapted to; its size
grows as a power of the number of effects.  Quasi-random nodes are drawn from a mixture of that density, a little wider,
and of the law of the population, so that no weight is large where a subject's measurements say little.  They come in
several independent shifts of one sequence with their mirror images: how much the shifts differ tells the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

Array = np.ndarray

LOG_2PI = math.log(2 * math.pi)
NEGLIGIBLE = 1e-7
"""The share of a node's weight in the largest below which it is left out."""

SHIFTS, SCRAMBLED = 8, 97
"""Independent sequences of nodes of a subject, and how many there are to choose from."""

LARGEST_CHANGE = 0.9
"""Of a weight by calibration: it must stay positive."""

BITS = 30
"""Of quasi-random numbers."""

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
    def dimensions(self) -> int:
        return len(self.mean)

    def at(self, z: Array) -> Array:
        """Rows of standard normal numbers as points of the law."""
        return self.mean + z @ self.factor.T

    @property
    def log_scale(self) -> float:
        return float(np.log(np.diag(self.factor)).sum())

    def log_density(self, x: Array) -> Array:
        squares = (self.standard(x) ** 2).sum(axis=1)
        return -0.5 * squares - self.log_scale - 0.5 * len(self.mean) * LOG_2PI


class Law(Protocol):
    """What nodes are drawn from."""

    @property
    def dimensions(self) -> int: ...

    def at(self, z: Array) -> Array: ...

    def log_density(self, x: Array) -> Array: ...


Mixture = tuple[tuple[float, Normal], ...]
"""Normal laws with their shares."""

Proposal = Sequence[tuple[float, Law]]
"""Laws that nodes are drawn from, with their shares."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points with logarithms of their weights, and the shift that each belongs to."""

    x: Array
    log_weights: Array
    shifts: Array
    is_grid: bool = True


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


def drawn(count: int, laws: Proposal, seed: tuple[int, ...], shifts: int = SHIFTS) -> Nodes:
    """Return quasi-random nodes, about so many of each shift.

    Every law has nodes of its own, so that what is integrated is smooth.  The seed tells subjects apart: with the same
    shifts for all, errors would add up.
    """
    from scipy.special import ndtri

    rng = np.random.default_rng(seed)
    points, which, counts = [], [], []
    for share, law in laws:
        effects = law.dimensions
        size = _power(share * count / 2)
        scrambled = rng.choice(SCRAMBLED, shifts, replace=False)
        places = np.concatenate(
            [_sequence(size, effects, int(one)) ^ rng.integers(1 << BITS, size=effects) for one in scrambled]
        )
        z = ndtri((places + 0.5) / (1 << BITS))
        points.append(law.at(np.concatenate([z, -z])))
        which.append(np.tile(np.repeat(np.arange(shifts), size), 2))
        counts.append(len(points[-1]))
    x = np.concatenate(points)
    with np.errstate(divide="ignore"):
        logs = np.stack([law.log_density(x) for _, law in laws], axis=1) + np.log(counts)
    largest = logs.max(axis=1)
    shares_of_laws = np.exp(logs - largest[:, None])
    totals = shares_of_laws.sum(axis=1)
    shares_of_laws /= totals[:, None]
    sequence = np.concatenate(which)
    factors = np.ones(len(x))
    for k in range(shifts):
        own = sequence == k
        factors[own] = _calibrated(shares_of_laws[own], np.array(counts) / shifts)
    # One over the density of all together, so that every law integrates to one.
    return Nodes(x, np.log(factors) - largest - np.log(totals), sequence, is_grid=False)


def _calibrated(shares: Array, counts: Array) -> Array:
    """Return factors near one by which the laws that nodes were drawn from integrate to one exactly.

    These are control variates for mixtures (Owen and Zhou 2000): without them the few nodes of a wide law that happen
    to lie where a narrow one does make most of the error.
    """
    missing = counts - shares.sum(axis=0)
    change = shares @ np.linalg.lstsq(shares.T @ shares, missing, rcond=1e-9)[0]
    return 1 + change if np.abs(change).max() < LARGEST_CHANGE else np.ones(len(shares))


def _power(count: float) -> int:
    """The power of two nearest to a count: sequences of such lengths are the most even."""
    return 1 << max(round(math.log2(max(count, 1.0))), 0)


@cache
def _sequence(count: int, dimensions: int, which: int) -> Array:
    """One of the scrambled sequences of Sobol, as whole numbers: an exclusive or with others shifts it at random and
    leaves it as even (Owen's and Matousek's randomisation)."""
    from scipy.stats import qmc

    generator = np.random.default_rng([which, dimensions])
    places = qmc.Sobol(dimensions, scramble=True, bits=BITS, rng=generator).random(count)
    return np.asarray(places * (1 << BITS), dtype=np.int64)


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
