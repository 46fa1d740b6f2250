"""Newton: corrections of a root of the lifted equations, in compiled code.

The Taylor coefficients x_k of the states are unknowns beside z, with the equations (k + 1) x_(k+1) = f_k(x_0, ..., x_k,
p), and the linear algebra eliminates them, with pivots (Albersmeyer and Diehl 2010).  Computing them from z one after
the other, as Phi does, is elimination without pivots: where they are large and cancel in the outputs, the digits are
lost before Newton's method sees them.

Every unknown is measured by its own size and every equation by its largest term.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.kernel import prepare, run
from odejet.jets.lanes import inlined, kernel, peek, pointer, poke, reciprocal

HERE, NEXT = 3, 4
"""Places of the present point and of the next one among the points of a path that are kept."""
VANISHING = 1e-6
"""Coefficients below this, relative to the terms they are made of, are zero up to rounding."""
ROUNDING = 1e-13
"""Equations that hold to this, relative to their largest terms, hold."""
NEARLY, NEARLY_AT_END = 1e-10, 1e-12
"""Equations that hold to this are rounding where corrections are small and no longer contract, on the way and at the
end of a path."""
ENOUGH, ENOUGH_AT_END = 1e-9, 1e-13
"""Corrections, relative to each unknown, after which the next is not worth its evaluation."""
ITERATIONS, ITERATIONS_AT_END = 4, 12
CONTRACTING = 0.25
"""The largest ratio of two corrections in a row by which Newton's method converges."""
SETTLED = 1e-6
"""The last correction of an iteration that has contracted all the way but was not given enough steps."""
HUGE = 1e300
"""Numbers beyond this have overflown."""


class Program(NamedTuple):
    """What evaluates the equations: the tape laid out, and where its numbers stand among unknowns and rows."""

    constants: np.ndarray
    rows: np.ndarray  # (output, order) of the data
    places: np.ndarray  # (states, orders): the position of each coefficient of each state among the unknowns, or -1
    parameters: np.ndarray  # the position of each parameter, or -1
    order: int
    modulus: int = 0  # none; a literal would be a type of its own, for which everything is compiled again


class Work(NamedTuple):
    """Memory of one path: residuals and Jacobian, scales, and points on the path with their slopes."""

    residual: np.ndarray
    along: np.ndarray  # the derivative of the residual along the motion of the data
    jacobian: np.ndarray
    rates: np.ndarray  # (states, orders, lanes) of the series of right-hand sides
    pivots: np.ndarray
    filled: np.ndarray  # columns of a pivot row that are not zero
    moving: np.ndarray
    motion: np.ndarray
    step: np.ndarray
    sizes: np.ndarray
    scales: np.ndarray
    table: np.ndarray  # divided differences
    points: np.ndarray  # the last points, HERE and the NEXT one
    slopes: np.ndarray
    times: np.ndarray
    progress: np.ndarray  # the size of the next step, Newton's reach, and the largest unknown at the start
    counts: np.ndarray  # points known, steps, evaluations
    memory: np.ndarray  # of the tape


@inlined
def evaluate(c, layout, program, parameters, states, z, work, pointers):
    """The series of right-hand sides and outputs where those of the states are given in z.

    Coefficients of states beyond order zero get no tangents: what those would be follows from the tangents of order
    zero, since the derivative of coefficient k by coefficient j depends on k - j alone.
    """
    lanes, orders, rows = layout.lanes, program.order + 1, len(program.rows)
    for i in range(len(states)):
        if program.places[i, 0] >= 0:
            states[i, 0] = z[program.places[i, 0]]
    for i in range(len(parameters)):
        if program.parameters[i] >= 0:
            parameters[i, 0] = z[program.parameters[i]]
    for i in range(len(layout.inputs)):
        for k in range(orders):
            place = layout.inputs[i] + k * lanes
            poke(c, place, work.moving[rows + i * orders + k])
            poke(c, place + lanes - 1, work.motion[rows + i * orders + k])
    prepare(c, layout, program.constants, parameters, states, pointers, program.modulus)
    code, terms = pointer(layout.code), pointer(layout.terms)
    for k in range(orders):
        run(c, code, terms, layout.split[0], len(layout.code), k, layout.dynamic, lanes, pointers, program.modulus)
        for i in range(len(states)):
            if k < program.order and program.places[i, k + 1] >= 0:
                row = layout.states[i] + (k + 1) * lanes
                for lane in range(lanes):
                    work.rates[i, k, lane] = peek(c, row + lane)
                    poke(c, row + lane, 0j)
                poke(c, row, z[program.places[i, k + 1]])


@kernel
def fill(c, layout, program, z, work):
    """Residuals of all equations, their Jacobian and their derivatives along the motion of the data."""
    lanes, n = layout.lanes, len(layout.states)
    work.jacobian[:] = 0
    r = 0
    for k in range(program.order - 1, -1, -1):
        for i in range(n):
            place = program.places[i, k + 1]
            if place < 0:
                continue
            work.residual[r] = z[place] - work.rates[i, k, 0]
            work.along[r] = -work.rates[i, k, lanes - 1]
            work.jacobian[r, place] = -1
            for below in range(k + 1):
                weight = (k - below + 1) / (k + 1)
                for j in range(n):
                    if program.places[j, below] >= 0:
                        work.jacobian[r, program.places[j, below]] += weight * work.rates[i, k - below, 1 + j]
            for j in range(len(program.parameters)):
                if program.parameters[j] >= 0:
                    work.jacobian[r, program.parameters[j]] = work.rates[i, k, 1 + n + j]
            r += 1
    for d in range(len(program.rows)):
        output, k = layout.outputs[program.rows[d, 0]], program.rows[d, 1]
        work.residual[r] = work.moving[d] - peek(c, output + k * lanes)
        work.along[r] = work.motion[d] - peek(c, output + (k + 1) * lanes - 1)
        for below in range(k + 1):
            for j in range(n):
                if program.places[j, below] >= 0:
                    work.jacobian[r, program.places[j, below]] += peek(c, output + (k - below) * lanes + 1 + j)
        for j in range(len(program.parameters)):
            if program.parameters[j] >= 0:
                work.jacobian[r, program.parameters[j]] = peek(c, output + k * lanes + 1 + n + j)
        r += 1


@kernel
def taxicab(number):
    """A measure of complex numbers that costs no square root."""
    return abs(number.real) + abs(number.imag)


@kernel
def factor(a, pivots, filled):
    """LU factors of `a` in place, with partial pivoting; whether it is regular.  Most entries are zero."""
    n = len(a)
    for k in range(n):
        largest, row = 0.0, -1
        for i in range(k, n):
            size = taxicab(a[i, k])
            if size > largest:
                largest, row = size, i
        if row < 0:
            return False
        pivots[k] = row
        if row != k:
            for j in range(n):
                a[k, j], a[row, j] = a[row, j], a[k, j]
        count = 0
        for j in range(k + 1, n):
            if a[k, j] != 0:
                filled[count] = j
                count += 1
        inverse = reciprocal(a[k, k])
        for i in range(k + 1, n):
            if a[i, k] != 0:
                multiple = a[i, k] * inverse
                a[i, k] = multiple
                for place in range(count):
                    j = filled[place]
                    a[i, j] -= multiple * a[k, j]
    return True


@kernel
def substitute(a, pivots, b):
    """Solve with the factors of `factor`, in place of the right-hand side."""
    n = len(a)
    for k in range(n):
        row = pivots[k]
        if row != k:
            # The rows below the pivot were exchanged as a whole, multiples included.
            b[k], b[row] = b[row], b[k]
    for k in range(n):
        for j in range(k):
            if a[k, j] != 0:
                b[k] -= a[k, j] * b[j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            if a[k, j] != 0:
                b[k] -= a[k, j] * b[j]
        b[k] *= reciprocal(a[k, k])


@kernel
def correction(work, known):
    """Newton's correction at the next point from residuals and Jacobian there: its size, and the backward error.

    The Jacobian is left scaled and factorised.  The size is negative where it is singular.  `known` data come last.
    """
    n = len(work.step)
    # A coefficient that nearly vanishes is measured by the terms it is made of.
    for r in range(n - known - 1, -1, -1):
        for i in range(r + 1, n):
            if work.jacobian[r, i] != 0:
                work.sizes[r] = max(work.sizes[r], VANISHING * taxicab(work.jacobian[r, i]) * work.sizes[i])
    backward = 0.0
    for r in range(n):
        largest = taxicab(work.moving[r - n + known]) if r >= n - known else 0.0
        for i in range(n):
            if work.jacobian[r, i] != 0:
                work.jacobian[r, i] *= work.sizes[i]
                largest = max(largest, taxicab(work.jacobian[r, i]))
        scale = 1.0 / largest if largest > 0 else 1.0
        work.scales[r] = scale
        work.step[r] = work.residual[r] * scale
        size = taxicab(work.step[r])
        backward = max(backward, size) if size < HUGE else np.inf
        for i in range(n):
            work.jacobian[r, i] *= scale
    if not factor(work.jacobian, work.pivots, work.filled):
        return -1.0, backward
    substitute(work.jacobian, work.pivots, work.step)
    size = 0.0
    for i in range(n):
        change = taxicab(work.step[i])
        if not change < HUGE:
            return -1.0, backward
        size = max(size, change)
    return size, backward


@inlined
def correct(c, layout, program, parameters, states, work, pointers, reach, rough, last):
    """Newton's method at the next point: whether it converged, the first and the last correction, evaluations.

    `rough` is the size of corrections that may be left where they are rounding.
    """
    z = work.points[NEXT]
    enough = ENOUGH_AT_END if last else ENOUGH
    first, before = 0.0, 0.0
    for iteration in range(ITERATIONS_AT_END if last else ITERATIONS):
        evaluate(c, layout, program, parameters, states, z, work, pointers)
        fill(c, layout, program, z, work)
        size, backward = correction(work, len(program.rows))
        holds = backward < ROUNDING
        if size < 0:
            return holds, first, 1.0, iteration + 1
        if iteration == 0:
            first = size
            if size > reach and not holds:
                return False, first, size, 1
        elif size > CONTRACTING * before:
            # No longer contracting: out of reach, unless what is left is rounding.
            return (
                holds or (backward < (NEARLY_AT_END if last else NEARLY) and size < rough),
                first,
                size,
                iteration + 1,
            )
        if size < reach:
            for i in range(len(z)):
                z[i] += work.sizes[i] * work.step[i]
        if size < enough or (holds and size >= reach):
            return True, first, size, iteration + 1
        before = size
    return before < SETTLED, first, before, ITERATIONS_AT_END
