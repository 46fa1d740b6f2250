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


@dataclass(frozen=True, eq=False)
class Mode:
    """Where the joint density of a subject is largest, with what holds there."""

    x: Array
    value: float  # - log p(y | x) + 1/2 (x - m)' Omega^-1 (x - m)
    curvature: Array  # expected, of that
    predictions: Array
    by_x: Array


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
