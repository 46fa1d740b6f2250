"""Joint: the experiments of a problem as one model, for questions about what all of them together can tell.

Every experiment has its own copy of the states, its own outputs and its own local parameters; what is shared keeps its
name.  Experiments that know the same are alike: a few of each kind are enough, since a further one adds equations of a
form that is there already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odejet.model import Event, Model
from odejet.model.expressions import ZERO, Expression, Sum, Symbol, constant, fresh, substituted
from odejet.model.expressions import number as numeral
from odejet.model.folding import folded
from odejet.model.names import ended
from odejet.model.transform import joined, renamed, restricted
from odejet.problem.conditions import in_pieces
from odejet.problem.problem import Problem

ALIKE = 2
"""Experiments of one kind that are looked at: a second one may tell shared parameters that one alone leaves open."""

MOST = 6
"""Experiments in all, the largest that exact arithmetic is likely to decide."""


@dataclass(frozen=True, eq=False)
class Joint:
    """One model of several experiments, how it calls each unknown of the problem, by label, how many there are, and the
    first and the last of their starts."""

    model: Model
    names: Mapping[str, str]
    experiments: int
    starts: tuple[float, float]


def joint(problem: Problem) -> Joint:
    """The experiments of a problem as one model; a single one as it is, with the outputs that were measured."""
    kinds: dict[Any, list[int]] = {}
    for number, condition in enumerate(problem.conditions):
        kinds.setdefault(condition.kind, []).append(number)
    chosen = sorted([number for members in kinds.values() for number in members[:ALIKE]])[:MOST]
    several = len(chosen) > 1
    taken = {name for c in problem.conditions for name in (*c.model.parameters, *c.model.fixed)}
    parts = {number: _renamed(problem, number, several, taken) for number in chosen}
    labels: dict[str, str] = {}
    unknowns = problem.unknowns
    for members in kinds.values():
        model_names = parts[members[0]].names if members[0] in parts else None
        for number in members:
            own = parts[number].names if number in parts else model_names
            for name, entry in problem.layout.places[number].items():
                if own is not None and name in own:  # the noise has unknowns that the model does not have
                    labels.setdefault(unknowns[entry], own[name])
    model = joined([part.model for part in parts.values()])
    if not model.is_smooth:
        # Where the equations switch, bounds may tell on which side of a switch the experiments begin.
        bounds = {name: problem.bounds[label] for label, name in labels.items() if name in model.unknowns}
        model = model.replace(bounds={name: pair for name, pair in bounds.items() if pair != (-math.inf, math.inf)})
    times = [problem.experiments[number].start for number in chosen]
    return Joint(model, labels, len(chosen), (min(times), max(times)))


@dataclass(frozen=True, eq=False)
class _Part:
    """One experiment under names of its own."""

    model: Model
    names: Mapping[str, str]


def _renamed(problem: Problem, number: int, several: bool, taken: set[str]) -> _Part:
    condition, layout = problem.conditions[number], problem.layout
    own = in_pieces(problem.model, condition.experiment) if condition.functions else condition.model
    own, shared = _with_few_pulses(_from_zero(own)), set(layout.shared.tolist())
    places = layout.places[number]
    # A number is the same number in every experiment, but two experiments may know different ones.
    moving = [
        *own.states,
        *own.outputs,
        *own.inputs,
        *own.fixed,
        *(n for n in own.parameters if places[n] not in shared),
    ]
    # `x_hot` for x in the experiment hot.
    suffix = "".join(c if c.isalnum() else "_" for c in condition.experiment.name)
    new = {name: fresh(ended(name[:90], f"_{suffix}"[:90]), taken) if several else name for name in moving}
    model = restricted(own, condition.experiment.outputs)
    model = renamed(model, new) if several else model
    return _Part(model, {**{n: n for n in own.parameters}, **new})


def _with_few_pulses(model: Model) -> Model:
    """A model in which all numbers that events add to a quantity at known times are those of one event.

    To what can be known they are one input whose course is known, however many there are.
    """
    events: list[Event] = []
    seen: set[str] = set()
    for event in model.events:
        target = _known_pulse(event)
        if target is None or target not in seen:
            events.append(event)
        if target is not None:
            seen.add(target)
    return model if len(events) == len(model.events) else model.replace(events=events)


def _known_pulse(event: Event) -> str | None:
    """What an event adds a number to at times that are numbers, if it does nothing else."""
    times = (*event.at, *(() if event.every is None else (event.every,)))
    if event.when is not None or len(event.set) != 1 or any(constant(time) is None for time in times):
        return None
    ((target, value),) = event.set.items()
    match value:
        case Sum(((1, Symbol(name)), (_, added))) if name == target and constant(added) is not None:
            return target
    return None


def _from_zero(model: Model) -> Model:
    """A model at the steady state of doses as one that these have driven from zero, where nothing moves without them.

    To what can be known, repeated doses are inputs as any others.
    """
    if not model.regimens:
        return model
    if not model.steady:
        return model.replace(regimens=())
    nothing: dict[str, Expression] = dict.fromkeys(model.states, ZERO)
    nothing |= {name: numeral(value) for name, value in model.fixed.items()}
    if any(folded(substituted(rate, nothing)) != ZERO for rate in model.states.values()):
        return model
    return model.replace(initial=dict.fromkeys(model.states, 0), before=None, regimens=())
