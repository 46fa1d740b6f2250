"""Building: the model that a network is."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Mapping
from typing import Any

from odejet.errors import ModelError
from odejet.io.sbml.formulas import RATE_OF
from odejet.io.sbml.happenings import moving
from odejet.io.sbml.network import START, Network
from odejet.model import Model
from odejet.model.delays import before_start
from odejet.model.expressions import TIME, ZERO, Delay, Expression, Symbol, children, delays, fresh, names, number
from odejet.model.wellformed import rebuilt

CLOCK = "clock"
"""The state of a model that has none, in which everything is a function of time: it counts it."""


def model_of(network: Network, outputs: Mapping[str, Expression] | None = None, name: str | None = None) -> Model:
    """The model; outputs, in names of the network, are by default what assignment rules determine."""
    shown = {rule: Symbol(rule) for rule in network.rules} if outputs is None else outputs
    network = _looking_back(network, [*network.states.values(), *shown.values()])
    found = moving(network)
    states = {state: _shifted(network.now(rate), found.states) for state, rate in found.states.items()}
    measured = {output: _shifted(network.now(value), found.states) for output, value in shown.items()}
    initial = {state: network.at_start(value) for state, value in found.initial.items()}
    history = _history(network, found.initial, [*states.values(), *measured.values()])
    if not states and not measured:
        raise ModelError(f"{network.where}: nothing in this model changes with time; add reactions or rules")
    if not states:
        clock = fresh(CLOCK, {*network.name_of.values(), *measured})
        states, initial = {clock: number(1)}, {clock: number(START)}
    told: list[Any] = [*states.values(), *measured.values(), *initial.values(), *history.values()]
    told += [part for event in found.events for part in event.expressions()]
    used = {name for part in told for name in names(part)}
    fixed = {name: value for name, value in network.parameters.items() if value is not None and name in used}
    try:
        return Model(
            states,
            measured,
            initial=initial,
            history=history,
            fixed=fixed,
            events=found.events,
            name=name or network.title,
            start=START,
        )
    except ModelError as error:
        raise ModelError(f"{network.where}: {error}") from None


def _shifted(expression: Any, states: Container[str]) -> Any:
    """The expression with delays of functions of time as functions of an earlier time."""
    if isinstance(expression, Delay) and not any(name in states for name in names(expression)):
        return before_start(expression)
    parts = children(expression)
    return rebuilt(expression, tuple(_shifted(part, states) for part in parts)) if parts else expression


def _history(network: Network, initial: Mapping[str, Expression], told: Iterable[Expression]) -> dict[str, Expression]:
    """What delayed states were before the start, where their initial values are functions of time."""
    looked = {name for expression in told for delay in delays(expression) for name in names(delay.argument)}
    timed = {state: network.now(value) for state, value in initial.items() if state in looked}
    return {state: value for state, value in timed.items() if TIME in names(value)}


def _looking_back(network: Network, told: Iterable[Expression]) -> Network:
    """The network with states for delayed values that change before the start only."""
    held = _held(network, told)
    if not held:
        return network
    changed = copy.copy(network)
    changed.assigned = {name: value for name, value in network.assigned.items() if name not in held}
    changed.states = {**network.states, **dict.fromkeys(held, ZERO)}
    changed.initial = {**network.initial, **{name: network.assigned[name] for name in held}}
    changed.forget()
    return changed


def _held(network: Network, told: Iterable[Expression]) -> set[str]:
    """Find delayed values that change before the start only; refuse delays of rates, which were zero then."""
    held: set[str] = set()
    seen: set[tuple[str, bool]] = set()
    waiting: list[tuple[Any, bool]] = [(expression, False) for expression in told]
    while waiting:
        expression, delayed = waiting.pop()
        if isinstance(expression, Delay):
            waiting += [(expression.argument, True), (expression.by, delayed)]
        elif not isinstance(expression, Symbol):
            waiting += [(child, delayed) for child in children(expression)]
        elif (expression.name, delayed) not in seen:
            name = expression.name
            seen.add((name, delayed))
            if delayed and name.startswith(RATE_OF):
                of = name.removeprefix(RATE_OF)
                raise ModelError(f"{network.where}: the delay of rateOf '{of}' is not supported")
            if delayed and name in network.assigned and TIME in names(network.now(network.assigned[name])):
                held.add(name)
            if name in network.meanings:
                waiting.append((network.meanings[name], delayed))
    return held
