"""Crossings: how a solution passes from one mode of its model to another on the way, where that is simple.

A switching function g that lost its sign at te = t has a slope before; under the equations of the mode with its other
sign it has one after.  Where the latter has that sign by more than rounding, and no other function is in doubt, the
solution goes on there.  With dte = -dg / g' sensitivities jump by

    dx+ = dx- + (f- - f+) dte

Whatever is not as simple is for Python to decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.jumps import settle
from odejet.jets.kernel import Layout, expand, prepare
from odejet.jets.lanes import kernel, peek, pointer, poke
from odejet.jets.roots import Switches

SHAKEN = 1e-13
"""A relative change of all states: what it changes is rounding."""

ROUNDING = 8.0
"""Times what such a change does."""

LATE = 1e-15
"""The rounding of a time, relative to it."""

INSTANT = 1e-12
"""Switches within so short a time, relative to all of it, are at one time."""

_CLEAR = 1e3  # times rounding: functions beside the one that is crossed are farther from zero, or Python is asked


class Side(NamedTuple):
    """A mode, as steps need it."""

    layout: Layout
    point: Layout
    constants: np.ndarray
    memory: np.ndarray
    point_memory: np.ndarray
    switches: Switches


class Crossing(NamedTuple):
    """The mode on the other side of one switching function, and what happened at it so far."""

    other: Side
    which: np.ndarray  # the function, by its position in this mode and in the other
    counts: np.ndarray  # crossings so far, and how many more may be
    marks: np.ndarray  # the time of the last, times as close to it as are the same, and the size of the start


@kernel
def may_pass(crossing, which, t):
    """Whether a function that lost its sign now is the one of the crossing, and was not crossed just now."""
    simple = which == crossing.which[crossing.counts[0] % 2] and crossing.counts[1] > 0
    return simple and abs(t - crossing.marks[0]) > max(crossing.marks[1], INSTANT * abs(t))


@kernel
def slopes(c, layout, t, plain):
    """First orders of all series at a time, in its own unit; what drives them is in place."""
    expand(c, layout, t, np.int64(0), np.int64(2), layout.split[1], plain, 0)


@kernel
def look(that, o, there, states, arrays, now, t, point, plain):
    """The slope of a function in a mode at one of three points: the place itself, and two that differ by rounding.

    Returned with it is whether all other functions have their signs, far beyond what rounding does to them.
    """
    layout, n, values = that.layout, len(states), pointer(arrays.kept)
    for i in range(n):
        arrays.rates[i, 1] = states[i, 0]
        states[i, 0] += (0.0 if point == 0 else 1.0 if point == 1 or i % 2 else -1.0) * SHAKEN * arrays.scales[i]
    settle(o, layout, that.memory, that.point_memory, states, plain)
    for i in range(n):
        states[i, 0] = arrays.rates[i, 1]
    slopes(o, layout, t if point == 0 else t + SHAKEN * now if point == 1 else t - SHAKEN * now, plain)
    clear = True
    for j in range(len(layout.switches)):
        value = peek(o, layout.switches[j])
        if point == 0:
            poke(values, j, value)
        far = abs(value) > _CLEAR * ROUNDING * abs(value - peek(values, j))
        clear = clear and (j == there or (that.switches.signs[j] * value > 0 and far))
    if point == 0:
        for i in range(n):
            place = layout.states[i]
            arrays.rates[n + i, 0] = peek(o, place + layout.lanes) if place >= layout.dynamic else 0.0
    return peek(o, layout.switches[there] + layout.lanes), clear


@kernel
def pass_over(c, this, that, crossing, parameters, states, arrays, t, direction, plain):
    """Go on in another mode where a function of this one has lost its sign: whether that is simple.

    States are left in rows, with the jump of their tangents, and in the registers of the mode in which they go on.
    What drives the model is in place, in the registers of both.
    """
    layout, n, lanes, side = this.layout, len(states), this.layout.lanes, crossing.counts[0] % 2
    which, there = crossing.which[side], crossing.which[1 - side]
    o, now = pointer(that.memory), max(abs(t), crossing.marks[2])
    if len(that.layout.switches) > n * lanes:
        return False
    slopes(c, layout, t, plain)
    place = layout.switches[which]
    slope = peek(c, place + lanes)
    if slope == 0:
        return False
    for i in range(n):
        x = layout.states[i]
        rate = peek(c, x + lanes) if x >= layout.dynamic else 0.0
        arrays.rates[i, 0] = rate
        # The time itself is rounded, and the states with it.
        arrays.scales[i] = max(abs(states[i, 0]), arrays.scales[i], LATE / SHAKEN * now * abs(rate))
    prepare(o, that.layout, that.constants, parameters, states, plain, 0)
    first, clear = look(that, o, there, states, arrays, now, t, 0, plain)
    second, clear_still = look(that, o, there, states, arrays, now, t, 1, plain)
    third, clear_too = look(that, o, there, states, arrays, now, t, 2, plain)
    noise = max(abs(second - first), abs(third - first))
    known = clear and clear_still and clear_too and abs(first) > ROUNDING * noise
    if not known or first * direction * that.switches.signs[there] <= 0:
        return False
    for lane in range(1, lanes):
        late = -peek(c, place + lane) / slope
        for i in range(n):
            states[i, lane] = (states[i, lane] + arrays.rates[i, 0] * late) - arrays.rates[n + i, 0] * late
    settle(o, that.layout, that.memory, that.point_memory, states, plain)
    that.switches.zeros[there] = 1
    crossing.counts[0] += 1
    crossing.counts[1] -= 1
    crossing.marks[0] = t
    return True
