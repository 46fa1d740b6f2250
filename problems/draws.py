"""Draws: data of the 25 systems at random values, and starts beside the truth."""

from __future__ import annotations

import numpy as np

from odejet import Data
from odejet.objective.misfit import Misfit
from odejet.problem import Problem
from odejet.simulate.flow import Flow, Outcome
from problems import systems


def problem(system: systems.System, points: int, noise: float, rng: np.random.Generator) -> tuple[Misfit, np.ndarray]:
    """A misfit to fresh data, and the true values of its unknowns; draws that blow up are drawn again."""
    flow, times = Flow(system.model), system.times(points)
    while True:
        parameters, initial = systems.draw(system, rng)
        values = list(parameters.values()), list(initial.values())
        run = flow.run(*values, times, sensitivities=False, max_steps=4000)
        if run.outcome is Outcome.COMPLETED:
            break
    exact = {name: run.outputs[:, i, 0] for i, name in enumerate(system.model.outputs)}
    measured = {
        name: series + noise * abs(series.mean()) * rng.standard_normal(points) for name, series in exact.items()
    }
    return Problem(system.model, Data(times, measured)).misfit, np.r_[values[1], values[0]]


def perturbed(truth: np.ndarray, start: str, rng: np.random.Generator) -> np.ndarray:
    spread = rng.uniform(-1, 1, len(truth))
    return truth * {"10 %": 1 + 0.1 * spread, "50 %": 1 + 0.5 * spread, "factor 3": 3.0**spread}[start]
