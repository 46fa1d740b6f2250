"""Features: what the right-hand side does inside a step where its Taylor series cannot see it, and how that is noticed.

The series of tanh((t - 6)/w) at t = 0 is constant to rounding, and knows nothing of the switch ahead.  Such flatness
comes from few operations of the tape: exponentials and hyperbolic functions far from where they matter, high powers,
and reciprocals of what is large.  Their arguments, however, are ordinary series.  Along a step each argument is
*watched*: its own series must hold to the end of the step, and where it lets the function grow by more than the
factor exp(_HIDDEN) the step's polynomials must satisfy the equations at the place of the largest growth.  So what a
series misses has grown at most so much since it was below rounding.  In any case they must satisfy the equations where
the step ends.  A step that fails is shortened; no series is computed again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from odejet.jets.lanes import WIDTH, kernel, load, peek, poke, store
from odejet.jets.points import find_rates
from odejet.jets.series import evaluate, evaluate_rate, lowest, size_at, value
from odejet.model.tape import Column, Elementary, Op, Tape

RISES, GROWS, SETTLES, VANISHES, POWER, BELOW, TURNS = range(7)
"""How a watched argument a matters: by exp(a), exp|a|, exp(-2|a|), 1/a, a power of a, one over that, or by how near to
one that is."""

_KINDS = {
    Elementary.EXP: RISES,
    Elementary.SINH: GROWS,
    Elementary.COSH: GROWS,
    Elementary.TANH: SETTLES,
    Elementary.LOG: VANISHES,
    Elementary.SQRT: VANISHES,
    Elementary.POWER: POWER,
    Elementary.BOUNDED: POWER,
}
LARGEST = 600.0
"""Exponentials of doubles stand still beyond this argument, and bounded powers beyond the same value: their series must
not overflow before they do."""

_HIGH = 4  # powers as high need not fit into the orders of a series, and lose their digits where they are small
_WHOLE = 1 << 20  # what a whole number as an exponent lacks to it
_HIDDEN = 4.0  # the logarithm of the growth that a series may miss: from 1e-16 to below 1e-14
_SETTLED = -40.0  # tanh differs from +-1 by the exponential of this: not at all
_HELD = 1e-3  # the last terms of an argument, in units of what matters to its function
_ROUNDED = 1e-12  # and relative to the argument itself, whose rounding is no reason for a short step
_NARROWEST = 1e-6  # of a step: what is nearer than this is rounding, as at x = 0 in x/(1 - exp(-x))
_PLACES = 16  # in which a step is searched for the peaks of what a watched function does
_NARROWINGS = 40  # of the place of a peak, by the golden ratio each: to 1e-9
_GOLDEN = 0.5 * (math.sqrt(5) - 1)
_LOOSE = 1e3  # times the tolerance of the values: that of the sensitivities
_NOTHING = 1e-150  # a change of a state by less goes unnoticed: no quantity of a model is so small
_SHAKEN, _NOISE = 2e-15, 4.0  # a relative change of all numbers by rounding, and how much more it may do than seen
_HALVINGS = 60


def watched(tape: Tape) -> np.ndarray:
    """Rows (kind, register of the argument, exponent) of what the rates of a tape depend on.

    An exponent is a register, or a whole number less _WHOLE.  Powers are watched where they are small, too: in the
    denominator they matter there.  Where that is 1 + x^n and n is real, the quotient turns at x = 1, and x tells all:
    the series of x^n, which may be far too large to matter, need not hold.
    """
    rows: list[tuple[int, int, int]] = []
    powers: dict[int, tuple[int, int]] = {}  # registers that are powers: base and exponent
    real: dict[int, tuple[int, int]] = {}  # the same of real powers, and of one and such a power
    one = {register for register, number in tape.constants if number == 1}
    for row in tape.code[tape.split[0] : tape.split[1]]:
        op, out, a, b = (int(row[column]) for column in (Column.OP, Column.OUT, Column.A, Column.B))
        if op == Op.QUADRATURE and a >= tape.statics and int(row[Column.FUNCTION]) in _KINDS:
            rows.append((_KINDS[Elementary(int(row[Column.FUNCTION]))], a, int(row[Column.C])))
            if rows[-1][0] == POWER:
                rows.append((BELOW, *rows[-1][1:]))
                real[out] = rows[-1][1:]
        elif op == Op.LINEAR and row[Column.C] in one and row[Column.END] == row[Column.BEGIN] + 1:
            factor, source, _ = tape.terms[row[Column.BEGIN]].tolist()
            if factor in one and source in real:
                real[out] = real[source]
        elif op == Op.DIVIDE and b >= tape.statics:
            rows.append((TURNS, *real[b]) if b in real else (VANISHES, b, -1))
        elif op in (Op.SQUARE, Op.MULTIPLY):
            (base, first), (other, second) = (powers.get(r, (r, 1)) for r in (a, a if op == Op.SQUARE else b))
            if base == other and base >= tape.statics:
                powers[out] = base, first + second
    high = [power for power in powers.values() if power[1] >= _HIGH]
    rows += [(POWER, base, sign * exponent - _WHOLE) for base, exponent in high for sign in (1, -1)]
    return np.array(list(dict.fromkeys(rows)), dtype=np.int64).reshape(-1, 3)


@kernel
def stands_still(kind, a):
    """Whether an exponential is too large to be followed, and constant instead."""
    return (kind == RISES and a > LARGEST) or (kind == GROWS and abs(a) > LARGEST)


@kernel
def exponent_of(c, power):
    """The exponent of a watched power."""
    return peek(c, power) if power >= 0 else power + float(_WHOLE)


@kernel
def level(kind, a, exponent):
    """The logarithm of what a function does at its argument."""
    if kind == RISES:
        return a
    if kind == GROWS:
        return abs(a)
    if kind == SETTLES:
        return -2 * abs(a)
    if kind == VANISHES:
        return -np.log(abs(a))
    number = exponent * np.log(abs(a))
    return number if kind == POWER else -number if kind == BELOW else -abs(number)


@kernel
def may_hide(kind, a, change, exponent):
    """Whether a function may grow unseen while its argument moves from a by no more than `change`."""
    if stands_still(kind, a):
        return not abs(a) - change > LARGEST
    if kind == SETTLES:
        return 2 * change > _HIDDEN and 2 * (change - abs(a)) > _SETTLED
    if kind >= VANISHES:
        left = abs(a) - change
        power = max(abs(exponent), 1.0) if kind != VANISHES else 1.0
        return not power * change <= _HIDDEN * left
    return not change <= _HIDDEN


@kernel
def peak(c, place, lanes, order, kind, exponent, low, high):
    """Where between two places of a step a function does most, by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left = level(kind, value(c, place, order, lanes, left), exponent)
    at_right = level(kind, value(c, place, order, lanes, right), exponent)
    for _ in range(_NARROWINGS):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = level(kind, value(c, place, order, lanes, left), exponent)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = level(kind, value(c, place, order, lanes, right), exponent)
    return 0.5 * (low + high)


class Checks(NamedTuple):
    """Where the polynomials of a step are checked: their registers and places, a point, memory for rates and gaps."""

    c: Any
    states: Any
    point: Any
    rates: Any


@kernel
def proceed(at, piece, t, unit, order, s, shake):
    """The states at s of a step, shaken by so much of themselves, and their rates, in registers of the point."""
    point, now = at.point, t + s * unit
    for i in range(point.size):
        place = peek(point.states, i)
        if place >= point.dynamic:
            evaluate(at.c, peek(at.states, i), order, point.lanes, s, point.p, place)
            if shake > 0:
                for lane in range(point.lanes):
                    factor = 1 + (shake if (i + lane) % 2 else -shake)
                    poke(point.p, place + lane, peek(point.p, place + lane) * factor)
    find_rates(point, piece, now * (1 + shake))


@kernel
def agrees(at, piece, t, unit, order, s, h, used, goal):
    """Whether the polynomials satisfy the equations at s, relative to their size over a step of h, in `used` lanes.

    What the smallest changes of all numbers would do to the right-hand sides is no disagreement.
    """
    c, lanes, n, span, rates = at.c, at.point.lanes, at.point.size, abs(h), at.rates
    proceed(at, piece, t, unit, order, s, 0.0)
    good = True
    for lane in range(used):
        relative = 0.0  # the largest tangent in the lane, relative to its state
        for i in range(n if lane > 0 else 0):
            x = peek(at.states, i)
            size = size_at(c, x, lanes, order, span) if peek(at.point.states, i) >= at.point.dynamic else 0.0
            if size > 0:
                relative = max(relative, size_at(c, x + lane, lanes, order, span) / size)
        for i in range(n):
            x, place = peek(at.states, i), peek(at.point.states, i)
            if place >= at.point.dynamic:
                if lane == 0:
                    evaluate_rate(c, x, order, lanes, s, rates, i * lanes)
                slope = peek(at.point.p, place + lanes + lane) * unit
                gap = abs(peek(rates, i * lanes + lane) - slope) * span
                allowed = goal * size_at(c, x + lane, lanes, order, span) + _NOTHING
                if lane > 0:
                    allowed = _LOOSE * (allowed + goal * relative * size_at(c, x, lanes, order, span))
                poke(rates, i * lanes + lane, slope)
                poke(rates, (n + i) * lanes + lane, 0.0 if gap <= allowed else gap)
                if not gap <= allowed:
                    good = False
    if good:
        return True
    proceed(at, piece, t, unit, order, s, _SHAKEN)
    for i in range(n):
        if peek(at.point.states, i) >= at.point.dynamic:
            for lane in range(used):
                slope = peek(at.point.p, peek(at.point.states, i) + lanes + lane) * unit
                moved = abs(slope - peek(rates, i * lanes + lane)) * span
                if not peek(rates, (n + i) * lanes + lane) <= _NOISE * moved:
                    return False
    return True


@kernel
def is_plain(c, watched, count, lanes, order, h):
    """Whether every watched argument holds over a step and moves so little that nothing can hide."""
    known, size = order - 1, abs(h)  # all but the states are known to one order less
    for i in range(0, 3 * count, 3):
        kind, place, power = peek(watched, i), peek(watched, i + 1), peek(watched, i + 2)
        change = 0.0
        for k in range(known, 0, -1):
            change = (change + abs(peek(c, place + k * lanes))) * size
        exponent = exponent_of(c, power)
        last = abs(peek(c, place + known * lanes)) * size**known
        if last > slack_of(kind, lowest(c, place, lanes, size)) or may_hide(kind, peek(c, place), change, exponent):
            return False
    return True


@kernel
def slack_of(kind, size):
    """How large the last term of a watched argument of some size may be."""
    return (_HELD if kind <= SETTLES else _HELD * size) + _ROUNDED * size


@kernel
def attentive_step(at, watched, count, piece, t, unit, order, h, goal):
    """The step h, shortened until every watched argument holds and nothing hides inside it.

    At a peak of a watched function at which the equations do not hold it is cut to half of the way there.
    """
    c, lanes, known, narrow = at.c, at.point.lanes, order - 1, _NARROWEST * abs(h)
    for i in range(0, 3 * count, 3):
        kind, place, power = peek(watched, i), peek(watched, i + 1), peek(watched, i + 2)
        last = abs(peek(c, place + known * lanes)) * abs(h) ** known
        start, end = peek(c, place), value(c, place, known, lanes, h)
        if kind == VANISHES and start * end <= 0 and last <= _HELD * max(abs(start), abs(end)):
            # At a pole the series itself would have ended: what it divides vanishes there too, as in x/(1 - exp(-x)).
            continue
        exponent = exponent_of(c, power)
        slack = slack_of(kind, lowest(c, place, lanes, abs(h)))
        if last > slack:
            h *= (slack / last) ** (1 / known)
        h, j = awake_step(c, place, lanes, known, kind, exponent, h), np.int64(0)
        while j < _PLACES:
            s, j = next_peak(c, place, lanes, known, kind, exponent, h, j)
            if abs(s) > narrow and not agrees(at, piece, t, unit, order, s, h, lanes, goal):
                h, j = 0.5 * s, np.int64(_PLACES)
    return h


@kernel
def awake_step(c, place, lanes, order, kind, exponent, h):
    """The step h; where an exponential stands still, halved until it does so throughout, or all but."""
    a = peek(c, place)
    if stands_still(kind, a):
        j = 1
        while j <= _PLACES:
            there = value(c, place, order, lanes, h * j / _PLACES)
            if there * a > 0 and level(kind, there, exponent) > LARGEST - _HIDDEN:
                j += 1
            else:
                h, j = 0.5 * h, 1
    return h


@kernel
def next_peak(c, place, lanes, order, kind, exponent, h, j):
    """The next place in a step, from the j-th of all that are looked at, where a watched function does much more than
    at its start; zero if there is none, and where to go on."""
    if stands_still(kind, peek(c, place)):
        return 0.0, np.int64(_PLACES)
    start = level(kind, peek(c, place), exponent)
    bottom = (max(start, _SETTLED) if kind == SETTLES else start) + _HIDDEN
    before = level(kind, value(c, place, order, lanes, h * (j - 1) / _PLACES), exponent) if j > 0 else -np.inf
    here = level(kind, value(c, place, order, lanes, h * j / _PLACES), exponent)
    while j < _PLACES:
        j += 1
        ahead = level(kind, value(c, place, order, lanes, h * j / _PLACES), exponent)
        if (here >= before and here >= ahead) or (j == _PLACES and ahead >= here):
            first = max(j - 2, 0) if here >= ahead else j - 1
            s = peak(c, place, lanes, order, kind, exponent, h * first / _PLACES, h * j / _PLACES)
            if not level(kind, value(c, place, order, lanes, s), exponent) <= bottom:
                return s, j
        before, here = here, ahead
    return 0.0, j


@kernel
def verified_step(at, piece, t, unit, order, h, goal):
    """The step h, halved until the equations hold where it ends."""
    for _ in range(_HALVINGS):
        if agrees(at, piece, t, unit, order, h, h, np.int64(1), goal):
            break
        h *= 0.5
    return h


@kernel
def keep(at, order, h, kept, slopes):
    """Keep the first two orders of all states, which the next series overwrite, and the rates where a step ends."""
    c, lanes = at.c, at.point.lanes
    for i in range(at.point.size):
        if peek(at.point.states, i) >= at.point.dynamic:
            x = peek(at.states, i)
            for lane in range(0, 2 * lanes, WIDTH):
                store(kept, 2 * i * lanes + lane, load(c, x + lane))
            total = 0.0
            for k in range(order, 0, -1):
                total = total * h + k * peek(c, x + k * lanes)
            poke(slopes, i, total)


@kernel
def take_back(at, kept):
    """The first two orders of all states as they were kept."""
    for i in range(at.point.size):
        if peek(at.point.states, i) >= at.point.dynamic:
            for lane in range(0, 2 * at.point.lanes, WIDTH):
                store(at.c, peek(at.states, i) + lane, load(kept, 2 * i * at.point.lanes + lane))


@kernel
def continues(at, slopes, scales, before, unit, h, goal):
    """Whether new series, to first order, go on with the rates with which the step before ended.

    Rates are in units of time, those kept in the unit before; h is the length of that step.
    """
    for i in range(at.point.size):
        if peek(at.point.states, i) >= at.point.dynamic:
            rate = peek(at.c, peek(at.states, i) + at.point.lanes) / unit
            if not abs(peek(slopes, i) / before - rate) * h <= goal * peek(scales, i) + _NOTHING:
                return False
    return True
