"""Chains: models of any length, and data of a model at values of order one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

import odejet as oj

NOISE, POINTS, SPAN = 0.01, 101, 10.0


@dataclass(frozen=True)
class Subject:
    """What is to be fitted."""

    model: oj.Model
    data: oj.Data
    posed: oj.Problem | None = None  # a problem that was published

    @property
    def problem(self) -> oj.Problem:
        return self.posed or oj.Problem(self.model, self.data)

    @property
    def unknowns(self) -> int:
        return len(self.problem.unknowns)

    @property
    def points(self) -> int:
        return sum(experiment.points for experiment in self.data.experiments)


def noisy(model: oj.Model, rng: np.random.Generator) -> oj.Data:
    return drawn(model, rng)[0]


def drawn(model: oj.Model, rng: np.random.Generator) -> tuple[oj.Data, dict[str, float]]:
    """Data of a model at values of order one, drawn again until there is a solution over the whole time; the values."""
    times = np.linspace(0, SPAN, POINTS)
    unknown = [state for state in model.states if state not in model.initial]
    while True:
        parameters, initial = (
            {name: float(rng.uniform(0.1, 0.9)) for name in kind} for kind in (model.parameters, unknown)
        )
        found = oj.simulate(model, parameters, initial, times)
        if found.success:
            outputs = {y: v + NOISE * v.std() * rng.normal(size=len(v)) for y, v in found.outputs.items()}
            return oj.Data(times, outputs), parameters | initial


def chain(steps: int, measured: int) -> Subject:
    """Michaelis-Menten steps in a row; one state of each `measured` is."""
    return drawn_chain(steps, measured)[0]


def drawn_chain(steps: int, measured: int, seed: int = 0) -> tuple[Subject, dict[str, float]]:
    """The same with the values that it was drawn with."""
    speed = [f"v{i}*x{i}/(k{i} + x{i})" for i in range(1, steps + 1)]
    rates = [f"-{speed[0]}", *(f"{before} - {after}" for before, after in itertools.pairwise(speed))]
    model = oj.Model(
        {f"x{i + 1}": rate for i, rate in enumerate(rates)},
        {f"y{i}": f"x{i}" for i in range(1, steps + 1, measured)},
        name=f"chain of {steps}",
    )
    data, truth = drawn(model, np.random.default_rng([steps, measured, seed] if seed else [steps, measured]))
    return Subject(model, data), truth
