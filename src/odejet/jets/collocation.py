"""Collocation: stiff trajectories with their sensitivities, in large implicit steps.

Where a solution is smooth but explicit steps must stay tiny for stability, the states on a step of length h are a
polynomial that satisfies the equations at the s Radau points (Radau IIA, L-stable, order 2s - 1 at the end of a step;
Hairer and Wanner 1996, IV.5):

    Z_i = x + h sum_j A_ij f(t + c_j h, Z_j)

solved by Newton's method with exact Jacobians from the tape.  The sensitivities of the stages solve the same linear
system, so they are the derivatives of the computed trajectory itself.  A step is accepted when the last coefficients of
its polynomial in Legendre's basis have decayed to the tolerance.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.lanes import entry, kernel, padded, peek, pointer, poke
from odejet.jets.registers import Registers
from odejet.jets.shared import run
from odejet.jets.steps import Drive, observe
from odejet.model.tape import Tape

STAGES = 13

_ITERATIONS = 12  # of Newton's method
_SETTLED = 1e-10  # an update this small, relative to the states, is followed by one last
_NOISE = 10.0  # times the last, idle Newton update: what rounding may contribute to a coefficient
_SHRINK, _GROW = 0.2, 3.0  # limits of the change of the step size
_SHORT = 5  # steps in a row that are too short to be worth their effort
_RESOLUTION = 1e-13  # the smallest step, relative to the time


class Radau(NamedTuple):
    """The points c and matrix A of Radau IIA, and what its polynomials need: nodes are 0 and the points."""

    points: np.ndarray
    matrix: np.ndarray
    nodes: np.ndarray
    barycentric: np.ndarray
    analysis: np.ndarray  # values at the nodes -> Legendre coefficients


@cache
def radau(stages: int = STAGES) -> Radau:
    # The points are the roots of P_s - P_{s-1}, moved from [-1, 1] to [0, 1].
    points = (np.sort(legendre.legroots(np.r_[np.zeros(stages - 1), -1.0, 1.0]).real) + 1) / 2
    points[-1] = 1.0
    integrals = [legendre.legval(2 * points - 1, legendre.legint(row, lbnd=-1)) / 2 for row in np.eye(stages)]
    matrix = np.stack(integrals, axis=1) @ np.linalg.inv(legendre.legvander(2 * points - 1, stages - 1))
    nodes = np.r_[0.0, points]
    gaps = nodes[:, None] - nodes[None, :] + np.eye(stages + 1)
    analysis = np.linalg.inv(legendre.legvander(2 * nodes - 1, stages))
    return Radau(points, matrix, nodes, 1 / gaps.prod(axis=1), analysis)


class _Work(NamedTuple):
    """Memory of the steps.  Stages come first in every array."""

    values: np.ndarray  # (1 + stages, states): the start of the step and its stages
    before: np.ndarray  # the same of the step before
    rates: np.ndarray  # (stages, states)
    jacobians: np.ndarray  # (stages, states, states)
    matrix: np.ndarray  # LU factors of I - h A (x) J, in units of the states and with balanced rows
    pivots: np.ndarray
    balance: np.ndarray  # the factor of each row
    scales: np.ndarray  # the unit of each state
    right: np.ndarray  # (stages times states, 1)
    noise: np.ndarray  # how far rounding still moves each state
    weights: np.ndarray
    forcing: np.ndarray  # (stages, states, lanes)
    tangents: np.ndarray  # (stages times states, lanes)
    nodes: np.ndarray  # (1 + stages, states, lanes): values and sensitivities


def _reserve(rows: np.ndarray) -> _Work:
    """The memory of steps that begin at rows of value and tangents."""
    n, lanes = rows.shape
    size = STAGES * n
    shapes = {"rates": (STAGES, n), "jacobians": (STAGES, n, n), "matrix": (size, size), "balance": size, "scales": n}
    shapes |= {"right": (size, 1), "noise": n, "weights": STAGES + 1}
    shapes |= {"forcing": (STAGES, n, lanes), "tangents": (size, lanes)}
    values = np.tile(rows[:, 0], (STAGES + 1, 1))
    nodes = np.tile(rows, (STAGES + 1, 1, 1))
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    return _Work(values=values, before=values.copy(), pivots=np.zeros(size, np.int64), nodes=nodes, **arrays)


def collocate(
    tape: Tape,
    parameters: np.ndarray,
    states: np.ndarray,
    drive: Drive,
    piece: int,
    start: float,
    times: np.ndarray,
    tolerance: float,
    max_steps: int,
    least: float,
    tangents: bool,
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """States and outputs at `times`, which lead away from `start`; and the time reached, and how many steps it took.

    `parameters` and `states` are rows of value and tangents, of which the latter may be left out; the states are left
    at the time reached.  Sampled inputs are those of one piece.  Steps below `least` are not worth their effort.
    """
    lanes, moving = states.shape[1], np.flatnonzero(tape.states >= tape.statics)
    inner = padded(1 + len(moving))
    alone, seeds = np.zeros((len(parameters), inner)), np.zeros((len(states), inner))
    alone[:, 0], seeds[:, 0] = parameters[:, 0], states[:, 0]
    seeds[moving, 1 + np.arange(len(moving))] = 1
    at_rest = states.copy()
    at_rest[moving, 1:] = 0
    slope, force = (lay_out(tape, width, 2, True) for width in (inner, lanes))
    memories = []
    for layout, given, rows in ((slope, alone, seeds), (force, parameters, at_rest)):
        registers = Registers(layout, 1, float, TABLES)
        registers.prepare(tape.constant_values, given[None], rows[None])
        memories.append(registers.memory[0])
    found = np.empty((len(times), *states.shape)), np.empty((len(times), len(tape.outputs), lanes))
    done, reached, steps = follow(
        slope,
        force,
        tuple(memories),
        _reserve(states[moving]),
        moving,
        states,
        radau(),
        drive,
        piece,
        start,
        np.ascontiguousarray(times),
        (tolerance, max_steps, least, tangents),
        TABLES,
        found,
    )
    return found[0][:done], found[1][:done], reached, steps


@kernel
def place_weights(rule, place, weights):
    """Lagrange weights of the nodes at a place, in units of the step."""
    total = 0.0
    for j in range(len(weights)):
        distance = place - rule.nodes[j]
        if distance == 0:
            for i in range(len(weights)):
                weights[i] = 0.0
            weights[j] = 1.0
            return
        weights[j] = rule.barycentric[j] / distance
        total += weights[j]
    for j in range(len(weights)):
        weights[j] /= total


@kernel
def rate(c, layout, drive, piece, t, moving, values, tables):
    """Time derivatives of all states, with whatever tangents the registers carry, in the registers of the states."""
    for i in range(len(layout.inputs)):
        a, d = drive.coefficients[i, piece], t - drive.knots[piece]
        poke(c, layout.inputs[i], a[0] + d * (a[1] + d * (a[2] + d * a[3])))
    for i in range(len(moving)):
        poke(c, layout.states[moving[i]], values[i])
    poke(c, layout.time, t)
    code, terms = pointer(layout.code), pointer(layout.terms)
    run(c, code, terms, layout.split[0], layout.split[1], 0, layout.dynamic, layout.lanes, tables, 0)


@kernel
def factor(a, pivots):
    """LU factors with row pivots, in place; whether there are any."""
    size = len(a)
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(a[i, k]) > abs(a[best, k]):
                best = i
        pivots[k] = best
        if not 0 < abs(a[best, k]) < np.inf:
            return False
        if best != k:
            for j in range(size):
                a[best, j], a[k, j] = a[k, j], a[best, j]
        top = a[k]
        for i in range(k + 1, size):
            row = a[i]
            ratio = row[k] / top[k]
            row[k] = ratio
            if ratio != 0:
                for j in range(k + 1, size):
                    row[j] -= ratio * top[j]
    return True


@kernel
def solve(a, pivots, right):
    """The solution for the columns of `right`, in place, from the factors."""
    size, columns = right.shape
    for k in range(size):
        if pivots[k] != k:
            for j in range(columns):
                right[k, j], right[pivots[k], j] = right[pivots[k], j], right[k, j]
    for k in range(size):
        for i in range(k):
            for j in range(columns):
                right[k, j] -= a[k, i] * right[i, j]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            for j in range(columns):
                right[k, j] -= a[k, i] * right[i, j]
        for j in range(columns):
            right[k, j] /= a[k, k]


@kernel
def assemble(rule, work, h):
    """The linear system at the stages, I - h A (x) J, and Newton's right-hand side."""
    stages, n = work.rates.shape
    for a in range(n):
        size = 0.0
        for i in range(stages + 1):
            size = max(size, abs(work.values[i, a]))
        work.scales[a] = size if size > 0 else 1.0
    for i in range(stages):
        for a in range(n):
            row, largest = work.matrix[i * n + a], 0.0
            residual = work.values[0, a] - work.values[1 + i, a]
            for j in range(stages):
                weight = h * rule.matrix[i, j]
                residual += weight * work.rates[j, a]
                for b in range(n):
                    row[j * n + b] = -weight * work.jacobians[j, a, b] * work.scales[b]
            row[i * n + a] += work.scales[a]
            for k in range(stages * n):
                largest = max(largest, abs(row[k]))
            balance = 1 / largest if largest > 0 else 1.0
            for k in range(stages * n):
                row[k] *= balance
            work.balance[i * n + a] = balance
            work.right[i * n + a, 0] = residual * balance


@kernel
def solve_stages(c, layout, drive, piece, moving, rule, work, t, h, tables):
    """Newton's method from the stages in `work`; False where it does not settle."""
    stages, n = work.rates.shape
    lanes, settled = layout.lanes, False
    for _ in range(_ITERATIONS):
        for i in range(stages):
            rate(c, layout, drive, piece, t + rule.points[i] * h, moving, work.values[1 + i], tables)
            for a in range(n):
                place = layout.states[moving[a]] + lanes
                work.rates[i, a] = peek(c, place)
                for b in range(n):
                    work.jacobians[i, a, b] = peek(c, place + 1 + b)
        assemble(rule, work, h)
        if not factor(work.matrix, work.pivots):
            return False
        solve(work.matrix, work.pivots, work.right)
        largest = 0.0
        for a in range(n):
            work.noise[a] = 0.0
            for i in range(stages):
                update = work.right[i * n + a, 0]
                if not abs(update) < np.inf:
                    return False
                largest = max(largest, abs(update))
                work.noise[a] = max(work.noise[a], abs(update))
                work.values[1 + i, a] += update * work.scales[a]
        if settled:
            return True
        settled = largest < _SETTLED
    return False


@kernel
def solve_tangents(c, layout, drive, piece, moving, rule, work, t, h, tables):
    """Sensitivities of the stages: (I - h A (x) J) S = S_0 + h A df/dp."""
    stages, n, lanes = work.forcing.shape
    for i in range(stages):
        rate(c, layout, drive, piece, t + rule.points[i] * h, moving, work.values[1 + i], tables)
        for a in range(n):
            for k in range(1, lanes):
                work.forcing[i, a, k] = peek(c, layout.states[moving[a]] + lanes + k)
    for i in range(stages):
        for a in range(n):
            row = work.tangents[i * n + a]
            for k in range(lanes):
                row[k] = work.nodes[0, a, k]
            for j in range(stages):
                weight = h * rule.matrix[i, j]
                for k in range(lanes):
                    row[k] += weight * work.forcing[j, a, k]
            for k in range(lanes):
                row[k] *= work.balance[i * n + a]
    solve(work.matrix, work.pivots, work.tangents)
    for i in range(stages):
        for a in range(n):
            for k in range(lanes):
                work.nodes[1 + i, a, k] = work.tangents[i * n + a, k] * work.scales[a]


@kernel
def roughness(rule, work):
    """The last two Legendre coefficients of every state beyond rounding, relative to its size on the step."""
    nodes, n = work.values.shape
    rough = 0.0
    for a in range(n):
        last, before, size = 0.0, 0.0, 0.0
        for i in range(nodes):
            last += rule.analysis[nodes - 1, i] * work.values[i, a]
            before += rule.analysis[nodes - 2, i] * work.values[i, a]
            size = max(size, abs(work.values[i, a]))
        if size > 0:
            last = max(abs(last) / size - _NOISE * work.noise[a], 0.0)
            before = max(abs(before) / size - _NOISE * work.noise[a], 0.0)
            # The last but one is counted as it would look one degree further on.
            rough = max(rough, last, before ** (nodes / (nodes - 1)))
    return rough


@kernel
def first_step(c, layout, drive, piece, t, moving, values, longest, tables):
    """A tenth of the time in which a state would change by its own size."""
    rate(c, layout, drive, piece, t, moving, values, tables)
    h = abs(longest)
    for a in range(len(moving)):
        speed = abs(peek(c, layout.states[moving[a]] + layout.lanes))
        if speed * h > 0.1 * abs(values[a]) > 0:
            h = 0.1 * abs(values[a]) / speed
    return h if longest >= 0 else -h


@kernel
def accept(work):
    """The step is done: its polynomial is that of the step before from now on."""
    for j in range(len(work.values)):
        for a in range(work.values.shape[1]):
            work.nodes[j, a, 0] = work.before[j, a] = work.values[j, a]


@kernel
def start_next(work):
    """The end of a step is the start of the next."""
    last = len(work.values) - 1
    for a in range(work.values.shape[1]):
        work.values[0, a] = work.values[last, a]
        for k in range(work.nodes.shape[2]):
            work.nodes[0, a, k] = work.nodes[last, a, k]


@kernel
def extrapolate(rule, work, place, step):
    """First guesses of the stages: the polynomial of the step before, from `place` on and over `step` of its units."""
    nodes, n = work.values.shape
    for i in range(1, nodes):
        place_weights(rule, place + rule.nodes[i] * step, work.weights)
        for a in range(n):
            guess = 0.0
            for j in range(nodes):
                guess += work.weights[j] * work.before[j, a]
            work.values[i, a] = guess


@kernel
def sample(rule, work, moving, states, place, row):
    """All states with their tangents at a place on the step; those at rest are as they were."""
    place_weights(rule, place, work.weights)
    lanes = states.shape[1]
    for a in range(len(states)):
        for k in range(lanes):
            row[a, k] = states[a, k]
    for a in range(len(moving)):
        total = row[moving[a]]
        for k in range(lanes):
            total[k] = 0.0
        for j in range(len(work.nodes)):
            for k in range(lanes):
                total[k] += work.weights[j] * work.nodes[j, a, k]


@entry
def follow(slope, force, memories, work, moving, states, rule, drive, piece, start, times, limits, tables, found):
    """`collocate`, with the registers of both layouts prepared: times done, the time reached, steps.

    `slope` carries a lane per moving state, `force` the lanes of `states`; states and outputs are `found`.
    """
    (tolerance, max_steps, least, with_tangents), (trajectory, outputs) = limits, found
    c, f = pointer(memories[0]), pointer(memories[1])
    pointers, stages, nodes = (pointer(tables[0]), pointer(tables[1]), pointer(tables[1])), len(rule.points), work.nodes
    t, end, done, steps, short = start, times[-1], 0, 0, 0
    h = first_step(c, slope, drive, piece, t, moving, work.values[0], end - t, pointers)
    before = h
    while done < len(times) and steps < max_steps and short < _SHORT:
        steps += 1
        h = end - t if abs(h) >= abs(end - t) else h
        if abs(h) <= _RESOLUTION * abs(t):
            break
        extrapolate(rule, work, 1.0, h / before)
        if not solve_stages(c, slope, drive, piece, moving, rule, work, t, h, pointers):
            h *= _SHRINK
            continue
        rough = roughness(rule, work)
        if rough > tolerance:
            h *= max(_SHRINK, 0.8 * (tolerance / rough) ** (1 / stages))
            continue
        if with_tangents:
            solve_tangents(f, force, drive, piece, moving, rule, work, t, h, pointers)
        accept(work)
        while done < len(times) and abs(times[done] - start) <= abs(t + h - start):
            sample(rule, work, moving, states, (times[done] - t) / h, trajectory[done])
            done += 1
        start_next(work)
        short = short + 1 if abs(h) < least else 0
        before, t = h, (end if done == len(times) else t + h)
        h *= min(_GROW, 0.8 * (tolerance / max(rough, 1e-300)) ** (1 / stages))
    for a in range(len(moving)):
        for k in range(states.shape[1]):
            states[moving[a], k] = nodes[0, a, k]
    observe(memories[1], force, drive, times, 0, done, trajectory, outputs, pointers, 0)
    memories[0][0] += 0.0  # a last use, for the pointer does not keep the memory alive
    return done, t, steps
