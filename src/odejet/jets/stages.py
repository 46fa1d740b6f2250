"""Stages: the equations of one implicit step, by Newton's method.

One Jacobian serves all stages; Butcher's transformation (see `radau`) makes of their joint system one real and a few
complex ones of the size of the model, whose factors are kept from step to step while they serve.  The values of a state
at all nodes are a row of lanes, the start of the step first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.abreast import find_rates_abreast
from odejet.jets.lanes import (
    WIDTH,
    add,
    kernel,
    larger,
    load,
    madd,
    padded,
    peek,
    pointer,
    poke,
    product,
    spread,
    store,
    zero,
)
from odejet.jets.linear import factor, factor_in_order, solve, systems_of
from odejet.jets.points import find_rates
from odejet.jets.sparsity import Fill

_ITERATIONS = 25  # of Newton's method
_SLOWEST = 0.6  # the largest ratio of one update to the last with which iterations go on
SETTLED = 0.03  # times the tolerance: what may be left to be updated, relative to the states
LEAST, AGAIN = 0.01, 0.8  # what a step expects of its ratios: those of the one before, but not too small, to a power
_ROUNDED = 3e-8  # updates this small that have shrunk by FAST and in two more by no more than _STALLED are rounding
FAST, _STALLED = 0.1, 0.8  # updates that shrink slowly are no rounding, and left as they are would be errors
_WAVERS, _TWICE = 6, 2  # or that in so many have not shrunk by _STALLED, and have grown in some: slow ones never grow
_SWALLOWED = 2e-16  # updates that do not change a number at all
_OUTGROWN = 0.2  # the size of a state in its unit below which units are chosen again
_BESIDE = 1e-16  # the size of a state that does not matter, relative to its largest so far
_BELOW = 1e-30
"""The size of a state that is not told from smaller ones, relative to the largest of all states at the start.

Reactions among hundreds of species carry numbers such as 1e-100, which are rounding of others: units as small let no
iteration settle.  With this one the errors of any state are about 1e-44 of the largest, so that also what grows from
1e-35 of that, or is measured in other units, is followed.
"""
_NOTHING = 1e-290  # the size of a state that is as good as zero: nothing is divided by less


class Work(NamedTuple):
    """Memory of the steps.  Lanes are those of nodes (the start, then the stages), coefficients or systems."""

    start: np.ndarray  # (states)
    values: np.ndarray  # (states, lanes): at the nodes
    coefficients: np.ndarray  # the same as Legendre coefficients
    before: np.ndarray  # those of the step before
    residuals: np.ndarray  # (states, lanes)
    systems: np.ndarray  # (states, 2, lanes): right-hand sides and solutions of all systems
    jacobian: np.ndarray  # in units of the states
    factors: np.ndarray  # (states, states, 2, lanes): of all systems mu_q I - h J
    fill: Fill  # entries of the Jacobian, and of the factors while their pivots are on the diagonal
    pivoted: np.ndarray  # (1): whether they are not
    pivots: np.ndarray  # (states)
    filled: np.ndarray  # (states, states): entries of the factors then
    counts: np.ndarray  # (states, 2)
    scales: np.ndarray  # the unit of each state
    sizes: np.ndarray  # the largest value of each state on the step
    largest: np.ndarray  # what each state has reached so far
    below: np.ndarray  # (1): the least size that is told from smaller ones
    reached: np.ndarray  # and each lane of the sensitivities
    extents: np.ndarray  # the largest sensitivity of each lane on the step, in units of the states
    slight: np.ndarray  # what does not matter of those
    noise: np.ndarray  # how far the stages of each state may still be from their equations
    weights: np.ndarray  # (2, lanes)
    polynomials: np.ndarray  # (nodes, lanes): Legendre's ahead of the step before, at the nodes
    outlook: np.ndarray  # (stages, nodes): from the step before to first guesses
    watched: np.ndarray  # (recorded, lanes): watched arguments and switching functions at the nodes
    powers: np.ndarray  # (nodes): one of them as powers of the place on the step
    forcing: np.ndarray  # (stages, states, lanes)
    columns: np.ndarray  # the same, taken apart
    nodes: np.ndarray  # (nodes, states, lanes): sensitivities of the step before; values are left out
    ahead: np.ndarray  # the same, of the step to come


def shapes_of(n: int, lanes: int, stages: int, watched: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of numbers in `Work`."""
    nodes, wide, systems = stages + 1, padded(stages + 1), padded((stages + 1) // 2)
    of_states = ("start", "scales", "sizes", "largest", "noise")
    return {
        **dict.fromkeys(of_states, (n,)),
        "below": (1,),
        **dict.fromkeys(("values", "coefficients", "before", "residuals"), (n, wide)),
        "systems": (n, 2, systems),
        "jacobian": (n, n),
        **dict.fromkeys(("reached", "extents", "slight"), (lanes,)),
        "weights": (2, wide),
        "polynomials": (nodes, wide),
        "outlook": (stages, nodes),
        "watched": (watched, wide),
        "powers": (nodes,),
        **dict.fromkeys(("forcing", "columns"), (stages, n, lanes)),
        **dict.fromkeys(("nodes", "ahead"), (nodes, n, lanes)),
        "factors": (n, n, 2, systems),  # last: the only one that need not be zero
    }


@kernel
def begin_stages(work, moving, states):
    """Where steps set out from rows of value and tangents; all numbers are zero before."""
    nodes, n, lanes = work.nodes.shape
    for a in range(n):
        value = states[moving[a], 0]
        work.below[0] = max(work.below[0], _BELOW * abs(value))
        work.start[a], work.before[a, 0] = value, value
        for lane in range(work.values.shape[1]):
            work.values[a, lane] = value
        for j in range(nodes):
            for k in range(lanes):
                work.nodes[j, a, k] = states[moving[a], k]
                work.ahead[j, a, k] = states[moving[a], k]


@kernel
def measure(work):
    """The largest value of every state on the step."""
    n, lanes = work.values.shape
    values, weights = pointer(work.values), pointer(work.weights)
    for a in range(n):
        total = zero(values)
        for lane in range(a * lanes, (a + 1) * lanes, WIDTH):
            total = larger(total, load(values, lane))
        work.sizes[a] = largest_of(total, weights)


@kernel
def largest_of(block, scratch):
    """The largest number of a block, by way of some memory."""
    store(scratch, 0, block)
    return max(peek(scratch, 0), peek(scratch, 1), peek(scratch, 2), peek(scratch, 3))


@kernel
def size_of(work, a):
    """The largest value of a state on the step, or what does not matter of it."""
    size = max(work.sizes[a], _BESIDE * work.largest[a])
    return max(size, work.below[0]) if _NOTHING < size < np.inf else 1.0


@kernel
def is_outgrown(work):
    """Whether a state has become much smaller than its unit."""
    least = 1.0
    for a in range(len(work.scales)):
        least = min(least, size_of(work, a) / work.scales[a])
    return least < _OUTGROWN


@kernel
def differentiate(slope, piece, t, h, moving, node, work):
    """The Jacobian at a node, in units of the states, which are chosen here.

    A state that is zero has no size.  Its unit is what it gains on the step, or else at most what would change a state
    that it feeds by that one's own size: a larger one would let rounding of the zero drown a state that is tiny.  One
    that is merely tiny keeps its size: what a fast state gains by its rate may be rounding of two large terms.
    """
    for a in range(len(moving)):
        poke(slope.p, peek(slope.states, moving[a]), work.values[a, node])
    find_rates(slope, piece, t)
    n = len(moving)
    for a in range(n):
        work.scales[a] = size_of(work, a)
    for a in range(n):
        rate = peek(slope.states, moving[a]) + slope.lanes
        if work.sizes[a] > _NOTHING:
            for c in range(work.fill.lengths[a]):
                b = work.fill.entries[a, c]
                if work.sizes[b] <= _NOTHING:
                    feeds = abs(h * peek(slope.p, rate + 1 + work.fill.colours[b]))
                    if feeds > 0:
                        work.scales[b] = min(work.scales[b], work.scales[a] / feeds)
    for b in range(n):
        if work.sizes[b] <= _NOTHING:
            gain = abs(h * peek(slope.p, peek(slope.states, moving[b]) + slope.lanes))
            work.scales[b] = max(work.scales[b], gain, work.below[0])
    for a in range(n):
        place, unit = peek(slope.states, moving[a]) + slope.lanes + 1, 1 / work.scales[a]
        work.jacobian[a, a] = peek(slope.p, place + work.fill.colours[a]) * work.scales[a] * unit
        for c in range(work.fill.lengths[a]):
            b = work.fill.entries[a, c]
            entry = peek(slope.p, place + work.fill.colours[b])
            work.jacobian[a, b] = entry * work.scales[b] * unit if entry != 0 else 0.0


@kernel
def decompose(rule, work, h, carefully):
    """The factors of all systems; whether there are any.

    Pivots are on the diagonal where they serve, unless the best ones are to be looked for.
    """
    work.pivoted[0] = 0
    if not carefully and decompose_in_order(rule, work, h):
        return True
    work.pivoted[0] = 1
    return decompose_densely(rule, work, h)


@kernel
def decompose_in_order(rule, work, h):
    """The factors with pivots on the diagonal; whether these serve."""
    n, lanes, fill = work.factors.shape[0], work.factors.shape[3], work.fill
    c, rates, columns = pointer(work.factors), pointer(rule.abreast.rates), pointer(fill.columns)
    counts, entry = pointer(fill.counts), 2 * lanes
    for a in range(n):
        diagonal = spread(-h * work.jacobian[a, a])
        for q in range(0, lanes, WIDTH):
            place = a * (n + 1) * entry + q
            store(c, place, add(diagonal, load(rates, q), 0))
            store(c, place + lanes, load(rates, lanes + q))
        for i in range(a * n, a * n + peek(counts, 2 * a + 1)):
            b = peek(columns, i)
            place, number = (a * n + b) * entry, spread(-h * work.jacobian[a, b])
            for q in range(0, lanes, WIDTH):
                store(c, place + q, number)
                store(c, place + lanes + q, zero(c))
    for a in range(n):
        work.pivots[a] = a
    systems = systems_of(work.factors, work.pivots, fill.columns, fill.counts)
    return factor_in_order(systems, pointer(fill.rows), pointer(fill.below))


@kernel
def factored(work):
    """The systems of the step, as factors."""
    if work.pivoted[0] == 0:
        return systems_of(work.factors, work.pivots, work.fill.columns, work.fill.counts)
    return systems_of(work.factors, work.pivots, work.filled, work.counts)


@kernel
def decompose_densely(rule, work, h):
    """The factors with pivots wherever these are largest; whether there are any."""
    n, lanes = work.factors.shape[0], work.factors.shape[3]
    c, rates = pointer(work.factors), pointer(rule.abreast.rates)
    for a in range(n):
        for b in range(n):
            place, entry = (a * n + b) * 2 * lanes, spread(-h * work.jacobian[a, b])
            for q in range(0, lanes, WIDTH):
                store(c, place + q, add(entry, load(rates, q), 0) if a == b else entry)
                store(c, place + lanes + q, load(rates, lanes + q) if a == b else zero(c))
    return factor(systems_of(work.factors, work.pivots, work.filled, work.counts))


@kernel
def find_residuals(point, piece, moving, rule, work, t, h):
    """What the stages lack to their equations, in units of the states, taken apart as right-hand sides."""
    n, lanes = work.values.shape
    nodes, systems = len(rule.nodes), work.systems.shape[2]
    values, residuals, right = pointer(work.values), pointer(work.residuals), pointer(work.systems)
    inverse, apart = pointer(rule.abreast.inverse), pointer(rule.abreast.apart)
    for a in range(n):
        place = peek(point.states, moving[a])
        for lane in range(0, lanes, WIDTH):
            store(point.p, place + lane, load(values, a * lanes + lane))
    find_rates_abreast(point, piece, t, h, rule.abreast.nodes, nodes)
    for a in range(n):
        place, row, start = peek(point.states, moving[a]) + lanes, a * lanes, work.start[a]
        unit = 1 / work.scales[a]
        lane = 0
        while lane + WIDTH < lanes:  # two blocks at a time, to keep the arithmetic units busy
            total = product(spread(h), load(point.p, place + lane))
            beside = product(spread(h), load(point.p, place + lane + WIDTH))
            for j in range(1, nodes):
                gap, weights = start - peek(values, row + j), j * lanes + lane
                total = madd(total, gap, load(inverse, weights), 0)
                beside = madd(beside, gap, load(inverse, weights + WIDTH), 0)
            store(residuals, row + lane, product(total, spread(unit)))
            store(residuals, row + lane + WIDTH, product(beside, spread(unit)))
            lane += 2 * WIDTH
        if lane < lanes:
            total = product(spread(h), load(point.p, place + lane))
            for j in range(1, nodes):
                total = madd(total, start - peek(values, row + j), load(inverse, j * lanes + lane), 0)
            store(residuals, row + lane, product(total, spread(unit)))
        for q in range(0, systems, WIDTH):
            real, imaginary = zero(right), zero(right)
            for j in range(1, nodes):
                number, place = peek(residuals, row + j), 2 * j * systems + q
                real = madd(real, number, load(apart, place), 0)
                imaginary = madd(imaginary, number, load(apart, place + systems), 0)
            store(right, 2 * a * systems + q, real)
            store(right, (2 * a + 1) * systems + q, imaginary)


@kernel
def take_solutions(rule, work):
    """The solutions together again and added to the stages: the largest of these updates, not finite if any is not."""
    n, lanes = work.values.shape
    count, systems = len(rule.abreast.together), work.systems.shape[2]
    values, right, together = pointer(work.values), pointer(work.systems), pointer(rule.abreast.together)
    weights, largest, sum_ = pointer(work.weights), 0.0, zero(values)
    for a in range(n):
        peak, place = zero(values), 2 * a * systems
        for lane in range(0, lanes, WIDTH):
            total = zero(values)
            for q in range(count):
                total = madd(total, peek(right, place + q), load(together, 2 * q * lanes + lane), 0)
                total = madd(total, peek(right, place + systems + q), load(together, (2 * q + 1) * lanes + lane), 0)
            peak, sum_ = larger(peak, total), add(sum_, total, 0)
            row = a * lanes + lane
            store(values, row, madd(load(values, row), work.scales[a], total, 0))
        work.noise[a] = largest_of(peak, weights)
        largest = max(largest, work.noise[a])
    store(weights, 0, sum_)
    total = peek(weights, 0) + peek(weights, 1) + peek(weights, 2) + peek(weights, 3)
    return largest if abs(total) < np.inf else np.inf


@kernel
def has_stalled(update, earlier, best):
    """Whether updates shrank fast and now rounding keeps them where they were two iterations earlier."""
    return update < _ROUNDED and update > _STALLED * earlier and best < FAST


@kernel
def wavering(update, last, least, since, grown):
    """For how many iterations updates have not become smaller, and in how many of them they have grown.

    At rest first guesses are as good as rounding allows, so that updates are rounding from the first on.
    """
    if update < _STALLED * least:
        return 0, 0
    return since + 1, grown + (1 if update > last else 0)


@kernel
def wavers(update, since, grown):
    """Whether that is rounding."""
    return since >= _WAVERS and grown >= _TWICE and update < _ROUNDED


@kernel
def left_after(update, rate):
    """What all updates to come amount to, if each is smaller than the one before by a rate."""
    return update * rate / (1 - rate) if rate < 1 else np.inf


@kernel
def solve_stages(point, piece, moving, rule, work, t, h, tolerance, rate):
    """Newton's method from the stages in `values`: whether it settles, and the ratio of its last updates.

    Until two updates tell, the ratio is expected to be about `rate`, that of the step before.
    """
    earlier, last, best, known = np.inf, np.inf, 1.0, rate
    least, since, grown = np.inf, 0, 0
    rate = max(rate, LEAST) ** AGAIN
    systems, right = factored(work), pointer(work.systems)
    for _ in range(_ITERATIONS):
        find_residuals(point, piece, moving, rule, work, t, h)
        solve(systems, right)
        largest = take_solutions(rule, work)
        if not largest < np.inf:
            return False, np.inf
        if last < np.inf:
            rate = largest / last if last > 0 else 0.0
            best = min(best, rate)
        left = left_after(largest, rate)
        if left <= SETTLED * tolerance or largest <= _SWALLOWED:
            left = min(left, largest)
            for a in range(len(work.noise)):
                work.noise[a] *= left / largest if largest > 0 else 1.0
            return True, (best if last < np.inf else known)
        since, grown = wavering(largest, last, least, since, grown)
        if has_stalled(largest, earlier, best) or wavers(largest, since, grown):
            return True, best
        if largest > _SLOWEST * last and largest > _ROUNDED:
            break
        earlier, last, least = last, largest, min(least, largest)
    return False, best
