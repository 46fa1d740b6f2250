"""Modes: the most probable random effects of each subject, and how sharply they are known.

With the mean m and Omega of the population the joint density of measurements and x is

    - log p(y, x) = - log p(y | x) + 1/2 (x - m)' Omega^-1 (x - m) + constants.

Its minimum is found by Gauss's and Newton's method with Levenberg's damping; the curvature there is the expected one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odejet.population.subject import Subject

Array = np.ndarray

STEPS = 60
ENOUGH = 1e-9
"""A predicted decrease of the negative logarithm of the density that matters to nobody."""

FAINT = 20.0
"""By how much the logarithm of a mode's share may be below the largest: elsewhere in theta it may be the largest."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Where the joint density of a subject is largest, with what holds there."""

    x: Array
    value: float  # - log p(y | x) + 1/2 (x - m)' Omega^-1 (x - m)
    curvature: Array  # expected, of that
    predictions: Array
    by_x: Array

    @property
    def log_share(self) -> float:
        """The logarithm of its part of the likelihood by Laplace's method, up to what all modes of a subject share."""
        return -self.value - 0.5 * float(np.linalg.slogdet(self.curvature)[1])


def find_mode(subject: Subject, start: Array, mean: Array, common: Array, precision: Array, noise: Array) -> Mode:
    """Return the mode that a start leads to; `precision` is the inverse of Omega."""
    standing = _at(subject, start, mean, common, precision, noise)
    damping = 1e-3
    for _ in range(STEPS):
        mode, gradient = standing
        if not math.isfinite(mode.value):
            break
        scale = np.diag(np.diag(mode.curvature))
        step = -np.linalg.solve(mode.curvature + damping * scale, gradient)
        if -gradient @ step < ENOUGH:
            break
        step *= min(1.0, 3.0 / float(np.sqrt(np.max(step**2 * np.diag(precision)) + 1e-300)))
        trial = _at(subject, mode.x + step, mean, common, precision, noise)
        if trial[0].value < mode.value:
            standing, damping = trial, max(damping / 10, 1e-9)
        elif damping > 1e8:
            break
        else:
            damping = max(damping * 8, 1e-3)
    return standing[0]


def find_modes(
    subject: Subject, starts: Array, mean: Array, common: Array, precision: Array, noise: Array
) -> list[Mode]:
    """Return the modes that rows of starts lead to, each once, the one with the largest share of the posterior first.

    A subject whose first measurements fit a long lag or a slow absorption has two, and one start may find the lesser.
    """
    found: list[Mode] = []
    for start in starts:
        mode = find_mode(subject, start, mean, common, precision, noise)
        if math.isfinite(mode.value) and all(_apart(mode, other) for other in found):
            found.append(mode)
    found.sort(key=lambda mode: -mode.log_share)
    return [mode for mode in found if mode.log_share > found[0].log_share - FAINT]


def scattered_starts(
    subject: Subject, draws: Array, mean: Array, common: Array, precision: Array, noise: Array, most: int
) -> Array:
    """Return the rows of draws from which different modes may be reached: probable ones that lie apart."""
    away = draws - mean
    densities = subject.likelihood(subject.predict(draws, common), noise).values
    densities = densities - 0.5 * np.einsum("ka,ab,kb->k", away, precision, away)
    kept: list[int] = []
    for k in np.argsort(-densities).tolist():
        steps = draws[k] - draws[kept]
        if math.isfinite(densities[k]) and (np.einsum("ka,ab,kb->k", steps, precision, steps) > 1).all():
            kept.append(k)
        if len(kept) == most:
            break
    return draws[kept]


def _apart(one: Mode, other: Mode) -> bool:
    """Tell if two ends are not the same mode: they lie more than one sd of either from each other."""
    step = one.x - other.x
    return bool(min(step @ one.curvature @ step, step @ other.curvature @ step) > 1)


def _at(subject: Subject, x: Array, mean: Array, common: Array, precision: Array, noise: Array) -> tuple[Mode, Array]:
    predictions, by_x, _ = subject.linearise(x[None], common)
    found = subject.likelihood(predictions, noise)
    away = x - mean
    value = float(-found.values[0] + 0.5 * away @ precision @ away)
    jacobian = by_x[0]
    if not math.isfinite(value):
        return Mode(x, math.inf, precision, predictions[0], jacobian), np.zeros(len(x))
    curvature = precision + (jacobian.T * found.weights[0]) @ jacobian
    gradient = precision @ away - found.by_predictions[0] @ jacobian
    return Mode(x, value, curvature, predictions[0], jacobian), gradient
