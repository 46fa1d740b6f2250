"""Densities of one number: how probable its values are, with what a search needs of them.

A density is one of the number itself or of its logarithm (`OnScale`).  As a law of draws both say the same; the place
of the maximum depends on which it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

_KINK = 1e-5
"""Of the scale: where the modulus of a Laplace prior is rounded off."""


@dataclass(frozen=True)
class Term:
    """A prior at a value: the negative logarithm of its density, its slope, a positive weight that stands for its
    curvature in a step of a search, and the information it is worth beside data."""

    cost: float
    slope: float
    weight: float
    information: float


IMPOSSIBLE = Term(math.inf, 0.0, 0.0, 0.0)


class Prior(Protocol):
    """The density of an unknown."""

    @property
    def limits(self) -> tuple[float, float]:
        """Between which it is not zero."""

    @property
    def typical(self) -> float:
        """A value in the middle of it."""

    def at(self, x: float) -> Term: ...

    def below(self, x: float) -> float:
        """The probability of a smaller value."""


@dataclass(frozen=True)
class _Centred:
    """What densities on all numbers around a centre have in common."""

    centre: float
    scale: float
    limits = (-math.inf, math.inf)

    @property
    def typical(self) -> float:
        return self.centre or self.scale

    def standard(self, x: float) -> float:
        """How many scales a number lies above the centre."""
        return (x - self.centre) / self.scale


class Normal(_Centred):
    def at(self, x: float) -> Term:
        r, weight = self.standard(x), self.scale**-2
        return Term(0.5 * r * r + math.log(self.scale * math.sqrt(2 * math.pi)), r / self.scale, weight, weight)

    def below(self, x: float) -> float:
        return 0.5 * math.erfc(-self.standard(x) / math.sqrt(2))


class Laplace(_Centred):
    def at(self, x: float) -> Term:
        r, b = self.standard(x), self.scale
        weight = 1 / (max(abs(r), _KINK) * b * b)
        return Term(abs(r) + math.log(2 * b), r * weight * b, weight, 0.5 / b**2)

    def below(self, x: float) -> float:
        r = self.standard(x)
        return 0.5 * math.exp(r) if r < 0 else 1 - 0.5 * math.exp(-r)


class Cauchy(_Centred):
    def at(self, x: float) -> Term:
        r, s = self.standard(x), self.scale
        weight = 2 / (s * s * (1 + r * r))
        curvature = weight * (1 - r * r) / (1 + r * r)
        return Term(math.log1p(r * r) + math.log(math.pi * s), r * weight * s, weight, max(curvature, 0.0))

    def below(self, x: float) -> float:
        return 0.5 + math.atan(self.standard(x)) / math.pi


@dataclass(frozen=True)
class Student(_Centred):
    freedom: float = 4.0

    def at(self, x: float) -> Term:
        r, s, nu = self.standard(x), self.scale, self.freedom
        weight = (nu + 1) / (s * s * (nu + r * r))
        curvature = weight * (nu - r * r) / (nu + r * r)
        constant = math.lgamma(0.5 * (nu + 1)) - math.lgamma(0.5 * nu) - 0.5 * math.log(math.pi * nu) - math.log(s)
        cost = 0.5 * (nu + 1) * math.log1p(r * r / nu) - constant
        return Term(cost, r * weight * s, weight, max(curvature, 0.0))

    def below(self, x: float) -> float:
        from scipy.special import stdtr

        return float(stdtr(self.freedom, self.standard(x)))


@dataclass(frozen=True)
class Half:
    """The upper half of a density around zero."""

    of: Normal | Cauchy
    limits = (0.0, math.inf)

    @property
    def typical(self) -> float:
        return self.of.scale

    def at(self, x: float) -> Term:
        if x < 0:
            return IMPOSSIBLE
        found = self.of.at(x)
        return Term(found.cost - math.log(2), found.slope, found.weight, found.information)

    def below(self, x: float) -> float:
        return 2 * self.of.below(x) - 1 if x > 0 else 0.0


@dataclass(frozen=True)
class Beta:
    a: float
    b: float
    limits = (0.0, 1.0)

    @property
    def typical(self) -> float:
        return self.a / (self.a + self.b)

    def at(self, x: float) -> Term:
        if not 0 <= x <= 1 or (x == 0 and self.a != 1) or (x == 1 and self.b != 1):
            return IMPOSSIBLE
        up, down = max(x, 1e-300), max(1 - x, 1e-300)
        constant = math.lgamma(self.a) + math.lgamma(self.b) - math.lgamma(self.a + self.b)
        cost = constant - (self.a - 1) * math.log(up) - (self.b - 1) * math.log(down)
        # Its curvature on the scale of log(x / (1 - x)), which is never negative.
        weight = (self.a + self.b) / (up * down)
        curvature = (self.a - 1) / up**2 + (self.b - 1) / down**2
        return Term(cost, (self.b - 1) / down - (self.a - 1) / up, weight, max(curvature, 0.0))

    def below(self, x: float) -> float:
        from scipy.special import betainc

        return float(betainc(self.a, self.b, min(max(x, 0.0), 1.0)))


@dataclass(frozen=True)
class Within:
    """A density cut at two ends, one in all again."""

    of: Prior
    low: float
    high: float

    @property
    def limits(self) -> tuple[float, float]:
        return max(self.low, self.of.limits[0]), min(self.high, self.of.limits[1])

    @property
    def typical(self) -> float:
        low, high = self.limits
        inside = low < self.of.typical < high
        return (
            self.of.typical if inside else low if math.isinf(high) else high if math.isinf(low) else 0.5 * (low + high)
        )

    @cached_property
    def mass(self) -> float:
        return self.of.below(self.high) - self.of.below(self.low)

    def at(self, x: float) -> Term:
        if not self.low <= x <= self.high:
            return IMPOSSIBLE
        found = self.of.at(x)
        return Term(found.cost + math.log(self.mass), found.slope, found.weight, found.information)

    def below(self, x: float) -> float:
        inside = min(max(x, self.low), self.high)
        return (self.of.below(inside) - self.of.below(self.low)) / self.mass


@dataclass(frozen=True)
class Logarithmic:
    """The density of a positive number whose logarithm has another."""

    of: Normal | Laplace
    limits = (0.0, math.inf)

    @property
    def typical(self) -> float:
        return math.exp(min(max(self.of.centre, -600.0), 600.0))

    def at(self, x: float) -> Term:
        if x <= 0:
            return IMPOSSIBLE
        u = math.log(x)
        found = self.of.at(u)
        return Term(found.cost + u, (found.slope + 1) / x, found.weight / x**2, found.information / x**2)

    def below(self, x: float) -> float:
        return self.of.below(math.log(x)) if x > 0 else 0.0


@dataclass(frozen=True)
class Uniform:
    low: float
    high: float

    @property
    def limits(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def typical(self) -> float:
        return 0.5 * (self.low + self.high) or self.high

    def at(self, x: float) -> Term:
        return Term(math.log(self.high - self.low), 0.0, 0.0, 0.0) if self.low <= x <= self.high else IMPOSSIBLE

    def below(self, x: float) -> float:
        return min(max((x - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class OnScale:
    """The density of log(x) in units of the logarithm of a base, as it stands: not one of the number x itself."""

    of: Prior
    unit: float = 1.0

    @property
    def limits(self) -> tuple[float, float]:
        low, high = (math.exp(min(self.unit * end, 700.0)) for end in self.of.limits)
        return low, high if high < math.exp(700.0) else math.inf

    @property
    def typical(self) -> float:
        return math.exp(min(max(self.unit * _middle(self.of), -600.0), 600.0))

    def at(self, x: float) -> Term:
        if x <= 0:
            return IMPOSSIBLE
        u = math.log(x) / self.unit
        if isinstance(self.of, Uniform):  # bounds that are the powers of its ends may miss these by rounding
            u = min(max(u, self.of.low), self.of.high)
        found, by_x = self.of.at(u), 1 / (self.unit * x)
        return Term(found.cost, found.slope * by_x, found.weight * by_x**2, found.information * by_x**2)

    def below(self, x: float) -> float:
        return self.of.below(math.log(x) / self.unit) if x > 0 else 0.0


def _middle(prior: Prior) -> float:
    """A value in the middle of a density, which may be zero."""
    if isinstance(prior, Uniform):
        return 0.5 * (prior.low + prior.high)
    return prior.centre if isinstance(prior, _Centred) else prior.typical


def is_on_scale(prior: Prior) -> bool:
    """Say of a density that it is one of the logarithm, not of the number itself."""
    return isinstance(prior, OnScale) or (isinstance(prior, Within) and is_on_scale(prior.of))


@dataclass(frozen=True)
class LogUniform:
    low: float
    high: float

    @property
    def limits(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def typical(self) -> float:
        return math.sqrt(self.low) * math.sqrt(self.high)

    def at(self, x: float) -> Term:
        if not self.low <= x <= self.high:
            return IMPOSSIBLE
        return Term(math.log(x) + math.log(math.log(self.high / self.low)), 1 / x, 1 / x**2, 0.0)

    def below(self, x: float) -> float:
        inside = min(max(x, self.low), self.high)
        return math.log(inside / self.low) / math.log(self.high / self.low)


@dataclass(frozen=True)
class Gamma:
    shape: float
    scale: float
    limits = (0.0, math.inf)

    @property
    def typical(self) -> float:
        return self.shape * self.scale

    def at(self, x: float) -> Term:
        if x < 0 or (x == 0 and self.shape != 1):
            return IMPOSSIBLE
        k, theta = self.shape, self.scale
        cost = x / theta - ((k - 1) * math.log(x) if k != 1 else 0.0) + math.lgamma(k) + k * math.log(theta)
        # Its curvature on the scale of logarithms, which is never negative.
        weight = 1 / (theta * max(x, 1e-300))
        return Term(cost, 1 / theta - (k - 1) / max(x, 1e-300), weight, weight)

    def below(self, x: float) -> float:
        from scipy.special import gammainc

        return float(gammainc(self.shape, max(x, 0.0) / self.scale))


@dataclass(frozen=True)
class Rayleigh:
    scale: float
    limits = (0.0, math.inf)

    @property
    def typical(self) -> float:
        return self.scale

    def at(self, x: float) -> Term:
        if x <= 0:
            return IMPOSSIBLE
        s = self.scale
        weight = 1 / x**2 + 1 / s**2
        return Term(0.5 * (x / s) ** 2 - math.log(x) + 2 * math.log(s), x / s**2 - 1 / x, weight, weight)

    def below(self, x: float) -> float:
        return -math.expm1(-0.5 * (x / self.scale) ** 2) if x > 0 else 0.0


def costs_of(prior: Prior, x: np.ndarray) -> np.ndarray:
    """Return the negative logarithm of a density at many values; the two that are met most often as one array."""
    if isinstance(prior, Normal):
        return 0.5 * ((x - prior.centre) / prior.scale) ** 2 + math.log(prior.scale * math.sqrt(2 * math.pi))
    if isinstance(prior, Logarithmic):
        u = np.log(np.maximum(x, 1e-300))
        return np.where(x > 0, costs_of(prior.of, u) + u, math.inf)
    return np.array([prior.at(value).cost for value in x.tolist()])
