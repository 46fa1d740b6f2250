"""Excitation: events at times as what they are to identifiability, inputs that are known.

An event that adds e(x, p) to a state at times t_1, t_2, ... is the term e u in the rate of that state, where the pulses
u at those times are known.  Like any input they are taken to excite the model enough, and outputs to be measured on
both sides of each.

*Times that depend on parameters* show in the outputs, which break there, and are measurements of their own: such a time
is one more output of the model, a function of the parameters alone.  That is so for events that outputs feel, which a
random point decides: there the outputs change with the pulse.  Which break belongs to which event is known where all
such times differ by numbers, since then their order is; otherwise two events may change places, and the parameters have
finitely many values of which nobody knows how many.

Events on conditions depend on the course of the solution and are no input, and there nothing is decided.  Where inputs
are generic it does not matter that their own functions switch; switches elsewhere are left to `switching`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from odejet.jets import modular
from odejet.model import Event, Model, algebraic
from odejet.model.derivatives import derivative
from odejet.model.expressions import Expression, Product, Sum, Symbol, constant, fresh, names, number, switches
from odejet.model.folding import folded
from odejet.model.modes import decided, difference
from odejet.model.transform import rewritten

CONDITIONS = "the model has events on conditions, and identifiability is decided for events at known times alone"
RESETS = "an event sets a state to another value, and identifiability is decided for events that add to states alone"


@dataclass(frozen=True)
class Excited:
    """A model with inputs in the place of its events.

    `times` are the times of events that depend on parameters.  Where outputs feel these events, they are outputs too;
    where the equations switch, that depends on the mode.  Where events may be taken for one another, `between` is the
    model between two events, at whatever state.
    """

    model: Model
    times: tuple[Expression, ...] = ()
    between: Model | None = None


@dataclass(frozen=True)
class _Pulse:
    """What an event adds to one of the quantities that it sets, and the input that stands for the event."""

    event: Event
    target: str
    added: Expression
    input: str


def excited(model: Model, generic: bool = True) -> Excited | str:
    """The model with inputs in the place of its events, or the reason why there is none; its inputs may be generic."""
    if model.is_smooth:
        return Excited(model)
    tables: dict[str, Any] = {
        table: {name: value if value is None else decided(value) for name, value in getattr(model, table).items()}
        for table in ("states", "outputs", "inputs", "initial")
    }
    if generic:
        given = tables["inputs"].items()
        tables["inputs"] = {name: None if value is not None and switches(value) else value for name, value in given}
    for event in model.events:
        if event.when is not None:
            return CONDITIONS
    held = [name for name in dict.fromkeys(n for e in model.events for n in e.set) if name not in model.states]
    known = [name for name in held if name in model.fixed and _are_numbers(name, model.events)]
    taken = {*model.states, *held, *model.parameters, *model.fixed, *model.inputs, *model.outputs}
    pulses: list[_Pulse] = []
    inputs: dict[Any, str] = {}
    for i, event in enumerate(model.events):
        # What happens at the same times is one input.
        pulse = inputs.setdefault((event.at, event.every, event.count), fresh(f"pulse_{i}", taken))
        for name in event.set:
            if name not in known:
                added = _added(name, event)
                if added is None:
                    return RESETS
                pulses.append(_Pulse(event, name, added, pulse))
    pulses = list(_distinct(pulses, model))
    return _timed(model, _driven(model, tables, held, known, pulses), tables, held, pulses)


def _distinct(pulses: Sequence[_Pulse], model: Model) -> Iterator[_Pulse]:
    """The pulses of events that are not alike: at known times what adds the same, or any number, is one input."""
    groups: dict[str, list[_Pulse]] = {}
    for pulse in pulses:
        groups.setdefault(pulse.input, []).append(pulse)
    seen = set()
    for group in groups.values():
        if not _unknown_times(group[0].event, model):
            amounts = [constant(pulse.added) for pulse in group]
            if None not in amounts and len({pulse.target for pulse in group}) == 1:
                total = sum(amount for amount in amounts if amount is not None)
                group = [replace(group[0], added=number(1 if total else 0))]
            alike = frozenset((pulse.target, pulse.added) for pulse in group)
            if alike in seen:
                continue
            seen.add(alike)
        yield from group


def _driven(
    model: Model, tables: dict[str, Any], held: Sequence[str], known: Sequence[str], pulses: Sequence[_Pulse]
) -> Model:
    """The equations with a pulse for every term that is added; parameters that events set are states or inputs."""
    moving = [name for name in held if name not in known]
    states: dict[str, list[tuple[int, Expression]]] = {name: [(1, rate)] for name, rate in tables["states"].items()}
    states |= {name: [] for name in moving}
    for pulse in pulses:
        states[pulse.target].append((1, Product(((1, pulse.added), (1, Symbol(pulse.input))))))
    inputs = {**tables["inputs"], **dict.fromkeys(known), **dict.fromkeys(pulse.input for pulse in pulses)}
    initial = tables["initial"] | {name: number(model.fixed[name]) for name in moving if name in model.fixed}
    rates = {name: Sum(tuple(terms)) if terms else number(0) for name, terms in states.items()}
    return _model(model, held, states=rates, outputs=tables["outputs"], inputs=inputs, initial=initial)


def _model(model: Model, held: Sequence[str], **tables: Any) -> Model:
    """A model of other equations, in which parameters that events set are none."""
    fixed = {name: value for name, value in model.fixed.items() if name not in held}
    return rewritten(model, **tables, fixed=fixed, events=(), ordered=False)


# --- times that depend on parameters ---


def _timed(
    model: Model, driven: Model, tables: dict[str, Any], held: Sequence[str], pulses: Sequence[_Pulse]
) -> Excited:
    """The driven model with the unknown times of events that its outputs feel as outputs."""
    clocks = {id(event): _unknown_times(event, model) for event in model.events}
    unknown = [event for event in model.events if clocks[id(event)]]
    if not unknown or not driven.is_smooth:
        return Excited(driven, tuple(time for event in unknown for time in clocks[id(event)]))
    inputs = {id(event): {name for name in event.set if name in driven.inputs} for event in unknown}
    for pulse in pulses:
        inputs.setdefault(id(pulse.event), set()).add(pulse.input)
    felt = {id(event): _felt(driven, inputs[id(event)]) for event in unknown}
    seen = [event for event in unknown if felt[id(event)]]
    times = tuple(dict.fromkeys(time for event in seen for time in clocks[id(event)]))
    taken = {*driven.states, *driven.parameters, *driven.fixed, *driven.inputs, *driven.outputs}
    outputs = {**driven.outputs, **{fresh(f"time_{i}", taken): time for i, time in enumerate(times)}}
    timed = _model(model, held, states=driven.states, outputs=outputs, inputs=driven.inputs, initial=driven.initial)
    if all(felt[id(a)].isdisjoint(felt[id(b)]) or _is_shifted(a, b, model) for a, b in combinations(seen, 2)):
        return Excited(timed, times)
    free = {**tables, "states": {**tables["states"], **dict.fromkeys(held, number(0))}, "initial": {}}
    return Excited(timed, times, _model(model, held, **free))


def _times(event: Event) -> Iterator[Expression]:
    """The times that tell when an event happens: its own ones, and the second where it repeats."""
    yield from event.at
    if event.every is not None:
        yield Sum(((1, event.at[0]), (1, event.every)))


def _unknown_times(event: Event, model: Model) -> list[Expression]:
    """Those of them that depend on parameters."""
    return [folded(time) for time in _times(event) if any(name in model.parameters for name in names(time))]


def _is_shifted(one: Event, other: Event, model: Model) -> bool:
    """Whether all times of two events differ by numbers, whatever the parameters are."""
    apart = [difference(a, b) for a in _times(one) for b in _times(other)]
    slopes = (derivative(gap, name) for gap in apart for name in names(gap) if name not in model.fixed)
    return all(constant(slope) == 0 for slope in slopes)


def _felt(model: Model, inputs: set[str]) -> frozenset[str]:
    """The outputs that change with inputs, at a random point."""
    tape, field, known = algebraic.build(model), modular.Field(modular.PRIMES[0]), bool(model.initial)
    order = 2 * len(model.states) + 2
    generator = random.Random(0)
    try:
        at = modular.random_point(tape, field, generator, order, known_initial=known)
    except modular.Unlucky:
        return frozenset(model.outputs)
    changed = list(at.inputs)
    for i, name in enumerate(model.inputs):
        if name in inputs:
            # Their values at the time itself stay: functions of them were drawn.
            changed[i] = (at.inputs[i][0], *(generator.randrange(field.prime) for _ in at.inputs[i][1:]))
    points = at, replace(at, inputs=tuple(changed))
    one, other = (modular.jets(tape, field, p, order, tangents=False, known_initial=known).outputs for p in points)
    return frozenset(name for i, name in enumerate(model.outputs) if (one[i] != other[i]).any())


def _are_numbers(name: str, events: Sequence[Event]) -> bool:
    return all(constant(event.set[name]) is not None for event in events if name in event.set)


def _added(name: str, event: Event) -> Expression | None:
    """What an event adds to a quantity, or None if it does something else."""
    value = event.set[name]
    if value == Symbol(name):
        return number(0)
    if not isinstance(value, Sum) or (1, Symbol(name)) not in value.terms:
        return None
    at = value.terms.index((1, Symbol(name)))
    rest = Sum((*value.terms[:at], *value.terms[at + 1 :]))
    return None if switches(rest) or any(other in event.set for other in names(rest)) else rest
