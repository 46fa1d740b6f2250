"""Estimate: values of all unknowns by name, parameters apart from the initial states of each experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.data import Experiment
from odejet.problem import Unknown
from odejet.search.refine import Refined


@dataclass(frozen=True)
class Estimate:
    """One set of values that explains the data as well as any other."""

    parameters: Mapping[str, float]
    initial_states: Mapping[str, Mapping[str, float]]  # by experiment
    cost: float
    inside_bounds: bool = True

    @classmethod
    def of(
        cls,
        unknowns: Sequence[Unknown],
        experiments: Sequence[Experiment],
        refined: Refined,
        bounds: Mapping[str, tuple[float, float]],
    ) -> Estimate:
        """The end of a refinement; bounds are by label."""
        inside = all(
            bounds[unknown.label][0] <= value <= bounds[unknown.label][1]
            for unknown, value in zip(unknowns, refined.z.tolist(), strict=True)
        )
        return cls(*named(unknowns, experiments, refined.z), refined.cost, inside)

    @property
    def initial_state(self) -> Mapping[str, Any]:
        return of_one(self.initial_states)

    def value(self, unknown: Unknown) -> float:
        if unknown.is_state and unknown.experiment is not None:
            return self.initial_states[unknown.experiment][unknown.name]
        return self.parameters[unknown.label]


def named(
    unknowns: Sequence[Unknown], experiments: Sequence[Experiment], values: np.ndarray
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Parameters by label, and initial states by experiment and state."""
    parameters: dict[str, float] = {}
    states: dict[str, dict[str, float]] = {experiment.name: {} for experiment in experiments}
    for unknown, value in zip(unknowns, values.tolist(), strict=True):
        if unknown.is_state and unknown.experiment is not None:
            states[unknown.experiment][unknown.name] = value
        else:
            parameters[unknown.label] = value
    return parameters, states


def of_one(tables: Mapping[str, Any]) -> Any:
    """The table of the only experiment; of several, all of them by name."""
    return next(iter(tables.values())) if len(tables) == 1 else tables
