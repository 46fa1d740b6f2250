"""Flow: the solution of a model as a function of its parameters and initial states.

`simulate` is for people; `Flow` is the same for programs that call it many times.  Each solution is an initial-value
problem (see `initial_value`); sampled inputs are polynomials between knots, and a model with events or switches is
analytic between them.  Whatever happens to a solution is an `Outcome` with a sentence, never an exception or a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import DataError, ModelError, nearest
from odejet.jets.drive import NO_DRIVE, Drive
from odejet.jets.inputs import Pieces, Sampled, merged
from odejet.model.clocks import switches_by_the_clock
from odejet.model.delays import resolved
from odejet.model.tape import Tape, build
from odejet.simulate.frame import Frame
from odejet.simulate.initial_value import Allowance, InitialValueProblem
from odejet.simulate.lookback import Lookback
from odejet.simulate.observation import Observation
from odejet.simulate.program import Program
from odejet.simulate.trajectory import Outcome, Trajectory, joined

if TYPE_CHECKING:
    from odejet.model import Model

__all__ = ["MAX_STEPS", "STIFF_STEPS", "TOLERANCE", "Flow", "Outcome", "Trajectory", "just_after"]

TOLERANCE = 1e-16
"""Truncation of a Taylor step, relative to each state: at rounding level, since it costs little."""

MAX_STEPS, STIFF_STEPS = 20_000, 5000
"""Steps by Taylor series and by collocation, beside those that knots of inputs and events take."""


_BESIDE = 1e-12  # relative to a time: so much later it is another, and a step leads there


def just_after(time: float, start: float) -> float:
    """A time at which all has happened that happens at another, and that no rounding takes for the other."""
    return time + max(_BESIDE * max(abs(time), abs(start)), 1e-300)


class Flow:
    """The solution map of a model, and of the samples of those inputs that are no functions of `t`; set up once, run
    many times."""

    def __init__(self, model: Model, inputs: Mapping[str, Sampled] | None = None) -> None:
        self.model = model = resolved(model)
        self.pieces = _pieces(model, inputs or {})
        self.lookback = Lookback(model, self.pieces) if model.is_delayed else None
        self.program = None if model.is_smooth or self.lookback is not None else Program(model)
        self._tape = build(model) if self.program is None and self.lookback is None else None
        self._steps = _steps(model, inputs or {})
        self.driven = any(expression is None for expression in model.inputs.values())
        self.observation = Observation(model)
        self._frames: dict[tuple[bool, bool, bool], Frame] = {}

    @property
    def tape(self) -> Tape:
        """The equations of a model without switches and events."""
        if self.lookback is not None:
            raise ModelError(
                f"{self.model.name}: the model looks back in time, so that no jet follows from its states alone"
            )
        if self._tape is None:
            raise ModelError(
                f"{self.model.name}: the model switches or has events, so that no one set of equations holds at all "
                "times, as steady states and jets need"
            )
        return self._tape

    def drive(self, times: np.ndarray) -> Drive:
        """The sampled inputs, with their values at times."""
        if not self.driven:
            return NO_DRIVE
        values = np.ascontiguousarray(self.pieces.series(times, 0)[:, :, 0])
        for i, steps in self._steps:  # what is measured at a step is before it
            there = np.isin(times, steps)
            if there.any():
                before = self.pieces.piece(np.nextafter(times[there], -np.inf))
                values[there, i] = self.pieces.series(times[there], 0, before)[:, i, 0]
        return Drive(self.pieces.knots, self.pieces.coefficients, values)

    @cached_property
    def switches_by_the_clock(self) -> bool:
        """Whether equations switch at known times only, and nothing else happens."""
        return switches_by_the_clock(self.model)

    def unknowns(self, free_states: bool = False) -> tuple[str, ...]:
        """The names behind the sensitivities: unknown initial states (all of them with `free_states`), parameters."""
        return (
            *(tuple(self.model.states) if free_states else self.model.free_states),
            *self.model.parameters,
        )

    @property
    def set_by_events(self) -> tuple[str, ...]:
        """Parameters that events set."""
        if self.lookback is not None:
            return self.lookback.held
        return () if self.program is None else self.program.held

    def frame(self, sensitivities: bool, free_states: bool, every: bool = False) -> Frame:
        """The rows of all its problems, made once; with `every` they have tangents by what no solution feels, too."""
        key = sensitivities, free_states, every
        if key not in self._frames:
            unknowns = self.unknowns(free_states) if sensitivities else ()
            unfelt = () if every else self.observation.unfelt
            self._frames[key] = Frame.of(self.model, self.set_by_events, unknowns, unfelt)
        return self._frames[key]

    @property
    def kind(self) -> type[InitialValueProblem]:
        """How its initial-value problems are solved."""
        if self.lookback is None:
            return InitialValueProblem
        from odejet.simulate.delayed_problem import DelayedProblem

        return DelayedProblem

    def run(
        self,
        parameters: Sequence[float] | np.ndarray,
        states: Sequence[float] | np.ndarray,
        times: Sequence[float] | np.ndarray,
        *,
        start: float | None = None,
        sensitivities: bool = True,
        free_states: bool = False,
        tangents: np.ndarray | None = None,
        held: Mapping[str, np.ndarray] | None = None,
        tolerance: float = TOLERANCE,
        max_steps: float = MAX_STEPS,
        stiff_steps: float = STIFF_STEPS,
        operations: float = 0.0,
        max_switches: float = math.inf,
        deadline: float = math.inf,
    ) -> Trajectory:
        """Integrate from `states` at `start` (by default the first time) to all `times`, forward and backward.

        Initial states that the model knows replace those given, unless `free_states` says that `start` is any time, or
        `tangents` tell the derivatives of the states there by the unknowns.  `held` are rows of parameters that events
        have set before.

        Steps are limited, beside those that knots of inputs and events take; those of a small model are as many as come
        to some `operations`, of about two nanoseconds.  The clock is looked at after a tenth of a second each.
        """
        times = np.asarray(times, dtype=float)
        start = float(times.min()) if start is None else float(start)
        if (
            self.driven
            and self.lookback is None
            and not self.pieces.cover(min(start, times.min()), max(start, times.max()))
        ):
            first, last = self.pieces.knots[[0, -1]]
            raise DataError(
                f"the inputs are sampled from t = {first:g} to {last:g}, but the simulation goes beyond; sample longer"
            )
        frame = self.frame(sensitivities, free_states)
        if tangents is not None and not frame.has([*tangents, *(row[1:] for row in (held or {}).values())]):
            frame = self.frame(sensitivities, free_states, every=True)

        def solved(times: np.ndarray) -> Trajectory:
            problem = self.kind(self, frame, parameters, states, free_states, tangents, held or {})
            problem.deadline, problem.max_switches = deadline, max_switches
            return problem.solve(start, times, tolerance, Allowance(max_steps, stiff_steps, operations))

        if start <= times[0] and (times[:-1] <= times[1:]).all():
            return solved(times)
        order = np.argsort(times, kind="stable")
        split = int(np.searchsorted(times[order], start, side="left"))
        branches = [branch for branch in (order[split:], order[:split][::-1]) if len(branch)]
        return joined(branches, [solved(times[branch]) for branch in branches])


def _pieces(model: Model, inputs: Mapping[str, Sampled]) -> Pieces:
    """The sampled inputs of a model, in its order."""
    wanted = [name for name, expression in model.inputs.items() if expression is None]
    for name in wanted:
        if name not in inputs:
            raise ModelError(f"the input '{name}' is sampled; give inputs={{'{name}': (times, values)}}")
    for name in inputs:
        if name not in wanted:
            raise ModelError(f"the model has no sampled input '{name}'{nearest(name, wanted)}")
    return merged([inputs[name] for name in wanted])


def _steps(model: Model, inputs: Mapping[str, Sampled]) -> list[tuple[int, np.ndarray]]:
    """The sampled inputs of a model that jump, by their places, and the times at which they do."""
    wanted = [name for name, expression in model.inputs.items() if expression is None]
    doubled = [inputs[name].times[1:][np.diff(inputs[name].times) == 0] for name in wanted]
    return [(i, times) for i, times in enumerate(doubled) if len(times)]
