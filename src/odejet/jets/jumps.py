"""Jumps: what an event does to a solution and its sensitivities at a time that is known before.

With x+ = h(x-, p, te) at te, which may depend on the unknowns, sensitivities jump by

    dx+ = h_x (dx- + f- dte) + h_p + h_t dte - f+ dte

where f- and f+ are the rates just before and just after.  The maps h are a tape on which everything is static; each
has its own stretch of the program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.kernel import set_row
from odejet.jets.lanes import kernel, peek, pointer, poke
from odejet.jets.points import find_rates
from odejet.jets.shared import run

HAPPEN, STOP, ASK = range(3)
"""What a solution does at a jump: lets it happen on the way; stops before it; or stops only where a switching function
might lose its sign by it."""

_CLEAR = 1e-12  # how far states are moved, relative to their size, to see that a sign is not due to rounding


class Jumps(NamedTuple):
    """Jumps in the order in which a solution meets them, and the program of their maps."""

    times: np.ndarray
    moved: np.ndarray  # (jumps, lanes): tangents of the times
    maps: np.ndarray  # which map each is
    follows: np.ndarray  # whether each comes after what is asked for at its time
    pauses: int  # HAPPEN, STOP or ASK
    done: np.ndarray  # how many have happened
    code: np.ndarray
    terms: np.ndarray
    bounds: np.ndarray  # of the program of each map
    targets: np.ndarray  # rows (state, place of its new value)
    ends: np.ndarray  # of the targets of each map
    memory: np.ndarray  # registers, with constants and parameters in place
    states: np.ndarray  # places
    inputs: np.ndarray  # places
    time: int


def no_jumps() -> Jumps:
    none, table = np.zeros(0, np.int64), np.zeros((0, 0))
    places, program = np.zeros((0, 2), np.int64), np.zeros((0, 0), np.int64)
    done, numbers = np.zeros(1, np.int64), np.zeros(0)
    follows = np.zeros(0, np.bool_)
    return Jumps(numbers, table, none, follows, 0, done, program, program, none, places, none, numbers, none, none, 0)


@kernel
def leap(jumps, which, rows, t, moved, tables):
    """Rows of the states after a map from those before it, at a time with its tangents; inputs are in place."""
    m, lanes, size = pointer(jumps.memory), rows.shape[1], len(jumps.memory)
    for i in range(len(rows)):
        set_row(m, jumps.states[i], rows, i, size, lanes)
    for lane in range(lanes):
        poke(m, jumps.time + lane, moved[lane])
        poke(m, jumps.time + lanes + lane, moved[lane])
    poke(m, jumps.time, t)
    poke(m, jumps.time + lanes, 0.0)
    first, last = jumps.bounds[which], jumps.bounds[which + 1]
    run(m, pointer(jumps.code), pointer(jumps.terms), first, last, 0, size, lanes, tables, 0)
    for j in range(jumps.ends[which], jumps.ends[which + 1]):
        for lane in range(lanes):
            rows[jumps.targets[j, 0], lane] = peek(m, jumps.targets[j, 1] + lane)


@kernel
def carry(point, piece, rows, t, moved, sign):
    """Move the tangents of all states along their rates by sign dte."""
    lanes = point.lanes
    for i in range(point.size):
        place = peek(point.states, i)
        if place >= point.dynamic:
            for lane in range(lanes):
                poke(point.p, place + lane, rows[i, lane])
    find_rates(point, piece, t)
    for i in range(point.size):
        place = peek(point.states, i)
        if place >= point.dynamic:
            rate = sign * peek(point.p, place + lanes)
            for lane in range(1, lanes):
                rows[i, lane] += rate * moved[lane]


@kernel
def steer_maps(jumps, drive, piece, t, moved, lanes):
    """The inputs just before a jump, with their tangents by the time."""
    m = pointer(jumps.memory)
    for i in range(len(jumps.inputs)):
        a, d, place = drive.coefficients[i, piece], t - drive.knots[piece], jumps.inputs[i]
        value, rate = a[0] + d * (a[1] + d * (a[2] + d * a[3])), a[1] + d * (2 * a[2] + d * 3 * a[3])
        for row in range(2):
            for lane in range(lanes):
                poke(m, place + row * lanes + lane, rate * moved[lane])
        poke(m, place, value)
        poke(m, place + lanes, 0.0)


@kernel
def settle(c, layout, memory, point_memory, rows, tables):
    """Rows of all states into the registers, and what is static after them."""
    for i in range(len(rows)):
        set_row(c, layout.states[i], rows, i, layout.dynamic, layout.lanes)
    run(
        c,
        pointer(layout.code),
        pointer(layout.terms),
        0,
        layout.split[0],
        0,
        layout.dynamic,
        layout.lanes,
        tables,
        0,
    )
    for i in range(layout.dynamic):
        point_memory[i] = memory[i]


@kernel
def signs_hold(c, layout, point, there, piece, switches, rows, arrays, t, tables):
    """Whether switching functions, at the places `there` of a point, have their signs at rows by more than rounding.

    Every state that they depend on, and the time, is moved to both sides by more than its rounding.
    """
    count, known = len(switches.moving), True
    for j in range(len(there)):
        known = known and switches.signs[j] != 0
    k = 0
    while known and k <= 2 * count + 1:
        shift = _CLEAR * (count + 1) * (1 - 2 * (k % 2))
        i = switches.moving[k // 2] if k < 2 * count else -1
        value = rows[i, 0]
        if i >= 0:
            rows[i, 0] += shift * arrays.scales[i]
        settle(c, layout, arrays.memory, arrays.point_memory, rows, tables)
        for j in range(point.size):
            place = peek(point.states, j)
            if place >= point.dynamic:
                poke(point.p, place, rows[j, 0])
        find_rates(point, piece, t if i >= 0 else t + shift * abs(t))
        rows[i, 0] = value
        for j in range(len(there)):
            known = known and switches.signs[j] * peek(point.p, there[j]) > 0
        k += 1
    return known


@kernel
def leaves_signs(c, layout, point, flat, drive, before, after, jumps, switches, states, arrays, t, tables):
    """Whether the next jump leaves all switching functions their signs."""
    k, rows, scales = jumps.done[0], arrays.kept, arrays.scales
    for i in range(len(states)):
        for lane in range(layout.lanes):
            rows[i, lane] = states[i, lane]
    steer_maps(jumps, drive, before, t, jumps.moved[k], layout.lanes)
    leap(jumps, jumps.maps[k], rows[: len(states)], t, jumps.moved[k], tables)
    for i in range(len(states)):
        scales[i] = max(scales[i], abs(states[i, 0]), abs(rows[i, 0]))
    held = signs_hold(c, layout, point, flat.switches, after, switches, rows[: len(states)], arrays, t, tables)
    settle(c, layout, arrays.memory, arrays.point_memory, states, tables)
    return held


@kernel
def happen(c, layout, point, flat, drive, before, after, jumps, switches, states, arrays, t, tables):
    """The next jump, at t, from a piece of the inputs to another, unless it is asked about and might change a sign:
    whether it happened.  States are left in rows and in the registers; `flat` is the layout of the point."""
    k = jumps.done[0]
    moved, moves = jumps.moved[k], False
    if jumps.pauses == ASK and not leaves_signs(
        c, layout, point, flat, drive, before, after, jumps, switches, states, arrays, t, tables
    ):
        return False
    for lane in range(layout.lanes):
        moves = moves or moved[lane] != 0
    if moves:
        carry(point, before, states, t, moved, 1.0)
    steer_maps(jumps, drive, before, t, moved, layout.lanes)
    leap(jumps, jumps.maps[k], states, t, moved, tables)
    settle(c, layout, arrays.memory, arrays.point_memory, states, tables)
    if moves:
        carry(point, after, states, t, moved, -1.0)
        settle(c, layout, arrays.memory, arrays.point_memory, states, tables)
    jumps.done[0] = k + 1
    return True
