"""Noise of a fit: the sd of every measurement as it was found, and the noise as a design would state it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from odejet.data import Experiment
from odejet.objective.misfit import Misfit
from odejet.problem import Problem
from odejet.search.refine import Refined


def sds_of(
    misfit: Misfit, experiments: Sequence[Experiment], refined: Refined, levels: np.ndarray
) -> dict[str, dict[str, np.ndarray]]:
    """The sd of every measurement by experiment and output; one number where all of a series are alike."""
    rows = _row_sds(misfit, refined, levels)
    sds: dict[str, dict[str, np.ndarray]] = {experiment.name: {} for experiment in experiments}
    for output, group in zip(misfit.outputs, misfit.groups, strict=True):
        place = group.start
        for experiment in experiments:
            if output in experiment.outputs:
                size = len(experiment.outputs[output])
                own = rows[place : place + size]
                sds[experiment.name][output] = np.asarray(own[0]) if np.all(own == own[0]) else own
                place += size
    return sds


def _row_sds(misfit: Misfit, refined: Refined, levels: np.ndarray) -> np.ndarray:
    """The sd of every measurement, in its units, with these levels where noise is a level times a shape."""
    sds = np.repeat(levels, misfit.counts) * misfit.shapes
    if refined.noise is None:
        return sds
    other = misfit.measurements.logarithmic | misfit.measurements.densities
    return np.where(np.repeat(other, misfit.counts), refined.noise.sds, sds)


def stated(
    problem: Problem, experiment: Experiment, levels: np.ndarray, sds: Mapping[str, np.ndarray]
) -> dict[str, float | str]:
    """The noise of an experiment by output: its law, or the sd that was found."""
    noise: dict[str, float | str] = {}
    for output, level in zip(problem.measurements.outputs, levels.tolist(), strict=True):
        if output in experiment.outputs:
            law = problem.noises[output].told(level)
            noise[output] = float(np.median(sds[output])) if law is None else law
    return noise
