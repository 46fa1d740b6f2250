"""Stages: the equations of one implicit step, by Newton's method, and those of its sensitivities.

One Jacobian serves all stages; Butcher's transformation (see `radau`) makes of their joint system one real and a few
complex ones of the size of the model, whose factors are kept from step to step while they serve.  The values of a state
at all nodes are a row of lanes, the start of the step first.  The sensitivities of the stages satisfy linear equations,
which the same factors solve by iteration.
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
    minus,
    padded,
    peek,
    pointer,
    poke,
    product,
    spread,
    store,
    zero,
)
from odejet.jets.linear import factor, factor_in_order, solve, solve_many, solve_many_complex, systems_of
from odejet.jets.points import find_rates
from odejet.jets.sparsity import Fill

_ITERATIONS = 25  # of Newton's method
_SLOWEST = 0.6  # the largest ratio of one update to the last with which iterations go on
_SETTLED = 0.03  # times the tolerance: what may be left to be updated, relative to the states
_LEAST, _AGAIN = 0.01, 0.8  # what a step expects of its ratios: those of the one before, but not too small, to a power
_ROUNDED = 3e-8  # updates this small that have shrunk by _FAST and in two more by no more than _STALLED are rounding
_FAST, _STALLED = 0.1, 0.8  # updates that shrink slowly are no rounding, and left as they are would be errors
_WAVERS, _TWICE = 6, 2  # or that in so many have not shrunk by _STALLED, and have grown in some: slow ones never grow
_SWALLOWED = 2e-16  # updates that do not change a number at all
_OUTGROWN = 0.2  # the size of a state in its unit below which units are chosen again
_TANGENT_ITERATIONS = 40
_BEHIND = 1e-3  # the size of sensitivities whose relative accuracy matters, relative to the largest so far
_SLIGHT = 1e-7  # the same, of a relative change of a state by one of a parameter: rounding may be all that there is
_BESIDE = 1e-16  # the size of a state that does not matter, relative to its largest so far
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
    fill: Fill  # entries of the factors while their pivots are on the diagonal
    pivoted: np.ndarray  # (1): whether they are not
    pivots: np.ndarray  # (states)
    filled: np.ndarray  # (states, states): entries of the factors then
    counts: np.ndarray  # (states, 2)
    scales: np.ndarray  # the unit of each state
    sizes: np.ndarray  # the largest value of each state on the step
    largest: np.ndarray  # what each state has reached so far
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
        **dict.fromkeys(("values", "coefficients", "before", "residuals"), (n, wide)),
        "systems": (n, 2, systems),
        "jacobian": (n, n),
        "factors": (n, n, 2, systems),
        **dict.fromkeys(("reached", "extents", "slight"), (lanes,)),
        "weights": (2, wide),
        "polynomials": (nodes, wide),
        "outlook": (stages, nodes),
        "watched": (watched, wide),
        "powers": (nodes,),
        **dict.fromkeys(("forcing", "columns"), (stages, n, lanes)),
        **dict.fromkeys(("nodes", "ahead"), (nodes, n, lanes)),
    }


@kernel
def begin(work, moving, states):
    """Where steps set out from rows of value and tangents; all numbers are zero before."""
    nodes, n, lanes = work.nodes.shape
    for a in range(n):
        value = states[moving[a], 0]
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
    return size if _NOTHING < size < np.inf else 1.0


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
    that it feeds by that one's own size: a larger one would let rounding of the zero drown a state that is tiny.
    """
    for a in range(len(moving)):
        poke(slope.p, peek(slope.states, moving[a]), work.values[a, node])
    find_rates(slope, piece, t)
    for a in range(len(moving)):
        work.scales[a] = size_of(work, a)
    for b in range(len(moving)):
        if work.sizes[b] <= _NOTHING:
            for a in range(len(moving)):
                feeds = abs(h * peek(slope.p, peek(slope.states, moving[a]) + slope.lanes + 1 + b))
                if a != b and feeds > 0 and work.sizes[a] > _NOTHING:
                    work.scales[b] = min(work.scales[b], work.scales[a] / feeds)
            work.scales[b] = max(work.scales[b], abs(h * peek(slope.p, peek(slope.states, moving[b]) + slope.lanes)))
    n = len(moving)
    for a in range(n):
        place, unit = peek(slope.states, moving[a]) + slope.lanes + 1, 1 / work.scales[a]
        work.jacobian[a, a] = peek(slope.p, place + a) * work.scales[a] * unit
        for c in range(work.fill.counts[a, 1]):
            b = work.fill.columns[a, c]
            entry = peek(slope.p, place + b)
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
    return update < _ROUNDED and update > _STALLED * earlier and best < _FAST


@kernel
def wavering(update, last, least, since, grown):
    """For how many iterations updates have not become smaller, and in how many of them they have grown.

    At rest first guesses are as good as rounding allows, so that updates are rounding from the first on.
    """
    if update < _STALLED * least:
        return 0, 0
    return since + 1, grown + (1 if update > last else 0)


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
    rate = max(rate, _LEAST) ** _AGAIN
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
        if left <= _SETTLED * tolerance or largest <= _SWALLOWED:
            left = min(left, largest)
            for a in range(len(work.noise)):
                work.noise[a] *= left / largest if largest > 0 else 1.0
            return True, (best if last < np.inf else known)
        since, grown = wavering(largest, last, least, since, grown)
        if has_stalled(largest, earlier, best) or (since >= _WAVERS and grown >= _TWICE and largest < _ROUNDED):
            return True, best
        if largest > _SLOWEST * last and largest > _ROUNDED:
            break
        earlier, last, least = last, largest, min(least, largest)
    return False, best


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
    rate = max(rate, _LEAST) ** _AGAIN
    for _ in range(_TANGENT_ITERATIONS):
        find_forcing(point, piece, moving, rule, work, t, h)
        solve_columns(rule, work)
        largest = take_updates(work)
        if last < np.inf:
            rate = largest / last if last > 0 else 0.0
            best = min(best, rate)
        left = min(left_after(largest, rate), largest)
        if left <= _SETTLED * tolerance or has_stalled(largest, earlier, best):
            return True, left
        if not largest < np.inf:
            break
        since, grown = wavering(largest, last, least, since, grown)
        if since >= _WAVERS and grown >= _TWICE and largest < _ROUNDED:
            return True, largest
        earlier, last, least = last, largest, min(least, largest)
    return best < _FAST, last  # a contraction that went on for so long has left only rounding


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
