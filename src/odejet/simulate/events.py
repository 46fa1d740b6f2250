"""Events: how a solution passes through them, from one mode of its model to the next, with exact sensitivities.

Between events a solution is analytic and `flow` carries it.  It stops where a switching function loses its sign, and
before every event at a known time if the model has switches (else such events happen on the way, see `jumps`).  Then

- what is asked for at this time is recorded, before all events but those that are seen there;
- the mode that goes on is found (see `standing`);
- conditions that have become true set what their events say, which may make others true: conditions are read just
  before, at the instant itself, where a function that loses its sign is zero, and just after;
- sensitivities jump by what the time of the event adds: with te moved by dte = -dg / g' they are carried along the
  rates before it, through the map of the event, and back along the rates after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from odejet.jets.crossings import INSTANT, LATE, SHAKEN, Crossing, Side
from odejet.jets.jumps import Jumps, no_jumps
from odejet.jets.kernel import MAX_ORDER, lay_out
from odejet.jets.roots import LENGTH, Switches, no_switches
from odejet.model.events import Event
from odejet.model.expressions import Expression, Symbol, names, switches
from odejet.simulate.program import Busy, Endless, Irreversible
from odejet.simulate.schedule import inverse, scheduled
from odejet.simulate.signs import SLIDE
from odejet.simulate.standing import STAYS, Place, Standing

_CASCADE = 100  # events that follow from each other at one time
_AT_ONCE = 100  # switches at one time that are taken to be endless


_NOWHERE = np.full(2, -1, np.int64)  # in place of the positions of a function
_NOTHING = np.zeros(0), np.zeros(0), np.zeros(0)  # in place of constants and registers
_NO_SWITCHES, _NO_JUMPS = no_switches(), no_jumps()


# --- one solution ---


class Crossed(NamedTuple):
    """What was before an instant: the conditions that held, the rates, the tangents of the time, and the signs to try
    first for functions that vanish."""

    holds: tuple[bool, ...]
    rates: np.ndarray
    moved: np.ndarray
    vanishing: Mapping[Expression, tuple[int, ...]]


def _nothing(place: Place) -> None:
    """Nobody asks for anything."""


@dataclass
class Passage(Standing):
    """A solution on its way through the events and modes of its model, in one direction."""

    jumps: Jumps = _NO_JUMPS
    events: Sequence[Event] = ()
    which: np.ndarray = field(default_factory=lambda: _NO_JUMPS.maps)  # of the events each jump is
    barrier: float | None = None  # where a solution that goes backward meets an event that cannot be undone
    is_beyond: bool = False  # whether what is asked for there is not reached
    crossed_last: Expression | None = None  # the switching function that lost its sign last
    fired: np.ndarray = field(default_factory=lambda: np.array([-1], np.int64))
    mark: float = math.nan
    repeats: int = 0
    switches_left: float = math.inf  # of functions of states
    record: Callable[[Place], None] = _nothing  # takes down what is asked for at the time of a place
    holds: tuple[bool, ...] = ()  # which conditions of events were true when they were last read
    vanished: dict[Expression, int] = field(default_factory=dict)  # functions that lost their signs here, and are zero

    @property
    def switches(self) -> Switches:
        """The switching functions of the mode, as steps watch them."""
        assert self.ready is not None
        signs, zeros = self.ready.signs, np.zeros(len(self.ready.watched), np.int64)
        if self.zeros:
            zeros[:] = [self.zeros.get(g, 0) for g in self.ready.watched]
            signs = np.where(zeros == STAYS, 0.0, signs)
        return Switches(signs, zeros, np.zeros((2, LENGTH)), self.fired, self.ready.moving)

    def crossing(self) -> Crossing:
        """The mode beyond the function that is crossed next, if that is the one that was crossed last; at first, the
        first one that states move."""
        assert self.ready is not None
        states, ready = self.program.equations.states, self.ready
        moving = (g for g, clock in zip(ready.watched, ready.clocks, strict=True) if not clock)
        g = self.crossed_last if self.crossed_last in ready.watched else next(moving, None)
        other = None if g is None or self.zeros.get(g) == STAYS else self.program.beyond(ready, g)
        marks = np.array([self.mark, INSTANT * abs(self.end - self.start), abs(self.start)])
        marks[0] = np.inf if math.isnan(self.mark) else self.mark
        series, point = (lay_out(ready.tape, self.lanes, orders, True) for orders in (MAX_ORDER + 1, 2))
        if other is None or g is None:
            side = Side(series, point, *_NOTHING, _NO_SWITCHES)
            return Crossing(side, _NOWHERE, np.zeros(2, np.int64), marks)
        tape, lanes = other.tape, self.lanes
        series, point = (lay_out(tape, lanes, layout.orders, True) for layout in (series, point))
        zeros = np.zeros(len(other.signs), np.int64)
        switches = Switches(other.signs, zeros, np.zeros((2, LENGTH)), self.fired, other.moving)
        side = Side(series, point, tape.constant_values, np.zeros(series.size), np.zeros(point.size), switches)
        left = min(self.switches_left, 1 << 62) if any(name in states for name in names(g)) else 1 << 62
        which = np.array([ready.watched.index(g), other.watched.index(g)])
        return Crossing(side, which, np.array([0, int(left)]), marks)

    def crossed(self, crossing: Crossing, now: float) -> None:
        """What has happened at a crossing on the way."""
        count = int(crossing.counts[0])
        if not count:
            return
        assert self.ready is not None
        g = self.ready.watched[int(crossing.which[0])]
        if any(name in self.program.equations.states for name in names(g)):
            self.switches_left -= count
        self.mark, self.repeats, self.crossed_last = float(crossing.marks[0]), 0, g
        if count % 2:
            other = self.program.beyond(self.ready, g)
            assert other is not None
            self.ready = other
        self.zeros, self.assumed = ({g: 1} if now == self.mark else {}), {}

    def reached(self, times: np.ndarray) -> np.ndarray:
        """Those of times that no event bars which cannot be undone."""
        if self.barrier is None:
            return times
        return times[times > self.barrier if self.is_beyond else times >= self.barrier]

    @property
    def next_jump(self) -> float | None:
        """The time of the next event at a known time."""
        done = self.jumps.done[0]
        return float(self.jumps.times[done]) if done < len(self.jumps.times) else None

    # -- setting out

    def begin(self, place: Place, known: bool) -> None:
        """Initial values, if they are known, the events ahead, the first mode, and what happens at the start."""
        program = self.program
        if known and program.initial:
            rows = program.begun(self.parameters)
            if rows is None:
                taken = self.taken(place, program.initial) if program.begins_switch else program.initial
                rows = self.at(place, taken)
            place.states[program.begins] = rows
            place.sizes[:] = np.abs(place.states[:, 0])
        self.schedule(place)
        if program.switching:
            self.find(place, {})
            self.come_to_rest(place)
            assert self.ready is not None
            self.holds = self.ready.mode.holds
            if self.direction > 0:
                self.set_off(place)
        else:
            self.ready = program.only

    def set_off(self, place: Place) -> None:
        """What happens at the start: at it, and just after it."""
        if self.assumed:
            self.holds = self.holds_at_instant(place)
        self.jump_at_instant(place)
        self.record(place)
        self.pass_on(place, self.unmoved(place))
        self.jump_while(place)

    # -- events at known times

    def schedule(self, place: Place) -> None:
        """All events ahead, in the order in which the solution meets them."""
        timed = self.program.timed
        if not timed:
            return
        times = self.program.times
        if any(map(switches, times)):
            times = tuple(self.taken(place, times))
        found = scheduled(timed, self.at(place, times), self.start, self.end)
        self.events, self.which, self.barrier = found.events, found.which, found.barrier
        self.is_beyond = found.is_beyond
        self.jumps = found.jumps(self.program, self.parameters)

    # -- passing

    def leave(self, before: float, now: float) -> None:
        """Functions that vanished where a stretch began do so no longer where the solution has moved on."""
        if now != before:
            self.zeros = {g: count for g, count in self.zeros.items() if count == STAYS}

    def rates(self, place: Place, after: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rates of all states, and the watched functions with their rates: (states,) and (functions, 2, lanes)."""
        registers = self.laid_out(self.tape, self.parameters, place.states[None], place.time, 1, after)
        registers.expand(np.array([place.time]), 2)
        layout, memory = registers.layout, registers.memory[0]
        rates = np.where(layout.states >= layout.dynamic, memory[layout.states + layout.lanes], 0.0)
        return rates, registers.series(layout.switches, 2)[0]

    def go_on(self, place: Place, switched: bool) -> None:
        """Past a switch, past all events at a known time, or past both.

        First is what is seen at this time, then what is asked for at it, and then all else.
        """
        self.vanished = {}
        if self.direction < 0:
            if switched:
                self.pass_on(place, self.cross(place))
            self.jump_while(place, follows=False)
            self.record(place)
        else:
            self.go_forward(place, switched)
        self.jump_while(place)

    def go_forward(self, place: Place, switched: bool) -> None:
        crossed, seen = None, self.next_jump == place.time and not self.jumps.follows[int(self.jumps.done[0])]
        if switched:
            assert self.ready is not None
            self.vanished = {self.ready.watched[int(self.fired[0])]: 0}
            if self.program.seen or seen:
                crossed = self.cross(place)
                crossed = self.happen_at_instant(place, crossed, seen=True) if self.program.seen else crossed
                self.holds = crossed.holds
        if seen:
            self.jump_at_instant(place)
            crossed = self.unmoved(place) if crossed is None else crossed._replace(holds=self.holds)
        self.record(place)
        if switched and crossed is None:
            crossed = self.cross(place)
        if crossed is not None and self.program.switching:
            if self.program.instantaneous or len(self.assumed) > 1:
                crossed = self.happen_at_instant(place, crossed)
            self.pass_on(place, crossed)

    def jump_while(self, place: Place, follows: bool = True) -> None:
        """All events at this time, with or without those that follow what is asked for there."""
        while self.next_jump == place.time and (follows or not self.jumps.follows[int(self.jumps.done[0])]):
            self.jump(place)

    def jump_at_instant(self, place: Place) -> None:
        """All events at this time that come before what is asked for there, and what follows from them at once."""
        while self.next_jump == place.time and not self.jumps.follows[int(self.jumps.done[0])]:
            _, moved = self.leap(place)
            crossed = Crossed(self.holds, np.zeros(len(place.states)), moved, {})
            if self.program.conditions:
                crossed = self.happen_at_instant(place, crossed, seen=True)
            if moved.any():
                place.states[:, 1:] += np.outer(crossed.rates - self.rates(place, after=True)[0], moved[1:])
            self.holds = crossed.holds

    def outputs(self, place: Place, inputs: np.ndarray | None = None) -> np.ndarray:
        """Rows of the outputs at the very instant, where sampled inputs are these."""
        view, outputs = self.view(place), tuple(self.program.equations.outputs.values())
        if inputs is not None:
            view = replace(view, inputs=dict(zip(self.program.equations.inputs, inputs, strict=True)))
        if self.program.branching["outputs"]:
            branches = view.there(self.vanished)
            outputs = tuple(branches.taken(one) for one in outputs)
        return self.at(place, outputs, inputs)

    def cross(self, place: Place) -> Crossed:
        """The mode past the switching function that lost its sign, and what was before."""
        assert self.ready is not None
        before, g = self.ready, self.ready.watched[int(self.fired[0])]
        self.count(place, g)
        self.crossed_last = g
        rates, moved = np.zeros(len(place.states)), np.zeros(self.lanes)
        if not (self.program.is_clocked and before.clocks[int(self.fired[0])] and self.is_number(g)):
            rates, functions = self.rates(place, after=False)
            value, slope = functions[int(self.fired[0])]
            if slope[0] != 0:
                moved[1:] = -value[1:] / slope[0]
            # The time itself is rounded, and the states with it.
            place.sizes = np.maximum(place.sizes, LATE / SHAKEN * self.time_size(place) * np.abs(rates))
        vanishing = self.preferences(g)
        self.find(place, vanishing)
        for held in self.ready.mode.sliding:
            if isinstance(held, Symbol):  # a state that is held at zero is zero
                place.states[self.program.rows[held.name], 0] = 0.0
        return Crossed(self.holds, rates, moved, vanishing)

    def unmoved(self, place: Place) -> Crossed:
        """What was before an instant that the unknowns do not move."""
        return Crossed(self.holds, np.zeros(len(place.states)), np.zeros(self.lanes), {})

    def is_number(self, g: Expression) -> bool:
        """Whether no parameter in a function is among the unknowns, so that no tangent moves it."""
        places = self.program.places
        return not any(self.parameters[places[name], 1:].any() for name in names(g) if name in places)

    def preferences(self, g: Expression) -> dict[Expression, tuple[int, ...]]:
        """The signs to try first where a function has lost its own."""
        assert self.ready is not None
        found: dict[Expression, tuple[int, ...]] = {}
        asked, sliding = self.ready.mode.asked, self.ready.mode.sliding
        for held, (above, below) in sliding.items():
            first = 1 if g == above else -1 if g == below else SLIDE
            found[held] = (first, *(sign for sign in (1, -1, 0, SLIDE) if sign != first))
        if not any(g in pair for pair in sliding.values()):
            found[g] = (-asked[g], asked[g], 0, SLIDE)
        return found

    def come_to_rest(self, place: Place) -> None:
        """Sensitivities of a start on a surface that holds the solution: a start beside it is drawn there at once."""
        assert self.ready is not None
        held, ready = tuple(self.ready.mode.sliding), self.ready
        for g in held:
            after, functions = self.rates(place, after=True)
            value = functions[ready.watched.index(g), 0]
            self.ready = self.build(self.view(place), {**self.assumed, g: 1})
            before, functions = self.rates(place, after=True)
            slope = functions[self.ready.watched.index(g), 1, 0]
            self.ready = ready
            if slope != 0:
                place.states[:, 1:] -= np.outer(before - after, value[1:] / slope)

    def count(self, place: Place, g: Expression) -> None:
        """Refuse to go on where switches follow each other without end, or where there are too many.

        Those of functions of the time are as many as the equations say, whatever the solution.
        """
        self.switches_left -= any(name in self.program.equations.states for name in names(g))
        if self.switches_left < 0:
            raise Busy
        reach = INSTANT * max(abs(place.time), abs(self.end - self.start))
        if abs(place.time - self.mark) <= reach:
            self.repeats += 1
            if self.repeats > _AT_ONCE:
                raise Endless
        else:
            self.mark, self.repeats = place.time, 0

    def jump(self, place: Place) -> None:
        """The next event at a known time, and what follows from it."""
        event, moved = self.leap(place)
        there = self.holds_between(place, set(event.set)) if self.program.conditions else None
        self.pass_on(place, Crossed(self.holds, np.zeros(len(place.states)), moved, {}), there)

    def leap(self, place: Place) -> tuple[Event, np.ndarray]:
        """What the next event at a known time sets, and the mode after it; tangents of that time are returned with the
        event, and those of the states still to be carried back along the rates after it."""
        done = int(self.jumps.done[0])
        event, moved = self.events[self.which[done]], self.jumps.moved[done]
        self.jumps.done[0] = done + 1
        if moved.any():
            place.states[:, 1:] += np.outer(self.rates(place, after=False)[0], moved[1:])
        self.apply(place, event, moved)
        if self.program.switching:
            self.find(place, {})
        return event, moved

    def holds_at_instant(self, place: Place) -> tuple[bool, ...]:
        """Which conditions of events are true at the very instant."""
        branches = self.view(place).there(dict.fromkeys(self.assumed, 0))
        return tuple(branches.holds(condition) for condition in self.program.conditions)

    def happen_at_instant(self, place: Place, crossed: Crossed, seen: bool = False) -> Crossed:
        """What follows from conditions that become true at the very instant, of all events or of those `seen` there."""
        holds, rates, moved, vanishing = crossed
        for _ in range(_CASCADE):
            now = self.holds_at_instant(place)
            events = zip(self.program.conditional, holds, now, strict=True)
            risen = [event for event, was, is_ in events if is_ and not was and (event.seen or not seen)]
            held = [
                was if is_ and seen and not event.seen else is_
                for event, was, is_ in zip(self.program.conditional, holds, now, strict=True)
            ]
            holds = tuple(held)
            if not risen:
                break
            if moved.any():
                place.states[:, 1:] += np.outer(rates, moved[1:])
            vanishing = self.happen(place, risen, moved, vanishing)
            if moved.any():
                rates = self.rates(place, after=True)[0]
                place.states[:, 1:] -= np.outer(rates, moved[1:])
        else:
            raise Endless
        return Crossed(holds, rates, moved, vanishing)

    def pass_on(self, place: Place, crossed: Crossed, there: tuple[bool, ...] | None = None) -> None:
        """What follows from conditions that have become true, and the rates of the mode that goes on.

        Tangents are still to be carried along the rates before by the tangents of the time.  Conditions are read just
        after, and before that as they are `there`, where an event has set a function to zero.
        """
        assert self.ready is not None
        holds, rates, moved, vanishing = crossed
        if moved.any():
            place.states[:, 1:] += np.outer(rates, moved[1:])
        for _ in range(2 * _CASCADE):
            now, last = (self.ready.mode.holds, True) if there is None else (there, False)
            there = None
            risen = [
                event
                for event, was, holds_now in zip(self.program.conditional, holds, now, strict=True)
                if (holds_now and not was if self.direction > 0 else was and not holds_now)
            ]
            holds = now
            if not risen and last:
                break
            if self.direction < 0:
                risen = self.undone(place, risen)
            if risen:
                vanishing = self.happen(place, risen, moved, vanishing)
                there = self.holds_between(place, {name for event in risen for name in event.set})
        else:
            raise Endless
        self.holds = holds
        if moved.any():
            place.states[:, 1:] -= np.outer(self.rates(place, after=True)[0], moved[1:])

    def undone(self, place: Place, events: Sequence[Event]) -> list[Event]:
        """The inverses of events that a solution meets on its way back."""
        inverses = [inverse(event) for event in reversed(events)]
        found = [event for event in inverses if event is not None]
        if len(found) < len(inverses):
            self.barrier = place.time
            raise Irreversible
        return found

    def happen(
        self,
        place: Place,
        events: Sequence[Event],
        moved: np.ndarray,
        vanishing: Mapping[Expression, tuple[int, ...]],
    ) -> Mapping[Expression, tuple[int, ...]]:
        """What events set, and the mode after them; of the functions that vanish, those that they leave alone."""
        assert self.ready is not None
        for event in events:
            self.apply(place, event, moved)
        changed = {name for event in events for name in event.set}
        entered, asked = self.zeros, self.ready.mode.asked
        kept = {g: signs for g, signs in vanishing.items() if not changed & set(names(g))}
        self.find(place, kept)
        for g in vanishing:
            # The event has left too little speed to tell from none: as after infinitely many bounces.
            if entered.get(g) == 1 and self.zeros.get(g, 0) > 1 and self.ready.mode.asked.get(g) == asked[g]:
                raise Endless
        return kept

    def holds_between(self, place: Place, changed: set[str]) -> tuple[bool, ...] | None:
        """Conditions as they are where an event has set a function to zero, and not only to rounding; else None.

        They may be false there, and true again at once.
        """
        open_ = [g for g, sign in self.assumed.items() if sign != SLIDE and changed & set(names(g))]
        if not open_ or self.direction < 0:
            return None
        view = self.view(place)
        sign = view.branches(None).sign
        zero = {g: 0 for g in open_ if sign(g) == 0}
        return self.build(view, {**self.assumed, **zero}).mode.holds if zero else None

    def apply(self, place: Place, event: Event, moved: np.ndarray) -> None:
        """What an event sets, by what held just before."""
        taken = self.taken(place, tuple(event.set.values()))
        maps = self.program.maps([taken])
        time = moved.copy()
        time[0] = place.time
        inputs = self.inputs(place.time, moved, after=False)
        if (id(maps),) not in self.registers:
            self.registers[id(maps),] = maps.registers(self.parameters)
        rows = maps.values(self.registers[id(maps),], 0, place.states, time, inputs)
        if self.vanished:
            self.vanished = {g: 0 for g in self.vanished if not event.set.keys() & set(names(g))}
        place.states[[self.program.rows[name] for name in event.set]] = rows
        place.sizes = np.maximum(place.sizes, np.abs(place.states[:, 0]))
