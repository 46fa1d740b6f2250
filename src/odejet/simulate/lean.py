"""Lean: a model without what stays zero in an experiment.

A state that starts at zero and whose rate vanishes while it is zero never leaves it: a complex of a drug that is not
given, an infection that nobody brings in.  Such states are left out, with all parameters that only they feel, and what
is multiplied by a known zero with them.  Of 25 states 12 may be left, and as few of the sensitivities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.errors import ModelError
from odejet.model import Event, Model
from odejet.model.expressions import ZERO, Expression, number, substituted
from odejet.model.folding import folded
from odejet.model.transform import rewritten
from odejet.simulate.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Lean:
    """What is left of a model, and where that stands among all."""

    model: Model
    states: np.ndarray  # positions of the states that are left
    parameters: np.ndarray  # and of the parameters
    lanes: np.ndarray  # of the value and of all unknowns, those that are left

    @classmethod
    def of(cls, model: Model) -> Lean | None:
        """None where nothing stays zero."""
        own = lean(model)
        if own is None:
            return None
        every = {name: 1 + i for i, name in enumerate(model.unknowns)}
        return cls(
            own,
            np.array([i for i, name in enumerate(model.states) if name in own.states], dtype=int),
            np.array([model.parameters.index(name) for name in own.parameters], dtype=int),
            np.array([0, *(every[name] for name in own.unknowns)], dtype=int),
        )

    def whole(self, found: Trajectory, states: int, used: int) -> Trajectory:
        """A trajectory of what is left with as many states and lanes as the whole model has."""
        lanes = self.lanes if used > 1 else self.lanes[:1]

        def spread(rows: np.ndarray) -> np.ndarray:
            every = np.zeros((*rows.shape[:-1], used))
            every[..., lanes] = rows
            return every

        rows = np.zeros((len(found.states), states, used))
        rows[:, self.states] = spread(found.states)
        held = {name: spread(row) for name, row in found.held.items()}
        return replace(found, states=rows, outputs=spread(found.outputs), held=held)


def lean(model: Model) -> Model | None:
    """The model without what stays zero; None where nothing does, or where zero is divided by."""
    gone = _zeros(model)
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
    known = {**{name: number(value) for name, value in model.fixed.items()}, **zeros}
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

    tables: dict[str, Any] = {table: left(getattr(model, table)) for table in ("states", "outputs")}
    tables |= {"events": tuple(_events(model, dead, gone))} | ({} if model.steady else {"initial": left(model.initial)})
    found = rewritten(model, **tables, before={})
    if not model.before:
        return found
    occurring = {*found.states, *found.inputs, *found.parameters, *found.fixed}
    before = {name: value for name, value in left(model.before).items() if name in occurring}
    return rewritten(model, **tables, before=before)


def _events(model: Model, dead: set[str], gone: Mapping[str, Expression]) -> Iterator[Event]:
    for event in model.events:
        kept = {name: value for name, value in event.set.items() if name not in dead}
        if kept:
            yield event.setting(kept).substituted(gone)
