"""Continuous laws: normal, Laplace's and Student's noise, of a measurement or of its logarithm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odejet.problem.distributions.law import HALF_LOG_2PI, Array, Terms, score_of_tail, silent

_KINK = 1e-6
"""Of the scale: how near to its prediction a measurement of Laplace noise is taken as met.  There the modulus, whose
slope jumps, is a parabola."""

_STEEPEST = 1e150
"""Of a logarithm in units of its noise: the largest slope whose square is a number.  A prediction where it is steeper
is nothing beside any measurement."""


class _Everywhere:
    """What laws on all numbers have in common."""

    logarithm, has_scale, positive, whole = 0.0, True, False, False
    largest, orthogonal = math.inf, True

    @property
    def robust(self) -> bool:
        return not isinstance(self, Normal)

    def refusal(self, y: Array) -> str:
        return ""


@dataclass(frozen=True)
class Normal(_Everywhere):
    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        r = (mu - y) / s
        costs = np.log(s) + 0.5 * r * r + HALF_LOG_2PI
        return Terms(costs, r / s, (1 - r * r) / s, *self.information(mu, s))

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / s**2, 2 / s**2

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return (mu - y) / s

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        return s

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        from scipy.special import ndtri

        return np.asarray(mu + s * ndtri(p))


@dataclass(frozen=True)
class Laplace(_Everywhere):
    kink: float = _KINK

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        r = (mu - y) / s
        size = np.abs(r)
        # The parabola that touches the modulus at r lies above it, so that every step on it goes down.
        weight = 1 / (np.maximum(size, self.kink) * s * s)
        rounded = np.where(size < self.kink, 0.5 * (r * r / self.kink + self.kink), size)
        return Terms(np.log(2 * s) + rounded, r * weight * s, (1 - size) / s, weight, 1 / s**2)

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        return 1 / s**2, 1 / s**2

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        r = (mu - y) / s
        return score_of_tail(r, 0.5 * np.exp(-np.abs(r)))

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        return np.asarray(math.sqrt(2) * s)

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        return np.asarray(mu - np.copysign(1.0, np.subtract(p, 0.5)) * np.log(2 * np.minimum(p, np.subtract(1, p))) * s)


@dataclass(frozen=True)
class Student(_Everywhere):
    dof: float

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        nu, r = self.dof, (mu - y) / s
        constant = math.lgamma(nu / 2) - math.lgamma((nu + 1) / 2) + 0.5 * math.log(nu * math.pi)
        pull = (nu + 1) * r / (nu + r * r)
        costs = np.log(s) + 0.5 * (nu + 1) * np.log1p(r * r / nu) + constant
        return Terms(costs, pull / s, (1 - r * pull) / s, *self.information(mu, s))

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        nu = self.dof
        return (nu + 1) / ((nu + 3) * s**2), 2 * nu / ((nu + 3) * s**2)

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        from scipy.special import stdtr

        r = (mu - y) / s
        return score_of_tail(r, stdtr(self.dof, -np.abs(r)))

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        """Infinite for two degrees of freedom and fewer."""
        return np.asarray(s * (math.sqrt(self.dof / (self.dof - 2)) if self.dof > 2 else math.inf))

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        from scipy.special import stdtrit

        return np.asarray(mu + s * stdtrit(self.dof, p))


@dataclass(frozen=True)
class Logarithmic:
    """The law of positive numbers whose logarithm has another law; the median is the prediction."""

    of: Normal | Laplace
    logarithm: float = 1.0  # of the base
    has_scale, positive, whole = True, True, False
    largest, orthogonal = math.inf, True

    @property
    def robust(self) -> bool:
        return self.of.robust

    def refusal(self, y: Array) -> str:
        return "" if np.all(y > 0) else f"must be positive, and one is {y[y <= 0][0]:g}"

    @silent
    def terms(self, y: Array, mu: Array, s: Array) -> Terms:
        found, slope = self.of.terms(self.log(y), self.log(mu), s), self.slope(mu, s)
        return Terms(
            found.costs + np.log(y * self.logarithm),
            found.by_mu * slope,
            found.by_s,
            found.weight_mu * slope**2,
            found.weight_s,
        )

    @silent
    def information(self, mu: Array, s: Array) -> tuple[Array, Array]:
        by_mu, by_s = self.of.information(mu, s)
        return by_mu * self.slope(mu, s) ** 2, by_s

    @silent
    def scores(self, y: Array, mu: Array, s: Array) -> Array:
        return self.of.scores(self.log(y), self.log(mu), s)

    @silent
    def sd(self, mu: Array, s: Array) -> Array:
        """Infinite where the tails are too heavy to have one."""
        s = s * self.logarithm
        if isinstance(self.of, Normal):
            return np.asarray(mu * np.exp(0.5 * s * s) * np.sqrt(np.expm1(s * s)))
        variance = s * s * (2 + s * s) / ((1 - 4 * s * s) * (1 - s * s) ** 2)
        return np.asarray(mu * np.where(s < 0.5, np.sqrt(np.where(s < 0.5, variance, 0.0)), np.inf))

    @silent
    def quantile(self, p: float | Array, mu: Array, s: Array) -> Array:
        return np.asarray(np.exp(self.logarithm * self.of.quantile(p, self.log(mu), s)))

    def slope(self, mu: Array, s: Array) -> Array:
        """The derivative of the logarithm of mu."""
        return np.asarray(1 / np.maximum(mu * self.logarithm, 1 / (_STEEPEST * np.minimum(s, 1.0))))

    def log(self, values: Array) -> Array:
        """The logarithm of values, to the base in which they are compared."""
        return np.asarray(np.log(values) / self.logarithm)
