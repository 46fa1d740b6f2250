"""Intervals: how far a fit's unknowns, and expressions in them, may be from their values, by curvature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from odejet.uncertainty import interval, quantile
from odejet.uncertainty.derived import Derived, derived

if TYPE_CHECKING:
    from odejet.result.fit import Fit

LEVEL = 0.95
"""The probability of the intervals that tables show."""

Interval = tuple[float, float]


def asked_of(fit: Fit, name: str, experiment: str | None = None) -> Derived:
    """What a text means: an unknown, or an expression in the unknowns such as "k1*k2"; in one experiment, names are
    those of its own values."""
    if experiment is None:
        return derived(name, fit.model, fit.unknowns)
    number = fit.problem.number(experiment)
    model, places = fit.problem.conditions[number].model, fit.unknowns.places[number]
    where = experiment if len(fit.data.experiments) > 1 else ""
    return derived(name, model, fit.unknowns, places, where, fit.model.expressions)


def of_unknown(fit: Fit, place: int, level: float) -> Interval:
    """The interval of an entry of z; that of a table is known from the fit."""
    label, value = fit.labels[place], float(fit.estimates[place])
    bounds = fit.bounds.get(label, (-math.inf, math.inf))
    reach = fit.uncertainty.reach.get(label)
    if reach is not None and level != LEVEL:
        reach = _reach(fit, np.eye(len(fit.labels))[place], level)
    degrees = fit.uncertainty.degrees_of_freedom[label]
    return interval(value, fit.stderr[label], level, degrees, bounds, label in fit.held, reach)


def of_expression(fit: Fit, asked: Derived, level: float) -> Interval:
    """The interval of an expression in the unknowns."""
    value, gradient = asked.at(fit.estimates)
    known, rows = fit.likelihood.full_information, gradient[None]
    positive = asked.keeps_sign(fit.likelihood.frame.signs)
    bounds = ((0.0, math.inf) if value > 0 else (-math.inf, 0.0)) if positive else (-math.inf, math.inf)
    degrees = float(known.degrees_of_freedom(rows)[0])
    reach = _reach(fit, gradient, level) if fit.uncertainty.reach else None
    return interval(value, float(known.stderr(rows)[0]), level, degrees, bounds, reach=reach)


def _reach(fit: Fit, gradient: np.ndarray, level: float) -> tuple[float, float]:
    """How far an interval reaches below and above, where unknowns have bounds that are near."""
    likelihood = fit.likelihood
    held = np.array([label in fit.held for label in fit.labels])
    ends = np.array([fit.bounds[label] for label in fit.labels])
    known = likelihood.full_information
    bounded = likelihood.bounded(held, (ends[:, 0], ends[:, 1]))
    many = quantile(level, float(known.degrees_of_freedom(gradient[None])[0]))
    return bounded.reaches(known, gradient, many)
