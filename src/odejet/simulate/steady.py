"""Steady: solutions that start at rest, and what they come to in the end.

Before the start nothing moves, under the values, inputs and time of the start or under others that were `before`; where
it is known from which states that rest was approached, events that wait for conditions have happened on the way.  In
the end nothing moves any more: after the last time and the last event, with what drives the model as it was last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.errors import ModelError
from odejet.jets.inputs import Sampled
from odejet.model import Event, Model
from odejet.model.expressions import (
    TIME,
    ZERO,
    Expression,
    Symbol,
    evaluate,
    fresh,
    names,
    number,
    substituted,
)
from odejet.model.folding import folded
from odejet.model.regimen import Regimen
from odejet.model.transform import rewritten
from odejet.simulate.flow import Flow, Outcome, Trajectory, just_after
from odejet.simulate.lean import Lean, lean
from odejet.simulate.periodic import Periodic
from odejet.simulate.rest import Rest, Rested
from odejet.simulate.still import Still, Turn, moves, still, turned, turns_of
from odejet.simulate.trajectory import joined

LATE = 1e30
"""The time in conditions, when all is over."""

EARLY = 1e-6
"""The part of a stretch at rest that is followed nevertheless: events say how its end moves with parameters."""


class RestingFlow(Flow):
    """The solution map of a model that may start at rest, and that may be asked where it comes to rest in the end."""

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, Sampled] | None = None,
        rests: dict[tuple[Any, ...], Rest] | None = None,
    ) -> None:
        super().__init__(model, inputs)
        self.samples = dict(inputs or {})
        parts = (*model.states.values(), *(part for event in _waiting(model) for part in event.expressions()))
        self._is_timed = bool(model.inputs) or any(TIME in names(part) for part in parts)
        self._rests: dict[float, _Resting] = {}
        self._still: dict[float, Still | None] = {}
        self._shared = {} if rests is None else rests  # of all flows of a problem, by what they are the rest of
        self._periodic = {one: Periodic(model, self.samples, one) for one in model.regimens}
        self.lean = None if model.regimens or model.is_delayed else Lean.of(model)
        self.leaner = None if self.lean is None else RestingFlow(self.lean.model, inputs, self._shared)

    def __reduce__(self) -> tuple[Any, ...]:
        # Set up anew elsewhere: what it keeps is found by identities, which only hold here.
        return type(self), (self.model, self.samples)

    def run(self, parameters, states, times, *, start=None, sensitivities=True, free_states=False, **options):
        """As `Flow.run`; an infinite time asks for the steady state after all others."""
        times = np.asarray(times, dtype=float)
        if self._periodic and "tangents" not in options:
            first = float(times[np.isfinite(times)].min()) if start is None else float(start)
            go = _Journey(self, np.asarray(parameters, dtype=float), sensitivities, free_states, options)
            return _Stations(go, first, times).run(states)
        return self.plain(
            parameters,
            states,
            times,
            start=start,
            sensitivities=sensitivities,
            free_states=free_states,
            **options,
        )

    def plain(self, parameters, states, times, *, start=None, sensitivities=True, free_states=False, **options):
        """Run from the given start, whether there is a regimen or not."""
        if self.lean is not None and self.leaner is not None and not free_states and "tangents" not in options:
            own = np.asarray(parameters, dtype=float)[self.lean.parameters], np.asarray(states)[self.lean.states]
            found = self.leaner.run(*own, times, start=start, sensitivities=sensitivities, **options)
            used = 1 + len(self.unknowns()) if sensitivities else 1
            return self.lean.whole(found, len(self.model.states), used)
        if not (self.model.steady and not free_states) and np.isfinite(times).all():
            return Flow.run(
                self,
                parameters,
                states,
                times,
                start=start,
                sensitivities=sensitivities,
                free_states=free_states,
                **options,
            )
        finite = times[np.isfinite(times)]
        start = float(finite.min() if start is None else start)
        go = _Journey(self, np.asarray(parameters, dtype=float), sensitivities, free_states, options)
        if self.model.steady and not free_states and "tangents" not in options:
            rest = self.before(start).known(go.parameters, go.used)
            if rest.outcome is not Outcome.COMPLETED:
                return go.nothing(rest.outcome, start)
            go = go.beginning(
                rest.rows, {name: i for name, i in self.set_before.items() if name not in self.model.before}
            )
            states = rest.rows[: len(self.model.states), 0]
            go = replace(go, still=self.still(start))
        if len(finite) == len(times):
            return go.run(states, times, start)
        return go.to_the_end(states, times, finite, start)

    def periodic(self, regimen: Regimen) -> Periodic:
        """The periodic solution that a regimen leads to."""
        return self._periodic[regimen]

    @cached_property
    def set_before(self) -> dict[str, int]:
        """Parameters that events may set while the model comes to rest, with their rows."""
        if not set(self.model.states) <= set(self.model.before):
            return {}
        return _rows_of(self.model, _waiting(self.model))

    def before(self, start: float) -> _Resting:
        """The rest before the start."""
        when = start if self._is_timed else 0.0
        if when not in self._rests:
            model = held(self.model, self.samples, start, self.model.before, tuple(self.set_before))
            self._rests[when] = self.rest(model)
        return self._rests[when]

    def still(self, start: float) -> Still | None:
        """How long a start at rest stays there, if it does at all."""
        if start not in self._still:
            self._still[start] = still(self.model, self.samples, start, self.before(start).rest.flow.model)
        return self._still[start]

    def values(self, parameters: np.ndarray) -> dict[str, float]:
        """What parameters are and what is fixed, by name."""
        fixed = {name: float(value) for name, value in self.model.fixed.items()}
        return fixed | dict(zip(self.model.parameters, parameters.tolist(), strict=True))

    @cached_property
    def set_after(self) -> dict[str, int]:
        """Parameters that events set, with their rows in the end."""
        return _rows_of(self.model, self.model.events)

    def after(self, end: float) -> _Resting:
        """The rest in the end, with what drives the model held as it was last."""
        if np.inf not in self._rests:
            model = held(self.model, self.samples, end, {}, tuple(self.set_after), LATE)
            self._rests[np.inf] = self.rest(model, approached=True)
        return self._rests[np.inf]

    def rest(self, model: Model, approached: bool = False) -> _Resting:
        """The rest of some equations, which another flow may have met already; without what stays zero on the way
        there, if it is told where that begins."""
        left = (None if approached else lean(model)) or model
        key = *left.key, approached
        if key not in self._shared:
            self._shared[key] = Rest(left, approached)
        own = [self.model.parameters.index(name) for name in left.parameters]
        states = [i for i, name in enumerate(model.states) if name in left.states]
        places = np.array(own, dtype=int), np.array(states, dtype=int)
        return _Resting(self._shared[key], *places, len(model.states), len(self.model.parameters))

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Switching functions of the time with their slopes; a sentence where something goes on happening."""
        model, moving = self.model, {*self.model.states}
        moving |= {name for name, expression in model.inputs.items() if expression is None}
        functions = {name: value for name, value in model.inputs.items() if value is not None}
        equations = [substituted(part, functions) for part in (*model.states.values(), *functions.values())]
        waiting = [event.substituted(functions) for event in _waiting(model)]
        found = [turn for part in equations for turn in turns_of(part)]
        conditions = [turn for event in waiting for turn in turns_of(event.when)]
        reason = None
        if any(map(moves, equations)) or None in found:
            reason = "the equations depend on t"
        elif any(event.every is not None and not event.count for event in model.events):
            reason = "events go on happening"
        elif None in conditions or any(moving & set(names(turn[0])) for turn in conditions if turn):
            reason = "a condition of an event depends on t and on more"
        elif any(moves(value) for event in waiting for value in event.set.values()):
            reason = "what an event sets depends on t"
        if reason:
            raise ModelError(f"{model.name}: {reason}, so that no steady state is known at t = inf")
        return tuple(turn for turn in (*found, *conditions) if turn and not moving & set(names(turn[0])))

    def last(self, parameters: np.ndarray, end: float) -> float:
        """When the last event has happened and the last switch in time, or the end if that is later."""
        values = self.values(parameters)
        for event in self.model.events:
            length = evaluate(event.every, values, math) * (event.count or 1) if event.every is not None else 0.0
            end = max([end, *(float(evaluate(time, values, math)) + length for time in event.at)])
        return max([end, *(turned(turn, values) for turn in self.turns)])


@dataclass(frozen=True, eq=False)
class _Resting:
    """A rest as a function of all parameters of a flow."""

    rest: Rest
    own: np.ndarray  # which of them the rest depends on
    states: np.ndarray  # which of the states do not stay zero
    count: int  # of all states
    parameters: int

    def known(self, parameters: np.ndarray, used: int) -> Rested:
        """The steady state that the model tells of, in rows of value and derivatives, as many as are `used`."""
        found = self.rest.known(parameters[self.own], used > 1)
        rows = np.zeros((self.count, used))
        rows[self.states[:, None], np.r_[0, self.lanes(used)]] = found.rows
        return Rested(rows, found.outcome)

    def settled(self, parameters: np.ndarray, start: np.ndarray, used: int) -> Rested:
        """The steady state that is approached from rows of value and derivatives."""
        return self.rest.settled(parameters[self.own], start, self.lanes(used))

    def lanes(self, used: int) -> np.ndarray:
        """Where derivatives by the rest's own parameters stand; the last lanes are those of all parameters."""
        return used - self.parameters + self.own if used > 1 else self.own[:0]


def _waiting(model: Model) -> list[Event]:
    """The events that wait for a condition."""
    return [event for event in model.events if event.when is not None]


def _rows_of(model: Model, events: Iterable[Event]) -> dict[str, int]:
    """Parameters that events set, with their rows after those of the states."""
    set_ = dict.fromkeys(name for event in events for name in event.set if name not in model.states)
    return {name: len(model.states) + i for i, name in enumerate(set_)}


@dataclass(frozen=True, eq=False)
class _Journey:
    """One run of a flow, from rest or to rest."""

    flow: RestingFlow
    parameters: np.ndarray
    sensitivities: bool
    free_states: bool
    options: Mapping[str, Any]
    known: Mapping[str, Any] = field(default_factory=dict)  # what is known of a start at rest
    still: Still | None = None  # how long it stays there

    @property
    def used(self) -> int:
        return 1 + (len(self.flow.unknowns(self.free_states)) if self.sensitivities else 0)

    def beginning(self, rows: np.ndarray, held: Mapping[str, int]) -> _Journey:
        """Return the run that begins with these rows of states, and of parameters that events have set."""
        known = {
            "tangents": rows[: len(self.flow.model.states), 1:],
            "held": {name: rows[i] for name, i in held.items()},
        }
        return _Journey(self.flow, self.parameters, self.sensitivities, self.free_states, self.options, known)

    def run(self, states, times, start) -> Trajectory:
        """From the start, or from where a solution at rest begins to move."""
        if self.still is None or times.min() < start:
            return self.moved(states, times, start)
        until = self.still.until(self.flow.values(self.parameters))
        leap = until - EARLY * (until - start) if until < np.inf else until
        early = times < leap
        if not early.any():
            return self.moved(states, times, leap)
        rows = np.column_stack([states, self.known["tangents"]])
        resting = self.still.run(self.parameters, rows, times[early])
        if early.all():
            return resting
        parts = [self.moved(states, times[~early], leap), resting]
        return joined([np.flatnonzero(~early), np.flatnonzero(early)], parts)

    def moved(self, states, times, start) -> Trajectory:
        return Flow.run(
            self.flow,
            self.parameters,
            states,
            times,
            start=start,
            sensitivities=self.sensitivities,
            free_states=self.free_states,
            **{**self.options, **self.known},
        )

    def to_the_end(self, states, times: np.ndarray, finite: np.ndarray, start: float) -> Trajectory:
        """Along the finite times, and to rest after them."""
        end = self.flow.last(self.parameters, max(float(finite.max(initial=start)), start))
        beyond = just_after(end, start)  # what happens at the end has happened
        way, inside = self.run(states, np.r_[finite, beyond], start), np.isfinite(times)
        if way.outcome is not Outcome.COMPLETED:
            return _without_end(way, inside)
        brought = np.array([*way.states[-1], *(way.held[name] for name in self.flow.set_after)])
        rest = self.flow.after(end).settled(self.parameters, brought, self.used)
        if rest.outcome is not Outcome.COMPLETED:
            return replace(_without_end(way, inside), outcome=rest.outcome, time=end)
        there = self.beginning(rest.rows, self.flow.set_after).run(
            rest.rows[: len(self.flow.model.states), 0], np.array([beyond]), beyond
        )
        places = np.where(inside, np.cumsum(inside) - 1, len(finite))
        states, outputs = (
            np.concatenate([along[:-1], last])[places]
            for along, last in ((way.states, there.states), (way.outputs, there.outputs))
        )
        defined = way.defined and there.defined
        return replace(way, reached=np.arange(len(times)), states=states, outputs=outputs, defined=defined)

    def nothing(self, outcome: Outcome, start: float) -> Trajectory:
        states, outputs = (np.zeros((0, len(t), self.used)) for t in (self.flow.model.states, self.flow.model.outputs))
        return Trajectory(np.zeros(0, dtype=int), states, outputs, outcome, start, 0, "steady state")


@dataclass(frozen=True, eq=False)
class _Stations:
    """One run of a flow, from one regimen to the next: at the time of each the solution begins anew."""

    go: _Journey
    start: float
    times: np.ndarray

    def run(self, states) -> Trajectory:
        order = np.argsort(self.times, kind="stable")
        asked = self.times[order]
        free = self.go.free_states
        regimens = sorted(self.go.flow.model.regimens, key=lambda one: one.time)
        ahead = [one for one in regimens if one.time > self.start or (one.time == self.start and not free)]
        passed = [one.time for one in regimens if one not in ahead]
        # From after a regimen nobody knows what was before it.
        begin = max([*passed, *(self.start for one in ahead if one.time == self.start)], default=-np.inf)
        lost = int(np.searchsorted(asked, begin))
        parts: list[Trajectory] = []
        branches: list[np.ndarray] = []
        place, way = lost, None
        for i, one in enumerate([None, *ahead]):
            until = ahead[i].time if i < len(ahead) else np.inf
            # What is measured when a later regimen ends is measured before that, unless its doses are seen then.
            seen = i < len(ahead) and any(event.seen for event in ahead[i].events)
            if until < np.inf and not (seen and until > self.start):
                until = np.nextafter(until, np.inf if until > self.start else -np.inf)
            last = place + int(np.searchsorted(asked[place:], until)) if until < np.inf else len(asked)
            # Infusions that are under way there end later.
            running = i < len(ahead) and ahead[i].time > self.start and bool(self.go.flow.set_by_events)
            wanted = i < len(ahead) and (ahead[i].added or running)
            if one is not None and one.time > asked[-1]:
                break
            if last > place or wanted or (i == len(ahead) and not parts):
                way = self.stretch(one, way, states, asked[place:last], ahead[i].time if wanted else None)
                parts.append(way)
                branches.append(order[place:last])
                if way.outcome is not Outcome.COMPLETED:
                    break
            place = last
        found = joined(branches, [_cut(part, len(branch)) for part, branch in zip(parts, branches, strict=True)])
        if lost and found.outcome is Outcome.COMPLETED:
            return replace(found, outcome=Outcome.IRREVERSIBLE, time=begin)
        return found

    def stretch(
        self, regimen: Regimen | None, way: Trajectory | None, states, times: np.ndarray, end: float | None
    ) -> Trajectory:
        """From the start or from a regimen along times, and to just before an end, if one is wanted."""
        go, flow = self.go, self.go.flow
        along = times if end is None else np.r_[times[times < end], np.nextafter(end, -np.inf)]
        if regimen is None:
            options = {"sensitivities": go.sensitivities, "free_states": go.free_states, **go.options}
            return flow.plain(go.parameters, states, along, start=self.start, **options)
        found = flow.periodic(regimen).known(go.parameters, go.used, go.options)
        if found.outcome is not Outcome.COMPLETED:
            return replace(go.nothing(found.outcome, regimen.time), method="periodic solution")
        rows, held = found.rows, {} if way is None else dict(way.held)
        if regimen.added and way is not None:
            rows = rows + way.states[-1]
        count = len(flow.model.states)
        brought = np.concatenate([rows, *(row[None] for row in held.values())])
        there = go.beginning(brought, {name: count + i for i, name in enumerate(held)})
        finite = along[np.isfinite(along)]
        if len(finite) < len(along):
            return there.to_the_end(rows[:, 0], along, finite, regimen.time)
        return there.moved(rows[:, 0], along, regimen.time)


def _cut(part: Trajectory, count: int) -> Trajectory:
    """The first of the times that a part was asked for."""
    return replace(part, reached=part.reached[:count], states=part.states[:count], outputs=part.outputs[:count])


def _without_end(way: Trajectory, inside: np.ndarray) -> Trajectory:
    """A trajectory along the finite times that were asked for, without the time at its end."""
    asked = way.reached < np.count_nonzero(inside)
    places = np.flatnonzero(inside)[way.reached[asked]]
    return replace(way, reached=places, states=way.states[asked], outputs=way.outputs[asked])


# --- the equations at rest ---


def held(
    model: Model,
    samples: Mapping[str, Sampled],
    time: float,
    before: Mapping[str, Expression],
    carried: Sequence[str] = (),
    clock: float | None = None,
) -> Model:
    """The equations of a model with the time and the inputs held as they are at a time, but for what was before.

    States among the latter are those from which the rest is approached.  `clock` is what equations have for the time.
    Parameters that are `carried` are states, which events on conditions set.
    """
    moment: dict[str, Expression] = {TIME: number(time if clock is None else clock)}
    known = dict(moment)
    for name, expression in model.inputs.items():
        known[name] = number(float(samples[name](time))) if expression is None else substituted(expression, moment)
    known |= {name: number(value) for name, value in model.fixed.items()}  # equal rests are then written alike
    known |= {name: value for name, value in before.items() if name not in model.states}
    taken = {*model.states, *model.parameters, *model.fixed, *model.inputs}
    now = {name: fresh(name, taken) for name in carried}
    initial = {name: before[name] for name in model.states if name in before}
    initial |= {now[name]: before.get(name, Symbol(name)) for name in carried}
    known |= {name: Symbol(new) for name, new in now.items()}
    states = {name: folded(substituted(rate, known)) for name, rate in model.states.items()}
    states |= dict.fromkeys(now.values(), ZERO)
    events = [
        Event(
            when=substituted(event.when, known),
            set={now.get(name, name): substituted(value, known) for name, value in event.set.items()},
            seen=event.seen,
        )
        for event in (_waiting(model) if clock is not None or set(model.states) <= set(before) else ())
    ]
    tables = {"states": states, "outputs": {}, "inputs": {}, "initial": initial, "before": {}, "events": events}
    return rewritten(model, ordered=False, **tables)
