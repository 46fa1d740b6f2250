"""Experiment: one run of the system, what was measured in it and what is known about it.

Series hold what was measured, one per output, each on its own times.  What drove the experiment are its inputs; what
is known of its initial state and of its parameters are numbers or expressions in parameters.  The initial state holds
at `start`, which may lie before the first measurement; it may be at rest, under what was `before`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from odejet.data.covariate import Covariate
from odejet.data.doses import Dose
from odejet.data.series import Series
from odejet.errors import DataError
from odejet.jets.inputs import Sampled
from odejet.model import Event
from odejet.model.expressions import Expression

LATEST = 1e60
"""Times must be smaller: their powers are computed."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment; the series hold finite values in the order of time."""

    name: str
    outputs: Mapping[str, Series]
    inputs: Mapping[str, Sampled | str] = field(default_factory=dict)  # samples, or expressions in t
    initial: Mapping[str, Expression] = field(default_factory=dict)  # known initial states
    values: Mapping[str, Expression] = field(default_factory=dict)  # what parameters are here
    steady: bool = False  # whether it starts at rest
    before: Mapping[str, Expression] = field(default_factory=dict)  # what parameters, inputs and states were until then
    events: tuple[Event, ...] = ()  # what happens to it, beside what the model says
    doses: tuple[Dose, ...] = ()
    covariates: Mapping[str, Covariate] = field(default_factory=dict)  # what else a table tells of it
    start: float = float("nan")  # when the initial state holds; by default the first measurement
    started: bool = True  # whether that was told: if not, the model may know better

    def __post_init__(self) -> None:
        first = min(float(series.times[0]) for series in self.outputs.values())
        if self.start != self.start:
            object.__setattr__(self, "start", first)
            object.__setattr__(self, "started", False)
        if self.start == math.inf:
            raise DataError(f"{self.name}: all measurements are at t = inf; give the start")
        if self.start > first:
            raise DataError(
                f"{self.name}: there is a measurement at t = {first:g}, but the initial state holds at "
                f"start = {self.start:g}; give an earlier start"
            )
        if not max(abs(self.start), abs(self.end)) < LATEST:
            times = f"times from {self.start:g} to {self.end:g}"
            raise DataError(f"{self.name}: {times} are beyond what can be computed; use other units")

    @cached_property
    def end(self) -> float:
        """The last time that is finite."""
        last = (float(series.finite.times[-1]) for series in self.outputs.values() if len(series.finite))
        return max(last, default=self.start)

    @property
    def points(self) -> int:
        """The number of measurements."""
        return sum(len(series) for series in self.outputs.values())

    @property
    def sampled(self) -> dict[str, Sampled]:
        return {name: value for name, value in self.inputs.items() if isinstance(value, Sampled)}
