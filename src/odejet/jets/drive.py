"""Drive: sampled inputs on their way into the registers of a solution.

Between knots an input is a polynomial, and no step crosses a knot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.lanes import kernel, poke


class Drive(NamedTuple):
    """Sampled inputs along a trajectory: polynomials as in `inputs.Pieces`, and values (times, inputs) for outputs."""

    knots: np.ndarray
    coefficients: np.ndarray
    values: np.ndarray


NO_DRIVE = Drive(np.zeros(0), np.zeros((0, 0, 4)), np.zeros((0, 0)))


@kernel
def first_piece(knots, t, direction):
    """The piece on which a solution leaves t."""
    first, last = 0, max(len(knots) - 2, 0)
    while first < last:
        middle = (first + last) // 2
        if knots[middle + 1] < t or (knots[middle + 1] == t and direction > 0):
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def next_stop(knots, piece, direction, end):
    """Where the piece ends on the way to the end, or the end itself."""
    if direction > 0 and piece + 2 < len(knots):
        return min(end, knots[piece + 1])
    if direction < 0 and piece > 0:
        return max(end, knots[piece])
    return end


@kernel
def steer(c, layout, drive, piece, t, unit):
    """The Taylor series at t of all inputs, on a piece and in units of time."""
    for i in range(len(layout.inputs)):
        a, d, place = drive.coefficients[i, piece], t - drive.knots[piece], layout.inputs[i]
        poke(c, place, a[0] + d * (a[1] + d * (a[2] + d * a[3])))
        poke(c, place + layout.lanes, (a[1] + d * (2 * a[2] + d * 3 * a[3])) * unit)
        poke(c, place + 2 * layout.lanes, (a[2] + d * 3 * a[3]) * unit * unit)
        poke(c, place + 3 * layout.lanes, a[3] * unit * unit * unit)
