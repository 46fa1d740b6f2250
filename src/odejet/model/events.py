"""Event: what happens to a solution at once, at known times or when a condition becomes true.

    Event(at=12, set={"gut": "gut + 100"})                      a dose
    Event(at="tlag", every=12, count=10, set={"gut": "gut + dose"})
    Event(when="v > 30", set={"v": "c", "u": "u + d"})          a spike

An event sets states, and parameters from then on, all at once by expressions in what held just before.  Events at one
time happen in the order given.  A condition acts when it becomes true, not while it stays so, nor if it holds at the
start.  What is asked for at the time of an event is what holds before it, unless the event is `seen` there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from numbers import Integral
from types import MappingProxyType
from typing import Any, NoReturn

from odejet.errors import ExpressionError, ModelError, clipped, nearest
from odejet.model.entries import text, tree
from odejet.model.expressions import (
    TIME,
    Condition,
    Expression,
    Number,
    Sum,
    Symbol,
    constant,
    names,
    substituted,
)
from odejet.model.grammar import parse, parse_condition
from odejet.model.names import checked_name

MAX_EVENTS = 100_000
_KEYS = ("at", "when", "set", "every", "count", "seen")


class Event:
    """An immutable event: `at` times, repeated `every` so often (`count` times in all), or `when` a condition becomes
    true; `set` says what states and parameters are from then on.

    Times are numbers or expressions in parameters, or a list of them; what is set are numbers or expressions.  Of
    several events at one time those that are `seen` come first, then what is measured at that time, then the others.
    """

    __slots__ = ("at", "count", "every", "seen", "set", "when")

    at: tuple[Expression, ...]
    when: Condition | None
    set: Mapping[str, Expression]
    every: Expression | None
    count: int | None
    seen: bool

    def __init__(
        self,
        at: Any = None,
        when: Any = None,
        set: Mapping[Any, Any] | None = None,
        every: Any = None,
        count: int | None = None,
        seen: bool = False,
    ) -> None:
        if (at is None) == (when is None):
            raise ModelError("an event happens at times or when a condition becomes true; give one of at and when")
        if every is not None and when is not None:
            raise ModelError("an event that repeats every so often begins at a time; give at instead of when")
        times = () if at is None else _times(at)
        if every is not None and len(times) > 1:
            raise ModelError("an event that repeats every so often begins at one time, not at several")
        if not isinstance(seen, bool):
            raise ModelError(f"seen says whether a measurement at its time is after it: true or false, not {seen!r}")
        fields = {
            "at": times,
            "when": None if when is None else _condition(when),
            "set": MappingProxyType(_assignments(set)),
            "every": None if every is None else _expression("every", every),
            "count": _count(count, every),
            "seen": seen,
        }
        for key, value in fields.items():
            object.__setattr__(self, key, value)
        period = None if self.every is None else constant(self.every)
        if period is not None and period <= 0:
            raise ModelError(f"an event repeats after a positive time, not every {self.every}")

    def __setattr__(self, key: str, value: object) -> NoReturn:
        raise AttributeError("an Event does not change; make another")

    def __delattr__(self, key: str) -> NoReturn:
        raise AttributeError("an Event does not change; make another")

    def to_dict(self) -> dict[str, Any]:
        """The arguments that make this event, those that say something."""
        at: Any = self.at[0] if len(self.at) == 1 else list(self.at)
        fields = {"at": at if self.at else None, "when": self.when, "every": self.every, "count": self.count}
        fields["seen"] = self.seen or None
        return {key: value for key, value in fields.items() if value is not None} | {"set": dict(self.set)}

    def expressions(self) -> Iterator[Expression | Condition]:
        """All that may hold names."""
        yield from self.at
        yield from (part for part in (self.every, self.when) if part is not None)
        yield from self.set.values()

    def substituted(self, new: Mapping[str, Expression]) -> Event:
        """The event with other expressions in the place of names; what it sets keeps its name."""
        return Event(
            at=[substituted(time, new) for time in self.at] if self.when is None else None,
            when=None if self.when is None else substituted(self.when, new),
            set={name: substituted(value, new) for name, value in self.set.items()},
            every=None if self.every is None else substituted(self.every, new),
            count=self.count,
            seen=self.seen,
        )

    def renamed(self, new: Mapping[str, str]) -> Event:
        """The event under other names."""
        changed = self.substituted({name: Symbol(other) for name, other in new.items()})
        return changed.setting({new.get(name, name): value for name, value in changed.set.items()})

    def setting(self, values: Mapping[str, Expression]) -> Event:
        """An event at the same times or on the same condition that sets other things."""
        return Event(**{**self.to_dict(), "set": values})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.to_dict(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return all(getattr(self, key) == getattr(other, key) for key in _KEYS)

    def __hash__(self) -> int:
        return hash((self.at, self.when, frozenset(self.set.items()), self.every, self.count, self.seen))

    def __str__(self) -> str:
        if self.when is not None:
            place = f"when {self.when}"
        else:
            place = f"at t = {', '.join(map(str, self.at))}" + (f", every {self.every}" if self.every else "")
            place += f", {self.count} times" if self.count else ""
        return f"{place}: " + ", ".join(f"{name} = {value}" for name, value in self.set.items())

    def __repr__(self) -> str:
        told = {key: value for key, value in self.to_dict().items() if key != "set"}
        shown = [f"{key}={_shown(value)}" for key, value in told.items()]
        return f"Event({', '.join([*shown, f'set={_shown(dict(self.set))}'])})"


def _rebuilt(fields: Mapping[str, Any]) -> Event:
    return Event(**fields)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return repr({name: str(part) for name, part in value.items()})
    if isinstance(value, list):
        return repr([str(part) for part in value])
    return repr(value if isinstance(value, int) else str(value))


def _times(at: Any) -> tuple[Expression, ...]:
    several = isinstance(at, Iterable) and not isinstance(at, (str, bytes, Mapping))
    times = tuple(_expression("at", time) for time in (at if several else [at]))
    if not times:
        raise ModelError("an event has no times; give at=12, or remove it")
    return times


def _condition(when: Any) -> Condition:
    try:
        condition = tree(when) or parse_condition(str(when))
    except ExpressionError as error:
        raise error.at("when") from None
    return condition


def _assignments(given: object) -> dict[str, Expression]:
    if not isinstance(given, Mapping) or not given:
        raise ModelError("an event sets at least one state or parameter; give set={'x': 'x + 1'}")
    found: dict[str, Expression] = {}
    for key, value in given.items():
        name = checked_name(str(key))
        found[name] = _expression(f"set {name}", value)
    return found


def _count(count: Any, every: Any) -> int | None:
    if count is None:
        return None
    if every is None:
        raise ModelError("count says how often an event repeats; give every, too")
    if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= int(count) <= MAX_EVENTS:
        raise ModelError(f"count must be a whole number from 1 to {MAX_EVENTS}, not {count!r}")
    return int(count)


def _expression(where: str, value: Any) -> Expression:
    try:
        return tree(value) or parse(text(value))
    except ExpressionError as error:
        raise error.at(where) from None
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


@lru_cache(maxsize=1 << 15)
def _parsed(value: Expression) -> Expression:
    return parse(text(value))


def _read_again(value: Expression) -> Expression:
    """An expression as its own text reads; events are often made of parts of others, and reading takes long."""
    return value if _is_plain(value) else _parsed(value)


def _is_plain(value: Expression) -> bool:
    """Whether an expression is surely what its text would be read as, as the doses of long tables are."""
    match value:
        case Number() | Symbol():
            return True
        case Sum(((1, Number() | Symbol()), *others)):
            return bool(others) and all(isinstance(term, Number | Symbol) for _, term in others)
    return False


# --- events of a model ---


def events(given: Any) -> tuple[Event, ...]:
    """What was given as events: `Event`s, or tables with their arguments."""
    if given is None:
        return ()
    if isinstance(given, (str, bytes, Mapping, Event)) or not isinstance(given, Iterable):
        raise ModelError("[events] must be a list of events")
    found: list[Event] = []
    for one in given:
        if len(found) >= MAX_EVENTS:
            raise ModelError(f"[events] has more than {MAX_EVENTS} entries")
        found.append(one if isinstance(one, Event) else _read(one, len(found) + 1))
    return tuple(found)


def _read(given: Any, position: int) -> Event:
    where = f"[events] event {position}"
    if not isinstance(given, Mapping):
        raise ModelError(f"{where}: expected an event, not {type(given).__name__}")
    for key in given:
        if key not in _KEYS:
            hint = nearest(str(key), _KEYS) or f"; an event has {', '.join(_KEYS)}"
            raise ModelError(f"{where}: unknown key {clipped(str(key))}{hint}")
    try:
        return Event(**given)
    except ExpressionError as error:
        raise error.at(f"{where}: {error.where}") from None
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def _read_elsewhere(found: Iterable[Event]) -> Iterator[str]:
    """Names that events read, but for a value that only feeds itself."""
    for event in found:
        for part in event.expressions():
            own = next((name for name, value in event.set.items() if value is part), None)
            yield from (name for name in names(part) if name != own)


def check(
    found: Iterable[Event],
    states: Iterable[str],
    inputs: Iterable[str],
    outputs: Iterable[str],
    parameters: Iterable[str],
    occurring: Iterable[str],
) -> None:
    """Refuse an event that sets or reads what is not there; `occurring` are the names in the equations."""
    found = tuple(found)
    settable = {*states, *occurring, *_read_elsewhere(found)}
    states, inputs, outputs, parameters = tuple(states), tuple(inputs), tuple(outputs), tuple(parameters)
    kinds = dict.fromkeys(inputs, "an input") | dict.fromkeys(outputs, "an output") | {TIME: "the time"}
    moving = dict.fromkeys(states, "a state") | kinds
    known = (*states, *parameters)
    for position, event in enumerate(found, 1):
        where = f"[events] event {position}"
        for name in event.set:
            if name not in known or name not in settable:
                reason = f"'{name}' is {kinds[name]}" if name in kinds else f"there is no '{name}'"
                hint = "" if name in kinds else nearest(name, [other for other in known if other in settable])
                raise ModelError(f"{where}: {reason}, and events set states and parameters alone{hint}")
        for time in (*event.at, *(() if event.every is None else (event.every,))):
            for name in names(time):
                if name in moving:
                    reason = f"a time depends on parameters alone, and '{name}' is {moving[name]}"
                    raise ModelError(f"{where}: {reason}; give a condition with when")
        for part in event.expressions():
            for name in names(part):
                if name in outputs:
                    raise ModelError(f"{where}: '{name}' is an output; write its expression instead")
                if name != TIME and name not in (*known, *inputs):
                    raise ModelError(f"{where}: unknown name '{name}'{nearest(name, (*known, *inputs))}")
