"""Regimen: doses that have been repeated for ever when a solution comes to a time.

    Regimen(time=216, period=24, events=(Event(at=0, set={"gut": "gut + 100"}),))

At its time the states are those of the periodic solution to which the doses lead, just before the next of them; or that
is `added` to what they were.  Events tell one period, with times from its beginning.  What happens from then on are
events of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from odejet.model.events import Event
from odejet.model.expressions import Expression


@dataclass(frozen=True)
class Regimen:
    """Repeated doses up to a time, one period of them as events."""

    time: float
    period: float
    events: tuple[Event, ...]
    added: bool = False

    def substituted(self, new: Mapping[str, Expression]) -> Regimen:
        """The regimen with other expressions in the place of names."""
        return replace(self, events=tuple(event.substituted(new) for event in self.events))

    def renamed(self, new: Mapping[str, str]) -> Regimen:
        """The regimen under other names."""
        return replace(self, events=tuple(event.renamed(new) for event in self.events))
