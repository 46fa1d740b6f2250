"""Squares: square systems of the 25 systems, exact data for them, and what a solver finds there.

Only this file knows true values; the solver is given jets alone, and values of what is not identifiable.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial

import numpy as np

from odejet.algebra.monodromy import Fibre
from odejet.algebra.select import select
from odejet.algebra.solve import solve
from odejet.algebra.system import SquareSystem, Targets
from odejet.jets.inputs import input_jets
from odejet.simulate.flow import Flow, Outcome
from problems import systems
from problems.prolong import Variable

POINTS, DRAWS = 20, 20


def warped(first: float, last: float, points: int = POINTS) -> np.ndarray:
    """Shooting times, denser at the beginning, as the paper warps them."""
    u = np.linspace(0.0, 1.0, points)
    return first + (last - first) * np.expm1(3.0 * u) / np.expm1(3.0)


@functools.cache
def square(name: str, points: int = 1) -> SquareSystem:
    return select(systems.load(name).model, points)


@dataclass(frozen=True)
class Draw:
    """True values of one random draw whose solution reaches the end."""

    system: systems.System
    flow: Flow
    parameters: np.ndarray
    states: np.ndarray

    def at(self, times: np.ndarray) -> np.ndarray:
        """All states and parameters at some times."""
        run = self.flow.run(self.parameters, self.states, np.r_[self.system.time[0], times], sensitivities=False)
        states = run.states[1:, :, 0]
        return np.concatenate([states, np.tile(self.parameters, (len(times), 1))], axis=1)

    def fixed(self, square: SquareSystem) -> np.ndarray:
        known = dict(zip(self.system.model.parameters, self.parameters, strict=True))
        known |= dict(zip(self.system.model.states, self.states, strict=True))
        return np.array([known[name.removesuffix("_at_2")] for name in square.fixed])

    def noisy(self, noise: float, rng: np.random.Generator) -> np.ndarray:
        """Data of the benchmark's protocol: noise relative to the mean of each output."""
        run = self.flow.run(self.parameters, self.states, self.system.times(), sensitivities=False)
        values = run.outputs[:, :, 0]
        return values + noise * abs(values.mean(axis=0)) * rng.normal(size=values.shape)


def draw(system: systems.System, rng: np.random.Generator) -> Draw:
    flow = Flow(system.model)
    while True:
        parameters, states = systems.draw(system, rng)
        found = Draw(system, flow, np.array(list(parameters.values())), np.array(list(states.values())))
        run = flow.run(found.parameters, found.states, system.times(), sensitivities=False)
        if run.outcome is Outcome.COMPLETED:
            return found


def inputs_at(square: SquareSystem, times: np.ndarray) -> np.ndarray:
    """Taylor coefficients of the model's inputs, and of the time where equations contain it."""
    model, orders = square.joined.model, square.highest + 1
    result = np.zeros((len(times), square.joined.inputs, orders))
    if model.inputs:
        result[:, : len(model.inputs)] = input_jets(model, {}, times, square.highest)
    if square.joined.timed:
        result[:, -1, 0] = times
        result[:, -1, 1:2] = 1.0
    return result


@dataclass(frozen=True)
class Exact:
    """Exact targets along one trajectory, and what was found there."""

    errors: np.ndarray
    residual: float
    returned: int
    seconds: float


def exact(found: Fibre, truth: Draw) -> Exact:
    """Solve at warped times with exact jets: the error of the nearest root at each, and the largest residual."""
    system, times = found.system, warped(*truth.system.time)
    true = truth.at(times)[:, system.columns]
    inputs, fixed = inputs_at(system, times), found.at.fixed
    data, _ = system.evaluate(true, inputs, fixed)
    targets = Targets(data, inputs, fixed)
    start = time.process_time()
    solutions = solve(found, targets, times=times, flow=truth.flow)
    seconds = time.process_time() - start
    errors = np.array([_nearest(solutions[i].roots, true[i]) for i in range(len(times))])
    owners = np.repeat(np.arange(len(times)), [len(s.roots) for s in solutions])
    roots = np.concatenate([s.roots for s in solutions])
    residuals = system.residuals(roots, targets[owners]) if len(roots) else np.zeros(1)
    return Exact(errors, float(residuals.max()), len(roots), seconds)


def _nearest(roots: np.ndarray, true: np.ndarray) -> float:
    return float(min((np.max(abs(r - true) / np.maximum(abs(true), 1e-12)) for r in roots), default=np.inf))


def complex_targets(system: SquareSystem, data: Mapping[Variable, complex]) -> Targets:
    """The target that the data of an explicit system of the same rows stand for."""
    model = system.joined.model
    outputs, inputs = list(model.outputs), list(model.inputs)
    values = [data[Variable(outputs[i], k, 0)] / factorial(k) for i, k in system.rows]
    series = [
        [data.get(Variable(name, k, 0), 0.0) / factorial(k) for k in range(system.highest + 1)] for name in inputs
    ]
    fixed = [data[Variable(name, 0, 0)] for name in system.fixed]
    shape = (1, system.joined.inputs, system.highest + 1)
    return Targets(np.array([values]), np.array(series, dtype=complex).reshape(shape), np.array(fixed, dtype=complex))
