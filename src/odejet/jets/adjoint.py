"""Adjoint: the gradient of a function of the outputs, backward through steps of collocation that were kept.

On a step the stages satisfy  Z_i = x + h sum_j A_ij f(Z_j).  With g_j the derivative of the function by stage j,

    sum_i (A^-1)_ij m_i - h J_j' m_j = h g_j,        J_j = df/dx at stage j

has the solution m by which the function changes with the start of the step, g_0 + sum_ij (A^-1)_ij m_i / h, and with
the parameters, sum_j (df/dp at stage j)' m_j.  Butcher's transformation takes the system apart as it does that of the
stages, transposed, and Newton's factors solve it by iteration.  Products with transposed Jacobians come from a sweep
backward over the tape, all stages abreast, which adds up those with df/dp on its way: one solution backward costs about
as much as one forward, however many parameters there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.abreast import find_rates_abreast, run_abreast, take_statics
from odejet.jets.caps import own_tables, unmark
from odejet.jets.collocation import plan_of
from odejet.jets.direct import Direct
from odejet.jets.drive import Drive
from odejet.jets.kept import Kept
from odejet.jets.kernel import elementary, prepare, stands_still
from odejet.jets.lanes import (
    WIDTH,
    add,
    entry,
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
    zero,
)
from odejet.jets.linear import exchange
from odejet.jets.points import point_of
from odejet.jets.polynomial import place_weights
from odejet.jets.radau import Radau, radau, stages_for
from odejet.jets.stages import begin_stages, decompose, differentiate, factored, measure
from odejet.model.tape import Column, Op, Tape

_OUT, _A, _B, _C = int(Column.OUT), int(Column.A), int(Column.B), int(Column.C)
_FUNCTION, _BEGIN, _END, _COLUMNS = int(Column.FUNCTION), int(Column.BEGIN), int(Column.END), len(Column)
_ADVANCE, _MULTIPLY, _SQUARE, _DIVIDE = int(Op.ADVANCE), int(Op.MULTIPLY), int(Op.SQUARE), int(Op.DIVIDE)
_POWER = 9  # the first function with an exponent

_ITERATIONS = 60
_SETTLED = 1e-14  # what updates are to come to, relative to the largest
_ROUNDED = 1e-11  # updates this small that do not shrink any more are rounding
_STALLED = 0.7  # the ratio of an update to the last with which they no longer shrink
_FRESH = 0.1  # the ratio beyond which the Jacobian is computed again for the next step


class Turned(NamedTuple):
    """A Radau rule for the transposed system of its stages, in lanes as `radau.Abreast` has them."""

    inverse: np.ndarray  # (nodes, lanes): rows of A^-1
    apart: np.ndarray  # (nodes, 2, systems): rows of V, real and imaginary parts
    together: np.ndarray  # (systems, 2, lanes): columns of V^-1 alike
    sums: np.ndarray  # (nodes): of the rows of A^-1

    @classmethod
    def of(cls, rule: Radau) -> Turned:
        """Return the transposed form of a rule."""
        given, nodes = rule.abreast, len(rule.nodes)
        count, wide = len(given.together), given.apart.shape[2]
        lanes = given.inverse.shape[1]
        inverse, apart = np.zeros((nodes, lanes)), np.zeros((nodes, 2, wide))
        together, sums = np.zeros((count, 2, lanes)), np.zeros(nodes)
        inverse[1:, 1:nodes], sums[1:] = rule.inverse, rule.inverse.sum(axis=1)
        # Both sides of a pair carry a factor of two, and the imaginary part its sign, where they were put together.
        apart[:, 0, :count] = given.together[:, 0, :nodes].T
        apart[:, 1, :count] = -given.together[:, 1, :nodes].T
        together[:, 0, :nodes] = given.apart[:, 0, :count].T
        together[:, 1, :nodes] = -given.apart[:, 1, :count].T
        return cls(inverse, apart, together, sums)


def pull_back(
    tape: Tape,
    parameters: np.ndarray,
    states: np.ndarray,
    drive: Drive,
    piece: int,
    start: float,
    times: np.ndarray,
    kept: Kept,
    tolerance: float,
    trajectory: np.ndarray,
    seeds: np.ndarray,
    pulled: np.ndarray,
    bars: np.ndarray,
    initial: np.ndarray,
) -> bool:
    """Whether a stretch of collocation can be followed backward: then `pulled`, the derivatives of a function by the
    moving states at the end of it, become those at its start, and `bars` gain those by what is static.

    The function has the derivatives `seeds` by outputs at the times of the stretch, where states are `trajectory`.  The
    stretch began with rows of `states`, of which those with places of known `initial` values follow from parameters.
    """
    rule = radau(stages_for(tolerance))
    plan = plan_of(tape, rule, states.shape[1])
    work, memories, _ = plan.benches.cleared(plan.shapes, plan.arranged, scratch=1)
    return bool(
        _go_back(
            plan.layouts,
            memories,
            (tape.constant_values, parameters),
            work,
            plan.moving,
            states.copy(),
            rule,
            Turned.of(rule),
            drive,
            int(piece),
            float(start),
            np.ascontiguousarray(times, dtype=float),
            kept,
            own_tables(),
            (
                np.ascontiguousarray(trajectory[:, :, 0]),
                np.ascontiguousarray(seeds),
                np.zeros((len(times), len(pulled))),
            ),
            pulled,
            bars,
            initial,
        )
    )


def room_for_bars(tape: Tape, tolerance: float) -> np.ndarray:
    """Return memory for the derivatives by all registers."""
    return np.zeros(plan_of(tape, radau(stages_for(tolerance)), WIDTH).layouts[0].size)


def lanes_of(tape: Tape, tolerance: float) -> int:
    """Return how many lanes the stages take."""
    return plan_of(tape, radau(stages_for(tolerance)), WIDTH).layouts[0].lanes


def places_of(tape: Tape, tolerance: float, registers: np.ndarray) -> np.ndarray:
    """Return where static registers stand among the derivatives; -1 for those that are none."""
    lanes = lanes_of(tape, tolerance)
    return np.where((registers >= 0) & (registers < tape.statics), 2 * registers * lanes, -1).astype(np.int64)


# --- sweeps over the tape ---


@kernel
def find_slopes(point, bar, code, first, last):
    """The derivatives of all functions of the instructions first..last-1, by their argument, into the second row of
    their registers, and by their exponent, into the second row of the derivatives."""
    c, lanes = point.p, point.lanes
    for row in range(first * _COLUMNS, last * _COLUMNS, _COLUMNS):
        if peek(code, row) > _DIVIDE:
            out, a, e = peek(code, row + _OUT), peek(code, row + _A), peek(code, row + _C)
            function = peek(code, row + _FUNCTION)
            for lane in range(lanes):
                value, slope, growth = elementary(function, peek(c, a + lane), peek(c, (e if e >= 0 else a) + lane))
                if stands_still(function, value):
                    slope, growth = 0.0, 0.0
                poke(c, out + lanes + lane, slope)
                poke(bar, out + lanes + lane, growth if function >= _POWER else 0.0)


@kernel
def gain(bar, place, block):
    """Add a block to the derivatives."""
    store(bar, place, add(load(bar, place), block, 0))


@kernel
def sweep_back(point, bar, code, first, last):
    """Derivatives by what the instructions first..last-1 use, from those by what they give, which are zero after it."""
    c, lanes, terms = point.p, point.lanes, point.terms
    for row in range((last - 1) * _COLUMNS, (first - 1) * _COLUMNS, -_COLUMNS):
        op, out, a, b = peek(code, row), peek(code, row + _OUT), peek(code, row + _A), peek(code, row + _B)
        e = peek(code, row + _C)
        if op <= _ADVANCE:
            out = out + lanes if op == _ADVANCE else out
            begin_, end = 3 * peek(code, row + _BEGIN), 3 * peek(code, row + _END)
            for lane in range(0, lanes, WIDTH):
                given = load(bar, out + lane)
                store(bar, out + lane, zero(bar))
                if e >= 0:
                    gain(bar, e + lane, given)
                for i in range(begin_, end, 3):
                    weight, source = peek(terms, i), peek(terms, i + 1) + lane
                    store(bar, source, madd(load(bar, source), peek(c, weight), given, 0))
                    if peek(terms, i + 2) > 0:
                        store(bar, weight + lane, plus(load(bar, weight + lane), load(c, source), given))
        elif op <= _SQUARE:
            b = b if op == _MULTIPLY else a
            for lane in range(0, lanes, WIDTH):
                given = load(bar, out + lane)
                store(bar, out + lane, zero(bar))
                gain(bar, a + lane, product(given, load(c, b + lane)))
                gain(bar, b + lane, product(given, load(c, a + lane)))
        elif op == _DIVIDE:
            for lane in range(0, lanes, WIDTH):
                given = quotient(load(bar, out + lane), load(c, b + lane))
                store(bar, out + lane, zero(bar))
                gain(bar, a + lane, given)
                store(bar, b + lane, minus(load(bar, b + lane), given, load(c, out + lane)))
        else:
            for lane in range(lanes):
                given = peek(bar, out + lane)
                poke(bar, out + lane, 0.0)
                if given != 0:  # a root at zero has no slope, which does not matter to what does not ask for it
                    poke(bar, a + lane, peek(bar, a + lane) + given * peek(c, out + lanes + lane))
                    growth = peek(bar, out + lanes + lane)
                    if e >= 0 and growth != 0:
                        poke(bar, e + lane, peek(bar, e + lane) + given * growth)


@kernel
def observe_back(point, bar, layout, drive, times, trajectory, seeds, felt, moving):
    """Derivatives by the moving states at all times, from those by outputs; many times abreast."""
    c, lanes, code, count = point.p, point.lanes, pointer(layout.observe), len(layout.observe)
    for first in range(0, len(times), lanes):
        here = min(lanes, len(times) - first)
        for lane in range(lanes):
            i = first + min(lane, here - 1)
            poke(c, point.time + lane, times[i])
            for j in range(point.sampled):
                poke(c, peek(point.inputs, j) + lane, drive.values[i, j])
            for a in range(len(moving)):
                poke(c, peek(point.states, moving[a]) + lane, trajectory[i, moving[a]])
        run_abreast(point, code, 0, count, lanes)
        find_slopes(point, bar, code, 0, count)
        for j in range(len(layout.outputs)):
            for lane in range(here):
                place = layout.outputs[j] + lane
                poke(bar, place, peek(bar, place) + seeds[first + lane, j])
        sweep_back(point, bar, code, 0, count)
        for a in range(len(moving)):
            for lane in range(here):
                felt[first + lane, a] = peek(bar, peek(point.states, moving[a]) + lane)
            for lane in range(lanes):
                poke(bar, peek(point.states, moving[a]) + lane, 0.0)


@kernel
def by_statics(point, bar, layout, moving, pulled, initial):
    """Derivatives by parameters and static states, in their first lanes, from those by all that is static and by the
    moving states at the start, of which some have known `initial` places."""
    lanes, code, static = point.lanes, point.code, layout.split[0]
    for place in range(0, point.dynamic, 2 * lanes):
        total = 0.0
        for lane in range(lanes):
            total += peek(bar, place + lane)
            poke(bar, place + lane, 0.0)
        poke(bar, place, total)
    for a in range(len(moving)):
        if initial[moving[a]] >= 0:
            place = initial[moving[a]]
            poke(bar, place, peek(bar, place) + pulled[a])
    find_slopes(point, bar, code, 0, static)
    for _ in range(3):  # known initial states at rest may depend on others
        sweep_back(point, bar, code, 0, static)
        for i in range(len(initial)):
            place = peek(point.states, i)
            if initial[i] >= 0 and place < point.dynamic:
                poke(bar, initial[i], peek(bar, initial[i]) + peek(bar, place))
                poke(bar, place, 0.0)


# --- the linear systems of a step ---


@kernel
def solve_transposed(systems, right):
    """The solution of the transposed systems for one right-hand side in all lanes, in place, from the factors."""
    a, size, lanes = systems.a, systems.size, systems.lanes
    entry_, row = 2 * lanes, 2 * lanes * size
    for q in range(0, lanes, WIDTH):
        for turn in range(2 * size):
            k = turn if turn < size else 2 * size - 1 - turn
            upper, place, middle = k * row + q, k * entry_ + q, peek(systems.counts, 2 * k)
            x, y = load(right, place), load(right, place + lanes)
            first, last = k * size, k * size + middle
            if turn < size:
                u, v = load(a, upper + k * entry_), load(a, upper + k * entry_ + lanes)
                x, y = minus(product(x, u), y, v), plus(product(x, v), y, u)
                store(right, place, x)
                store(right, place + lanes, y)
                first, last = k * size + middle, k * size + peek(systems.counts, 2 * k + 1)
            for c in range(first, last):
                j = peek(systems.filled, c) * entry_
                u, v, target = load(a, upper + j), load(a, upper + j + lanes), j + q
                store(right, target, plus(minus(load(right, target), u, x), v, y))
                target += lanes
                store(right, target, minus(minus(load(right, target), u, y), v, x))
    for turn in range(size):
        k = size - 1 - turn
        p = peek(systems.pivots, k)
        if p != k:
            exchange(right, k * entry_, p * entry_, entry_)


@kernel
def solve_turned(turned, work):
    """The update from the residuals: by all systems; the largest of it, not finite if any is not."""
    n, lanes = work.values.shape
    nodes, count, systems = len(turned.sums), len(turned.together), work.systems.shape[2]
    right, apart, together = pointer(work.systems), pointer(turned.apart), pointer(turned.together)
    for a in range(n):
        for q in range(0, systems, WIDTH):
            real, imaginary = zero(right), zero(right)
            for j in range(1, nodes):
                number, place = work.residuals[a, j], 2 * j * systems + q
                real = madd(real, number, load(apart, place), 0)
                imaginary = madd(imaginary, number, load(apart, place + systems), 0)
            store(right, 2 * a * systems + q, real)
            store(right, (2 * a + 1) * systems + q, imaginary)
    solve_transposed(factored(work), right)
    updates, largest = pointer(work.coefficients), 0.0
    for a in range(n):
        place = 2 * a * systems
        for lane in range(0, lanes, WIDTH):
            total = zero(updates)
            for q in range(count):
                total = madd(total, peek(right, place + q), load(together, 2 * q * lanes + lane), 0)
                total = madd(total, peek(right, place + systems + q), load(together, (2 * q + 1) * lanes + lane), 0)
            store(updates, a * lanes + lane, total)
        for j in range(1, nodes):
            if not abs(work.coefficients[a, j]) < np.inf:
                return np.inf
            largest = max(largest, abs(work.coefficients[a, j]))
    return largest


@kernel
def take_update(point, bar, turned, work, moving, h, pulled):
    """What the update does: to the derivatives by the start and by what is static, and to the residuals."""
    n, lanes = work.values.shape
    nodes, inverse = len(turned.sums), pointer(turned.inverse)
    updates, residuals = pointer(work.coefficients), pointer(work.residuals)
    for a in range(n):
        rate, unit, total = peek(point.states, moving[a]) + lanes, 1 / work.scales[a], 0.0
        for j in range(nodes):
            total += turned.sums[j] * work.coefficients[a, j]
        pulled[a] += total / h * unit
        for lane in range(0, lanes, WIDTH):
            store(bar, rate + lane, product(load(updates, a * lanes + lane), spread(unit)))
        poke(bar, rate, 0.0)
        for lane in range(nodes, lanes):
            poke(bar, rate + lane, 0.0)
    sweep_back(point, bar, point.code, point.first, point.last)
    for a in range(n):
        place = peek(point.states, moving[a])
        for lane in range(0, lanes, WIDTH):
            here = madd(load(residuals, a * lanes + lane), h * work.scales[a], load(bar, place + lane), 0)
            for i in range(1, nodes):
                here = madd(here, -work.coefficients[a, i], load(inverse, i * lanes + lane), 0)
            store(residuals, a * lanes + lane, here)
            store(bar, place + lane, zero(bar))


@kernel
def solve_back(point, bar, turned, work, moving, h, pulled):
    """Iterations from the derivatives by the stages, in `residuals`: whether they settle, and the ratio of the last."""
    nodes, top, last, ratio = len(turned.sums), 0.0, np.inf, 0.0
    for a in range(len(moving)):
        for j in range(nodes):
            work.residuals[a, j] *= h * work.scales[a] if j > 0 else 0.0
        for lane in range(nodes, work.residuals.shape[1]):
            work.residuals[a, lane] = 0.0
    for _ in range(_ITERATIONS):
        size = solve_turned(turned, work)
        if not size < np.inf:
            return False, np.inf
        if size == 0:
            return True, ratio
        take_update(point, bar, turned, work, moving, h, pulled)
        ratio = size / last if last < np.inf else ratio
        top = max(top, size)
        if size <= _SETTLED * top or (size <= _ROUNDED * top and ratio > _STALLED):
            return True, ratio
        if size > 10 * top:
            return False, ratio
        last = size
    return False, ratio


@entry
def go_back(
    layouts,
    memories,
    rows,
    work,
    moving,
    states,
    rule,
    turned,
    drive,
    piece,
    start,
    times,
    kept,
    tables,
    seen,
    pulled,
    bars,
    initial,
):
    """`pull_back`, with all memory allotted: whether all steps could be followed."""
    constants, parameters = rows
    trajectory, seeds, felt = seen
    point, slope = point_of(layouts[0], memories[0], drive, tables), point_of(layouts[1], memories[1], drive, tables)
    force, stages = point_of(layouts[2], memories[2], drive, tables), len(rule.points)
    none, nodes, bar = np.int64(0), stages + 1, pointer(bars)
    unmark(point.tables)
    prepare(force.p, layouts[2], constants, parameters, states, point.tables, none)
    take_statics(slope, force, 1)
    for a in range(len(moving)):
        poke(slope.p, peek(slope.states, moving[a]) + 1 + work.fill.colours[a], 1.0)
    take_statics(point, force, point.lanes)
    begin_stages(work, moving, states)
    observe_back(point, bar, layouts[0], drive, times, trajectory, seeds, felt, moving)
    done, decomposed, ratio, middle = len(times), 0.0, 0.0, stages // 2
    for back in range(kept.taken[0]):
        k = kept.taken[0] - 1 - back
        t, h = kept.times[k], kept.lengths[k]
        for a in range(len(moving)):
            for lane in range(point.lanes):
                work.values[a, lane] = kept.values[k, a, lane]
                poke(point.p, peek(point.states, moving[a]) + lane, kept.values[k, a, lane])
                work.residuals[a, lane] = 0.0
            work.residuals[a, stages] = pulled[a]
        while done > 0 and (k == 0 or abs(times[done - 1] - start) > abs(t - start)):
            place_weights(rule, (times[done - 1] - t) / h, work.weights[0])
            for a in range(len(moving)):
                for j in range(nodes):
                    work.residuals[a, j] += work.weights[0, j] * felt[done - 1, a]
            done -= 1
        find_rates_abreast(point, piece, t, h, rule.abreast.nodes, nodes)
        find_slopes(point, bar, point.code, point.first, point.last)
        for a in range(len(moving)):
            pulled[a] = work.residuals[a, 0]
        if h != decomposed or ratio > _FRESH:
            measure(work)
            differentiate(slope, piece, t + rule.nodes[middle] * h, h, moving, middle, work)
            decomposed = h if decompose(rule, work, h, False) else 0.0
            if decomposed == 0.0:
                return False
        settled, ratio = solve_back(point, bar, turned, work, moving, h, pulled)
        if not settled:
            return False
    for i in range(done):
        for a in range(len(moving)):
            pulled[a] += felt[i, a]
    by_statics(point, bar, layouts[0], moving, pulled, initial)
    memories[0][0] += 0.0  # a last use, for pointers do not keep the memory alive
    memories[1][0] += 0.0
    memories[2][0] += 0.0
    bars[0] += 0.0
    return True


_go_back = Direct(go_back)
