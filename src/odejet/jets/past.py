"""Past: what a solution was, as the polynomials of its steps, and inputs as they were sampled.

Every step of a Taylor series is a polynomial that is the solution to rounding, on both sides of the time at which it
was expanded, up to its reach.  A value of the past is looked up in the piece that reaches farthest ahead, expanded anew
around the time that is asked for; with a delay tau that depends on unknowns its tangents are

    d x(t - tau) = (dx)(t - tau) - x'(t - tau) dtau

Breakpoints, where a derivative of the solution jumps, divide the past into segments, and no piece reaches beyond its
own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.lanes import WIDTH, kernel, load, madd, peek, pointer, poke, store, zero

STATE, INPUT = 0, 1
"""Where a delayed value comes from."""

CENTRE, LOW, HIGH, UNIT = range(4)
_CLOSE = 1e-9  # beyond the reach of a piece by less, in its unit of time, is within it
_CUBIC = 4  # coefficients of a piece of an input


class Past(NamedTuple):
    """Pieces of some states, in the order of time, and where each segment begins; the history is the first segment."""

    spans: np.ndarray  # (pieces, 4): centre, reach to both sides, unit of time
    coefficients: np.ndarray  # (pieces, states, orders, lanes)
    rows: np.ndarray  # which states they are
    firsts: np.ndarray  # the first piece of each segment
    position: np.ndarray  # pieces so far; the segment that the solution is in; the stop that comes next


class Sources(NamedTuple):
    """The delayed values in an equation, and sampled inputs, which are delayed by nothing."""

    kinds: np.ndarray
    rows: np.ndarray  # in the past, or among the inputs
    lags: np.ndarray  # (values, lanes): delays with their tangents
    knots: np.ndarray
    coefficients: np.ndarray  # (inputs, pieces, 4)


class Stops(NamedTuple):
    """Times at which a delayed value comes to another segment."""

    times: np.ndarray
    moved: np.ndarray  # (stops, lanes): their tangents
    boundaries: np.ndarray  # whether a new segment of the solution begins
    jumping: np.ndarray  # whether rates may jump, and tangents with them
    pauses: np.ndarray  # whether something happens there: after (1) or before (2) what is asked for at its time
    segments: np.ndarray  # (stops + 1, values): where values are looked up before each stop and after the last


@kernel
def find_piece(past, segment, s):
    """The piece of a segment that holds at s and reaches farthest ahead."""
    first = past.firsts[segment]
    last = (past.position[0] if segment >= past.position[1] else past.firsts[segment + 1]) - 1
    low, high = first, last
    while low < high:
        middle = (low + high + 1) // 2
        if past.spans[middle, CENTRE] <= s:
            low = middle
        else:
            high = middle - 1
    best = low
    for i in range(low + 1, min(low + 3, last + 1)):
        holds = past.spans[i, LOW] - _CLOSE * past.spans[i, UNIT] <= s
        if holds and past.spans[i, HIGH] > past.spans[best, HIGH]:
            best = i
    return best


@kernel
def shift(c, place, order, lanes, d):
    """Expand a series around a centre that is d units later."""
    for low in range(order):
        for j in range(order - 1, low - 1, -1):
            row = place + j * lanes
            for lane in range(0, lanes, WIDTH):
                store(c, row + lane, madd(load(c, row + lane), d, load(c, row + lanes + lane), 0))


@kernel
def delay_tangents(c, place, order, lanes, lags, q, unit):
    """Add to the tangents of a delayed series what the delay itself moves."""
    for k in range(order):
        rate = (k + 1) * peek(c, place + (k + 1) * lanes) / unit
        for lane in range(1, lanes):
            poke(c, place + k * lanes + lane, peek(c, place + k * lanes + lane) - rate * lags[q, lane])


@kernel
def rescale(c, place, order, lanes, factor):
    """Change the unit of time of a series."""
    power = 1.0
    for k in range(order + 1):
        for lane in range(0, lanes, WIDTH):
            store(c, place + k * lanes + lane, madd(zero(c), power, load(c, place + k * lanes + lane), 0))
        power *= factor


@kernel
def recall(c, place, lanes, past, sources, q, segment, t, order, unit):
    """The series of a delayed value at t, into a register; how far back and ahead of t it holds."""
    s = t - sources.lags[q, 0]
    for lane in range((order + 1) * lanes):
        poke(c, place + lane, 0.0)
    if sources.kinds[q] == INPUT:
        for k in range(min(_CUBIC, order + 1)):
            poke(c, place + k * lanes, sources.coefficients[sources.rows[q], segment, k])
        shift(c, place, _CUBIC - 1, lanes, s - sources.knots[segment])
        delay_tangents(c, place, _CUBIC - 1, lanes, sources.lags, q, 1.0)
        rescale(c, place, _CUBIC - 1, lanes, unit)
        return -np.inf, np.inf
    piece = find_piece(past, segment, s)
    own, source = past.spans[piece, UNIT], pointer(past.coefficients)
    known = min(order, past.coefficients.shape[2] - 1)
    first = (piece * past.coefficients.shape[1] + sources.rows[q]) * past.coefficients.shape[2] * lanes
    for lane in range(0, (known + 1) * lanes, WIDTH):
        store(c, place + lane, load(source, first + lane))
    shift(c, place, known, lanes, (s - past.spans[piece, CENTRE]) / own)
    delay_tangents(c, place, known, lanes, sources.lags, q, own)
    rescale(c, place, known, lanes, unit / own)
    return past.spans[piece, LOW] + sources.lags[q, 0], past.spans[piece, HIGH] + sources.lags[q, 0]


@kernel
def recall_value(p, place, lanes, past, sources, q, segment, t):
    """A delayed value at t with its tangents, into a register."""
    s = t - sources.lags[q, 0]
    for lane in range(lanes):
        poke(p, place + lane, 0.0)
    if sources.kinds[q] == INPUT:
        d, value, rate = s - sources.knots[segment], 0.0, 0.0
        for k in range(_CUBIC - 1, -1, -1):
            rate = rate * d + value
            value = value * d + sources.coefficients[sources.rows[q], segment, k]
        poke(p, place, value)
    else:
        piece = find_piece(past, segment, s)
        own, source, orders = past.spans[piece, UNIT], pointer(past.coefficients), past.coefficients.shape[2]
        d, rate = (s - past.spans[piece, CENTRE]) / own, 0.0
        first = (piece * past.coefficients.shape[1] + sources.rows[q]) * orders * lanes
        for k in range(orders - 1, -1, -1):
            rate = rate * d + peek(p, place)
            for lane in range(0, lanes, WIDTH):
                store(p, place + lane, madd(load(source, first + k * lanes + lane), d, load(p, place + lane), 0))
        rate /= own
    for lane in range(1, lanes):
        poke(p, place + lane, peek(p, place + lane) - rate * sources.lags[q, lane])
