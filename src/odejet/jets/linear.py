"""Linear: several complex systems of one size and kind at once, by LU factors with common row pivots.

The systems of a step (see `radau`) differ only in their diagonals, so that they share their zeros and good pivots, and
each takes a lane.  An entry is a row of the real parts in all lanes, then one of their imaginary parts.  Everything is
a pointer: an array would bring its shape and strides along at every call.  What rows have beside zeros is kept in
lists, for models whose rates depend on few states each; while the diagonal serves for pivots, these are known before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from odejet.jets.lanes import (
    WIDTH,
    kernel,
    load,
    madd,
    minus,
    peek,
    plus,
    pointer,
    poke,
    product,
    quotient,
    spread,
    store,
)

_PREFERENCE = 10.0
"""How many times larger than the diagonal a pivot beside it is to be: the order of the states keeps factors sparse."""

_SERVES = 1e5
"""The same where pivots are to stay on the diagonal: iterations make up for what such factors lose by rounding."""


class Systems(NamedTuple):
    """Matrices, or their LU factors with the reciprocals of the diagonals."""

    a: Any
    size: int
    lanes: int
    pivots: Any
    filled: Any  # (size, size): columns of the entries of a row that are not zero, without the diagonal
    counts: Any  # (size, 2): how many of those stand before the diagonal, and how many there are


@kernel
def systems_of(matrices, pivots, filled, counts):
    """Systems whose entries stand in an array (size, size, 2, lanes)."""
    lists = pointer(pivots), pointer(filled), pointer(counts)
    return Systems(pointer(matrices), matrices.shape[0], matrices.shape[3], lists[0], lists[1], lists[2])


@kernel
def smallest(a, place, lanes):
    """The smallest size of an entry in all lanes."""
    least = np.inf
    for q in range(lanes):
        here = abs(peek(a, place + q)) + abs(peek(a, place + lanes + q))
        if not here >= least:
            least = here
    return least


@kernel
def is_filled(a, place):
    """Whether an entry is not zero: fill that vanishes in two lanes vanishes in all."""
    return peek(a, place) != 0 or peek(a, place + 1) != 0


@kernel
def exchange(a, one, other, count):
    for i in range(0, count, WIDTH):
        block = load(a, one + i)
        store(a, one + i, load(a, other + i))
        store(a, other + i, block)


@kernel
def factor_in_order(systems, rows, below):
    """LU factors with pivots on the diagonal, in place, by lists of their entries; whether these pivots serve."""
    a, size, lanes = systems.a, systems.size, systems.lanes
    entry, row = 2 * lanes, 2 * lanes * size
    for k in range(size):
        upper, diagonal = k * row, k * row + k * entry
        largest = smallest(a, diagonal, lanes)
        if not 0 < largest < np.inf:
            return False
        for r in range(k * size, k * size + peek(below, k)):
            if smallest(a, peek(rows, r) * row + k * entry, lanes) > _SERVES * largest:
                return False
        first, last = k * size + peek(systems.counts, 2 * k), k * size + peek(systems.counts, 2 * k + 1)
        for q in range(0, lanes, WIDTH):
            x, y = load(a, diagonal + q), load(a, diagonal + lanes + q)
            norm = quotient(spread(1.0), plus(product(x, x), y, y))
            x, y = product(x, norm), product(y, minus(spread(0.0), spread(1.0), norm))
            store(a, diagonal + q, x)
            store(a, diagonal + lanes + q, y)
            for r in range(k * size, k * size + peek(below, k)):
                left = peek(rows, r) * row + q
                place = left + k * entry
                u, v = load(a, place), load(a, place + lanes)
                real, imaginary = minus(product(u, x), v, y), plus(product(u, y), v, x)
                store(a, place, real)
                store(a, place + lanes, imaginary)
                for c in range(first, last):
                    j = peek(systems.filled, c) * entry
                    u, v, target = load(a, upper + j + q), load(a, upper + j + q + lanes), left + j
                    store(a, target, plus(minus(load(a, target), real, u), imaginary, v))
                    target += lanes
                    store(a, target, minus(minus(load(a, target), real, v), imaginary, u))
    return True


@kernel
def factor(systems):
    """LU factors, in place; whether there are any."""
    a, size, lanes = systems.a, systems.size, systems.lanes
    entry, row = 2 * lanes, 2 * lanes * size
    for k in range(size):
        upper, diagonal = k * row, k * row + k * entry
        best, largest = k, smallest(a, diagonal, lanes)
        if not largest < np.inf:
            return False
        largest *= _PREFERENCE
        for i in range(k + 1, size):
            if is_filled(a, i * row + k * entry):
                here = smallest(a, i * row + k * entry, lanes)
                if here > largest:
                    best, largest = i, here
        poke(systems.pivots, k, best)
        if best != k:
            exchange(a, upper, best * row, row)
        if not 0 < smallest(a, diagonal, lanes) < np.inf:
            return False
        count, columns = 0, k * size
        for j in range(k + 1, size):
            if is_filled(a, upper + j * entry):
                poke(systems.filled, columns + count, j)
                count += 1
        for q in range(0, lanes, WIDTH):
            x, y = load(a, diagonal + q), load(a, diagonal + lanes + q)
            norm = quotient(spread(1.0), plus(product(x, x), y, y))
            x, y = product(x, norm), product(y, minus(spread(0.0), spread(1.0), norm))
            store(a, diagonal + q, x)
            store(a, diagonal + lanes + q, y)
            for i in range(k + 1, size):
                place = i * row + k * entry + q
                if is_filled(a, i * row + k * entry):
                    u, v = load(a, place), load(a, place + lanes)
                    real, imaginary = minus(product(u, x), v, y), plus(product(u, y), v, x)
                    store(a, place, real)
                    store(a, place + lanes, imaginary)
                    for c in range(count):
                        j = peek(systems.filled, columns + c) * entry + q
                        u, v, target = load(a, upper + j), load(a, upper + j + lanes), i * row + j
                        store(a, target, plus(minus(load(a, target), real, u), imaginary, v))
                        target += lanes
                        store(a, target, minus(minus(load(a, target), real, v), imaginary, u))
    list_entries(systems)
    return True


@kernel
def list_entries(systems):
    """Where the factors are not zero."""
    a, size = systems.a, systems.size
    entry = 2 * systems.lanes
    for k in range(size):
        count = 0
        for j in range(size):
            if j == k:
                poke(systems.counts, 2 * k, count)
            elif is_filled(a, (k * size + j) * entry):
                poke(systems.filled, k * size + count, j)
                count += 1
        poke(systems.counts, 2 * k + 1, count)


@kernel
def solve(systems, right):
    """The solution for one right-hand side in all lanes, in place, from the factors."""
    a, size, lanes = systems.a, systems.size, systems.lanes
    entry, row = 2 * lanes, 2 * lanes * size
    for k in range(size):
        p = peek(systems.pivots, k)
        if p != k:
            exchange(right, k * entry, p * entry, entry)
    for q in range(0, lanes, WIDTH):
        for k in range(size):
            left, target, columns = k * row + q, k * entry + q, k * size
            x, y = load(right, target), load(right, target + lanes)
            for c in range(columns, columns + peek(systems.counts, 2 * k)):
                j = peek(systems.filled, c) * entry
                p, s = load(a, left + j), load(a, left + j + lanes)
                u, v = load(right, j + q), load(right, j + q + lanes)
                x, y = plus(minus(x, p, u), s, v), minus(minus(y, p, v), s, u)
            store(right, target, x)
            store(right, target + lanes, y)
        for k in range(size - 1, -1, -1):
            left, target, columns = k * row + q, k * entry + q, k * size
            x, y = load(right, target), load(right, target + lanes)
            for c in range(columns + peek(systems.counts, 2 * k), columns + peek(systems.counts, 2 * k + 1)):
                j = peek(systems.filled, c) * entry
                p, s = load(a, left + j), load(a, left + j + lanes)
                u, v = load(right, j + q), load(right, j + q + lanes)
                x, y = plus(minus(x, p, u), s, v), minus(minus(y, p, v), s, u)
            u, v = load(a, left + k * entry), load(a, left + k * entry + lanes)
            store(right, target, minus(product(x, u), y, v))
            store(right, target + lanes, plus(product(x, v), y, u))


@kernel
def solve_many(systems, right, columns):
    """Solve the first system, which is real, for rows of as many numbers as there are columns, in place."""
    a, size, entry = systems.a, systems.size, 2 * systems.lanes
    for k in range(size):
        p = peek(systems.pivots, k)
        if p != k:
            exchange(right, k * columns, p * columns, columns)
    for turn in range(2 * size):
        k = turn if turn < size else 2 * size - 1 - turn
        middle = peek(systems.counts, 2 * k)
        first, last = (0, middle) if turn < size else (middle, peek(systems.counts, 2 * k + 1))
        inverse = 1.0 if turn < size else peek(a, (k * size + k) * entry)
        for lane in range(k * columns, (k + 1) * columns, WIDTH):
            x = load(right, lane)
            for c in range(k * size + first, k * size + last):
                j = peek(systems.filled, c)
                x = madd(x, -peek(a, (k * size + j) * entry), load(right, lane + (j - k) * columns), 0)
            store(right, lane, product(x, spread(inverse)))


@kernel
def solve_many_complex(systems, q, real, imaginary, columns):
    """Solve the complex system in lane q for rows of real and of imaginary parts, in place."""
    a, size, entry, lanes = systems.a, systems.size, 2 * systems.lanes, systems.lanes
    for k in range(size):
        p = peek(systems.pivots, k)
        if p != k:
            exchange(real, k * columns, p * columns, columns)
            exchange(imaginary, k * columns, p * columns, columns)
    for turn in range(2 * size):
        k = turn if turn < size else 2 * size - 1 - turn
        middle = peek(systems.counts, 2 * k)
        first, last = (0, middle) if turn < size else (middle, peek(systems.counts, 2 * k + 1))
        place = (k * size + k) * entry + q
        p, s = (1.0, 0.0) if turn < size else (peek(a, place), peek(a, place + lanes))
        for lane in range(k * columns, (k + 1) * columns, WIDTH):
            x, y = load(real, lane), load(imaginary, lane)
            for c in range(k * size + first, k * size + last):
                j = peek(systems.filled, c)
                place, source = (k * size + j) * entry + q, lane + (j - k) * columns
                f, g = peek(a, place), peek(a, place + lanes)
                u, v = load(real, source), load(imaginary, source)
                x, y = madd(madd(x, -f, u, 0), g, v, 0), madd(madd(y, -f, v, 0), -g, u, 0)
            store(real, lane, minus(product(spread(p), x), spread(s), y))
            store(imaginary, lane, plus(product(spread(p), y), spread(s), x))
