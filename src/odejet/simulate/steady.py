"""Steady: solutions that start at rest, and what they come to in the end.

Before the start nothing moves, under the values, inputs and time of the start or under others that were `before`.  In
the end nothing moves any more: after the last time and the last event, with what drives the model as it was last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.errors import ModelError
from odejet.jets.inputs import Sampled
from odejet.model import Model
from odejet.model.expressions import TIME, Expression, Piecewise, Symbol, children, evaluate, names, number, substituted
from odejet.model.modes import decided
from odejet.simulate.flow import Flow, Outcome, Trajectory
from odejet.simulate.rest import Rest

LATE = 1e30
"""The time in conditions, when all is over."""


class RestingFlow(Flow):
    """The solution map of a model that may start at rest, and that may be asked where it comes to rest in the end."""

    def __init__(self, model: Model, inputs: Mapping[str, Sampled] | None = None) -> None:
        super().__init__(model, inputs)
        self.samples = dict(inputs or {})
        self._is_timed = bool(model.inputs) or any(TIME in names(rate) for rate in model.states.values())
        self._rests: dict[float, Rest] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Set up anew elsewhere: what it keeps is found by identities, which only hold here.
        return type(self), (self.model, self.samples)

    def run(self, parameters, states, times, *, start=None, sensitivities=True, free_states=False, **options):
        """As `Flow.run`; an infinite time asks for the steady state after all others."""
        times = np.asarray(times, dtype=float)
        if not (self.model.steady and not free_states) and np.isfinite(times).all():
            return super().run(
                parameters, states, times, start=start, sensitivities=sensitivities, free_states=free_states, **options
            )
        finite = times[np.isfinite(times)]
        start = float(finite.min() if start is None else start)
        go = _Journey(self, np.asarray(parameters, dtype=float), sensitivities, free_states, options)
        if self.model.steady and not free_states and "tangents" not in options:
            rest = self.before(start).settled(go.parameters, None, go.used)
            if rest.outcome is not Outcome.COMPLETED:
                return go.nothing(rest.outcome, start)
            go = go.beginning(rest.rows)
            states = rest.rows[:, 0]
        if len(finite) == len(times):
            return go.run(states, times, start)
        return go.to_the_end(states, times, finite, start)

    def before(self, start: float) -> Rest:
        """The rest before the start."""
        when = start if self._is_timed else 0.0
        if when not in self._rests:
            self._rests[when] = Rest(held(self.model, self.samples, start, self.model.before), self.model.parameters)
        return self._rests[when]

    def after(self, end: float) -> Rest:
        """The rest in the end, with what drives the model held as it was last."""
        if np.inf not in self._rests:
            self._check_end()
            model = held(self.model, self.samples, end, {}, LATE)
            self._rests[np.inf] = Rest(model, self.model.parameters, approached=True)
        return self._rests[np.inf]

    def _check_end(self) -> None:
        """Refuse to look for rest where something goes on happening."""
        model = self.model
        reason = None
        if any(map(_moves, (*model.states.values(), *(u for u in model.inputs.values() if u is not None)))):
            reason = "the equations depend on t"
        elif any(event.when is not None or (event.every is not None and not event.count) for event in model.events):
            reason = "events go on happening"
        elif changed := [name for event in model.events for name in event.set if name not in model.states]:
            reason = f"an event sets '{changed[0]}'"
        if reason:
            raise ModelError(f"{model.name}: {reason}, so that no steady state is known at t = inf")

    def last(self, parameters: np.ndarray, end: float) -> float:
        """When the last event has happened, or the end if that is later."""
        values = {name: float(value) for name, value in self.model.fixed.items()}
        values |= dict(zip(self.model.parameters, parameters.tolist(), strict=True))
        for event in self.model.events:
            length = evaluate(event.every, values, math) * (event.count or 1) if event.every is not None else 0.0
            end = max([end, *(float(evaluate(time, values, math)) + length for time in event.at)])
        return end


@dataclass(frozen=True, eq=False)
class _Journey:
    """One run of a flow, from rest or to rest."""

    flow: RestingFlow
    parameters: np.ndarray
    sensitivities: bool
    free_states: bool
    options: Mapping[str, Any]
    tangents: np.ndarray | None = None

    @property
    def used(self) -> int:
        return 1 + (len(self.flow.unknowns(self.free_states)) if self.sensitivities else 0)

    def beginning(self, rows: np.ndarray) -> _Journey:
        return replace(self, tangents=rows[:, 1:])

    def run(self, states, times, start) -> Trajectory:
        known = {} if self.tangents is None else {"tangents": self.tangents}
        return Flow.run(
            self.flow,
            self.parameters,
            states,
            times,
            start=start,
            sensitivities=self.sensitivities,
            free_states=self.free_states,
            **{**self.options, **known},
        )

    def to_the_end(self, states, times: np.ndarray, finite: np.ndarray, start: float) -> Trajectory:
        """Along the finite times, and to rest after them."""
        end = self.flow.last(self.parameters, max(float(finite.max(initial=start)), start))
        way, inside = self.run(states, np.r_[finite, end], start), np.isfinite(times)
        if way.outcome is not Outcome.COMPLETED:
            return _without_end(way, inside)
        rest = self.flow.after(end).settled(self.parameters, way.states[-1], self.used)
        if rest.outcome is not Outcome.COMPLETED:
            return replace(_without_end(way, inside), outcome=rest.outcome, time=end)
        beyond = float(np.nextafter(end, np.inf))  # what happens at the end has happened
        there = self.beginning(rest.rows).run(rest.rows[:, 0], np.array([beyond]), beyond)
        places = np.where(inside, np.cumsum(inside) - 1, len(finite))
        states, outputs = (
            np.concatenate([along[:-1], last])[places]
            for along, last in ((way.states, there.states), (way.outputs, there.outputs))
        )
        return replace(way, reached=np.arange(len(times)), states=states, outputs=outputs)

    def nothing(self, outcome: Outcome, start: float) -> Trajectory:
        states, outputs = (np.zeros((0, len(t), self.used)) for t in (self.flow.model.states, self.flow.model.outputs))
        return Trajectory(np.zeros(0, dtype=int), states, outputs, outcome, start, 0, "steady state")


def _without_end(way: Trajectory, inside: np.ndarray) -> Trajectory:
    """A trajectory along the finite times that were asked for, without the time at its end."""
    asked = way.reached < np.count_nonzero(inside)
    places = np.flatnonzero(inside)[way.reached[asked]]
    return replace(way, reached=places, states=way.states[asked], outputs=way.outputs[asked])


# --- the equations at rest ---


def _moves(expression: Expression) -> bool:
    """Whether an expression depends on the time other than by conditions, which are decided in the end."""
    if isinstance(expression, Symbol):
        return expression.name == TIME
    parts = expression.values if isinstance(expression, Piecewise) else children(expression)
    return any(_moves(part) for part in parts if isinstance(part, Expression))


def held(
    model: Model,
    samples: Mapping[str, Sampled],
    time: float,
    before: Mapping[str, Expression],
    clock: float | None = None,
) -> Model:
    """The equations of a model with the time and the inputs held as they are at a time, but for what was before.

    States among the latter are those from which the rest is approached.  `clock` is what equations have for the time.
    """
    moment: dict[str, Expression] = {TIME: number(time if clock is None else clock)}
    known = dict(moment)
    for name, expression in model.inputs.items():
        known[name] = number(float(samples[name](time))) if expression is None else substituted(expression, moment)
    known |= {name: value for name, value in before.items() if name not in model.states}
    states = {name: decided(substituted(rate, known)) for name, rate in model.states.items()}
    initial = {name: before[name] for name in model.states if name in before}
    used = {name for table in (states, initial) for value in table.values() for name in names(value)}
    return Model(
        states,
        initial=initial,
        fixed={name: value for name, value in model.fixed.items() if name in used},
        name=model.name,
    )
