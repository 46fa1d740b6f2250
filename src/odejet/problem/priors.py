"""Priors: what is known of unknowns before the data, as probability densities.

    normal(mean, sd)       lognormal(mean of the logarithm, its sd)        uniform(low, high)
    laplace(mean, scale)   loglaplace(mean of the logarithm, its scale)    loguniform(low, high)
    cauchy(centre, scale)  gamma(shape, scale)   exponential(scale)   chisquare(degrees of freedom)   rayleigh(scale)
    student(centre, scale, degrees of freedom)   halfnormal(scale)    halfcauchy(scale)    beta(a, b)
    truncated(a prior, low, high)

These are densities of the unknown itself, not of its logarithm, cut at the bounds and scaled to be one in all.  With
priors a fit looks for the maximum of likelihood times prior, the maximum a posteriori, and the place of a maximum
depends on the scale on which a density is meant.  With `_log` or `_log10` after its name, as in
`normal_log10(-1, 0.5)`, a density is one of the logarithm as it stands, uncut by bounds, which is how PEtab's version 1
means priors on the scale of a parameter.  As a law of draws `normal_log` is `lognormal`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.calls import Call, parse_call, split
from odejet.model.dual import differentiated
from odejet.model.expressions import Expression, names
from odejet.model.grammar import parse
from odejet.problem.densities import (
    Beta,
    Cauchy,
    Gamma,
    Half,
    Laplace,
    Logarithmic,
    LogUniform,
    Normal,
    OnScale,
    Prior,
    Rayleigh,
    Student,
    Term,
    Uniform,
    Within,
    is_on_scale,
)
from odejet.problem.unknowns import Unknowns

Priors = Mapping[str, str | Call] | None
"""Priors as people write them, or as they are read, by name or label."""


@dataclass(frozen=True)
class Truncated:
    """A prior of one entry of z, cut at its bounds."""

    entry: int
    prior: Prior
    low: float
    high: float

    @property
    def is_on_scale(self) -> bool:
        """Whether it is a density of the logarithm, not of the unknown itself."""
        return is_on_scale(self.prior)

    @cached_property
    def log_mass(self) -> float:
        """The logarithm of the probability between the bounds; that of a logarithm stands as it is, uncut."""
        if self.is_on_scale:
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
    "student": (("centre", "scale", "degrees of freedom"), Student),
    "halfnormal": (("scale",), lambda scale: Half(Normal(0.0, scale))),
    "halfcauchy": (("scale",), lambda scale: Half(Cauchy(0.0, scale))),
    "beta": (("a", "b"), Beta),
}
"""By name: what the arguments of each are, and what makes it of them."""

SCALES: Mapping[str, float] = {"log": 1.0, "log10": math.log(10)}
"""By the end of a prior's name: the unit of the logarithm of which it is the density."""

_ANY = ("mean", "mean of the logarithm", "centre", "low", "high")  # arguments that need not be positive


def read(name: str, told: Any) -> Prior:
    """The prior that a text such as `lognormal(log(0.3), 0.5)` means, or a `Call`, said of the unknown `name`."""
    where = f"the prior of '{name}'"
    if not isinstance(told, str | Call):
        raise ModelError(f"{where} must be text such as 'normal(1, 0.2)', not {told!r}")
    text = str(told)
    if isinstance(told, str) and (cut := _TRUNCATED.fullmatch(text)):
        return _within(name, cut[1], where)
    try:
        kind, arguments = told.checked if isinstance(told, Call) else parse_call(text)
    except ExpressionError as error:
        raise error.at(where) from None
    except ModelError:
        raise ModelError(f"{where} must be text such as 'normal(1, 0.2)', not {clipped(text)}") from None
    plain, _, scale = kind.partition("_")
    if plain not in KINDS or (kind != plain and scale not in SCALES):
        known = (*KINDS, "truncated")
        raise ModelError(f"{where}: there is no prior '{kind}'{nearest(kind, known) or '; known: ' + ', '.join(known)}")
    wanted, make = KINDS[plain]
    if arguments is None or len(arguments) != len(wanted):
        raise ModelError(f"{where}: {clipped(text)} has not the arguments of {kind}({', '.join(wanted)})")
    values = [_number(what, argument, where) for what, argument in zip(wanted, arguments, strict=True)]
    if wanted == ("low", "high") and not (values[0] < values[1] and (plain == "uniform" or values[0] > 0)):
        raise ModelError(
            f"{where}: {clipped(text)} must lie between a low and a higher number, positive for loguniform"
        )
    return OnScale(make(*values), SCALES[scale]) if scale else make(*values)


def _number(what: str, argument: Expression, where: str) -> float:
    """The value of an argument."""
    if (other := next(names(argument), None)) is not None:
        raise ModelError(f"{where}: its {what} must be a number and cannot depend on '{other}'")
    value = float(differentiated(argument, {}, {}, 0).value)
    if not math.isfinite(value) or (what not in _ANY and value <= 0):
        raise ModelError(f"{where}: its {what} must be a {'' if what in _ANY else 'positive '}number")
    return value


_TRUNCATED = re.compile(r"\s*truncated\s*\((.*)\)\s*", re.DOTALL)

_ENDS = {"inf": math.inf, "-inf": -math.inf}


def _within(name: str, inside: str, where: str) -> Within:
    """The prior in `truncated(normal(1, 0.5), 0, 2)`; an end may be inf or -inf."""
    parts = [part.strip() for part in split(inside, inside)]
    if len(parts) != 3:
        raise ModelError(f"{where} must be text such as 'truncated(normal(1, 0.5), 0, 2)', not truncated({inside})")
    try:
        low, high = (
            _ENDS[part] if part in _ENDS else _number(what, parse(part), where)
            for what, part in zip(("low", "high"), parts[1:], strict=True)
        )
    except ExpressionError as error:
        raise error.at(where) from None
    found = Within(read(name, parts[0]), low, high)
    if not (low < high and found.mass > 0):
        raise ModelError(f"{where}: between {low:g} and {high:g} nothing is left of {parts[0]}")
    return found


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
