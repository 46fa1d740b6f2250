"""Branch points: how a solution gets past a place where its right-hand side is continuous but has no Taylor series.

x^1.5 has none at x = 0, nor has the root of what fills from empty or runs dry, nor 1/(1 + (K/x)^4) as it is written.
Steps that come near such a place become ever shorter, or cannot begin.  One step of the trapezoidal rule, so short that
nothing changes in it but by rounding, leads past: from there on series grow with the distance, some eight steps for
every factor of ten.  At a pole, or where an equation ends, no such step exists.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.registers import Registers
from odejet.model.expressions import Symbol
from odejet.simulate.standing import STAYS

if TYPE_CHECKING:
    from odejet.simulate.events import Passage
    from odejet.simulate.initial_value import InitialValueProblem, Leg

_SHORT = 1e-14  # of the time that is asked for: a step that nobody notices
_RESOLVED = 1e-12, 1e-13  # of the time: a step that leads past what a time cannot resolve, and the shortest
_APART = 1e-7  # of the time that is asked for: a step away from where a rate is nothing by nothing
_TRIES, _SHORTER = 6, 1e-2  # of ever shorter steps
_SAME = 1e-6  # rates that change by less on the step are those of a continuous right-hand side
_NOTHING = 1e-60  # a change of a state by less goes unnoticed: no quantity of a model is so small
_ORDERS = 12  # of a series that tells where a function goes that has lost its sign
_ALIKE = 1e-3  # where the first rate is nothing by nothing: that of half the step and that of all of it


class _Rates(NamedTuple):
    """Rates of value and tangents, switching functions and outputs at a point."""

    rates: np.ndarray  # (states, lanes)
    functions: np.ndarray  # (functions)
    outputs: np.ndarray  # (outputs, lanes)


class _Point:
    """A mode of an initial-value problem, evaluated at single points."""

    def __init__(self, problem: InitialValueProblem, leg: Leg, orders: int = 1) -> None:
        tape = problem.tape
        self.pieces, self.piece, self.orders = problem.flow.pieces, 0, orders
        self.layout = lay_out(tape, leg.states.shape[1], orders + 1, True)
        self.registers = Registers(self.layout, 1, float, TABLES)
        self.constants, self.parameters = tape.constant_values, problem.parameters
        if len(self.layout.inputs):
            near = math.inf if problem.forward else -math.inf
            self.piece = int(self.pieces.piece(np.array([np.nextafter(leg.time, near)]))[0])

    def expand(self, time: float, rows: np.ndarray) -> np.ndarray:
        """The memory of all series."""
        layout, registers = self.layout, self.registers
        registers.prepare(self.constants, self.parameters[None], rows[None])
        if len(layout.inputs):
            places = layout.inputs[:, None] + np.arange(self.orders) * layout.lanes
            registers.memory[:, places] = self.pieces.series(np.array([time]), self.orders - 1, self.piece)
        registers.expand(np.array([time]), self.orders)
        return registers.memory[0]

    def function(self, time: float, rows: np.ndarray, which: int) -> np.ndarray:
        """The series of a switching function."""
        return self.expand(time, rows)[self.layout.switches[which] + np.arange(self.orders) * self.layout.lanes]

    def __call__(self, time: float, rows: np.ndarray) -> _Rates:
        layout, lanes, memory = self.layout, self.layout.lanes, self.expand(time, rows)
        rates = memory[layout.states[:, None] + lanes + np.arange(lanes)]
        rates[layout.states < layout.dynamic] = 0.0
        return _Rates(rates, memory[layout.switches], memory[layout.outputs[:, None] + np.arange(lanes)])


class _Step(NamedTuple):
    """A step that leads past: the states at its end, its length, and the function that loses its sign there or -1."""

    rows: np.ndarray
    length: float
    crossed: int


def get_past(problem: InitialValueProblem, leg: Leg, times: np.ndarray) -> bool:
    """Take a solution past the branch point where it stands, on the way to times: is it one?"""
    if not is_possible(problem):
        return False
    point, sizes = _Point(problem, leg), _sizes(problem, leg)
    span, now = abs(float(times[-1]) - leg.time), abs(leg.time)
    length, shortest = max(_SHORT * span, _RESOLVED[0] * now), _RESOLVED[1] * now
    if np.isnan(point(leg.time, leg.states).rates[:, 0]).any():
        length = max(length, _APART * span)  # so that what cancels nearby has digits
    with np.errstate(all="ignore"):
        for _ in range(_TRIES):
            length = max(min(length, span), shortest)
            found = _stepped(problem, point, leg, length if problem.forward else -length, sizes, span)
            if found is not None:
                _arrive(problem, leg, times, point, found)
                return True
            if length == shortest:
                break
            length *= _SHORTER
    return False


def is_possible(problem: InitialValueProblem) -> bool:
    """Whether the equations have a root, a logarithm, a real power or a quotient at all."""
    layout = lay_out(problem.tape, problem.lanes, 2, True)
    return len(layout.guards) > 0 or len(layout.watched) > 0


def _sizes(problem: InitialValueProblem, leg: Leg) -> np.ndarray:
    """The largest value that each state has had."""
    now = np.maximum(np.abs(problem.states[:, 0]), np.abs(leg.states[:, 0]))
    return np.maximum(now, np.abs(leg.trajectory[: leg.done, :, 0]).max(axis=0, initial=0.0))


def _stepped(
    problem: InitialValueProblem, point: _Point, leg: Leg, step: float, sizes: np.ndarray, span: float
) -> _Step | None:
    """A step from where a solution stands, with states of some sizes and some time ahead; None if it changes more than
    rounding does."""
    first = point(leg.time, leg.states)
    start, rows, crossed = first.rates[:, 0], leg.states.copy(), -1
    if np.isinf(start).any():
        return None
    unclear = np.isnan(start)
    guess = np.where(unclear, 0.0, start)
    for _ in range(2 if unclear.any() else 1):
        rows[:, 0] = leg.states[:, 0] + step * guess
        last = point(leg.time + step, rows)
        guess = np.where(unclear, last.rates[:, 0], start)
    if problem.passage is not None and not unclear.any():
        crossed, part = _first_crossing(problem.passage, first.functions, last.functions)
        if crossed >= 0:  # beyond it the equations of this mode need not hold
            step *= part
            rows[:, 0] = leg.states[:, 0] + step * guess
            _set_to_zero(problem.passage, crossed, rows)
            last = point(leg.time + step, rows)
    end = last.rates[:, 0]
    if not np.isfinite(end).all():
        return None
    if unclear.any():
        rows[:, 0] = leg.states[:, 0] + 0.5 * step * guess
        half = point(leg.time + 0.5 * step, rows).rates[:, 0]
        alike = np.abs(half - end) <= _ALIKE * np.abs(end)
        fades = (np.abs(half) <= np.abs(end)) & (abs(step) <= 10 * _SHORT * span)  # so that its limit matters not
        if not np.all((alike | fades)[unclear]):
            return None
        guess = np.where(unclear, np.where(alike, 2 * half - end, half), guess)
    moving, unit = sizes > 0, np.abs(guess)  # a state that was zero and stands still has no unit
    unit = np.where(moving, np.maximum(unit, sizes / span), np.where(unit > 0, unit, np.inf))
    change = np.abs(end - guess)
    if not np.all((change <= _SAME * unit) | (abs(step) * change <= _NOTHING) | unclear):
        return None
    rows[:, 0] = leg.states[:, 0] + 0.5 * step * (guess + end)
    if crossed >= 0 and problem.passage is not None:
        _set_to_zero(problem.passage, crossed, rows)
    slopes = np.where(np.isfinite(last.rates[:, 1:]), last.rates[:, 1:], first.rates[:, 1:])
    rows[:, 1:] = leg.states[:, 1:] + step * np.where(np.isfinite(slopes), slopes, 0.0)
    return _Step(rows, step, crossed)


def _first_crossing(passage: Passage, before: np.ndarray, after: np.ndarray) -> tuple[int, float]:
    """The switching function that loses its sign first between two points, or -1, and at which part of the way."""
    signs = passage.switches.signs
    lost = np.flatnonzero((signs != 0) & (before * signs > 0) & (after * signs < 0))
    if not len(lost):
        return -1, 1.0
    parts = before[lost] / (before[lost] - after[lost])
    return int(lost[np.argmin(parts)]), float(parts.min())


def _set_to_zero(passage: Passage, which: int, rows: np.ndarray) -> None:
    """Where a state is itself the function that loses its sign, it is zero: its root or power is that of nothing."""
    assert passage.ready is not None
    lost = passage.ready.watched[which]
    if isinstance(lost, Symbol) and lost.name in passage.program.rows:
        rows[passage.program.rows[lost.name], 0] = 0.0


def _arrive(problem: InitialValueProblem, leg: Leg, times: np.ndarray, point: _Point, step: _Step) -> None:
    """Move on to the end of a step, past the function that loses its sign there; times on it are done."""
    passage, origin, before = problem.passage, leg.time, leg.states
    reached = origin + step.length
    count = problem.passed(times, reached, step.crossed < 0)
    trajectory, outputs = leg.ahead
    for i in range(count):
        part = (float(times[i]) - origin) / step.length
        trajectory[i] = (1 - part) * before + part * step.rows
        outputs[i] = point(float(times[i]), trajectory[i]).outputs
    leg.add(count, reached if count < len(times) else float(times[-1]))
    leg.states, leg.steps = step.rows, leg.steps + 1
    if passage is not None:
        passage.leave(origin, reached)
        if step.crossed >= 0 and not _is_beyond(problem, passage, leg, step.crossed):
            passage.fired[0] = step.crossed
            passage.go_on(leg, True)


def _is_beyond(problem: InitialValueProblem, passage: Passage, leg: Leg, which: int) -> bool:
    """Go on in the mode beyond a function that has lost its sign, if that leads away from it or stays there.

    What runs dry stays at zero in that mode, and only in that: before it there is no series to tell.
    """
    assert passage.ready is not None
    lost, sign = passage.ready.watched[which], passage.ready.signs[which]
    other = passage.program.beyond(passage.ready, lost)
    if other is None:
        return False
    before, passage.ready = passage.ready, other
    series = _Point(problem, leg, _ORDERS).function(leg.time, leg.states, other.watched.index(lost))
    leading = np.flatnonzero(series[1:]) + 1
    first = int(leading[0]) if len(leading) else STAYS
    direction = 1 if problem.forward else -1
    if not np.isfinite(series).all() or (len(leading) and -sign * series[first] * direction**first < 0):
        passage.ready = before
        return False
    passage.zeros, passage.assumed, passage.crossed_last = {lost: first}, {}, lost
    return True
