"""Lengths: how far a step by Taylor series may go, at which order, and in which unit of time its series are kept.

A step is the largest at which the last two terms of all series stay below the tolerance (Jorba and Zou 2005).  Series
are in units of the step before, so that their coefficients neither overflow nor vanish, whatever the unit of time.
"""

from __future__ import annotations

import numpy as np

from odejet.jets.kernel import MAX_ORDER
from odejet.jets.lanes import kernel, peek, poke
from odejet.jets.series import evaluate, leading, lowest, size_at

_TANGENT_TOLERANCE = 1e3  # times the tolerance of the values
_SMOOTH = 1e-4  # third terms below this, relative to the states, are no reason for a small step
_BEGUN = 4  # orders that a series goes on after its first term, at least
_VANISHED = 1e-200  # below this the high orders of a series underflow; no quantity of a model is so small


@kernel
def shortened(c, place, k, lanes, h, tolerance):
    """The step h, or the longest at which term k is below the tolerance relative to the first terms of its series.

    A series that has only begun tells nothing.
    """
    last = abs(peek(c, place + k * lanes))
    if last * h**k <= tolerance * size_at(c, place, lanes, k, h):
        return h
    longest, first = 0.0, leading(c, place, lanes, k)
    for j in range(first, first + _BEGUN if first + _BEGUN <= k else first):
        term = abs(peek(c, place + j * lanes))
        if term > 0:
            longest = max(longest, (tolerance * term / last) ** (1 / (k - j)))
    return min(h, longest) if longest > 0 else h


@kernel
def step_size(c, layout, scales, order, tolerance, longest):
    """The largest step at which terms order-1 and order of all values and tangents are below their tolerances; the
    second result tells whether there were such terms at all, and none of a series that has only begun."""
    lanes = layout.lanes
    h, seen, late = longest, False, False
    for i in range(len(layout.states)):
        x = layout.states[i]
        if x >= layout.dynamic:
            late = late or order - _BEGUN < leading(c, x, lanes, order) <= order
            for lane in range(lanes):
                goal = tolerance if lane == 0 else _TANGENT_TOLERANCE * tolerance
                for k in range(order - 1, order + 1):
                    if peek(c, x + k * lanes + lane) != 0:
                        h, seen = shortened(c, x + lane, k, lanes, h, goal), True
    for i in range(len(layout.states)):
        scales[i] = size_at(c, layout.states[i], lanes, order, h) if layout.states[i] >= layout.dynamic else 0.0
    return h, seen and not late


@kernel
def guarded_step(c, layout, order, h):
    """The step, halved until no logarithm, root or real power leaves its branch.

    A series may run on smoothly through a branch point, as (1 - t/2)^2 solves x' = -sqrt(x) only up to t = 2.
    """
    for i in range(len(layout.guards)):
        place, tries = layout.guards[i], 0
        while tries < 60:
            total, start = 0.0, peek(c, place)
            for k in range(order - 1, -1, -1):
                total = total * h + peek(c, place + k * layout.lanes)
            if start == 0 or (total > 0 if start > 0 else total < 0):  # their product might underflow
                break
            h, tries = 0.5 * h, tries + 1
    return h


@kernel
def best_order(c, layout, tolerance, longest, density, work):
    """The order at which a unit of time costs least, from series known to MAX_ORDER, and the longest step it allows.

    `work` holds the cost of a step that is constant, linear and quadratic in the order, and of a requested time per
    order; `density` is the number of requested times per unit of time.  A step is bounded by all terms that an order
    leaves out, since the first of them may happen to vanish.  No series may end where it has only begun.
    """
    best, least, allowed, bound = MAX_ORDER, np.inf, longest, longest
    for order in range(MAX_ORDER, 6, -1):
        for i in range(len(layout.states)):
            if layout.states[i] >= layout.dynamic:
                size, last = abs(peek(c, layout.states[i])), abs(peek(c, layout.states[i] + order * layout.lanes))
                if size == 0:
                    if order < leading(c, layout.states[i], layout.lanes, np.int64(MAX_ORDER)) + _BEGUN <= MAX_ORDER:
                        return best, allowed
                    size = size_at(c, layout.states[i], layout.lanes, order, bound)
                if last > 0 and size > 0:
                    bound = min(bound, (tolerance * size / last) ** (1 / order))
        above = order + 1  # the bound now holds for a series that ends here
        if above <= MAX_ORDER:
            effort = (work[0] + work[1] * above + work[2] * above * above) / bound + density * work[3] * above
            if effort < least:
                best, least, allowed = above, effort, bound
    return best, allowed


@kernel
def finite(c, layout, order):
    for i in range(len(layout.states)):
        for lane in range(layout.lanes):
            if not np.isfinite(peek(c, layout.states[i] + lane)):
                return False
            if layout.states[i] >= layout.dynamic:
                if not np.isfinite(peek(c, layout.states[i] + order * layout.lanes + lane)):
                    return False
    return True


@kernel
def is_smooth(c, layout, scales, h, radius):
    """Whether the third terms of all values and tangents at the radius of convergence are small.

    Near a singularity the terms of a series are alike there, from the first on.  Where a stiff solution limits the
    radius, its low orders know nothing of it.
    """
    lanes = layout.lanes
    for i in range(len(layout.states)):
        if scales[i] > 0:
            for lane in range(lanes):
                x = layout.states[i] + lane
                size = scales[i] if lane == 0 else lowest(c, x, lanes, h)
                if abs(peek(c, x + 3 * lanes)) * radius**3 > _SMOOTH * size:
                    return False
    return True


@kernel
def first_unit(c, layout, longest):
    """The time in which a state would change by its own size, from series to first order in units of one."""
    unit = longest
    for i in range(len(layout.states)):
        if layout.states[i] >= layout.dynamic:
            size, rate = abs(peek(c, layout.states[i])), abs(peek(c, layout.states[i] + layout.lanes))
            if size > 0 and rate * unit > size:
                unit = size / rate
    return unit


@kernel
def move(c, layout, order, h):
    """All states to the end of the step; what has all but vanished is zero from then on."""
    for i in range(len(layout.states)):
        x = layout.states[i]
        if x >= layout.dynamic:
            evaluate(c, x, order, layout.lanes, h, c, x)
            for lane in range(layout.lanes):
                if abs(peek(c, x + lane)) < _VANISHED:
                    poke(c, x + lane, 0.0)
