"""Tangents: the sensitivities of the stages of one implicit step.

They satisfy linear equations, which the factors of Newton's method (see `stages`) solve by iteration.
"""

from __future__ import annotations

import numpy as np

from odejet.jets.lanes import (
    WIDTH,
    add,
    kernel,
    larger,
    load,
    madd,
    minus,
    peek,
    pointer,
    poke,
    product,
    spread,
    store,
    zero,
)
from odejet.jets.linear import solve_many, solve_many_complex
from odejet.jets.points import find_rates
from odejet.jets.stages import (
    AGAIN,
    FAST,
    LEAST,
    SETTLED,
    factored,
    has_stalled,
    left_after,
    wavering,
    wavers,
)

_ITERATIONS = 40
_BEHIND = 1e-3  # the size of sensitivities whose relative accuracy matters, relative to the largest so far
_SLIGHT = 1e-7  # the same, of a relative change of a state by one of a parameter: rounding may be all that there is


@kernel
def find_slight(work, parameters):
    """What sensitivities by a parameter do not matter, in units of the states: the least where one has several.

    Those by an initial state, which stood before the start and may be all but gone, are measured by the largest state:
    what dies away would else have to be followed for ever.
    """
    largest = 0.0
    for a in range(len(work.start)):
        largest = max(largest, abs(work.start[a]))
    initial = 1 / largest if largest > 0 else 0.0
    for k in range(1, parameters.shape[1]):
        least = np.inf
        for i in range(len(parameters)):
            if parameters[i, k] != 0:
                size = abs(parameters[i, 0])
                least = min(least, abs(parameters[i, k]) / size if size > 0 else 0.0)
        work.slight[k] = _SLIGHT * (least if least < np.inf else initial)


@kernel
def solve_tangents(point, piece, moving, rule, work, t, h, tolerance, rate):
    """Sensitivities of the stages in `ahead`, from guesses there: whether the iterations settle, and what they leave.

    They are those of Newton's method, so that updates shrink at the `rate` of the latter.
    """
    earlier, last, best = np.inf, np.inf, 1.0
    least, since, grown = np.inf, 0, 0
    rate = max(rate, LEAST) ** AGAIN
    for _ in range(_ITERATIONS):
        find_forcing(point, piece, moving, rule, work, t, h)
        solve_columns(rule, work)
        largest = take_updates(work)
        if last < np.inf:
            rate = largest / last if last > 0 else 0.0
            best = min(best, rate)
        left = min(left_after(largest, rate), largest)
        if left <= SETTLED * tolerance or has_stalled(largest, earlier, best):
            return True, left
        if not largest < np.inf:
            break
        since, grown = wavering(largest, last, least, since, grown)
        if wavers(largest, since, grown):
            return True, largest
        earlier, last, least = last, largest, min(least, largest)
    return best < FAST, last  # a contraction that went on for so long has left only rounding


@kernel
def find_forcing(point, piece, moving, rule, work, t, h):
    """What the sensitivities of the stages lack to their equations, in units of the states."""
    stages, n, lanes = work.forcing.shape
    ahead, forcing, gaps, plane = pointer(work.ahead), pointer(work.forcing), pointer(work.columns), n * lanes
    for i in range(stages):
        for a in range(n):
            place, row = peek(point.states, moving[a]), (1 + i) * plane + a * lanes
            for lane in range(0, lanes, WIDTH):
                store(point.p, place + lane, load(ahead, row + lane))
            poke(point.p, place, work.values[a, 1 + i])
        find_rates(point, piece, t + rule.points[i] * h)
        for a in range(n):
            place, row, unit = peek(point.states, moving[a]) + lanes, a * lanes, 1 / work.scales[a]
            for lane in range(0, lanes, WIDTH):
                moved, here = load(ahead, row + lane), i * plane + row + lane
                store(forcing, here, product(load(point.p, place + lane), spread(h * unit)))
                gap = minus(moved, spread(1.0), load(ahead, here + plane))
                store(gaps, here, product(gap, spread(unit)))
    blend(pointer(rule.inverse), stages, gaps, stages, forcing, plane, True)
    for i in range(stages):
        for a in range(n):
            work.forcing[i, a, 0] = 0.0


@kernel
def extent_of(work, k):
    """The largest sensitivity of a lane on the step, or what does not matter of it."""
    return max(work.extents[k], _BEHIND * work.reached[k], work.slight[k])


@kernel
def take_updates(work):
    """Add the updates in `forcing` to the sensitivities; the largest, relative to the sizes of their lanes."""
    stages, n, lanes = work.forcing.shape
    ahead, forcing, moves, plane = pointer(work.ahead), pointer(work.forcing), pointer(work.columns), n * lanes
    extents, sum_ = pointer(work.extents), zero(pointer(work.forcing))
    for lane in range(0, lanes, WIDTH):
        size, moved = zero(ahead), zero(ahead)
        for a in range(n):
            unit = work.scales[a]
            here = zero(ahead)
            for place in range(a * lanes + lane, stages * plane, plane):
                update, before = load(forcing, place), load(ahead, place + plane)
                here, moved, sum_ = larger(here, before), larger(moved, update), add(sum_, update, 0)
                store(ahead, place + plane, madd(before, unit, update, 0))
            size = larger(size, product(here, spread(1 / unit)))
        store(extents, lane, size)
        store(moves, lane, moved)
    largest = 0.0
    for k in range(1, lanes):
        work.reached[k] = max(work.reached[k], work.extents[k])
        size, moved = extent_of(work, k), peek(moves, k)
        if moved > 0:
            largest = max(largest, moved / size if size > 0 else 1.0)
    store(moves, 0, sum_)
    return largest if abs(peek(moves, 0) + peek(moves, 1) + peek(moves, 2) + peek(moves, 3)) < np.inf else np.inf


@kernel
def solve_columns(rule, work):
    """The solutions of all systems for the right-hand sides in all lanes of `forcing`, in place."""
    stages, n, lanes = work.forcing.shape
    systems, forcing, columns, plane = factored(work), pointer(work.forcing), pointer(work.columns), n * lanes
    blend(pointer(rule.apart), stages, forcing, stages, columns, plane, False)
    solve_many(systems, columns, lanes)
    for q in range(1, len(rule.rates) + 1):
        real, imaginary = pointer(work.columns[2 * q - 1]), pointer(work.columns[2 * q])
        solve_many_complex(systems, q, real, imaginary, lanes)
    blend(pointer(rule.together), stages, columns, stages, forcing, plane, False)


@kernel
def blend(weights, rows, source, columns, target, plane, onto):
    """Planes of `target` as sums of those of `source`, added to what is there or not."""
    place = 0
    while place + 3 * WIDTH < plane:  # four blocks at a time: a weight is looked up once for all
        for i in range(rows):
            here = i * plane + place
            a = load(target, here) if onto else zero(target)
            b = load(target, here + WIDTH) if onto else zero(target)
            c = load(target, here + 2 * WIDTH) if onto else zero(target)
            d = load(target, here + 3 * WIDTH) if onto else zero(target)
            for j in range(columns):
                weight, there = peek(weights, i * columns + j), j * plane + place
                a = madd(a, weight, load(source, there), 0)
                b = madd(b, weight, load(source, there + WIDTH), 0)
                c = madd(c, weight, load(source, there + 2 * WIDTH), 0)
                d = madd(d, weight, load(source, there + 3 * WIDTH), 0)
            store(target, here, a)
            store(target, here + WIDTH, b)
            store(target, here + 2 * WIDTH, c)
            store(target, here + 3 * WIDTH, d)
        place += 4 * WIDTH
    while place < plane:
        for i in range(rows):
            a = load(target, i * plane + place) if onto else zero(target)
            for j in range(columns):
                a = madd(a, peek(weights, i * columns + j), load(source, j * plane + place), 0)
            store(target, i * plane + place, a)
        place += WIDTH
