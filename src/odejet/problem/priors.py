"""Priors: what is known of unknowns before the data, as probability densities.

    normal(mean, sd)       lognormal(mean of the logarithm, its sd)        uniform(low, high)
    laplace(mean, scale)   loglaplace(mean of the logarithm, its scale)    loguniform(low, high)
    cauchy(centre, scale)  gamma(shape, scale)   exponential(scale)   chisquare(degrees of freedom)   rayleigh(scale)

These are densities of the unknown itself, not of its logarithm, cut at the bounds and scaled to be one in all.  With
priors a fit looks for the maximum of likelihood times prior, the maximum a posteriori, and the place of a maximum
depends on the scale on which a density is meant.  On that of logarithms there are

    normal_log(mean, sd)     laplace_log(mean, scale)     uniform_log(low, high)

and the same with `_log10`: the law of the logarithm as it stands, which is how PEtab's version 1 means priors on the
scale of a parameter.  As a law of draws `normal_log` is `lognormal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.calls import Call, parse_call
from odejet.model.dual import differentiated
from odejet.model.expressions import names
from odejet.problem.unknowns import Unknowns

_KINK = 1e-5
"""Of the scale: where the modulus of a Laplace prior is rounded off."""

Priors = Mapping[str, str | Call] | None
"""Priors as people write them, or as they are read, by name or label."""


@dataclass(frozen=True)
class Term:
    """A prior at a value: the negative logarithm of its density, its slope, a positive weight that stands for its
    curvature in a step of a search, and the information it is worth beside data."""

    cost: float
    slope: float
    weight: float
    information: float


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
class OnLogarithm:
    """The density of a logarithm, log(x) in units of that of the base, as it stands: not one of the number itself."""

    of: Normal | Laplace | Uniform
    unit: float = 1.0

    @property
    def limits(self) -> tuple[float, float]:
        low, high = (math.exp(min(self.unit * end, 700.0)) for end in self.of.limits)
        return low, high if high < math.exp(700.0) else math.inf

    @property
    def typical(self) -> float:
        middle = sum(self.of.limits) / 2 if isinstance(self.of, Uniform) else self.of.centre
        return math.exp(min(max(self.unit * middle, -600.0), 600.0))

    def at(self, x: float) -> Term:
        if x <= 0:
            return IMPOSSIBLE
        if isinstance(self.of, Uniform):  # bounds that are the powers of its ends may miss these by rounding
            return Term(math.log(self.of.high - self.of.low), 0.0, 0.0, 0.0)
        found, by_x = self.of.at(math.log(x) / self.unit), 1 / (self.unit * x)
        return Term(found.cost, found.slope * by_x, found.weight * by_x**2, found.information * by_x**2)

    def below(self, x: float) -> float:
        return self.of.below(math.log(x) / self.unit) if x > 0 else 0.0


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


IMPOSSIBLE = Term(math.inf, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Truncated:
    """A prior of one entry of z, cut at its bounds."""

    entry: int
    prior: Prior
    low: float
    high: float

    @property
    def is_of_logarithm(self) -> bool:
        """Whether it is a density of the logarithm, not of the unknown itself."""
        return isinstance(self.prior, OnLogarithm)

    @cached_property
    def log_mass(self) -> float:
        """The logarithm of the probability between the bounds; that of a logarithm stands as it is, uncut."""
        if self.is_of_logarithm:
            return 0.0
        mass = self.prior.below(self.high) - self.prior.below(self.low)
        return math.log(mass) if mass > 0 else 0.0

    def at(self, x: float) -> Term:
        """Bounds are those of the search, which ends a little before a bound at zero or infinity."""
        found = self.prior.at(x)
        return Term(found.cost + self.log_mass, found.slope, found.weight, found.information)


# --- texts ---

KINDS: Mapping[str, tuple[tuple[str, ...], Callable[..., Prior]]] = {
    "normal": (("mean", "sd"), Normal),
    "lognormal": (("mean of the logarithm", "its sd"), lambda a, b: Logarithmic(Normal(a, b))),
    "laplace": (("mean", "scale"), Laplace),
    "loglaplace": (("mean of the logarithm", "its scale"), lambda a, b: Logarithmic(Laplace(a, b))),
    "uniform": (("low", "high"), Uniform),
    "loguniform": (("low", "high"), LogUniform),
    "cauchy": (("centre", "scale"), Cauchy),
    "gamma": (("shape", "scale"), Gamma),
    "exponential": (("scale",), lambda scale: Gamma(1.0, scale)),
    "chisquare": (("degrees of freedom",), lambda dof: Gamma(0.5 * dof, 2.0)),
    "rayleigh": (("scale",), Rayleigh),
    "normal_log": (("mean", "sd"), lambda a, b: OnLogarithm(Normal(a, b))),
    "normal_log10": (("mean", "sd"), lambda a, b: OnLogarithm(Normal(a, b), math.log(10))),
    "laplace_log": (("mean", "scale"), lambda a, b: OnLogarithm(Laplace(a, b))),
    "laplace_log10": (("mean", "scale"), lambda a, b: OnLogarithm(Laplace(a, b), math.log(10))),
    "uniform_log": (("low", "high"), lambda a, b: OnLogarithm(Uniform(a, b))),
    "uniform_log10": (("low", "high"), lambda a, b: OnLogarithm(Uniform(a, b), math.log(10))),
}
"""By name: what the arguments of each are, and what makes it of them."""

_ANY = ("mean", "mean of the logarithm", "centre", "low", "high")  # arguments that need not be positive


def read(name: str, told: Any) -> Prior:
    """The prior that a text such as `lognormal(log(0.3), 0.5)` means, or a `Call`, said of the unknown `name`."""
    where = f"the prior of '{name}'"
    if not isinstance(told, str | Call):
        raise ModelError(f"{where} must be text such as 'normal(1, 0.2)', not {told!r}")
    text = str(told)
    try:
        kind, arguments = told.checked if isinstance(told, Call) else parse_call(text)
    except ExpressionError as error:
        raise error.at(where) from None
    except ModelError:
        raise ModelError(f"{where} must be text such as 'normal(1, 0.2)', not {clipped(text)}") from None
    if kind not in KINDS:
        raise ModelError(f"{where}: there is no prior '{kind}'{nearest(kind, KINDS) or '; known: ' + ', '.join(KINDS)}")
    wanted, make = KINDS[kind]
    if arguments is None or len(arguments) != len(wanted):
        raise ModelError(f"{where}: {clipped(text)} has not the arguments of {kind}({', '.join(wanted)})")
    values = []
    for what, argument in zip(wanted, arguments, strict=True):
        if (other := next(names(argument), None)) is not None:
            raise ModelError(f"{where}: its {what} must be a number and cannot depend on '{other}'")
        value = float(differentiated(argument, {}, {}, 0).value)
        if not math.isfinite(value) or (what not in _ANY and value <= 0):
            raise ModelError(f"{where}: its {what} must be a {'' if what in _ANY else 'positive '}number")
        values.append(value)
    if wanted == ("low", "high") and not (values[0] < values[1] and (kind != "loguniform" or values[0] > 0)):
        raise ModelError(
            f"{where}: {clipped(text)} must lie between a low and a higher number, positive for loguniform"
        )
    return make(*values)


def priors_together(given: Priors, model: Mapping[str, str]) -> dict[str, str | Call]:
    """What is given, and beside it what the model's file tells."""
    if given is not None and not isinstance(given, Mapping):
        raise ModelError("priors must be a dictionary of names and texts, such as {'k1': 'normal(1, 0.2)'}")
    return {**model, **(given or {})}


def priors_of(given: Mapping[str, str | Call], layout: Unknowns) -> dict[int, Prior]:
    """The priors of unknowns by entry of z; a name is that of all unknowns that have it."""
    found: dict[int, Prior] = {}
    for name, text in given.items():
        entries = [i for i, unknown in enumerate(layout) if name == unknown.label]
        entries = entries or [i for i, unknown in enumerate(layout) if name == unknown.name]
        if not entries:
            known = dict.fromkeys(key for unknown in layout for key in (unknown.name, unknown.label))
            raise ModelError(f"priors name '{name}', which is no unknown of the problem{nearest(str(name), known)}")
        prior = read(str(name), text)
        found.update(dict.fromkeys(entries, prior))
    return found


def truncated(priors: Mapping[int, Prior], bounds: Sequence[tuple[float, float]]) -> tuple[Truncated, ...]:
    """Priors cut at the bounds of every unknown."""
    return tuple(Truncated(entry, prior, *bounds[entry]) for entry, prior in sorted(priors.items()))


def total(priors: Sequence[Truncated], z: np.ndarray) -> float:
    """The negative logarithm of all priors at z."""
    return sum(one.at(float(z[one.entry])).cost for one in priors)
