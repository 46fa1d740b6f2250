"""Backward: the negative log-posterior with its gradient, from one solution forward and one back per experiment.

Sensitivities cost as many times a simulation as there are unknowns that it feels; the way back costs about two, however
many these are.  Simulations are by collocation alone, whose steps are kept until all predictions are known: how much
each of them counts may depend on all others, where levels of noise follow from the residuals.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from odejet.objective.courses import Course, completed
from odejet.objective.misfit import Misfit
from odejet.objective.slopes import cost_of
from odejet.simulate.backward import MEMORY, Solution

WORTH = 40
"""Unknowns that a simulation feels from which on the way back costs less: at 20 both take about as long for chains of
reactions, at 60 it takes a quarter of the time, at 600 a three-hundredth."""


def pays(misfit: Misfit) -> bool:
    """Return whether every simulation leads back, and feels so many unknowns that this is worth it."""
    felt = max((len(course.columns) for course in misfit.measured), default=0)
    return felt >= WORTH and all(course.leads_back for course in misfit.measured)


def value_and_gradient(misfit: Misfit, z: np.ndarray, deadline: float) -> tuple[float, np.ndarray] | None:
    """Return the negative log-posterior at z and its gradient; None where there is none, or no way back."""
    outputs, kept, room = np.empty(misfit.points), list[Solution | None](), MEMORY
    for course in misfit.measured:
        one = course.keep(z, misfit.effort, deadline)
        if one is None or not completed(one.found):
            return None
        for rows, output, positions in course.series:
            outputs[rows] = one.found.outputs[positions, output, 0]
        room -= one.bytes
        kept.append(one if room > 0 else None)  # it is solved once more when its turn comes
    slopes, gradient = np.zeros(misfit.rows), np.zeros(len(z))
    cost = cost_of(misfit, z, outputs, slopes, gradient)
    for course, found in _gradients(misfit, kept, z, slopes, deadline):
        if found is None:
            return None
        gradient[course.columns] += found[course.lanes - 1]
    return (cost, gradient) if np.isfinite(cost + gradient.sum()) else None


def _gradients(
    misfit: Misfit, kept: list[Solution | None], z: np.ndarray, slopes: np.ndarray, deadline: float
) -> Iterator[tuple[Course, np.ndarray | None]]:
    """What the outputs of each simulation add to the gradient, by the unknowns of its flow."""
    for number, course in enumerate(misfit.measured):
        one = kept[number] or course.keep(z, misfit.effort, deadline)
        kept[number] = None
        if one is None or not completed(one.found):
            yield course, None
            return
        seeds = np.zeros(one.found.outputs.shape[:2])
        for rows, output, positions in course.series:
            np.add.at(seeds[:, output], positions, slopes[rows])
        yield course, one.gradient(seeds)
