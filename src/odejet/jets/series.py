"""Series: the Taylor polynomials of all states on one step, measured and evaluated.

A series is `order + 1` rows of lanes, in units of time of its own; places are indices into the memory of the registers.
"""

from __future__ import annotations

from odejet.jets.lanes import WIDTH, kernel, load, madd, peek, pointer, store, zero


@kernel
def leading(c, place, lanes, order):
    """The order of the first term that does not vanish; one more than the order of the series if there is none."""
    k = 0
    while k <= order and peek(c, place + k * lanes) == 0:
        k += 1
    return k


@kernel
def lowest(c, place, lanes, h):
    """Measure a series by its first terms at step h."""
    first, second = abs(peek(c, place)), abs(peek(c, place + lanes)) * h
    third, fourth = abs(peek(c, place + 2 * lanes)) * h * h, abs(peek(c, place + 3 * lanes)) * h * h * h
    return max(first, second, third, fourth)


@kernel
def size_at(c, place, lanes, order, h):
    """Measure a series at step h by its first terms that do not vanish: that of a state at the end of a chain begins
    late."""
    if peek(c, place) != 0:
        return lowest(c, place, lanes, h)
    first = leading(c, place, lanes, order)
    largest, power = 0.0, h**first
    for k in range(first, min(first + 4, order + 1)):
        largest, power = max(largest, abs(peek(c, place + k * lanes)) * power), power * h
    return largest


@kernel
def evaluate(c, x, order, lanes, h, out, place):
    """The series at x, summed at step h by Horner's rule, written to out[place]."""
    for lane in range(0, lanes, WIDTH):
        total = load(c, x + order * lanes + lane)
        for k in range(order - 1, -1, -1):
            total = madd(load(c, x + k * lanes + lane), h, total, 0)
        store(out, place + lane, total)


@kernel
def evaluate_four(c, x, order, lanes, t, unit, times, out, place, stride):
    """Sum the series at x at four times at once, which keeps the arithmetic units busy."""
    h0, h1 = (peek(times, 0) - t) / unit, (peek(times, 1) - t) / unit
    h2, h3 = (peek(times, 2) - t) / unit, (peek(times, 3) - t) / unit
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
def sample(c, layout, order, t, unit, times, first, last, trajectory):
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
            evaluate_four(c, x, order, lanes, t, unit, pointer(times[i:]), out, (i * n + s) * lanes, n * lanes)
            i += 4
        while i < last:
            evaluate(c, x, order, lanes, (times[i] - t) / unit, out, (i * n + s) * lanes)
            i += 1


@kernel
def evaluate_rate(c, x, order, lanes, h, out, place):
    """The derivative of the series at x by its own unit of time, at step h, written to out[place]."""
    for lane in range(0, lanes, WIDTH):
        total = zero(c)
        for k in range(order, 0, -1):
            total = madd(madd(zero(c), float(k), load(c, x + k * lanes + lane), 0), h, total, 0)
        store(out, place + lane, total)


@kernel
def value(c, x, order, lanes, h):
    """The value alone of the series at x, at step h."""
    total = peek(c, x + order * lanes)
    for k in range(order - 1, -1, -1):
        total = total * h + peek(c, x + k * lanes)
    return total
