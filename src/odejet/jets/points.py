"""Points: the right-hand sides at single points of time and state, as kernels ask for them.

All arrays are pointers: an array would bring its shape and strides along at every call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from odejet.jets.lanes import kernel, peek, pointer, poke
from odejet.jets.shared import run


class Point(NamedTuple):
    """The registers of a layout with two orders, the program of its rates, and the sampled inputs that drive it."""

    p: Any
    lanes: int
    states: Any  # places
    size: int  # how many states
    dynamic: int
    code: Any
    terms: Any
    first: int
    last: int
    time: int
    inputs: Any  # places
    sampled: int
    coefficients: Any
    knots: Any
    pieces: int
    tables: Any


@kernel
def point_of(layout, memory, drive, tables):
    """The point whose registers are `memory`; statics are to be there."""
    reciprocals = pointer(tables[1])
    return Point(
        pointer(memory),
        layout.lanes,
        pointer(layout.states),
        len(layout.states),
        layout.dynamic,
        pointer(layout.code),
        pointer(layout.terms),
        layout.split[0],
        layout.split[1],
        layout.time,
        pointer(layout.inputs),
        len(layout.inputs),
        pointer(drive.coefficients),
        pointer(drive.knots),
        drive.coefficients.shape[1],
        (pointer(tables[0]), reciprocals, reciprocals),
    )


@kernel
def drive_to(point, piece, t):
    """The time and the sampled inputs, into the registers."""
    for i in range(point.sampled):
        a, d, total = 4 * (i * point.pieces + piece), t - peek(point.knots, piece), 0.0
        for k in range(3, -1, -1):
            total = total * d + peek(point.coefficients, a + k)
        poke(point.p, peek(point.inputs, i), total)
    poke(point.p, point.time, t)


@kernel
def find_rates(point, piece, t):
    """Time derivatives of all states, with their tangents, as the first orders of the states in the registers."""
    drive_to(point, piece, t)
    run(point.p, point.code, point.terms, point.first, point.last, 0, point.dynamic, point.lanes, point.tables, 0)
