"""Building: the model that a network is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odejet.errors import ModelError
from odejet.io.sbml.happenings import moving
from odejet.io.sbml.network import START, Network
from odejet.model import Model
from odejet.model.expressions import Expression, Symbol, fresh, names, number

CLOCK = "clock"
"""The state of a model that has none, in which everything is a function of time: it counts it."""


def model_of(network: Network, outputs: Mapping[str, Expression] | None = None, name: str | None = None) -> Model:
    """The model; outputs, in names of the network, are by default what assignment rules determine."""
    shown = {rule: Symbol(rule) for rule in network.rules} if outputs is None else outputs
    found = moving(network)
    states = {state: network.now(rate) for state, rate in found.states.items()}
    measured = {output: network.now(value) for output, value in shown.items()}
    initial = {state: network.at_start(value) for state, value in found.initial.items()}
    if not states and not measured:
        raise ModelError(f"{network.where}: nothing in this model changes with time; add reactions or rules")
    if not states:
        clock = fresh(CLOCK, {*network.name_of.values(), *measured})
        states, initial = {clock: number(1)}, {clock: number(START)}
    told: list[Any] = [*states.values(), *measured.values(), *initial.values()]
    told += [part for event in found.events for part in event.expressions()]
    used = {name for part in told for name in names(part)}
    fixed = {name: value for name, value in network.parameters.items() if value is not None and name in used}
    try:
        return Model(
            states,
            measured,
            initial=initial,
            fixed=fixed,
            events=found.events,
            name=name or network.title,
            start=START,
        )
    except ModelError as error:
        raise ModelError(f"{network.where}: {error}") from None
