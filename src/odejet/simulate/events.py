"""Events: how a solution passes through them, from one mode of its model to the next, with exact sensitivities.

Between events a solution is analytic and `flow` carries it.  It stops where a switching function loses its sign, and
before every event at a known time if the model has switches (else such events happen on the way, see `jumps`).  Then

- the mode that goes on is the one that agrees with itself: under its equations every switching function that vanishes
  here takes, just after, the sign that the mode assumes; the first coefficient of its series tells;
- conditions that have become true set what their events say, which may make others true;
- sensitivities jump by what the time of the event adds: with te moved by dte = -dg / g' they are carried along the
  rates before it, through the map of the event, and back along the rates after it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.errors import ModelError
from odejet.jets.inputs import Pieces
from odejet.jets.jumps import Jumps, no_jumps
from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.registers import Registers
from odejet.jets.roots import Switches, no_switches
from odejet.model.events import Event
from odejet.model.expressions import TIME, Expression, Symbol, names, switches
from odejet.model.modes import Branches, Mode, mode, slid
from odejet.model.tape import Tape
from odejet.simulate.program import Busy, Endless, Irreversible, Program, Ready, Undecided
from odejet.simulate.schedule import inverse, scheduled
from odejet.simulate.signs import ROUNDING, SHAKEN, SLIDE, Open, branches_at, clock_sign, in_turn

STAYS = -1
"""In place of a number of coefficients that vanish: all do, and the function is not watched."""

_OPEN = 3  # functions that vanish at once up to which all choices of their signs are tried
_HELD = 6  # functions held at zero at once: the mixture of their modes doubles with each
_ROUNDS = 4  # for each function, in which signs are changed to those that the functions take
_RECENT = 4  # modes that are compared with a place before its own is made
_ORDER = 12  # of the series that tell where a function goes
_LATE = 1e-15  # the rounding of a time, relative to it
_CASCADE = 100  # events that follow from each other at one time
_AT_ONCE, _INSTANT = 100, 1e-12  # switches within so short a time, relative to all of it, that are taken to be endless


Choice = tuple[Ready, Mapping[Expression, int], Mapping[Expression, int]]
"""A mode that agrees with itself, how many coefficients of each function vanish there, and the signs assumed."""


# --- one solution ---


@dataclass
class Place:
    """Where a solution is: its time, rows of all states, and the size that each state has had."""

    time: float
    states: np.ndarray
    sizes: np.ndarray


@dataclass
class Passage:
    """A solution on its way through the events and modes of its model, in one direction."""

    program: Program
    parameters: np.ndarray  # rows
    numbers: Mapping[str, float]  # of parameters and of what is fixed
    pieces: Pieces
    start: float
    end: float
    jumps: Jumps = field(default_factory=no_jumps)
    events: Sequence[Event] = ()
    which: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # of the events each jump is
    barrier: float | None = None  # where a solution that goes backward meets an event that cannot be undone
    ready: Ready | None = None
    zeros: Mapping[Expression, int] = field(default_factory=dict)
    assumed: Mapping[Expression, int] = field(default_factory=dict)  # signs of the functions that vanished
    fired: np.ndarray = field(default_factory=lambda: np.full(1, -1, np.int64))
    mark: float = math.nan
    repeats: int = 0
    switches_left: float = math.inf  # of functions of states
    recent: list[Ready] = field(default_factory=list)
    registers: dict[tuple[int, ...], Registers] = field(default_factory=dict)  # of tapes and maps

    @property
    def direction(self) -> int:
        return 1 if self.end >= self.start else -1

    @property
    def lanes(self) -> int:
        return self.parameters.shape[1]

    @property
    def tape(self) -> Tape:
        assert self.ready is not None
        return self.ready.tape

    @property
    def switches(self) -> Switches:
        """The switching functions of the mode, as steps watch them."""
        assert self.ready is not None
        zeros = np.array([self.zeros.get(g, 0) for g in self.ready.watched], dtype=np.int64)
        signs = np.array([float(self.ready.mode.asked[g]) for g in self.ready.watched])
        signs[zeros == STAYS] = 0.0
        return no_switches(len(signs))._replace(signs=signs, zeros=zeros, fired=self.fired, moving=self.ready.moving)

    @property
    def next_jump(self) -> float | None:
        """The time of the next event at a known time."""
        done = self.jumps.done[0]
        return float(self.jumps.times[done]) if done < len(self.jumps.times) else None

    # -- setting out

    def begin(self, place: Place, known: Mapping[str, Expression]) -> None:
        """Known initial values, the events ahead, the first mode, and what happens at the start."""
        if known:
            values = self.branches(place)
            taken = [values.taken(value) if switches(value) else value for value in known.values()]
            order = list(self.program.equations.states)
            rows = [order.index(name) for name in known]
            place.states[rows] = self.at(place, taken)
            place.sizes[:] = np.abs(place.states[:, 0])
        self.schedule(place)
        if self.program.switching:
            self.find(place, {})
            self.come_to_rest(place)
            while self.next_jump == place.time:
                self.jump(place)
        else:
            self.ready = self.program.only

    def at(self, place: Place, expressions: Sequence[Expression]) -> np.ndarray:
        """Rows of expressions without switches at a place."""
        maps = self.program.maps([expressions])
        time = np.zeros(self.lanes)
        time[0] = place.time
        return maps.values(maps.registers(self.parameters), 0, place.states, time, self.inputs(place.time, time * 0))

    def inputs(self, time: float, moved: np.ndarray, after: bool = True) -> np.ndarray:
        """Rows of the sampled inputs just after a time, or just before, with tangents by those of the time."""
        series = self.input_series(time, 1, after)
        rows = series[:, 1:2] * moved
        rows[:, 0] = series[:, 0]
        return rows

    def input_series(self, time: float, order: int, after: bool = True) -> np.ndarray:
        if not len(self.pieces.coefficients):
            return np.zeros((0, order + 1))
        ahead = (self.direction > 0) == after
        beside = time if ahead else np.nextafter(time, -np.inf)
        piece = self.pieces.piece(np.array([beside]))
        return self.pieces.series(np.array([time]), order, piece)[0]

    # -- events at known times

    def schedule(self, place: Place) -> None:
        """All events ahead, in the order in which the solution meets them."""
        timed = self.program.timed
        if not timed:
            return
        times = self.program.times
        if any(map(switches, times)):
            times = tuple(map(self.branches(place).taken, times))
        found = scheduled(timed, self.at(place, times), self.start, self.end)
        self.events, self.which, self.barrier = found.events, found.which, found.barrier
        self.jumps = found.jumps(self.program, self.parameters)

    # -- modes

    def time_size(self, place: Place) -> float:
        return max(abs(place.time), abs(self.start))

    def branches(self, place: Place, assumed: Mapping[Expression, int] | None = None) -> Branches:
        """Signs of switching functions at a place, as they are there or, with some assumed, as they are just after."""
        order = self.program.equations.states
        values = {
            **self.numbers,
            **dict(zip(order, place.states[:, 0], strict=True)),
            **dict(zip(self.program.equations.inputs, self.input_series(place.time, 0)[:, 0], strict=True)),
            TIME: place.time,
        }
        sizes = {**dict(zip(order, place.sizes, strict=True)), TIME: self.time_size(place)}
        return branches_at(values, sizes, assumed)

    def build(self, place: Place, assumed: Mapping[Expression, int]) -> Mode:
        """The mode that assumed signs give; conditions on a function that is held at zero see it there."""
        held = next((g for g, sign in assumed.items() if sign == SLIDE), None)
        if held is None:
            program = self.program
            if (known := self.known(place, assumed)) is not None:
                return known
            return mode(program.equations, program.branching, program.conditions, self.branches(place, assumed))
        above, below = (self.build(place, {**assumed, held: sign}) for sign in (1, -1))
        there = self.build(place, {g: 0 if sign == SLIDE else sign for g, sign in assumed.items()})
        return replace(slid(above, below, held), holds=there.holds)

    def known(self, place: Place, assumed: Mapping[Expression, int]) -> Mode | None:
        """One of the last modes if it is the one here: if all that was asked for it has the same answers."""
        branches = self.branches(place, assumed)
        for one in self.recent:
            try:
                if not one.mode.sliding and all(branches.sign(g) == sign for g, sign in one.mode.asked.items()):
                    return one.mode
            except (Open, Undecided):
                continue
        return None

    def find(self, place: Place, preferred: Mapping[Expression, tuple[int, ...]]) -> None:
        """The mode in which the solution goes on; functions that are preferred to have some signs vanish here."""
        opened: dict[Expression, tuple[int, ...]] = dict(preferred)
        while True:
            try:
                few = sum(len(signs) > 1 for signs in opened.values()) <= _OPEN
                self.ready, self.zeros, self.assumed = (self.tried if few else self.followed)(place, opened)
                if self.ready not in self.recent:
                    self.recent = [self.ready, *self.recent[: _RECENT - 1]]
                return
            except Open as more:
                equations = self.program.equations
                clock = clock_sign(more.g, (*equations.states, *equations.inputs))
                opened[more.g] = (clock * self.direction,) if clock else (1, -1, 0, SLIDE)

    def tried(self, place: Place, opened: Mapping[Expression, tuple[int, ...]]) -> Choice:
        """The first choice of signs whose mode agrees with it; else one that is held at zero from one side alone."""
        choices = [dict(zip(opened, signs, strict=True)) for signs in in_turn(opened.values())]
        for loosely in (False, True):
            for assumed in choices:
                if loosely and SLIDE not in assumed.values():
                    continue
                found = self.judged(place, assumed, loosely)
                if found is not None and not found[2]:
                    return found[0], found[1], assumed
        raise Undecided

    def followed(self, place: Place, opened: Mapping[Expression, tuple[int, ...]]) -> Choice:
        """Signs changed to those that the functions take until the mode agrees with them: where many vanish at once.

        A function that leaves either sign for the other is held at zero.
        """
        assumed = {g: signs[0] for g, signs in opened.items()}
        left: dict[Expression, set[int]] = {g: set() for g in opened}
        for _ in range(_ROUNDS * len(opened)):
            if sum(sign == SLIDE for sign in assumed.values()) > _HELD:
                break
            found = self.judged(place, assumed, False)
            if found is None:
                break
            ready, zeros, wrong = found
            if not wrong:
                return ready, zeros, assumed
            g, sign = next(iter(wrong.items()))
            pairs = ready.mode.sliding.items()
            held, sign = next(((h, 1 if g == pair[0] else -1) for h, pair in pairs if g in pair), (g, sign))
            left[held].add(assumed[held])
            assumed[held] = SLIDE if sign in left[held] and SLIDE not in left[held] else sign
        raise Undecided

    def judged(
        self, place: Place, assumed: Mapping[Expression, int], loosely: bool
    ) -> tuple[Ready, Mapping[Expression, int], Mapping[Expression, int]] | None:
        """The mode that signs give, how many coefficients of each function vanish, and the signs that disagree.

        `loosely` a function is held at zero, too, that one side drives there and the other leaves where it is.
        """
        try:
            ready = self.program.ready(self.build(place, assumed))
        except ModelError:  # rates that are the same on both sides hold nothing
            if SLIDE in assumed.values():
                return None
            raise
        zeros: dict[Expression, int] = {}
        wrong: dict[Expression, int] = {}
        rates = {rate for pair in ready.mode.sliding.values() for rate in pair}
        doubtful = [g for g in ready.watched if g in rates or assumed.get(g, SLIDE) != SLIDE]
        if not doubtful:
            return ready, zeros, wrong
        leading = self.leading(ready, place)
        for g, row in zip(ready.watched, leading, strict=True):
            if g not in doubtful:
                continue
            significant = np.flatnonzero(row[0 if g in rates else 1 :])
            first = int(significant[0]) + (g not in rates) if len(significant) else None
            sign = 0 if first is None else int(row[first]) * self.direction**first
            wanted = ready.mode.asked[g] * (self.direction if g in rates else 1)
            if sign != wanted and not (loosely and g in rates and first is None):
                wrong[g] = sign
            zeros[g] = (STAYS if g in rates else 0) if first is None else first
        neutral = any(all(zeros[rate] == STAYS for rate in pair) for pair in ready.mode.sliding.values())
        return None if neutral else (ready, zeros, wrong)

    def leading(self, ready: Ready, place: Place) -> np.ndarray:
        """Signs of the coefficients of all watched functions, zero for those below rounding: (functions, orders)."""
        rows, times = np.zeros((3, len(place.states), padded(1))), np.full(3, place.time)
        pattern = np.where(np.arange(len(place.states)) % 2, 1.0, -1.0)
        for point, shift in enumerate((0.0, SHAKEN, SHAKEN * pattern)):
            with np.errstate(invalid="ignore"):  # what has grown without bounds has no size
                rows[point, :, 0] = place.states[:, 0] + shift * place.sizes
        times[1:] += np.array([SHAKEN, -SHAKEN]) * self.time_size(place)
        parameters = np.zeros((len(self.parameters), padded(1)))
        parameters[:, 0] = self.parameters[:, 0]
        series = self.series(ready.tape, np.broadcast_to(parameters, (3, *parameters.shape)), rows, times, _ORDER)
        found = series[1][..., 0]
        noise = np.abs(found[1:] - found[0]).max(axis=0)
        return np.where(np.abs(found[0]) > ROUNDING * noise, np.sign(found[0]), 0.0)

    def series(
        self, tape: Tape, parameters: np.ndarray, rows: np.ndarray, times: np.ndarray, order: int, after: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Taylor coefficients of states and watched functions: (points, functions, orders, lanes)."""
        lanes = rows.shape[2]
        layout = lay_out(tape, lanes, order + 2, True)
        key = id(tape), len(rows), lanes, order
        if key not in self.registers:
            self.registers[key] = Registers(layout, len(rows), float, TABLES)
            self.registers[key].prepare(tape.constant_values, parameters, rows)
        registers = self.registers[key]
        registers.write(layout.states, rows)
        registers.run(layout.code[: layout.split[0]], 1)
        inputs = self.input_series(float(times[0]), order, after)
        registers.memory[:, layout.inputs[:, None] + np.arange(order + 1) * lanes] = inputs
        registers.expand(times, order + 1)
        moving = layout.states >= layout.dynamic
        states = np.zeros((len(rows), len(layout.states), order + 1, lanes))
        states[:, moving] = registers.series(layout.states[moving], order + 1)
        return states, registers.series(layout.switches, order + 1)

    # -- passing

    def leave(self, before: float, now: float) -> None:
        """Functions that vanished where a stretch began do so no longer where the solution has moved on."""
        if now != before:
            self.zeros = {g: count for g, count in self.zeros.items() if count == STAYS}

    def rates(self, place: Place, after: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rates of all states, and the watched functions with their rates: (states,) and (functions, 2, lanes)."""
        states, functions = self.series(
            self.tape, self.parameters[None], place.states[None], np.array([place.time]), 1, after
        )
        return states[0, :, 1, 0], functions[0]

    def go_on(self, place: Place, switched: bool) -> None:
        """Past a switch, or past all events at a known time."""
        if switched:
            self.cross(place)
        while self.next_jump == place.time:
            self.jump(place)

    def cross(self, place: Place) -> None:
        """Past the switching function that lost its sign."""
        assert self.ready is not None
        before, g = self.ready, self.ready.watched[int(self.fired[0])]
        self.count(place, g)
        rates, functions = self.rates(place, after=False)
        value, slope = functions[int(self.fired[0])]
        moved = np.zeros(self.lanes)
        if slope[0] != 0:
            moved[1:] = -value[1:] / slope[0]
        # The time itself is rounded, and the states with it.
        place.sizes = np.maximum(place.sizes, _LATE / SHAKEN * self.time_size(place) * np.abs(rates))
        vanishing = self.preferences(g)
        self.find(place, vanishing)
        for held in self.ready.mode.sliding:
            if isinstance(held, Symbol):  # a state that is held at zero is zero
                place.states[list(self.program.equations.states).index(held.name), 0] = 0.0
        self.pass_on(place, before.mode.holds, rates, moved, vanishing)

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
            self.ready = self.program.ready(self.build(place, {**self.assumed, g: 1}))
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
        reach = _INSTANT * max(abs(place.time), abs(self.end - self.start))
        if abs(place.time - self.mark) <= reach:
            self.repeats += 1
            if self.repeats > _AT_ONCE:
                raise Endless
        else:
            self.mark, self.repeats = place.time, 0

    def jump(self, place: Place) -> None:
        """The next event at a known time."""
        assert self.ready is not None
        done = int(self.jumps.done[0])
        event, moved = self.events[self.which[done]], self.jumps.moved[done]
        self.jumps.done[0] = done + 1
        holds = self.ready.mode.holds
        if moved.any():
            place.states[:, 1:] += np.outer(self.rates(place, after=False)[0], moved[1:])
        self.apply(place, event, moved)
        if self.program.switching:
            self.find(place, {})
        self.pass_on(place, holds, np.zeros(len(place.states)), moved, {})

    def pass_on(
        self,
        place: Place,
        holds: tuple[bool, ...],
        rates: np.ndarray,
        moved: np.ndarray,
        vanishing: Mapping[Expression, tuple[int, ...]],
    ) -> None:
        """What follows from conditions that have become true, and the rates of the mode that goes on.

        Tangents are still to be carried along the rates before by the tangents of the time.
        """
        assert self.ready is not None
        place.states[:, 1:] += np.outer(rates, moved[1:])
        for _ in range(_CASCADE):
            now = self.ready.mode.holds
            risen = [
                event
                for event, was, holds_now in zip(self.program.conditional, holds, now, strict=True)
                if (holds_now and not was if self.direction > 0 else was and not holds_now)
            ]
            if not risen:
                break
            if self.direction < 0:
                undone = [inverse(event) for event in risen[::-1]]
                risen = [event for event in undone if event is not None]
                if len(risen) < len(undone):
                    self.barrier = place.time
                    raise Irreversible
            for event in risen:
                self.apply(place, event, moved)
            changed = {name for event in risen for name in event.set}
            entered, asked = self.zeros, self.ready.mode.asked
            self.find(place, {g: signs for g, signs in vanishing.items() if not changed & set(names(g))})
            for g in vanishing:
                # The event has left too little speed to tell from none: as after infinitely many bounces.
                if entered.get(g) == 1 and self.zeros.get(g, 0) > 1 and self.ready.mode.asked.get(g) == asked[g]:
                    raise Endless
            vanishing = {g: signs for g, signs in vanishing.items() if not changed & set(names(g))}
            holds = self.held_at(place, now, changed)
        else:
            raise Endless
        if moved.any():
            place.states[:, 1:] -= np.outer(self.rates(place, after=True)[0], moved[1:])

    def held_at(self, place: Place, now: tuple[bool, ...], changed: set[str]) -> tuple[bool, ...]:
        """Conditions that were true when an event happened and are still so: one whose function it has set to zero,
        and not only to rounding, may be false there, and come true again at once."""
        open_ = [g for g, sign in self.assumed.items() if sign != SLIDE and changed & set(names(g))]
        if not open_ or self.direction < 0:
            return now
        sign = self.branches(place).sign
        zero = {g: 0 for g in open_ if sign(g) == 0}
        there = self.build(place, {**self.assumed, **zero}).holds
        return tuple(was and still for was, still in zip(now, there, strict=True))

    def apply(self, place: Place, event: Event, moved: np.ndarray) -> None:
        """What an event sets, by what held just before."""
        order = list(self.program.equations.states)
        taken = [self.branches(place).taken(value) if switches(value) else value for value in event.set.values()]
        maps = self.program.maps([taken])
        time = moved.copy()
        time[0] = place.time
        inputs = self.inputs(place.time, moved, after=False)
        if (id(maps),) not in self.registers:
            self.registers[id(maps),] = maps.registers(self.parameters)
        rows = maps.values(self.registers[id(maps),], 0, place.states, time, inputs)
        place.states[[order.index(name) for name in event.set]] = rows
        place.sizes = np.maximum(place.sizes, np.abs(place.states[:, 0]))
