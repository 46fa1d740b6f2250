"""Lean: a model without what stays zero in an experiment.

A state that starts at zero and whose rate vanishes while it is zero never leaves it: a complex of a drug that is not
given, an infection that nobody brings in.  Such states are left out, with all parameters that only they feel, and what
is multiplied by a known zero with them.  Of 25 states 12 may be left, and as few of the sensitivities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from odejet.errors import ModelError
from odejet.jets.inputs import Sampled
from odejet.model import Event, Model
from odejet.model.entries import STEADY
from odejet.model.expressions import ZERO, Condition, Expression, names, number, substituted
from odejet.model.folding import folded
from odejet.simulate.rest import Rest
from odejet.simulate.steady import RestingFlow
from odejet.simulate.trajectory import Trajectory


class LeanFlow(RestingFlow):
    """The solution map of a model, by that of its lean one wherever initial states are those that the model knows."""

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, Sampled] | None = None,
        rests: dict[tuple[Any, ...], Rest] | None = None,
    ) -> None:
        super().__init__(model, inputs, rests)
        own = lean(model)
        self.lean = None if own is None else RestingFlow(own, inputs, self._shared)
        if self.lean is not None:
            self._kept = np.array([i for i, name in enumerate(model.states) if name in self.lean.model.states])
            self._taken = np.array([model.parameters.index(name) for name in self.lean.model.parameters], dtype=int)
            places = {name: 1 + i for i, name in enumerate(self.unknowns())}
            self._lanes = np.array([0, *(places[name] for name in self.lean.unknowns())])

    def run(self, parameters, states, times, *, sensitivities=True, free_states=False, **options) -> Trajectory:
        """As `RestingFlow.run`."""
        if self.lean is None or free_states or "tangents" in options:
            return super().run(
                parameters, states, times, sensitivities=sensitivities, free_states=free_states, **options
            )
        found = self.lean.run(
            np.asarray(parameters, dtype=float)[self._taken],
            np.asarray(states, dtype=float)[self._kept],
            times,
            sensitivities=sensitivities,
            **options,
        )
        return self._whole(found, 1 + len(self.unknowns()) if sensitivities else 1)

    def _whole(self, found: Trajectory, used: int) -> Trajectory:
        """A trajectory with all states, and sensitivities to all unknowns."""
        lanes = self._lanes if used > 1 else self._lanes[:1]
        count, outputs, _ = found.outputs.shape
        states = np.zeros((count, len(self.model.states), used))
        states[:, self._kept[:, None], lanes] = found.states
        rows = found.outputs
        if len(lanes) < used:
            rows = np.zeros((count, outputs, used))
            rows[:, :, lanes] = found.outputs
        held = {name: np.zeros(used) for name in found.held}
        for name, row in found.held.items():
            held[name][lanes] = row
        return Trajectory(found.reached, states, rows, found.outcome, found.time, found.steps, found.method, held)


def lean(model: Model) -> Model | None:
    """The model without what stays zero; None where nothing does, or where zero is divided by."""
    gone = {**_zeros(model)}
    dead = _dead(model, gone)
    if not dead:
        return None
    gone |= dict.fromkeys(dead, ZERO)
    try:
        return _without(model, dead, gone)
    except ModelError:
        return None


def _zeros(model: Model) -> dict[str, Expression]:
    """What is known to be zero throughout: before the start, and after all events."""
    changed = {name for event in model.events for name in event.set}
    changed |= {name for name, value in model.before.items() if folded(value) != ZERO}
    return {name: ZERO for name, value in model.fixed.items() if value == 0 and name not in changed}


def _dead(model: Model, zeros: Mapping[str, Expression]) -> set[str]:
    """The states that never leave zero."""
    first = model.before if model.steady else model.initial
    known = {name: number(value) for name, value in model.fixed.items()} | zeros
    found = {name for name in model.states if name in first and folded(substituted(first[name], known)) == ZERO}
    if not found:
        return found
    before = {name: value for name, value in model.before.items() if name not in model.states}
    moved = [(name, rate) for name, rate in model.states.items()]
    moved += [(name, substituted(rate, before)) for name, rate in moved] if before else []
    moved += [(name, value) for event in model.events for name, value in event.set.items()]
    moved = [(name, folded(substituted(value, zeros))) for name, value in moved if name in found]
    while True:
        gone = dict.fromkeys(found, ZERO)
        alive = {name for name, value in moved if name in found and folded(substituted(value, gone)) != ZERO}
        if not alive:
            return found
        found -= alive


def _without(model: Model, dead: set[str], gone: Mapping[str, Expression]) -> Model:
    def left(table: Mapping[str, Expression]) -> dict[str, Expression]:
        return {name: folded(substituted(value, gone)) for name, value in table.items() if name not in dead}

    states, outputs, initial = left(model.states), left(model.outputs), left(model.initial)
    before, events = left(model.before), tuple(_events(model, dead, gone))
    parts: list[Expression | Condition] = [*states.values(), *outputs.values(), *initial.values()]
    parts += [part for event in events for part in event.expressions()]
    used = {name for part in parts for name in names(part)}
    before = {name: value for name, value in before.items() if name in used or name in states or name in model.inputs}
    used |= {name for value in before.values() for name in names(value)}
    return Model(
        states,
        outputs,
        model.to_dict()["inputs"],
        [name for name in (*model.parameters, *model.fixed) if name in used],
        STEADY if model.steady else initial,
        fixed={name: value for name, value in model.fixed.items() if name in used},
        events=events,
        name=model.name,
        before=before or None,
    )


def _events(model: Model, dead: set[str], gone: Mapping[str, Expression]) -> Iterator[Event]:
    for event in model.events:
        kept = {name: value for name, value in event.set.items() if name not in dead}
        if kept:
            yield Event(**{**event.to_dict(), "set": kept}).substituted(gone)
