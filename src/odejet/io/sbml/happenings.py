"""Happenings: SBML's events as odejet's.

An event of SBML is triggered when a condition becomes true, and happens then or after a delay; it may be called off
when the condition becomes false before, may set what was computed when it was triggered, and of several that are due
at once the one of the highest priority happens first, whereupon all conditions are looked at again.  An event of odejet
happens when its condition becomes true, in the order given.  What a model is at the time of an event is what it is
after it: so `time >= 10` is seen at 10, where it is true, and `time > 10` is not, being false there.

Where events cannot get into each other's way the two are the same.  Otherwise an event becomes several, with states of
its own that are 0 or 1:

    when trigger                        waits = 1, due = t + delay, and what it will set
    when not trigger                    waits = 0, happens = 0                        (unless it is persistent)
    when waits and t >= due             happens = 1, waits = 0
    when happens, and none before it    set what it sets, happens = 0

An event that is triggered again while it waits has further places to wait in.  When these are full the solution ends,
by a state whose rate is then a division by zero, rather than forget one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from odejet.errors import ModelError
from odejet.io.sbml.formulas import ONE, ZERO, Truth, both, choose, either, minus, opposite, over, plus, times
from odejet.io.sbml.network import START, Happening, Network
from odejet.model.events import Event
from odejet.model.expressions import (
    TIME,
    Comparison,
    Expression,
    Logic,
    Number,
    Symbol,
    constant,
    fresh,
    names,
    number,
    substituted,
)

PLACES = 3
"""Delayed executions of one event that may wait at once; more are rare, and end a solution."""

HALF = Number(Fraction(1, 2))


@dataclass(frozen=True)
class Moving:
    """What moves: states, what they begin with, and events in the words of odejet."""

    states: Mapping[str, Expression]
    initial: Mapping[str, Expression]
    events: tuple[Event, ...]


def moving(network: Network) -> Moving:
    """The states and events of a network."""
    found = _felt(network)
    _check_chance(network, found)
    if all(_is_free(one, found, network) for one in found):
        told = [event for one in sorted(found, key=_rank) for event in _direct(network, one, found)]
        return Moving(network.states, network.initial, tuple(told))
    queue = _Queue(network, found)
    return Moving(
        {**network.states, **dict.fromkeys(queue.initial, ZERO), queue.full: queue.ending},
        {**network.initial, **queue.initial},
        tuple(queue.events()),
    )


def begun(network: Network, initial: Mapping[str, Expression]) -> dict[str, Expression]:
    """What states begin with after the events whose triggers hold there and were false before."""
    found = _felt(network)
    first = [one for one in sorted(found, key=_rank) if not one.initial_value and _time(one.trigger, network) is None]
    if first and not all(_is_free(one, found, network) for one in found):
        reason = "it may get in the way of others, which is not supported before a steady state"
        raise ModelError(f"{network.where}: event '{first[0].id}': {reason}")
    known: dict[str, Expression] = {**initial, TIME: number(START)}
    for one in first:
        told = {name: choose(value, one.trigger, Symbol(name)) for name, value in _sized(one, one.assignments).items()}
        known |= {name: substituted(value, known) for name, value in told.items()}
    return {name: known[name] for name in initial}


def _felt(network: Network) -> list[Happening]:
    """The events that may happen, in states, parameters and time alone."""
    found = [_plain(network, one) for one in network.happenings if one.assignments]
    return [one for one in found if one.trigger is not False and not (one.trigger is True and one.initial_value)]


def _plain(network: Network, event: Happening) -> Happening:
    """The event in states, parameters and time alone."""
    return replace(
        event,
        trigger=event.trigger if isinstance(event.trigger, bool) else _lasting(network, event),
        assignments={name: network.now(value) for name, value in event.assignments.items()},
        sizes={name: network.now(value) for name, value in event.sizes.items()},
        delay=None if event.delay is None or constant(event.delay) == 0 else network.now(event.delay),
        priority=None if event.priority is None else network.now(event.priority),
    )


def _lasting(network: Network, event: Happening) -> Truth:
    """A trigger whose equalities of what is set only by events, which may hold for a while, are two comparisons."""
    resting = {name for name, rate in network.states.items() if rate == ZERO} | network.parameters.keys()

    def rewritten(condition: Truth) -> Truth:
        match condition:
            case Comparison("==" | "!=" as relation, left, right) if {*names(left), *names(right)} <= resting:
                same = both([Comparison("<=", left, right), Comparison(">=", left, right)])
                return same if relation == "==" else opposite(same)
            case Logic("and", parts):
                return both([rewritten(part) for part in parts])
            case Logic("or", parts):
                return either([rewritten(part) for part in parts])
            case Logic("not", (part,)):
                return opposite(rewritten(part))
        return condition

    return rewritten(network.now(event.trigger))


def _check_chance(network: Network, events: list[Happening]) -> None:
    """Refuse events between which chance decides: of one priority, or of none and one trigger, where order matters."""
    for one, other in itertools.combinations(events, 2):
        if one.priority is None and other.priority is None:
            alike = one.trigger == other.trigger and one.delay == other.delay
        elif one.priority is None or other.priority is None:
            alike = False
        else:
            alike = one.priority == other.priority and not _are_apart(one, other, network)
        if alike and (_is_disturbed(one, other) or _is_disturbed(other, one) or _is_overwritten(one, other)):
            reason = "which of them happens first is left to chance"
            raise ModelError(f"{network.where}: events '{one.id}' and '{other.id}' are not supported: {reason}")


def _is_overwritten(one: Happening, other: Happening) -> bool:
    """Whether two events set something to different values."""
    return any(other.assignments.get(name, value) != value for name, value in one.assignments.items())


def _is_disturbed(event: Happening, other: Happening) -> bool:
    """Whether an event comes to something else after another at the same time."""
    read: set[str] = set()
    if not event.from_trigger:
        read |= {name for value in event.assignments.values() for name in names(value)}
    if not event.persistent and not isinstance(event.trigger, bool):
        read |= set(names(event.trigger))
    return bool(read & other.assignments.keys())


# --- events that stand alone ------------------------------------------------------------------------------------------


def _rank(event: Happening) -> Fraction:
    """Sorts by priority, the highest first; events without one come last."""
    value = None if event.priority is None else constant(event.priority)
    return Fraction(10**400) if value is None else -value


def _is_free(event: Happening, events: list[Happening], network: Network) -> bool:
    """Whether it makes no difference what else happens at the time of an event."""
    if event.delay is not None:
        return False
    for other in events:
        if other is event or _are_apart(event, other, network):
            continue
        if event.priority is not None or other.priority is not None:
            return False
        read = {name for value in event.assignments.values() for name in names(value)} if event.from_trigger else set()
        if not event.persistent and not isinstance(event.trigger, bool):
            read |= set(names(event.trigger))
        if read & other.assignments.keys():
            return False
    return True


def _are_apart(one: Happening, other: Happening, network: Network) -> bool:
    """Whether two events happen at known times that differ."""
    times = [_time(event.trigger, network) for event in (one, other)]
    first, second = (None if time is None else constant(time) for time in times)
    return first is not None and second is not None and first != second


def _time(trigger: Truth, network: Network) -> Expression | None:
    """The time at which a trigger becomes true for good, if it depends on parameters alone."""
    match trigger:
        case Comparison(">" | ">=" as relation, Symbol("t"), time) | Comparison(
            "<" | "<=" as relation, time, Symbol("t")
        ):
            found = constant(time)
            known = [network.parameters.get(name, Fraction(START)) for name in names(time)]
            if found is not None:
                return time if found > START or (found == START and relation in ("<", ">")) else None
            if len(known) == 1 and isinstance(time, Symbol) and (known[0] is None or known[0] > START):
                return time
    return None


def _direct(network: Network, event: Happening, events: list[Happening]) -> Iterator[Event]:
    if not isinstance(event.trigger, bool):
        time = _time(event.trigger, network)
        if time is not None:
            yield Event(at=time, set=_sized(event, event.assignments), seen=_may_be_reached(event.trigger))
            return
        moved = any(set(names(event.trigger)) & other.assignments.keys() for other in events if other is not event)
        seen = moved or _may_be_reached(event.trigger)
        yield Event(when=event.trigger, set=_sized(event, event.assignments), seen=seen)
    if not event.initial_value:
        told = _sized(event, event.assignments)
        told = {name: choose(value, event.trigger, Symbol(name)) for name, value in told.items()}
        yield Event(at=START, set=told, seen=True)


def _may_be_reached(trigger: Any) -> bool:
    """Whether a trigger may be true where the sides of a comparison are equal."""
    if isinstance(trigger, Comparison):
        return trigger.relation not in ("<", ">")
    return isinstance(trigger, Logic) and (trigger.word == "not" or any(map(_may_be_reached, trigger.parts)))


def _sized(event: Happening, values: Mapping[str, Expression]) -> dict[str, Expression]:
    """What states become by what is assigned: concentrations times sizes where they are amounts."""
    return {name: times(value, event.sizes.get(name, ONE)) for name, value in values.items()}


# --- events in each other's way ---------------------------------------------------------------------------------------


@dataclass
class _Place:
    """A place in which one execution of an event waits, by the names of its states."""

    happens: str
    waits: str  # the same as `happens` where there is no delay
    due: str
    values: dict[str, str]  # what will be set, by what it is set to

    @property
    def taken(self) -> Truth:
        return either([_on(flag) for flag in {self.happens, self.waits}])


def _on(flag: str) -> Truth:
    return Comparison(">", Symbol(flag), HALF)


class _Queue:
    """All events of a network, with the states in which they wait for each other."""

    def __init__(self, network: Network, events: list[Happening]) -> None:
        self.network, self.happenings = network, events
        self.taken = {*network.name_of.values(), *network.states}
        self.initial: dict[str, Expression] = {}
        self.places = [[self.place(event, k + 1) for k in range(PLACES if event.delay else 1)] for event in events]
        self.full = self.flag("queue_full")

    @property
    def ending(self) -> Expression:
        """The rate of what tells that the queue is full: zero until then."""
        return over(Symbol(self.full), minus(ONE, Symbol(self.full)))

    def flag(self, name: str, start: Expression = ZERO) -> str:
        name = fresh(name, self.taken)
        self.initial[name] = start
        return name

    def place(self, event: Happening, k: int) -> _Place:
        own = "".join(c if c.isalnum() else "_" for c in event.id)[:40]
        base = f"event_{own}" if event.delay is None else f"event_{own}_{k}"
        happens = self.flag(f"{base}_happens")
        waits = happens if event.delay is None else self.flag(f"{base}_waits")
        due = "" if event.delay is None else self.flag(f"{base}_due", number(START - 1))
        kept = event.assignments if event.from_trigger else {}
        return _Place(happens, waits, due, {name: self.flag(f"{base}_{name}") for name in kept})

    def events(self) -> Iterator[Event]:
        """Triggers before cancellations, these before delays that end, and last what happens, in order."""
        pairs = list(zip(self.happenings, self.places, strict=True))
        for event, places in pairs:
            if not isinstance(event.trigger, bool):
                yield Event(when=event.trigger, set=self.triggered(event, places), seen=True)
        for event, places in pairs:
            if not event.persistent and not isinstance(event.trigger, bool):
                flags = {flag for place in places for flag in (place.waits, place.happens)}
                yield Event(when=opposite(event.trigger), set=dict.fromkeys(sorted(flags), ZERO), seen=True)
        for event, places in pairs:
            if event.delay is not None:
                for place in places:
                    ends = both([_on(place.waits), Comparison(">=", Symbol(TIME), Symbol(place.due))])
                    yield Event(when=ends, set={place.happens: ONE, place.waits: ZERO}, seen=True)
        yield from self.executions(pairs)
        at_once: dict[str, Expression] = {}
        for event, places in pairs:
            if not event.initial_value:
                told = self.triggered(event, places).items()
                at_once |= {name: choose(value, event.trigger, Symbol(name)) for name, value in told}
        if at_once:
            yield Event(at=START, set=at_once, seen=True)

    def triggered(self, event: Happening, places: list[_Place]) -> dict[str, Expression]:
        """What a trigger sets: the first free place waits."""
        told: dict[str, Expression] = {}
        before: list[Truth] = []
        for place in places:
            here = both([*before, opposite(place.taken)])
            new: dict[str, Expression] = {place.waits: ONE}
            if event.delay is not None:
                new[place.due] = plus(Symbol(TIME), event.delay)
            new |= {kept: event.assignments[name] for name, kept in place.values.items()}
            told |= {name: choose(value, here, Symbol(name)) for name, value in new.items()}
            before.append(place.taken)
        told[self.full] = choose(ONE, both(before), Symbol(self.full))
        return told

    def executions(self, pairs: list[tuple[Happening, list[_Place]]]) -> Iterator[Event]:
        """Each place happens when none that comes before it is to happen."""
        queue = sorted(
            ((event, place) for event, places in pairs for place in places), key=lambda item: item[0].priority is None
        )
        for i, (event, place) in enumerate(queue):
            ahead = [
                both([_on(other.happens), _comes_before(rival, event, j < i)])
                for j, (rival, other) in enumerate(queue)
                if j != i
            ]
            ready = both([_on(place.happens), *(opposite(one) for one in ahead)])
            kept = {name: Symbol(place.values[name]) for name in event.assignments} if event.from_trigger else None
            told = _sized(event, event.assignments if kept is None else kept)
            told[place.happens] = ZERO
            # A trigger of the same moment may have called it off, or brought another before it.
            told = {name: choose(value, ready, Symbol(name)) for name, value in told.items()}
            yield Event(when=ready, set=told, seen=True)


def _comes_before(rival: Happening, event: Happening, listed_first: bool) -> Truth:
    """Whether an event happens before another that is due at the same time."""
    if rival.priority is None or event.priority is None:
        return listed_first
    one, other = constant(rival.priority), constant(event.priority)
    if one is not None and other is not None:
        return one > other or (one == other and listed_first)
    return Comparison(">=" if listed_first else ">", rival.priority, event.priority)
