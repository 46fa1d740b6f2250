"""Predicted: outputs and states of an experiment at any times, as functions of the unknowns with their exact gradients.

An experiment goes on beyond its measurements as far as its inputs are known, and before its start too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.objective.courses import Course, Effort
from odejet.objective.misfit import Misfit
from odejet.simulate.flow import MAX_STEPS, STIFF_STEPS, TOLERANCE, Outcome

FAR = Effort(TOLERANCE, MAX_STEPS, STIFF_STEPS, operations=2.5e9)
"""A prediction may go much farther than the data do."""


@dataclass(frozen=True, eq=False)
class Run:
    """Values (times, quantities) at the times that were reached, and their gradients if these were asked for."""

    reached: np.ndarray  # positions among the times
    values: np.ndarray
    gradients: np.ndarray | None  # (times, quantities, unknowns)
    outcome: Outcome
    message: str

    @property
    def complete(self) -> bool:
        return self.outcome is Outcome.COMPLETED


@dataclass(frozen=True, eq=False)
class Curves:
    """The outputs, then the states if these are wanted, of one experiment at some times."""

    course: Course
    size: int  # of z
    with_states: bool = True
    positive: frozenset[str] = frozenset()  # outputs that are positive whatever the unknowns are

    @classmethod
    def of(cls, misfit: Misfit, number: int, times: np.ndarray, states: bool = True) -> Curves:
        unknown = misfit.simulator.model.curves.items()
        positive = frozenset(name for name, curve in unknown if curve.positive)
        return cls(misfit.courses[number].at(times), len(misfit.unknowns), states, positive)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.course.flow.model.outputs)

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(self.course.flow.model.states)[: self.course.shown] if self.with_states else ()

    def run(self, z: np.ndarray, gradients: bool = False) -> Run:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.course.run(z, FAR, gradients)
        states = found.states[:, : self.course.shown]
        rows = np.concatenate([found.outputs, states], axis=1) if self.with_states else found.outputs
        slopes = None
        if gradients:
            slopes = np.zeros((*rows.shape[:2], self.size))
            slopes[:, :, self.course.columns] = rows[:, :, self.course.lanes]
        return Run(found.reached, rows[:, :, 0], slopes, found.outcome, found.message)

    def quantity(self, time: float, column: int, unit: float) -> Predicted:
        """One of them at one time, with a size that is usual for it."""
        name = (*self.outputs, *self.states)[column]
        alone = replace(self, course=replace(self.course, times=np.array([time])))
        return Predicted(f"{name}({time:g})", alone, column, unit)


@dataclass(frozen=True, eq=False)
class Predicted:
    """An output or a state at a time: a quantity whose likelihood one may ask for."""

    label: str
    curves: Curves  # at this time only
    column: int
    unit: float
    place: None = None
    _last: dict[bytes, tuple[float, np.ndarray]] = field(default_factory=dict)  # a refit asks again where it has been

    def at(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        key = z.tobytes()
        if key not in self._last:
            found = self.curves.run(z, gradients=True)
            self._last.clear()
            if found.gradients is None or not len(found.reached):
                self._last[key] = math.nan, np.full(len(z), math.nan)
            else:
                self._last[key] = float(found.values[0, self.column]), found.gradients[0, self.column]
        return self._last[key]

    def keeps_sign(self, signs: Sequence[float] | np.ndarray) -> bool:
        return False
