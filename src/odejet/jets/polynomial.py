"""Polynomial: what a step of collocation knows of the solution on it, and of the one beyond its end.

States and sensitivities are given at the nodes of a step.  As Legendre coefficients they tell how much the polynomial
lacks to the solution; it is sampled at requested times, and continued into the next step as a first guess.
"""

from __future__ import annotations

import numpy as np

from odejet.jets.lanes import (
    WIDTH,
    kernel,
    larger,
    load,
    madd,
    minus,
    peek,
    pointer,
    product,
    quotient,
    spread,
    store,
    zero,
)
from odejet.jets.stages import size_of
from odejet.jets.tangents import blend, extent_of

_NOISE = 10.0  # times what Newton's method leaves: what that may contribute to a coefficient


@kernel
def analyse_row(rule, values, i, coefficients):
    """Legendre coefficients in lanes, from the values of row i at the nodes."""
    nodes, lanes = len(rule.nodes), values.shape[1]
    source, target, analysis = pointer(values), pointer(coefficients), pointer(rule.abreast.analysis)
    lane = 0
    while lane + WIDTH < lanes:  # two blocks at a time, to keep the arithmetic units busy
        total, beside = zero(source), zero(source)
        for j in range(nodes):
            number, weights = peek(source, i * lanes + j), j * lanes + lane
            total = madd(total, number, load(analysis, weights), 0)
            beside = madd(beside, number, load(analysis, weights + WIDTH), 0)
        store(target, lane, total)
        store(target, lane + WIDTH, beside)
        lane += 2 * WIDTH
    if lane < lanes:
        total = zero(source)
        for j in range(nodes):
            total = madd(total, peek(source, i * lanes + j), load(analysis, j * lanes + lane), 0)
        store(target, lane, total)


@kernel
def analyse(rule, work):
    """Find the Legendre coefficients of the step; return the last two beyond rounding, relative to the size of each
    state on it."""
    nodes, highest, high = len(rule.nodes), 0.0, 0.0
    for a in range(len(work.values)):
        analyse_row(rule, work.values, a, work.coefficients[a])
        last, before = work.coefficients[a, nodes - 1], work.coefficients[a, nodes - 2]
        size, noise = size_of(work, a), _NOISE * work.noise[a] * work.scales[a]
        highest = max(highest, max(abs(last) - noise, 0.0) / size)
        high = max(high, max(abs(before) - noise, 0.0) / size)
    # The last but one is counted as it would look one degree further on.
    return max(highest, high ** (nodes / (nodes - 1)))


@kernel
def analyse_tangents(rule, work, left):
    """Return the last two Legendre coefficients of all sensitivities beyond rounding, relative to the largest of a
    lane; `left` is what they lack to their equations."""
    nodes, n, lanes = work.ahead.shape
    ahead, analysis, rough, plane = pointer(work.ahead), pointer(rule.analysis), 0.0, n * lanes
    largest = pointer(work.columns)  # of the last coefficients, and of those before
    for lane in range(0, lanes, WIDTH):
        last, before = zero(ahead), zero(ahead)
        for a in range(n):
            one, other, unit = zero(ahead), zero(ahead), spread(1 / work.scales[a])
            for j in range(nodes):
                block = load(ahead, j * plane + a * lanes + lane)
                one = madd(one, peek(analysis, (nodes - 1) * nodes + j), block, 0)
                other = madd(other, peek(analysis, (nodes - 2) * nodes + j), block, 0)
            last, before = larger(last, product(one, unit)), larger(before, product(other, unit))
        store(largest, lane, last)
        store(largest, lanes + lane, before)
    for k in range(1, lanes):
        size = extent_of(work, k)
        if size > 0:
            last, before = peek(largest, k) / size - _NOISE * left, peek(largest, lanes + k) / size - _NOISE * left
            rough = max(rough, last, max(before, 0.0) ** (nodes / (nodes - 1)))
    return rough


@kernel
def legendre(x, nodes, values, slopes):
    """Legendre's polynomials and their derivatives at x, by P'_{k+1} = P'_{k-1} + (2k + 1) P_k."""
    values[0], slopes[0], values[1], slopes[1] = 1.0, 0.0, x, 1.0
    for k in range(1, nodes - 1):
        values[k + 1] = ((2 * k + 1) * x * values[k] - k * values[k - 1]) / (k + 1)
        slopes[k + 1] = slopes[k - 1] + (2 * k + 1) * values[k]


@kernel
def place_weights(rule, place, weights):
    """Lagrange weights of the nodes at a place, in units of the step."""
    total, nodes = 0.0, len(rule.barycentric)
    for j in range(nodes):
        distance = place - rule.nodes[j]
        if distance == 0:
            for i in range(nodes):
                weights[i] = 0.0
            weights[j] = 1.0
            return
        weights[j] = rule.barycentric[j] / distance
        total += weights[j]
    for j in range(nodes):
        weights[j] /= total


@kernel
def sample(rule, work, moving, states, place, row, with_tangents):
    """All states with their tangents at a place on the step; those at rest are as they were."""
    weights, nodes = work.weights[0], len(rule.nodes)
    place_weights(rule, place, weights)
    lanes = states.shape[1]
    for a in range(len(states)):
        for k in range(lanes):
            row[a, k] = states[a, k]
    for a in range(len(moving)):
        for k in range(lanes):
            row[moving[a], k] = 0.0
        if with_tangents:
            for j in range(nodes):
                for k in range(1, lanes):
                    row[moving[a], k] += weights[j] * work.ahead[j, a, k]
        for j in range(nodes):
            row[moving[a], 0] += weights[j] * work.values[a, j]


@kernel
def start_next(rule, work, with_tangents):
    """The end of a step is the start of the next, and its polynomial that of the step before from now on."""
    n, lanes = work.values.shape
    last = len(rule.nodes) - 1
    for a in range(n):
        for k in range(lanes):
            work.before[a, k] = work.coefficients[a, k]
        work.largest[a] = max(work.largest[a], work.sizes[a])
        work.start[a] = work.values[a, last]
        if with_tangents:
            for j in range(last + 1):
                for k in range(1, work.nodes.shape[2]):
                    work.nodes[j, a, k] = work.ahead[j, a, k]
            for k in range(1, work.nodes.shape[2]):
                work.ahead[0, a, k] = work.nodes[last, a, k]


@kernel
def look_ahead(rule, work, step, with_tangents):
    """First guesses of the stages of a step that is `step` times as long as the one before.

    They continue the polynomial of that beyond its end.  Legendre's terms that would grow there are left out: the first
    of those is what the guess may be wrong by.  Sensitivities are to follow by the same weights.
    """
    n, lanes = work.values.shape
    nodes, values, before = len(rule.nodes), pointer(work.values), pointer(work.before)
    sizes, places, polynomials = pointer(work.weights), pointer(rule.abreast.nodes), pointer(work.polynomials)
    for lane in range(0, lanes, WIDTH):
        total = zero(values)
        for a in range(n):
            total = larger(total, quotient(load(before, a * lanes + lane), spread(work.scales[a])))
        store(sizes, lane, total)
        x = madd(spread(1.0), 2 * step, load(places, lane), 0)
        value, earlier = x, spread(1.0)
        store(polynomials, lane, earlier)
        for k in range(1, nodes):
            store(polynomials, k * lanes + lane, value)
            low, high = k / (k + 1), (2 * k + 1) / (k + 1)
            value, earlier = minus(product(product(spread(high), x), value), spread(low), earlier), value
    degree, least, grown = 1, np.inf, 0.0
    for k in range(1, nodes):
        grown = work.weights[0, k] * work.polynomials[k, nodes - 1]
        if k > 1 and grown < least:
            degree, least = k - 1, grown
    if grown <= least:
        degree = nodes - 1
    for a in range(n):
        for lane in range(0, lanes, WIDTH):
            total = zero(values)
            for k in range(degree + 1):
                total = madd(total, peek(before, a * lanes + k), load(polynomials, k * lanes + lane), 0)
            store(values, a * lanes + lane, total)
        for lane in range(lanes):
            if lane == 0 or lane >= nodes:
                work.values[a, lane] = work.start[a]
    if with_tangents:
        for i in range(1, nodes):
            for j in range(nodes):
                work.outlook[i - 1, j] = 0.0
                for k in range(degree + 1):
                    work.outlook[i - 1, j] += work.polynomials[k, i] * rule.analysis[k, j]


@kernel
def extrapolate_tangents(work):
    """First guesses of the sensitivities."""
    nodes, n, lanes = work.nodes.shape
    blend(pointer(work.outlook), nodes - 1, pointer(work.nodes), nodes, pointer(work.ahead[1]), n * lanes, False)
