"""Simulator: what the experiments of a problem need to be simulated, whichever of their measurements are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from odejet.model import Model
from odejet.problem.conditions import Condition
from odejet.problem.courses import flows
from odejet.problem.unknowns import Unknowns
from odejet.simulate.flow import Flow


@dataclass(frozen=True, eq=False)
class Simulator:
    """The experiments with their solution maps."""

    model: Model
    conditions: tuple[Condition, ...]
    flows: tuple[Flow, ...]
    unknowns: Unknowns
    feelings: tuple[int, ...]  # how many unknowns each output feels

    def knowing(self, known: Mapping[int, float]) -> Simulator:
        """The same where entries of z have these values, and no sensitivities to them; made once."""
        key = tuple(sorted(known.items()))
        if key not in self._knowing:
            models: dict[tuple[int, tuple[tuple[str, float], ...]], Model] = {}
            conditions = tuple(
                replace(condition, model=_knowing(condition.model, places, known, models))
                for condition, places in zip(self.conditions, self.unknowns.places, strict=True)
            )
            self._knowing[key] = replace(self, conditions=conditions, flows=flows(conditions))
        return self._knowing[key]

    @cached_property
    def _knowing(self) -> dict[tuple[tuple[int, float], ...], Simulator]:
        return {}


def _knowing(
    model: Model,
    places: Mapping[str, int],
    known: Mapping[int, float],
    made: dict[tuple[int, tuple[tuple[str, float], ...]], Model],
) -> Model:
    """A model in which parameters have these values; experiments that shared one share it again."""
    own = {name: known[places[name]] for name in model.parameters if places.get(name) in known}
    key = id(model), tuple(own.items())
    if own and key not in made:
        bounds = {name: pair for name, pair in model.bounds.items() if name not in own}
        made[key] = model.replace(fixed={**model.fixed, **own}, bounds=bounds)
    return made[key] if own else model
