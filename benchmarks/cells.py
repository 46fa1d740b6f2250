"""Cells: the data sets of the benchmark, each told by its system, its noise and its trial.

A cell is drawn from its own seed, so any machine can make any of them alone.  Trajectories that blow up, or whose
integration is not good to 1e-12, are drawn again from the same stream and counted.  The truth serves to make data and
to judge answers; no method sees it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import odejet as oj
from odejet.simulate.flow import Flow, Outcome
from problems import systems

PENALTY = 1e6
"""The relative error of an answer that is none."""

SCALES = ("mean", "std")
"""What the noise of an output is relative to: the size of its mean, as the paper has it, or its spread."""

_ACCURACY = 1e-12
_LOOSER = 1e-14  # the tolerance of a second integration, that must agree with the first
_NOISELESS = 99  # stands for the noise level in the seed


@dataclass(frozen=True, order=True)
class Cell:
    """A data set of the benchmark."""

    system: str
    noise: float
    trial: int

    def __str__(self) -> str:
        return f"{self.system}/{self.noise:g}/{self.trial}"


@dataclass(frozen=True)
class Protocol:
    """How data are made from a draw."""

    seed: int = 1
    points: int = 750
    scale: str = "mean"


@dataclass(frozen=True)
class Draw:
    """True values of a system, the outputs without noise, and how many draws were refused before."""

    system: systems.System
    parameters: dict[str, float]
    initial_state: dict[str, float]
    times: np.ndarray
    clean: dict[str, np.ndarray]
    refused: int

    @property
    def values(self) -> dict[str, float]:
        return {**self.initial_state, **self.parameters}

    def error(self, values: Mapping[str, float] | None) -> float:
        """The largest relative error of what can be known at all; the penalty, if there is no answer."""
        if values is None:
            return PENALTY
        known = [name for name in self.values if name not in self.system.unidentifiable]
        worst = float(np.max([abs(values[name] / self.values[name] - 1) for name in known]))
        return worst if math.isfinite(worst) else PENALTY


def draw(name: str, trial: int, protocol: Protocol) -> Draw:
    """The truth of a trial, the same at every noise level."""
    return _draw(name, trial, protocol.seed, protocol.points)


@functools.lru_cache(maxsize=64)
def _draw(name: str, trial: int, seed: int, points: int) -> Draw:
    system = systems.load(name)
    rng = np.random.default_rng([seed, trial, systems.number(name)])
    times, refused = system.times(points), 0
    while True:
        parameters, initial_state = systems.draw(system, rng)
        clean = trajectory(system, parameters, initial_state, times)
        if clean is not None:
            return Draw(system, parameters, initial_state, times, clean, refused)
        refused += 1


def trajectory(
    system: systems.System, parameters: Mapping[str, float], initial_state: Mapping[str, float], times: np.ndarray
) -> dict[str, np.ndarray] | None:
    """The outputs without noise; None where they cannot be trusted to 1e-12 of their size."""
    model, flow = system.model, Flow(system.model)
    values = [parameters[name] for name in model.parameters], [initial_state[name] for name in model.states]
    run = flow.run(*values, times, sensitivities=False)
    if run.outcome is not Outcome.COMPLETED:
        return None
    again = flow.run(*values, times, sensitivities=False, tolerance=_LOOSER)
    if again.outcome is not Outcome.COMPLETED:
        return None
    size = np.abs(run.outputs).max(axis=0)
    if np.any(np.abs(again.outputs - run.outputs).max(axis=0) > _ACCURACY * np.where(size > 0, size, 1.0)):
        return None
    return {name: run.outputs[:, i, 0] for i, name in enumerate(model.outputs)}


def noise_levels(truth: Draw, noise: float, scale: str = "mean") -> dict[str, float]:
    """The sd of the noise of every output."""
    if scale not in SCALES:
        raise oj.ModelError(f"noise must be relative to one of {', '.join(SCALES)}, not {scale!r}")
    return {
        name: noise * (abs(float(clean.mean())) if scale == "mean" else float(clean.std()))
        for name, clean in truth.clean.items()
    }


def noise_stream(cell: Cell, protocol: Protocol) -> np.random.Generator:
    level = round(-np.log10(cell.noise)) if cell.noise else _NOISELESS
    return np.random.default_rng([protocol.seed, cell.trial, systems.number(cell.system), level])


def measured(truth: Draw, cell: Cell, protocol: Protocol) -> oj.Data:
    """The data of a cell."""
    rng, levels = noise_stream(cell, protocol), noise_levels(truth, cell.noise, protocol.scale)
    outputs = {name: clean + levels[name] * rng.normal(size=len(clean)) for name, clean in truth.clean.items()}
    return oj.Data(truth.times, outputs)
