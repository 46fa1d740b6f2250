"""Linear: dense LU factors with row pivots, of real matrices and of complex ones kept as real and imaginary parts."""

from __future__ import annotations

from functools import partial

import numpy as np

from odejet.jets.lanes import kernel, reciprocal

_reducing = partial(kernel, fastmath={"reassoc", "contract"})
"""Decorator of sums that may be taken in any order."""

_PREFERENCE = 10.0
"""How many times larger than the diagonal a pivot beside it is to be: the order of the states keeps factors sparse."""


@kernel
def factor(a, pivots):
    """LU factors of a real matrix, in place; whether there are any."""
    size = len(a)
    for k in range(size):
        best, largest = k, _PREFERENCE * abs(a[k, k])
        for i in range(k + 1, size):
            if abs(a[i, k]) > largest:
                best, largest = i, abs(a[i, k])
        pivots[k] = best
        if not 0 < abs(a[best, k]) < np.inf:
            return False
        if best != k:
            for j in range(size):
                a[best, j], a[k, j] = a[k, j], a[best, j]
        inverse = 1 / a[k, k]
        for i in range(k + 1, size):
            ratio = a[i, k] * inverse
            a[i, k] = ratio
            if ratio != 0:
                for j in range(k + 1, size):
                    a[i, j] -= ratio * a[k, j]
    return True


@kernel
def factor_complex(a, b, pivots):
    """LU factors of the complex matrix a + ib, in place; whether there are any."""
    size = len(a)
    for k in range(size):
        best, largest = k, _PREFERENCE * (abs(a[k, k]) + abs(b[k, k]))
        for i in range(k + 1, size):
            here = abs(a[i, k]) + abs(b[i, k])
            if here > largest:
                best, largest = i, here
        pivots[k] = best
        if not 0 < largest < np.inf:
            return False
        if best != k:
            for j in range(size):
                a[best, j], a[k, j] = a[k, j], a[best, j]
                b[best, j], b[k, j] = b[k, j], b[best, j]
        inverse = reciprocal(complex(a[k, k], b[k, k]))
        for i in range(k + 1, size):
            ratio = complex(a[i, k], b[i, k]) * inverse
            x, y = ratio.real, ratio.imag
            a[i, k], b[i, k] = x, y
            if ratio != 0:
                for j in range(k + 1, size):
                    a[i, j] -= x * a[k, j] - y * b[k, j]
                    b[i, j] -= x * b[k, j] + y * a[k, j]
    return True


@_reducing
def solve(a, pivots, right):
    """The solution for one right-hand side, in place, from the factors."""
    size = len(a)
    for k in range(size):
        right[k], right[pivots[k]] = right[pivots[k]], right[k]
    for k in range(size):
        total = 0.0
        for i in range(k):
            total += a[k, i] * right[i]
        right[k] -= total
    for k in range(size - 1, -1, -1):
        total = 0.0
        for i in range(k + 1, size):
            total += a[k, i] * right[i]
        right[k] = (right[k] - total) / a[k, k]


@_reducing
def solve_complex(a, b, pivots, real, imaginary):
    """The same for the factors of a complex matrix."""
    size = len(a)
    for k in range(size):
        p = pivots[k]
        real[k], real[p] = real[p], real[k]
        imaginary[k], imaginary[p] = imaginary[p], imaginary[k]
    for k in range(size):
        x, y = 0.0, 0.0
        for i in range(k):
            x += a[k, i] * real[i] - b[k, i] * imaginary[i]
            y += a[k, i] * imaginary[i] + b[k, i] * real[i]
        real[k] -= x
        imaginary[k] -= y
    for k in range(size - 1, -1, -1):
        x, y = 0.0, 0.0
        for i in range(k + 1, size):
            x += a[k, i] * real[i] - b[k, i] * imaginary[i]
            y += a[k, i] * imaginary[i] + b[k, i] * real[i]
        quotient = complex(real[k] - x, imaginary[k] - y) * reciprocal(complex(a[k, k], b[k, k]))
        real[k], imaginary[k] = quotient.real, quotient.imag


@kernel
def solve_many(a, pivots, right):
    """The solution for the columns of `right`, in place, from the factors."""
    size, columns = right.shape
    for k in range(size):
        p = pivots[k]
        if p != k:
            for j in range(columns):
                right[k, j], right[p, j] = right[p, j], right[k, j]
    for k in range(size):
        for i in range(k):
            x = a[k, i]
            if x != 0:
                for j in range(columns):
                    right[k, j] -= x * right[i, j]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            x = a[k, i]
            if x != 0:
                for j in range(columns):
                    right[k, j] -= x * right[i, j]
        x = 1 / a[k, k]
        for j in range(columns):
            right[k, j] *= x


@kernel
def solve_many_complex(a, b, pivots, real, imaginary):
    """The same for the factors of a complex matrix."""
    size, columns = real.shape
    for k in range(size):
        p = pivots[k]
        if p != k:
            for j in range(columns):
                real[k, j], real[p, j] = real[p, j], real[k, j]
                imaginary[k, j], imaginary[p, j] = imaginary[p, j], imaginary[k, j]
    for k in range(size):
        for i in range(k):
            x, y = a[k, i], b[k, i]
            if x != 0 or y != 0:
                for j in range(columns):
                    real[k, j] -= x * real[i, j] - y * imaginary[i, j]
                    imaginary[k, j] -= x * imaginary[i, j] + y * real[i, j]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            x, y = a[k, i], b[k, i]
            if x != 0 or y != 0:
                for j in range(columns):
                    real[k, j] -= x * real[i, j] - y * imaginary[i, j]
                    imaginary[k, j] -= x * imaginary[i, j] + y * real[i, j]
        inverse = reciprocal(complex(a[k, k], b[k, k]))
        x, y = inverse.real, inverse.imag
        for j in range(columns):
            u, v = real[k, j], imaginary[k, j]
            real[k, j], imaginary[k, j] = x * u - y * v, x * v + y * u
