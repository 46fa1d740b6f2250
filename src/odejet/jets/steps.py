"""Steps: a trajectory with its sensitivities, by Taylor series on the tape.

One step expands all states at the current time to order K (Jorba and Zou 2005), takes the largest step at which the last
two terms stay below the tolerance, evaluates the series at the requested times inside, and moves on.  Tangents ride in
the lanes of the same series, so sensitivities are those of the computed trajectory itself.
"""

from __future__ import annotations

import numpy as np

from odejet.jets.kernel import MAX_ORDER, expand, prepare, run
from odejet.jets.lanes import WIDTH, entry, kernel, load, madd, peek, pointer, poke, store

REACHED, STIFF, COLLAPSED, NONFINITE, EXHAUSTED = range(5)
"""How an integration ended: at the last time; at a step limited by stability and not by the solution; at a step too
small to be resolved; at a right-hand side that is not finite; at the limit of steps."""

_TANGENT_WEIGHT = 1e-3  # tangents may be truncated at a thousand times the tolerance of the values
_RESOLUTION = 1e-14  # the smallest step, relative to the time
_SMOOTH = 1e-4  # third terms below this, relative to the states, are no reason for a small step
_MANY = 3000  # so many steps still to go at the present size make a smooth solution a stiff one
_PATIENCE = 30  # for so many steps in a row


@kernel
def lowest(c, x, lane, lanes, h):
    """The size of a series by its first terms at step h."""
    size = abs(peek(c, x + lane))
    for k in range(1, 4):
        size = max(size, abs(peek(c, x + k * lanes + lane)) * h**k)
    return size


@kernel
def tail_ratio(c, layout, scales, k, h):
    """The largest coefficient of order k, each relative to the size of its own series; tangents count less."""
    lanes = layout.lanes
    largest = 0.0
    for i in range(len(layout.states)):
        x = layout.states[i]
        if x >= layout.dynamic:
            if scales[i] > 0:
                largest = max(largest, abs(peek(c, x + k * lanes)) / scales[i])
            for lane in range(1, lanes):
                size = lowest(c, x, lane, lanes, h)
                if size > 0:
                    largest = max(largest, _TANGENT_WEIGHT * abs(peek(c, x + k * lanes + lane)) / size)
    return largest


@kernel
def step_size(c, layout, scales, order, tolerance, longest):
    """The largest step at which terms order-1 and order are below the tolerance, relative to their own series."""
    lanes, dynamic = layout.lanes, layout.dynamic
    # A first guess from the norm of all states sets the step at which a state's own size is measured.
    norm, last = 0.0, 0.0
    for i in range(len(layout.states)):
        if layout.states[i] >= dynamic:
            norm = max(norm, abs(peek(c, layout.states[i])))
            last = max(last, abs(peek(c, layout.states[i] + order * lanes)))
    h = longest
    if last > 0 and norm > 0:
        h = min(h, (tolerance * norm / last) ** (1 / order))
    for i in range(len(layout.states)):
        scales[i] = lowest(c, layout.states[i], 0, lanes, h) if layout.states[i] >= dynamic else 0.0
    for k in range(order - 1, order + 1):
        ratio = tail_ratio(c, layout, scales, k, h)
        if ratio > 0:
            longest = min(longest, (tolerance / ratio) ** (1 / k))
    return longest


@kernel
def guarded_step(c, layout, order, h):
    """The step, halved until no logarithm, root or real power leaves its branch.

    A series may run on smoothly through a branch point, as (1 - t/2)^2 solves x' = -sqrt(x) only up to t = 2.
    """
    for i in range(len(layout.guards)):
        place, tries = layout.guards[i], 0
        while tries < 60:
            total = 0.0
            for k in range(order - 1, -1, -1):
                total = total * h + peek(c, place + k * layout.lanes)
            if total * peek(c, place) > 0:
                break
            h, tries = 0.5 * h, tries + 1
    return h


@kernel
def best_order(c, layout, tolerance, longest, density, work):
    """The order at which a unit of time costs least, from series known to MAX_ORDER.

    `work` holds the cost of a step that is constant, linear and quadratic in the order, and of a requested time per
    order; `density` is the number of requested times per unit of time.
    """
    best, least, previous = MAX_ORDER, np.inf, longest
    for order in range(7, MAX_ORDER + 1):
        h = longest
        for i in range(len(layout.states)):
            size, last = abs(peek(c, layout.states[i])), 0.0
            if layout.states[i] >= layout.dynamic:
                last = abs(peek(c, layout.states[i] + order * layout.lanes))
            if last > 0 and size > 0:
                h = min(h, (tolerance * size / last) ** (1 / order))
        effort = (work[0] + work[1] * order + work[2] * order * order) / min(h, previous) + density * work[3] * order
        if order > 7 and effort < least:
            best, least = order, effort
        previous = h
    return best


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
def evaluate(c, x, order, lanes, h, out, place):
    """The series at x, summed at step h by Horner's rule, written to out[place]."""
    for lane in range(0, lanes, WIDTH):
        total = load(c, x + order * lanes + lane)
        for k in range(order - 1, -1, -1):
            total = madd(load(c, x + k * lanes + lane), h, total, 0)
        store(out, place + lane, total)


@kernel
def evaluate_four(c, x, order, lanes, t, times, out, place, stride):
    """The same at four times at once, which keeps the arithmetic units busy."""
    h0, h1, h2, h3 = peek(times, 0) - t, peek(times, 1) - t, peek(times, 2) - t, peek(times, 3) - t
    for lane in range(0, lanes, WIDTH):
        row = x + order * lanes + lane
        s0 = load(c, row)
        s1, s2, s3 = s0, s0, s0
        for _ in range(order):
            row -= lanes
            term = load(c, row)
            s0, s1 = madd(term, h0, s0, 0), madd(term, h1, s1, 0)
            s2, s3 = madd(term, h2, s2, 0), madd(term, h3, s3, 0)
        store(out, place + lane, s0)
        store(out, place + stride + lane, s1)
        store(out, place + 2 * stride + lane, s2)
        store(out, place + 3 * stride + lane, s3)


@kernel
def sample(c, layout, order, t, times, first, last, trajectory):
    """All states at times[first:last]."""
    lanes, n = layout.lanes, len(layout.states)
    out = pointer(trajectory)
    for s in range(n):
        x = layout.states[s]
        i = first
        if x < layout.dynamic:
            while i < last:
                for lane in range(0, lanes, WIDTH):
                    store(out, (i * n + s) * lanes + lane, load(c, x + lane))
                i += 1
        while i + 4 <= last:
            evaluate_four(c, x, order, lanes, t, pointer(times[i:]), out, (i * n + s) * lanes, n * lanes)
            i += 4
        while i < last:
            evaluate(c, x, order, lanes, times[i] - t, out, (i * n + s) * lanes)
            i += 1


@kernel
def observe(memory, layout, times, first, last, trajectory, outputs, tables, modulus):
    """All outputs at times[first:last], from the states there."""
    c = pointer(memory)
    lanes, n, q, none = layout.lanes, len(layout.states), len(layout.outputs), np.int64(0)
    code, terms, source, target = pointer(layout.observe), pointer(layout.terms), pointer(trajectory), pointer(outputs)
    for i in range(first, last):
        poke(c, layout.time, times[i])
        for s in range(n):
            if layout.states[s] >= layout.dynamic:
                for lane in range(0, lanes, WIDTH):
                    store(c, layout.states[s] + lane, load(source, (i * n + s) * lanes + lane))
        run(c, code, terms, none, len(layout.observe), none, layout.dynamic, lanes, tables, modulus)
        for j in range(q):
            for lane in range(0, lanes, WIDTH):
                store(target, (i * q + j) * lanes + lane, load(c, layout.outputs[j] + lane))


@kernel
def is_smooth(c, layout, scales, radius):
    """Whether the third terms at the radius of convergence are small.

    Near a singularity the terms of a series are alike there, from the first on.  Where a stiff solution limits the radius,
    its low orders know nothing of it.
    """
    for i in range(len(layout.states)):
        if scales[i] > 0:
            if abs(peek(c, layout.states[i] + 3 * layout.lanes)) * radius**3 > _SMOOTH * scales[i]:
                return False
    return True


@entry
def integrate(layout, point, constants, parameters, states, start, times, tolerance, max_steps, work, tables):
    """States and outputs at `times`, which lead away from `start` in one direction.

    `layout` holds series and `point` single values; `parameters` and `states` are rows of value and tangents, and `states`
    is left at the time reached.  Returns (status, times done, time reached, steps, states, outputs).
    """
    lanes, modulus = layout.lanes, 0
    memory, point_memory = np.zeros(layout.size), np.zeros(point.size)
    c, pointers = pointer(memory), (pointer(tables[0]), pointer(tables[1]))
    prepare(c, layout, constants, parameters, states, pointers, modulus)
    for i in range(layout.dynamic):
        point_memory[i] = memory[i]
    trajectory = np.empty((len(times), len(states), lanes))
    outputs = np.empty((len(times), len(layout.outputs), lanes))
    scales = np.zeros(len(states))

    t, end = start, times[-1]
    span = abs(end - start)
    direction = 1.0 if end >= start else -1.0
    status, done, steps, probe, calm, order = EXHAUSTED, 0, 0, 0, 0, MAX_ORDER
    while steps < max_steps:
        # The best order depends on the solution; it is looked for again after 8, 16, 32 ... steps.
        probing = steps == probe
        if probing:
            order, probe = MAX_ORDER, max(8, 2 * steps)
        expand(c, layout, t, order, layout.split[1], pointers, modulus)
        if not finite(c, layout, 1):
            status = NONFINITE
            break
        if not finite(c, layout, order):  # the highest coefficients overflow
            status = COLLAPSED
            break
        remaining = abs(end - t)
        if probing:
            order = best_order(c, layout, tolerance, max(remaining, 1e-300), len(times) / max(span, 1e-300), work)
        h = step_size(c, layout, scales, order, tolerance, remaining)
        guarded = guarded_step(c, layout, order, direction * h)
        if abs(guarded) < h and abs(guarded) < _RESOLUTION * span:
            status = NONFINITE
            break
        h = abs(guarded)
        steps += 1

        reached = end if h >= remaining else t + direction * h
        first = done
        while done < len(times) and direction * (times[done] - reached) <= 0:
            done += 1
        sample(c, layout, order, t, times, first, done, trajectory)
        if done == len(times):
            observe(point_memory, point, times, first, done, trajectory, outputs, pointers, modulus)
            status = REACHED
            t = end
            break
        smooth = is_smooth(c, layout, scales, h / tolerance ** (1 / order))
        if h < _RESOLUTION * abs(t) or reached == t:
            status, done = (STIFF if smooth else COLLAPSED), first
            break
        observe(point_memory, point, times, first, done, trajectory, outputs, pointers, modulus)
        for i in range(len(states)):
            if layout.states[i] >= layout.dynamic:
                evaluate(c, layout.states[i], order, lanes, reached - t, c, layout.states[i])
        t = reached
        calm = calm + 1 if smooth and remaining > _MANY * h else 0
        if calm >= _PATIENCE:
            status = STIFF
            break
    for i in range(len(states)):
        for lane in range(lanes):
            # This last use also keeps numba from freeing `memory` while `c` points to it.
            states[i, lane] = memory[layout.states[i] + lane]
    return status, done, t, steps, order, trajectory[:done], outputs[:done]
