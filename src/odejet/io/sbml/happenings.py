"""Happenings: SBML's events as odejet's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odejet.errors import ModelError
from odejet.io.sbml.network import Network
from odejet.model.events import Event
from odejet.model.expressions import Expression


@dataclass(frozen=True)
class Moving:
    """What moves: states, what they begin with, and events in the words of odejet."""

    states: Mapping[str, Expression]
    initial: Mapping[str, Expression]
    events: tuple[Event, ...]


def moving(network: Network) -> Moving:
    for event in network.happenings:
        raise ModelError(f"{network.where}: event '{event.id}' is not supported")
    return Moving(network.states, network.initial, ())
