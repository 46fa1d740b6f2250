"""Standing: where a solution is, and the mode of its model in which it goes on from there.

The mode that goes on is the one that agrees with itself: under its equations every switching function that vanishes
here takes, just after, the sign that the mode assumes; the first coefficient of its series tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.errors import ModelError
from odejet.jets.crossings import ROUNDING, SHAKEN
from odejet.jets.inputs import Pieces
from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.registers import Registers
from odejet.model.expressions import TIME, Expression, switches
from odejet.model.modes import Branches, slid
from odejet.model.tape import Tape
from odejet.simulate.program import Program, Ready, Undecided
from odejet.simulate.signs import SLIDE, Open, branches_at, in_turn

STAYS = -1
"""In place of a number of coefficients that vanish: all do, and the function is not watched."""

_OPEN = 3  # functions that vanish at once up to which all choices of their signs are tried
_HELD = 6  # functions held at zero at once: the mixture of their modes doubles with each
_ROUNDS = 4  # for each function, in which signs are changed to those that the functions take
_ORDER = 12  # of the series that tell where a function goes

Choice = tuple[Ready, Mapping[Expression, int], Mapping[Expression, int]]
"""A mode that agrees with itself, how many coefficients of each function vanish there, and the signs assumed."""


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
    rows: Mapping[str, int]  # of the states
    number: Callable[[str], float]  # the values of parameters and of what is fixed
    inputs: Mapping[str, float]
    time_size: float
    clock: Callable[[Expression], int]  # the sign that a function has after it vanished, if the time alone tells
    clocked: dict[Expression, int] = field(default_factory=dict)  # those that vanish here, and their signs

    def value(self, name: str) -> float:
        if name in self.rows:
            return self.place.states[self.rows[name], 0]
        if name == TIME:
            return self.place.time
        return self.inputs[name] if name in self.inputs else self.number(name)

    def size(self, name: str) -> float | None:
        if name in self.rows:
            return float(self.place.sizes[self.rows[name]])
        return self.time_size if name == TIME else None

    def branches(self, assumed: Mapping[Expression, int] | None) -> Branches:
        """Signs of switching functions as they are there or, with some assumed, as they are just after."""
        return branches_at(self.value, self.size, assumed, self.after)

    def there(self, vanishing: Mapping[Expression, int]) -> Branches:
        """Signs at the very instant: zero for functions that are known to vanish, or do so but for rounding."""
        return branches_at(self.value, self.size, vanishing, lambda g: 0)

    def after(self, g: Expression) -> int:
        sign = self.clock(g)
        if not sign:
            raise Open(g)
        self.clocked[g] = sign
        return sign


@dataclass
class Standing:
    """A solution at one place after the other, in one direction, with the mode that it is in."""

    program: Program
    parameters: np.ndarray  # rows
    pieces: Pieces
    start: float
    end: float
    ready: Ready | None = None
    zeros: Mapping[Expression, int] = field(default_factory=dict)
    assumed: Mapping[Expression, int] = field(default_factory=dict)  # signs of the functions that vanished
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

    def at(self, place: Place, expressions: Sequence[Expression], inputs: np.ndarray | None = None) -> np.ndarray:
        """Rows of expressions without switches at a place, where sampled inputs are these or those just after it."""
        maps = self.program.maps([expressions])
        time = np.zeros(self.lanes)
        time[0] = place.time
        rows = self.inputs(place.time, time * 0)
        if inputs is not None:
            rows[:, 0] = inputs
        return maps.values(maps.registers(self.parameters), 0, place.states, time, rows)

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

    def time_size(self, place: Place) -> float:
        return max(abs(place.time), abs(self.start))

    def view(self, place: Place) -> View:
        """What switching functions see at a place."""
        inputs: dict[str, float] = {}
        if len(self.pieces.coefficients):
            values = self.input_series(place.time, 0)[:, 0]
            inputs = dict(zip(self.program.equations.inputs, values, strict=True))
        return View(place, self.program.rows, self.number, inputs, self.time_size(place), self.clock)

    def number(self, name: str) -> float:
        """The value of a parameter or of what is fixed."""
        places = self.program.places
        return self.parameters[places[name], 0] if name in places else self.program.numbers[name]

    def clock(self, g: Expression) -> int:
        """The sign of a function just after it vanished, if it is the time but for what stays as it is; else zero."""
        return self.program.clock(g) * self.direction

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
                opened[more.g] = (1, -1, 0, SLIDE)

    def tried(self, place: View, opened: Mapping[Expression, tuple[int, ...]]) -> Choice:
        """The first choice of signs whose mode agrees with it; else one that is held at zero from one side alone."""
        for loosely in (False, True):
            for signs in in_turn(opened.values()):
                assumed = dict(zip(opened, signs, strict=True))
                if loosely and SLIDE not in signs:
                    continue
                found = self.judged(place, assumed, loosely)
                if found is not None and not found[2]:
                    return found[0], found[1], {**assumed, **place.clocked}
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
                return ready, zeros, {**assumed, **place.clocked}
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
        assumed = {**assumed, **place.clocked}
        rates = {rate for pair in ready.mode.sliding.values() for rate in pair}
        asked = [(i, g in rates) for i, g in enumerate(ready.watched) if g in rates or assumed.get(g, SLIDE) != SLIDE]
        if not asked:
            return ready, zeros, wrong
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
