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
from odejet.model.modes import Branches, Mode, slid
from odejet.model.tape import Tape
from odejet.simulate.program import SHAKEN, Busy, Endless, Irreversible, Program, Ready, Undecided, clock_sign
from odejet.simulate.schedule import inverse, scheduled
from odejet.simulate.signs import ROUNDING, SLIDE, Open, branches_at, in_turn

STAYS = -1
"""In place of a number of coefficients that vanish: all do, and the function is not watched."""

_OPEN = 3  # functions that vanish at once up to which all choices of their signs are tried
_HELD = 6  # functions held at zero at once: the mixture of their modes doubles with each
_ROUNDS = 4  # for each function, in which signs are changed to those that the functions take
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


@dataclass(frozen=True, eq=False)
class View:
    """What switching functions see at a place: values of all names, and the sizes of those that move."""

    place: Place
    values: Mapping[str, float]
    sizes: Mapping[str, float]

    def branches(self, assumed: Mapping[Expression, int] | None) -> Branches:
        """Signs of switching functions as they are there or, with some assumed, as they are just after."""
        return branches_at(self.values, self.sizes, assumed)


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
        signs = np.where(zeros == STAYS, 0.0, self.ready.signs)
        return no_switches(len(signs))._replace(signs=signs, zeros=zeros, fired=self.fired, moving=self.ready.moving)

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
            taken = self.taken(place, program.initial) if program.begins_switch else program.initial
            place.states[program.begins] = self.at(place, taken)
            place.sizes[:] = np.abs(place.states[:, 0])
        self.schedule(place)
        if program.switching:
            self.find(place, {})
            self.come_to_rest(place)
            while self.next_jump == place.time:
                self.jump(place)
        else:
            self.ready = program.only

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
            times = self.taken(place, times)
        found = scheduled(timed, self.at(place, times), self.start, self.end)
        self.events, self.which, self.barrier = found.events, found.which, found.barrier
        self.jumps = found.jumps(self.program, self.parameters)

    # -- modes

    def time_size(self, place: Place) -> float:
        return max(abs(place.time), abs(self.start))

    def view(self, place: Place) -> View:
        """What switching functions see at a place."""
        order, values = self.program.equations.states, dict(self.numbers)
        values.update(zip(order, place.states[:, 0], strict=True))
        if len(self.pieces.coefficients):
            values.update(zip(self.program.equations.inputs, self.input_series(place.time, 0)[:, 0], strict=True))
        values[TIME] = place.time
        sizes = dict(zip(order, place.sizes, strict=True))
        sizes[TIME] = self.time_size(place)
        return View(place, values, sizes)

    def taken(self, place: Place, expressions: Sequence[Expression]) -> list[Expression]:
        """Expressions with the branches that they take at a place."""
        branches = self.view(place).branches(None)
        return [branches.taken(one) if switches(one) else one for one in expressions]

    def build(self, place: View, assumed: Mapping[Expression, int]) -> Ready:
        """The mode that assumed signs give; conditions on a function that is held at zero see it there."""
        held = next((g for g, sign in assumed.items() if sign == SLIDE), None)
        if held is None:
            return self.program.met(place.branches(assumed))
        above, below = (self.build(place, {**assumed, held: sign}).mode for sign in (1, -1))
        there = self.build(place, {g: 0 if sign == SLIDE else sign for g, sign in assumed.items()}).mode
        return self.program.ready(replace(slid(above, below, held), holds=there.holds))

    def find(self, place: Place, preferred: Mapping[Expression, tuple[int, ...]]) -> None:
        """The mode in which the solution goes on; functions that are preferred to have some signs vanish here."""
        opened: dict[Expression, tuple[int, ...]] = dict(preferred)
        view = self.view(place)
        while True:
            try:
                few = sum(len(signs) > 1 for signs in opened.values()) <= _OPEN
                self.ready, self.zeros, self.assumed = (self.tried if few else self.followed)(view, opened)
                return
            except Open as more:
                equations = self.program.equations
                clock = clock_sign(more.g, (*equations.states, *equations.inputs))
                opened[more.g] = (clock * self.direction,) if clock else (1, -1, 0, SLIDE)

    def tried(self, place: View, opened: Mapping[Expression, tuple[int, ...]]) -> Choice:
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

    def followed(self, place: View, opened: Mapping[Expression, tuple[int, ...]]) -> Choice:
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
        self, place: View, assumed: Mapping[Expression, int], loosely: bool
    ) -> tuple[Ready, Mapping[Expression, int], Mapping[Expression, int]] | None:
        """The mode that signs give, how many coefficients of each function vanish, and the signs that disagree.

        `loosely` a function is held at zero, too, that one side drives there and the other leaves where it is.
        """
        try:
            ready = self.build(place, assumed)
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
        asked = [(i, g in rates) for i, g in enumerate(ready.watched) if g in doubtful]
        clocked = all(ready.clocks[i] and not is_rate for i, is_rate in asked)
        leading = None if clocked else self.leading(ready, place.place, asked)
        for i, is_rate in asked:
            g, clock = ready.watched[i], ready.clocks[i]
            first, sign = (1, clock * self.direction) if leading is None else self.first_sign(leading[i], is_rate)
            wanted = ready.mode.asked[g] * (self.direction if g in rates else 1)
            if sign != wanted and not (loosely and g in rates and first is None):
                wrong[g] = sign
            zeros[g] = (STAYS if g in rates else 0) if first is None else first
        neutral = any(all(zeros[rate] == STAYS for rate in pair) for pair in ready.mode.sliding.values())
        return None if neutral else (ready, zeros, wrong)

    def first_sign(self, row: np.ndarray, is_rate: bool) -> tuple[int | None, int]:
        """Which coefficient of a function tells where it goes, and its sign then; a rate is not known to vanish."""
        significant = np.flatnonzero(row[0 if is_rate else 1 :])
        if not len(significant):
            return None, 0
        first = int(significant[0]) + (not is_rate)
        return first, int(row[first]) * self.direction**first

    def leading(self, ready: Ready, place: Place, asked: Sequence[tuple[int, bool]]) -> np.ndarray:
        """Signs of the coefficients of all watched functions, zero for those below rounding: (functions, orders).

        Orders end where they tell where those functions go that are asked for, by their positions and whether they
        are rates: mostly with the first.
        """
        rows, times = np.zeros((3, len(place.states), padded(1))), np.full(3, place.time)
        with np.errstate(invalid="ignore"):  # what has grown without bounds has no size
            rows[:, :, 0] = place.states[:, 0] + self.program.shaken * place.sizes
        times[1:] += np.array([SHAKEN, -SHAKEN]) * self.time_size(place)
        parameters = np.zeros((len(self.parameters), padded(1)))
        parameters[:, 0] = self.parameters[:, 0]
        registers = self.laid_out(ready.tape, parameters, rows, float(times[0]), _ORDER)
        places, signs = registers.layout.switches[:, None], np.zeros((0, 0))
        for orders in (2, _ORDER + 1):
            registers.expand(times, orders)
            found = registers.memory[:, places + np.arange(orders) * registers.layout.lanes]
            noise = np.abs(found[1:] - found[0]).max(axis=0)
            signs = np.where(np.abs(found[0]) > ROUNDING * noise, np.sign(found[0]), 0.0)
            if all(signs[i, 1 - is_rate :].any() for i, is_rate in asked):
                break
        return signs

    def laid_out(
        self, tape: Tape, parameters: np.ndarray, rows: np.ndarray, time: float, order: int, after: bool = True
    ) -> Registers:
        """Registers for series of this order at rows of states, with all in place that does not move."""
        key = id(tape), len(rows), rows.shape[2], order
        layout = lay_out(tape, rows.shape[2], order + 2, True)
        if key not in self.registers:
            registers = self.registers[key] = Registers(layout, len(rows), float, TABLES)
            registers.prepare(tape.constant_values, np.broadcast_to(parameters, (len(rows), *parameters.shape)), rows)
        else:
            registers = self.registers[key]
            registers.write("states", rows)
            registers.run(layout.code[: layout.split[0]], 1)
        if len(layout.inputs):
            places = layout.inputs[:, None] + np.arange(order + 1) * layout.lanes
            registers.memory[:, places] = self.input_series(time, order, after)
        return registers

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
        rates, moved = np.zeros(len(place.states)), np.zeros(self.lanes)
        if not (self.program.is_clocked and before.clocks[int(self.fired[0])] and self.is_number(g)):
            rates, functions = self.rates(place, after=False)
            value, slope = functions[int(self.fired[0])]
            if slope[0] != 0:
                moved[1:] = -value[1:] / slope[0]
            # The time itself is rounded, and the states with it.
            place.sizes = np.maximum(place.sizes, _LATE / SHAKEN * self.time_size(place) * np.abs(rates))
        vanishing = self.preferences(g)
        self.find(place, vanishing)
        for held in self.ready.mode.sliding:
            if isinstance(held, Symbol):  # a state that is held at zero is zero
                place.states[self.program.rows[held.name], 0] = 0.0
        self.pass_on(place, before.mode.holds, rates, moved, vanishing)

    def is_number(self, g: Expression) -> bool:
        """Whether no parameter in a function is among the unknowns, so that no tangent moves it."""
        order = self.program.equations.parameters
        return not any(self.parameters[order.index(name), 1:].any() for name in names(g) if name in order)

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
        if moved.any():
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
            holds = now
            for event in risen:
                self.apply(place, event, moved)
            changed = {name for event in risen for name in event.set}
            vanishing = {g: signs for g, signs in vanishing.items() if not changed & set(names(g))}
            entered, asked = self.zeros, self.ready.mode.asked
            self.find(place, vanishing)
            for g in vanishing:
                # The event has left too little speed to tell from none: as after infinitely many bounces.
                if entered.get(g) == 1 and self.zeros.get(g, 0) > 1 and self.ready.mode.asked.get(g) == asked[g]:
                    raise Endless
        else:
            raise Endless
        if moved.any():
            place.states[:, 1:] -= np.outer(self.rates(place, after=True)[0], moved[1:])

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
        place.states[[self.program.rows[name] for name in event.set]] = rows
        place.sizes = np.maximum(place.sizes, np.abs(place.states[:, 0]))
