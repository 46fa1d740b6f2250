"""Program: a model with events or switches, taken apart once for all its solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.registers import Registers
from odejet.model.expressions import Expression, names, substituted, switches
from odejet.model.lowering import Lowering
from odejet.model.modes import Equations, Mode, equations
from odejet.model.tape import Tape

if TYPE_CHECKING:
    from odejet.model import Model


_KNOWN = 1000  # groups of expressions that are found again by identity


class Trouble(Exception):
    """A solution that cannot go on: endless events, or a switch of which nobody can tell where it goes."""


class Endless(Trouble):
    pass


class Undecided(Trouble):
    pass


class Busy(Trouble):
    """More switches than are allowed."""


class Irreversible(Trouble):
    pass


class Maps:
    """Groups of expressions as functions of parameters, states, inputs and time, with tangents."""

    def __init__(self, whole: Equations, groups: Sequence[Sequence[Expression]]) -> None:
        self.tape, self.positions = Lowering().maps(whole, groups)
        self.ends = np.cumsum([0, *map(len, groups)])

    def registers(self, parameters: np.ndarray) -> Registers:
        """The memory of one run, with constants and parameters in place."""
        layout = lay_out(self.tape, parameters.shape[1], 1, True)
        registers = Registers(layout, 1, float, TABLES)
        registers.memory[:, layout.constants] = self.tape.constant_values
        if len(parameters):
            registers.write(layout.parameters, parameters[None])
        return registers

    def values(
        self, registers: Registers, group: int, states: np.ndarray, time: np.ndarray, inputs: np.ndarray
    ) -> np.ndarray:
        """Rows of value and tangents of a group, from such rows of the states, the time and the inputs."""
        layout = registers.layout
        registers.write(layout.states, states[None])
        registers.write(np.array([layout.time]), time[None, None])
        if len(inputs):
            registers.write(layout.inputs, inputs[None])
        registers.run(np.ascontiguousarray(layout.code[self.positions[group]]), 1)
        return registers.series(layout.outputs[self.ends[group] : self.ends[group + 1]], 1)[0, :, 0]


@dataclass(frozen=True, eq=False)
class Ready:
    """A mode with its tape, and the functions that are watched there."""

    mode: Mode
    tape: Tape
    watched: tuple[Expression, ...]

    @cached_property
    def moving(self) -> np.ndarray:
        """The states that watched functions depend on, by their positions."""
        involved = {name for g in self.watched for name in names(g)}
        return np.array([i for i, name in enumerate(self.mode.equations.states) if name in involved], dtype=np.int64)


class Program:
    """A model with events or switches, taken apart once: its equations, events and the modes met so far."""

    def __init__(self, model: Model) -> None:
        whole, self.held = equations(model)
        functions = {name: value for name, value in model.inputs.items() if value is not None}

        def plain(value: Any) -> Any:
            return substituted(value, functions)

        self.equations = replace(
            whole,
            states={name: plain(value) for name, value in whole.states.items()},
            outputs={name: plain(value) for name, value in whole.outputs.items()},
            inputs={name: None for name in model.inputs if name not in functions},
        )
        events = [event.substituted(functions) for event in model.events]
        self.initial = model.initial
        self.timed = [event for event in events if event.when is None]
        self.conditional = [event for event in events if event.when is not None]
        self.conditions = tuple(event.when for event in events if event.when is not None)
        self.branching = {
            table: tuple(name for name, value in getattr(self.equations, table).items() if switches(value))
            for table in ("states", "outputs")
        }
        setting = [value for event in events for value in event.set.values()]
        self.switching = bool(self.conditions) or any(self.branching.values()) or any(map(switches, setting))
        self._modes: dict[Any, Ready] = {}
        self._maps: dict[Any, Maps] = {}
        self._known: dict[Any, tuple[Any, Maps]] = {}  # with the expressions, whose identities are the keys

    @cached_property
    def times(self) -> tuple[Expression, ...]:
        """Of all events at known times, the times and then the periods."""
        first = [time for event in self.timed for time in event.at]
        return (*first, *(event.every for event in self.timed if event.every is not None))

    @cached_property
    def only(self) -> Ready:
        """The mode of a model that has no other."""
        return self.ready(Mode(self.equations, {}, ()))

    def maps(self, groups: Sequence[Sequence[Expression]]) -> Maps:
        """The maps of groups of expressions, made once."""
        # Looked up by identity first: to hash long expressions for every solution takes longer than the solution.
        identity = tuple(id(one) for group in groups for one in (*group, None))
        if identity not in self._known:
            key = tuple(map(tuple, groups))
            if key not in self._maps:
                self._maps[key] = Maps(self.equations, groups)
            if len(self._known) >= _KNOWN:
                return self._maps[key]
            self._known[identity] = groups, self._maps[key]
        return self._known[identity][1]

    def ready(self, found: Mode) -> Ready:
        """A mode with its tape, made once."""
        key = (tuple(found.asked.items()), tuple(found.sliding))
        if key not in self._modes:
            watched = tuple(found.asked)
            self._modes[key] = Ready(found, Lowering().tape(found.equations, False, watched), watched)
        return self._modes[key]
