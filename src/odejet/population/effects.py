"""Effects: the scales on which parameters of subjects are normal around their typical value.

A random effect eta with the law N(0, Omega) moves a subject's parameter phi on the scale x = h(phi):

    normal       phi = x                 lognormal    phi = exp(x)
    logitnormal  phi = 1/(1 + exp(-x))

so that x = h(typical value) + eta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Effect:
    """A law of a parameter among subjects: its scale, and the values that it may have."""

    name: str
    to: Callable[[Array], Array]  # x = h(phi)
    back: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # dphi/dx at x
    steepness: Callable[[Array], Array]  # dx/dphi at phi
    limits: tuple[float, float]


def _logit(phi: Array) -> Array:
    return np.log(phi) - np.log1p(-np.asarray(phi))


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-np.asarray(x, dtype=float)))


def _slope_of_logistic(x: Array) -> Array:
    return _logistic(x) * _logistic(-np.asarray(x))


def _slope_of_logit(phi: Array) -> Array:
    return 1 / (np.asarray(phi) * (1 - np.asarray(phi)))


def _slope_of_log(phi: Array) -> Array:
    return 1 / np.asarray(phi)


# Functions with names, for other processes to know them by.
EFFECTS = {
    effect.name: effect
    for effect in (
        Effect("lognormal", np.log, np.exp, np.exp, _slope_of_log, (0.0, math.inf)),
        Effect("normal", np.asarray, np.asarray, np.ones_like, np.ones_like, (-math.inf, math.inf)),
        Effect(
            "logitnormal",
            _logit,
            _logistic,
            _slope_of_logistic,
            _slope_of_logit,
            (0.0, 1.0),
        ),
    )
}
"""By the names that people write."""
