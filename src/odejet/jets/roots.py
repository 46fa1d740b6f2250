"""Roots: where on a step a switching function loses its sign.

Along a step a switching function g is a polynomial.  In Bernstein's basis on an interval its coefficients change their
sign at least as often as g does, and by a multiple of two more: none means no root, one means exactly one.  A step is
searched from its start in intervals that are halved until they can tell and doubled after; so a pair of roots close
together is found, and where g only touches zero nothing happens.  Where a root lies is settled by the function itself
on the polynomials of the states, not by its own series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.features import proceed
from odejet.jets.lanes import kernel, peek, pointer, poke
from odejet.jets.series import lowest

LENGTH = 40
"""Of the memory for a polynomial: more than the orders of a series and the points of a rule."""

NONE = 2.0
"""A place that is on no step."""

_NARROW = 1e-9  # of a step: roots that are as close together as this are a touch, whose depth is below rounding
_ROUNDING = 4e-16  # of a polynomial, relative to the sum of its terms
_BISECTIONS = 80
_POLISHES = 6
_SETTLED, _WIDER = 1e-13, 8.0  # of a step: updates that are rounding; how an interval around a root grows from there
_NEAR = 1e-4  # of a step: how far the function itself may move a root of its series
_HELD = 1e-10  # the last terms of a switching function, relative to its first


class Switches(NamedTuple):
    """The switching functions that a step watches."""

    signs: np.ndarray  # of each on this stretch; zero for one that is not watched
    zeros: np.ndarray  # how many coefficients of each vanish where the stretch begins
    polynomials: np.ndarray  # (2, LENGTH), memory
    fired: np.ndarray  # which of them lost its sign
    moving: np.ndarray  # the states that they depend on


def no_switches(count: int = 0) -> Switches:
    """Switching functions of which none is watched."""
    polynomials, fired, moving = np.zeros((2, LENGTH)), np.full(1, -1, np.int64), np.zeros(0, np.int64)
    return Switches(np.zeros(count), np.zeros(count, np.int64), polynomials, fired, moving)


@kernel
def bernstein(q, degree, low, width, b):
    """Bernstein's coefficients on an interval of a polynomial in powers."""
    for k in range(degree + 1):
        poke(b, k, peek(q, k))
    if low != 0:
        for i in range(degree):
            for k in range(degree - 1, i - 1, -1):
                poke(b, k, peek(b, k) + low * peek(b, k + 1))
    factor = 1.0  # width^k over the binomial coefficient
    for k in range(degree + 1):
        poke(b, k, peek(b, k) * factor)
        factor *= width * (k + 1) / (degree - k) if k < degree else 1.0
    for r in range(1, degree + 1):
        for k in range(degree, r - 1, -1):
            poke(b, k, peek(b, k) + peek(b, k - 1))


@kernel
def changes_of_sign(b, degree):
    """How often the coefficients change their sign, from a positive start."""
    changes, positive = 0, True
    for j in range(1, degree + 1):
        value = peek(b, j)
        if value != 0 and (value > 0) != positive:
            changes, positive = changes + 1, not positive
    return changes


@kernel
def polynomial(q, degree, s):
    total = peek(q, degree)
    for k in range(degree - 1, -1, -1):
        total = total * s + peek(q, k)
    return total


@kernel
def bisected(q, degree, low, high):
    """The root between a place where the polynomial is not negative and one where it is."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if polynomial(q, degree, middle) < 0:
            high = middle
        else:
            low = middle
    return high


@kernel
def first_root(q, degree, end, b):
    """The first place up to the end at which a polynomial, positive at zero, turns negative by more than rounding; else
    NONE."""
    low, width, size = 0.0, end, 0.0
    for k in range(degree + 1):
        size += abs(peek(q, k))
    while low < end:
        bernstein(q, degree, low, width, b)
        changes, below = changes_of_sign(b, degree), peek(b, degree) < -_ROUNDING * size
        if below and (changes == 1 or width <= _NARROW):
            return bisected(q, degree, low, low + width)
        if changes == 0 or width <= _NARROW:
            low += width
            width = min(2 * width, end - low)
        else:
            width *= 0.5
    # A root at the very end of a step is on it.
    return end if polynomial(q, degree, end) <= _ROUNDING * size else NONE


@kernel
def crossing(c, place, lanes, sign, vanishing, known, h, end, polynomials):
    """The first place up to the end, in units of the step h, at which a series loses its sign; else NONE.

    Coefficients that vanish are taken out: g = s^m (a_m + a_(m+1) s + ...).
    """
    q, b = pointer(polynomials[0]), pointer(polynomials[1])
    factor, rest = (-sign if h < 0 and vanishing % 2 else sign), 0.0
    for k in range(vanishing, known + 1):
        term = factor * peek(c, place + k * lanes)
        poke(q, k - vanishing, term)
        rest += abs(term) if k > vanishing else 0.0
        factor *= h
    if peek(q, 0) > rest:
        return NONE
    return first_root(q, known - vanishing, min(1.0, end), b) if peek(q, 0) > 0 else 0.0


@kernel
def first_crossing(c, places, count, lanes, switches, known, h):
    """The first place, in units of the step h, at which a switching function loses its sign, and which; else NONE."""
    signs, zeros = pointer(switches.signs), pointer(switches.zeros)
    best, which = NONE, np.int64(-1)
    for i in range(count):
        if peek(signs, i) != 0:
            place = peek(places, i)
            s = crossing(c, place, lanes, peek(signs, i), peek(zeros, i), known, h, best, switches.polynomials)
            if s < best:
                best, which = s, np.int64(i)
    return best, which


@kernel
def function_at(at, piece, t, unit, order, there, s):
    """A switching function itself, whose register at a point is `there`, on the polynomials of the states."""
    proceed(at, piece, t, unit, order, s, 0.0)
    return peek(at.point.p, there)


@kernel
def polished(at, piece, t, unit, order, place, there, sign, h, s):
    """A root s of the series at `place` of a step h, by Newton's method on the function itself; where that is slow, for
    the root is a multiple one, by bisection."""
    update = 0.0
    for _ in range(_POLISHES):
        value, slope = function_at(at, piece, t, unit, order, there, s), 0.0
        for k in range(order - 1, 0, -1):
            slope = slope * s + k * peek(at.c, place + k * at.point.lanes)
        update = value / slope if slope != 0 else 0.0
        if not 0 < abs(update) <= _NEAR * abs(h) or not 0 < (s - update) / h <= 1:
            break
        s -= update
    if abs(update) <= _SETTLED * abs(h):
        return s
    width = _SETTLED * h
    while abs(width) <= _NEAR * abs(h):
        before = sign * function_at(at, piece, t, unit, order, there, s - width)
        after = sign * function_at(at, piece, t, unit, order, there, s + width)
        if before > 0 and after < 0:
            low, high = s - width, s + width
            for _ in range(_BISECTIONS):
                s = 0.5 * (low + high)
                if sign * function_at(at, piece, t, unit, order, there, s) > 0:
                    low = s
                else:
                    high = s
            return high
        width *= _WIDER
    return s


@kernel
def held_step(c, places, count, lanes, switches, order, h):
    """The step h, shortened until the series of every switching function tells its course."""
    for i in range(count):
        if switches.signs[i] != 0:
            place = peek(places, i)
            for k in range(order - 2, order):
                last, allowed = abs(peek(c, place + k * lanes)) * h**k, _HELD * lowest(c, place, lanes, h)
                if last > allowed > 0:
                    h *= (allowed / last) ** (1 / k)
    return h
