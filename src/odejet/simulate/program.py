"""Program: a model with events or switches, taken apart once for all its solutions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.jets.crossings import SHAKEN
from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.registers import Registers
from odejet.model.expressions import (
    TIME,
    Choice,
    Comparison,
    Expression,
    Number,
    Sum,
    Symbol,
    children,
    names,
    substituted,
    switches,
)
from odejet.model.lowering import Lowering
from odejet.model.modes import Branches, Equations, Mode, equations, mode
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
        self._empty: dict[int, Registers] = {}  # by lanes, with constants in place
        self._codes: dict[tuple[int, int], np.ndarray] = {}  # by lanes and group

    def registers(self, parameters: np.ndarray) -> Registers:
        """The memory of one run, with constants and parameters in place."""
        lanes = parameters.shape[1]
        if lanes not in self._empty:
            layout = lay_out(self.tape, lanes, 1, True)
            empty = Registers(layout, 1, float, TABLES)
            empty.memory[:, layout.constants] = self.tape.constant_values
            self._empty[lanes] = empty
        registers = self._empty[lanes].copy()
        if len(parameters):
            registers.write("parameters", parameters)
        return registers

    def values(
        self, registers: Registers, group: int, states: np.ndarray, time: np.ndarray, inputs: np.ndarray
    ) -> np.ndarray:
        """Rows of value and tangents of a group, from such rows of the states, the time and the inputs."""
        layout, key = registers.layout, (registers.layout.lanes, group)
        if key not in self._codes:
            self._codes[key] = np.ascontiguousarray(layout.code[self.positions[group]])
        registers.write("states", states)
        registers.write("time", time[None])
        if len(inputs):
            registers.write("inputs", inputs)
        registers.run(self._codes[key], 1)
        return registers.memory[0, registers.index("outputs").rows[self.ends[group] : self.ends[group + 1]]]


@dataclass(frozen=True, eq=False)
class Ready:
    """A mode with its tape, and the functions that are watched there."""

    mode: Mode
    tape: Tape
    watched: tuple[Expression, ...]

    @cached_property
    def clocks(self) -> tuple[int, ...]:
        """Of each watched function the sign of its slope if it is the time but for what stays as it is; else zero."""
        equations = self.mode.equations
        return tuple(clock_sign(g, (*equations.states, *equations.inputs)) for g in self.watched)

    @cached_property
    def signs(self) -> np.ndarray:
        """Of the watched functions."""
        return np.array([float(self.mode.asked[g]) for g in self.watched])

    @cached_property
    def moving(self) -> np.ndarray:
        """The states that watched functions depend on, by their positions."""
        involved = {name for g in self.watched for name in names(g)}
        return np.array([i for i, name in enumerate(self.mode.equations.states) if name in involved], dtype=np.int64)


@dataclass(eq=False)
class _Question:
    """What is asked on the way to a mode, and where each answer leads to."""

    asks_sign: bool  # else for the largest whole number below
    of: Expression
    answers: dict[int, _Question | Ready] = field(default_factory=dict)


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
        self.initial = tuple(model.initial.values())
        self.rows = {name: row for row, name in enumerate(self.equations.states)}
        self.places = {name: place for place, name in enumerate(self.equations.parameters)}
        self.begins = np.array([self.rows[name] for name in model.initial], dtype=np.int64)
        # How states are shaken, to see what is rounding: not, all alike, and by turns.
        self.shaken = SHAKEN * np.array([[0, 1, 1 if i % 2 else -1] for i in range(len(self.rows))], dtype=float).T
        self.begins_switch = any(map(switches, self.initial))
        self.timed = [event for event in events if event.when is None]
        self.conditional = [event for event in events if event.when is not None]
        self.conditions = tuple(event.when for event in events if event.when is not None)
        self.seen = any(event.seen for event in self.conditional)
        # Conditions that may hold at one instant, though neither before nor after it.
        self.instantaneous = any(is_instantaneous(condition) for condition in self.conditions)
        self.branching = {
            table: tuple(name for name, value in getattr(self.equations, table).items() if switches(value))
            for table in ("states", "outputs")
        }
        setting = [value for event in events for value in event.set.values()]
        self.switching = bool(self.conditions) or any(self.branching.values()) or any(map(switches, setting))
        self.numbers = {name: float(value) for name, value in self.equations.fixed.items()}
        self._modes: dict[Any, Ready] = {}
        self._clocks: dict[Expression, int] = {}
        self._first: _Question | Ready | None = None
        self._beyond: dict[tuple[int, int], tuple[Ready, Expression, Ready | None]] = {}  # with what its keys are of
        self._maps: dict[Any, Maps] = {}
        self._known: dict[Any, tuple[Any, Maps]] = {}  # with the expressions, whose identities are the keys

    @cached_property
    def times(self) -> tuple[Expression, ...]:
        """Of all events at known times, the times and then the periods."""
        first = [time for event in self.timed for time in event.at]
        return (*first, *(event.every for event in self.timed if event.every is not None))

    def begun(self, parameters: np.ndarray) -> np.ndarray | None:
        """Rows of initial values that are all numbers or parameters; None if they are more than that."""
        if self._begun is None:
            return None
        numbers, filled, taken = self._begun
        rows = np.zeros((len(numbers), parameters.shape[1]))
        rows[:, 0] = numbers
        rows[filled] = parameters[taken]
        return rows

    @cached_property
    def _begun(self) -> tuple[np.ndarray, list[int], list[int]] | None:
        numbers, filled, taken = np.zeros(len(self.initial)), [], []
        for i, value in enumerate(self.initial):
            if isinstance(value, Number):
                numbers[i] = float(value.value)
            elif isinstance(value, Symbol) and value.name in self.places:
                filled.append(i)
                taken.append(self.places[value.name])
            elif isinstance(value, Symbol) and value.name in self.numbers:
                numbers[i] = self.numbers[value.name]
            else:
                return None
        return numbers, filled, taken

    @cached_property
    def only(self) -> Ready:
        """The mode of a model that has no other."""
        return self.ready(Mode(self.equations, {}, ()))

    @cached_property
    def is_clocked(self) -> bool:
        """Whether all switching functions are functions of the time and of what stays as it is."""
        whole, events = self.equations, (*self.timed, *self.conditional)
        values = [
            value for table, own in self.branching.items() for name in own for value in [getattr(whole, table)[name]]
        ]
        parts = (*values, *self.conditions, *(value for event in events for value in event.set.values()))
        moving = {*whole.states, *whole.inputs}
        return not any(moving & set(names(part)) for value in parts for part in deciding(value))

    def clock(self, g: Expression) -> int:
        """The sign of the slope of a function that is the time but for what stays as it is; else zero."""
        if g not in self._clocks:
            self._clocks[g] = clock_sign(g, (*self.equations.states, *self.equations.inputs))
        return self._clocks[g]

    def beyond(self, ready: Ready, g: Expression) -> Ready | None:
        """The mode on the other side of a switching function, if it is as simple as that: all else is asked alike."""
        key = id(ready), id(g)
        if key not in self._beyond:
            self._beyond[key] = ready, g, self._flipped(ready, g)
        return self._beyond[key][2]

    def _flipped(self, ready: Ready, g: Expression) -> Ready | None:
        asked = {**ready.mode.asked, g: -ready.mode.asked[g]}
        if ready.mode.sliding or 0 in asked.values():
            return None

        def sign(h: Expression) -> int:
            if h not in asked:
                raise Undecided
            return asked[h]

        def whole(argument: Expression) -> int:
            raise Undecided

        try:
            found = self.met(Branches(sign, whole))
        except Undecided:
            return None
        return found if found.mode.holds == ready.mode.holds and g in found.watched else None

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

    def met(self, branches: Branches) -> Ready:
        """The mode that branches give.

        What is asked next depends on the answers so far alone, so that modes met before are found by asking, without
        a look at the equations.
        """
        at = self._first
        while isinstance(at, _Question):
            at = at.answers.get((branches.sign if at.asks_sign else branches.whole)(at.of))
        return self._make(branches) if at is None else at

    def _make(self, branches: Branches) -> Ready:
        asked: list[tuple[bool, Expression, int]] = []

        def noted(asks_sign: bool, answer: Callable[[Expression], int], of: Expression) -> int:
            asked.append((asks_sign, of, answer(of)))
            return asked[-1][2]

        listening = Branches(partial(noted, True, branches.sign), partial(noted, False, branches.whole))
        made = self.ready(mode(self.equations, self.branching, self.conditions, listening))
        if len(self._modes) <= _KNOWN:
            after: _Question | Ready = made
            for asks_sign, of, answer in reversed(asked):
                after = _Question(asks_sign, of, {answer: after})
            self._first = after if self._first is None else _merged(self._first, after)
        return made


def _merged(known: _Question | Ready, found: _Question | Ready) -> _Question | Ready:
    """Questions with one more way through them, which leaves those known at an answer that was not given before."""
    at, new = known, found
    while isinstance(at, _Question) and isinstance(new, _Question):
        ((answer, after),) = new.answers.items()
        if answer not in at.answers:
            at.answers[answer] = after
            break
        at, new = at.answers[answer], after
    return known


def clock_sign(g: Expression, moving: Collection[str]) -> int:
    """Whether a function is the time plus or minus what stays as it is: the sign of its slope, else zero."""
    terms = g.terms if isinstance(g, Sum) else ((1, g),)
    slopes = [sign for sign, term in terms if term == Symbol(TIME)]
    rest = [name for _, term in terms if term != Symbol(TIME) for name in names(term)]
    return slopes[0] if len(slopes) == 1 and not any(name == TIME or name in moving for name in rest) else 0


def is_instantaneous(condition: Any) -> bool:
    """Whether equalities decide about a condition."""
    if isinstance(condition, Comparison):
        return condition.relation in ("==", "!=")
    return any(map(is_instantaneous, children(condition)))


def deciding(part: Any) -> Iterator[Any]:
    """The expressions on which branches of an expression or condition depend."""
    if isinstance(part, (Comparison, Choice)):
        yield part
    else:
        for inner in children(part):
            yield from deciding(inner)
