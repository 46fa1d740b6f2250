"""Homotopy: roots followed while the data move, from data whose roots are known to any number of targets.

A path is a root z(s) of Phi(z, u(s)) = d(s) for s from 0 to 1.  Each datum moves on a curve of its own,

    m(s) = m0 exp(s log(m1/m0) + s (1 - s) bend)        geometric, between numbers of any size and phase
    m(s) = m0 + s (m1 - m0) + s (1 - s) bend            straight, where one of them is zero or both are close

so that for generic m0, or a generic complex bend, no two roots meet on the way (Sommese and Wampler 2005, ch. 7).

Newton's method is *lifted* (Albersmeyer and Diehl 2010): the Taylor coefficients x_k of the states are unknowns beside
z, with the equations (k + 1) x_(k+1) = f_k(x_0, ..., x_k, p), and the linear algebra eliminates them, with pivots.
Computing them from z one after the other, as Phi does, is elimination without pivots: where they are large and cancel
in the outputs, the digits are lost before Newton's method sees them.

Steps are predicted by the polynomial of degree seven through the last four points and their slopes and corrected by
Newton's method, in coordinates where every unknown is measured by its own size and every equation by its largest term.
The first correction measures the error of the prediction, which goes like h^8 and gives the next step; a second
correction that is not much smaller than the first says that the prediction was outside Newton's reach, which is then
taken to be smaller for the steps that follow.  A root is accepted by backward error too: where the Jacobian is
so ill-conditioned that corrections are rounding, equations that hold to rounding are all that can be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from odejet.algebra.system import SquareSystem, Targets
from odejet.jets.kernel import TABLES, Layout, lay_out, prepare, run
from odejet.jets.lanes import entry, inlined, kernel, peek, pointer, poke, reciprocal

_COMPLEX_TABLES = tuple(table.astype(complex) for table in TABLES)


HERE, NEXT = 3, 4
ZERO = 1e-100
"""Data below this, relative to where they come from or go to, are zero."""


class Outcome(IntEnum):
    """How a path ended."""

    CONVERGED = 0
    SINGULAR = 1  # steps collapsed: the root is multiple, or the Jacobian is singular to rounding
    DIVERGED = 2  # unknowns grew beyond all bounds: the target has fewer roots than generic data
    EXHAUSTED = 3  # the budget of steps ended


class Settings(NamedTuple):
    """How paths are followed."""

    reach: float  # the largest first correction, relative to each unknown
    steps: int
    smallest: float = 1e-13  # step


DEFAULT = Settings(reach=0.05, steps=300)
CAREFUL = Settings(reach=0.02, steps=1000)
NEAR = Settings(reach=0.05, steps=60)

_GROWTH = 1e9
"""Unknowns that grow by this factor while steps collapse are on their way to infinity."""
_VANISHING = 1e-6
"""Coefficients below this, relative to the terms they are made of, are zero up to rounding."""
_ROUNDING = 1e-13
"""Equations that hold to this, relative to their largest terms, hold."""


@dataclass(frozen=True)
class Paths:
    """Ends of paths, (paths, unknowns), with outcomes; where a path failed, the last point on it."""

    roots: np.ndarray
    outcomes: np.ndarray
    errors: np.ndarray
    """The last correction, relative to the unknowns."""
    steps: np.ndarray
    evaluations: np.ndarray

    @property
    def converged(self) -> np.ndarray:
        return self.outcomes == Outcome.CONVERGED

    def census(self) -> dict[str, int]:
        """How many paths ended how."""
        return {outcome.name.lower(): int(np.sum(self.outcomes == outcome)) for outcome in Outcome}


class _Program(NamedTuple):
    """What evaluates the equations: the tape laid out, and where its numbers stand among unknowns and rows."""

    constants: np.ndarray
    rows: np.ndarray  # (output, order) of the data
    places: np.ndarray  # (states, orders): the position of each coefficient of each state among the unknowns, or -1
    parameters: np.ndarray  # the position of each parameter, or -1
    order: int
    modulus: int = 0  # none; a literal would be a type of its own, for which everything is compiled again


class _Work(NamedTuple):
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
    memory: np.ndarray  # of the tape


class _Ends(NamedTuple):
    """What `Paths` is made of; allocating arrays in Python spares the kernel most of its compilation."""

    roots: np.ndarray
    outcomes: np.ndarray
    errors: np.ndarray
    steps: np.ndarray
    evaluations: np.ndarray


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
def move(path, s, work):
    """The data at s and their derivatives with respect to s."""
    start, shift, bend, geometric = path
    for i in range(len(start)):
        turn = s * (1 - s) * bend[i]
        if geometric[i]:
            now = start[i] * np.exp(s * shift[i] + turn)
            work.moving[i] = now
            work.motion[i] = now * (shift[i] + (1 - 2 * s) * bend[i])
        else:
            work.moving[i] = start[i] + s * shift[i] + turn
            work.motion[i] = shift[i] + (1 - 2 * s) * bend[i]


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
                work.sizes[r] = max(work.sizes[r], _VANISHING * taxicab(work.jacobian[r, i]) * work.sizes[i])
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
        backward = max(backward, size) if size < 1e300 else np.inf
        for i in range(n):
            work.jacobian[r, i] *= scale
    if not factor(work.jacobian, work.pivots, work.filled):
        return -1.0, backward
    substitute(work.jacobian, work.pivots, work.step)
    size = 0.0
    for i in range(n):
        change = taxicab(work.step[i])
        if not change < 1e300:
            return -1.0, backward
        size = max(size, change)
    return size, backward


@inlined
def correct(c, layout, program, parameters, states, work, pointers, reach, rough, last):
    """Newton's method at the next point: whether it converged, the first and the last correction, evaluations.

    `rough` is the size of corrections that may be left where they are rounding.
    """
    z = work.points[NEXT]
    enough = 1e-13 if last else 1e-9
    first, before = 0.0, 0.0
    for iteration in range(12 if last else 4):
        evaluate(c, layout, program, parameters, states, z, work, pointers)
        fill(c, layout, program, z, work)
        size, backward = correction(work, len(program.rows))
        holds = backward < _ROUNDING
        if size < 0:
            return holds, first, 1.0, iteration + 1
        if iteration == 0:
            first = size
            if size > reach and not holds:
                return False, first, size, 1
        elif size > 0.25 * before:
            # No longer contracting: out of reach, unless what is left is rounding.
            return holds or (backward < (1e-12 if last else 1e-10) and size < rough), first, size, iteration + 1
        if size < reach:
            for i in range(len(z)):
                z[i] += work.sizes[i] * work.step[i]
        if size < enough or (holds and size >= reach):
            return True, first, size, iteration + 1
        before = size
    return before < 1e-6, first, before, 12


@kernel
def slope(work):
    """dz/ds at the next point, from the factors left by its last correction."""
    n = len(work.step)
    for r in range(n):
        work.step[r] = work.along[r] * work.scales[r]
    substitute(work.jacobian, work.pivots, work.step)
    speed = 0.0
    for i in range(n):
        speed = max(speed, taxicab(work.step[i]))
        work.slopes[NEXT, i] = work.step[i] * work.sizes[i]
    return speed


@kernel
def predict(work, times, known, target):
    """The next point by Hermite extrapolation through the last `known` points and slopes at `times`.

    Divided differences over nodes that each stand twice; the newest point comes first, so that rounding in the old
    ones is not amplified.
    """
    table = work.table
    for i in range(len(work.step)):
        for j in range(known):
            table[2 * j] = table[2 * j + 1] = work.points[HERE - j, i]
        for level in range(1, 2 * known):
            for j in range(2 * known - 1, level - 1, -1):
                right, left = j // 2, (j - level) // 2
                if right == left:
                    table[j] = work.slopes[HERE - right, i]
                else:
                    table[j] = (table[j] - table[j - 1]) / (times[HERE - right] - times[HERE - left])
        value = table[2 * known - 1]
        for j in range(2 * known - 2, -1, -1):
            value = value * (target - times[HERE - j // 2]) + table[j]
        work.points[NEXT, i] = value


@kernel
def advance(work, times):
    """Make the next point the present one, and measure unknowns by their size there."""
    for i in range(len(work.step)):
        for k in range(HERE + 1):
            work.points[k, i] = work.points[k + 1, i]
            work.slopes[k, i] = work.slopes[k + 1, i]
        # An unknown that passes near zero is measured by what it was before.
        work.sizes[i] = max(abs(work.points[HERE, i]), 0.7 * work.sizes[i], 1e-100)
    for k in range(HERE + 1):
        times[k] = times[k + 1]


@inlined
def follow(c, layout, program, parameters, states, path, work, pointers, settings):
    """One path: outcome, last correction, steps, evaluations."""
    times, reach, total, known, largest = work.times, settings.reach, 0, 0, 0.0
    times[:] = 0.0
    for i in range(len(work.step)):
        work.sizes[i] = max(abs(work.points[NEXT, i]), 1e-100)
        largest = max(largest, work.sizes[i])
    h, count = 0.0, 0
    while count <= settings.steps and (h >= settings.smallest or known == 0):
        s = times[HERE]
        last = known > 0 and s + h >= 1 - 1e-9
        times[NEXT] = 1.0 if last else s + h
        h = times[NEXT] - s
        if known > 0:
            predict(work, times, known, times[NEXT])
        move(path, times[NEXT], work)
        good, first, size, spent = correct(
            c, layout, program, parameters, states, work, pointers, reach, 0.1 * settings.reach, last
        )
        total, count = total + spent, count + 1
        if good and last:
            return 0, size, count, total
        if good:
            speed = slope(work)
            advance(work, times)
            growth = (0.3 * reach / max(first, 1e-14)) ** (0.5 / max(known, 1))
            h = h * min(max(growth, 0.3), 2.5) if known > 0 else min(1.0, 0.02 / max(speed, 1e-300))
            reach = min(1.2 * reach, settings.reach)
            known = min(known + 1, HERE + 1)
        elif known == 0:
            break
        elif first <= reach:
            h, reach = 0.5 * h, max(0.5 * first, 1e-6)
        else:
            h *= min(max((0.3 * reach / first) ** (0.5 / known), 0.1), 0.6)
    for i in range(len(work.step)):
        if abs(work.points[HERE, i]) > _GROWTH * largest:
            return 2, 1.0, count, total
    return (3 if count > settings.steps else 1), 1.0, count, total


@entry
def follow_all(layout, program, parameters, states, starts, paths, tables, settings, work, ends):
    """Every path from its start to `ends`; all arrays lead with the path."""
    memory = work.memory
    c, pointers = pointer(memory), (pointer(tables[0]), pointer(tables[1]), pointer(tables[1]))
    n = starts.shape[1]
    for p in range(len(starts)):
        path = (paths[0][p], paths[1][p], paths[2][p], paths[3][p])
        for i in range(n):
            work.points[NEXT, i] = starts[p, i]
        outcome, error, steps, evaluations = follow(
            c, layout, program, parameters, states, path, work, pointers, settings
        )
        ends.outcomes[p], ends.errors[p], ends.steps[p], ends.evaluations[p] = outcome, error, steps, evaluations
        for i in range(n):
            ends.roots[p, i] = work.points[NEXT if outcome == 0 else HERE, i]
    memory[0] = 0  # the pointer above does not keep the memory alive


def track(
    system: SquareSystem,
    starts: np.ndarray,
    begin: Targets,
    end: Targets,
    *,
    bend: float = 0.0,
    rng: np.random.Generator | None = None,
    settings: Settings = DEFAULT,
) -> Paths:
    """Follow a root of each `begin` to a root of each `end`.

    `bend` is the size of a random complex detour, relative to what moves: needed between real data.  Paths that begin
    and end at the same data take the same detour, so that they cannot meet.
    """
    lanes = len(system.names) + 2
    layout = lay_out(system.tape, lanes, system.highest + 2, free_states=True)
    program = _program(system, layout)
    everything = np.zeros((len(system.names), lanes), dtype=complex)
    everything[np.arange(len(system.names)), 1 + np.arange(len(system.names))] = 1.0
    everything[system.held, 0] = end.fixed
    n = len(system.joined.together.states)
    paths = _paths(_flat(begin), _flat(end), bend, rng)
    lifted = _lifted(system, program, starts, begin)
    ends = _ends(*lifted.shape)
    follow_all(
        layout,
        program,
        everything[n:].copy(),
        everything[:n].copy(),
        lifted,
        paths,
        _COMPLEX_TABLES,
        settings,
        _work(layout, program, lifted.shape[1], paths[0].shape[1]),
        ends,
    )
    return Paths(np.ascontiguousarray(ends.roots[:, -len(system.columns) :]), *ends[1:])


def _work(layout: Layout, program: _Program, n: int, moving: int) -> _Work:
    return _Work(
        residual=np.zeros(n, complex),
        along=np.zeros(n, complex),
        jacobian=np.zeros((n, n), complex),
        rates=np.zeros((len(program.places), program.order, layout.lanes), complex),
        pivots=np.zeros(n, np.int64),
        filled=np.zeros(n, np.int64),
        moving=np.zeros(moving, complex),
        motion=np.zeros(moving, complex),
        step=np.zeros(n, complex),
        sizes=np.zeros(n),
        scales=np.zeros(n),
        table=np.zeros(2 * NEXT, complex),
        points=np.zeros((NEXT + 1, n), complex),
        slopes=np.zeros((NEXT + 1, n), complex),
        times=np.zeros(NEXT + 1),
        memory=np.zeros(layout.size, complex),
    )


def _ends(count: int, n: int) -> _Ends:
    return _Ends(
        roots=np.zeros((count, n), complex),
        outcomes=np.zeros(count, np.int64),
        errors=np.zeros(count),
        steps=np.zeros(count, np.int64),
        evaluations=np.zeros(count, np.int64),
    )


def _program(system: SquareSystem, layout: Layout) -> _Program:
    """The unknowns in their order: coefficients of the states, the highest first, then those of the system."""
    n, order = len(system.joined.together.states), system.highest
    places = np.full((n, order + 1), -1, dtype=np.int64)
    moving = np.flatnonzero(layout.states >= layout.dynamic)
    for k in range(1, order + 1):
        places[moving, k] = (order - k) * len(moving) + np.arange(len(moving))
    own = np.full(len(system.names), -1, dtype=np.int64)
    own[system.columns] = order * len(moving) + np.arange(len(system.columns))
    places[:, 0] = own[:n]
    return _Program(system.tape.constant_values.astype(complex), system.row_array, places, own[n:].copy(), order)


def _lifted(system: SquareSystem, program: _Program, starts: np.ndarray, begin: Targets) -> np.ndarray:
    """All unknowns at the start of each path: coefficients of the states as they follow from those of the system."""
    series = system.series(starts.astype(complex), begin.inputs, begin.fixed)
    lifted = program.places[:, 1:] >= 0
    everything = np.empty((len(starts), np.sum(lifted) + starts.shape[1]), dtype=complex)
    everything[:, program.places[:, 1:][lifted]] = series[:, :, 1:][:, lifted]
    everything[:, np.sum(lifted) :] = starts
    return everything


def _flat(targets: Targets) -> np.ndarray:
    """Everything that moves, one target per row."""
    return np.concatenate([targets.data, targets.inputs.reshape(len(targets.data), -1)], axis=1).astype(complex)


def _paths(begin: np.ndarray, end: np.ndarray, bend: float, rng: np.random.Generator | None) -> tuple:
    """Start, shift, bend and kind of every datum on every path."""
    near = np.abs(end - begin) < 0.5 * np.abs(begin)
    geometric = ~near & (np.abs(end) > ZERO * np.abs(begin)) & (np.abs(begin) > ZERO * np.abs(end))
    shift = end - begin
    shift[geometric] = np.log(end[geometric] / begin[geometric])
    turns = np.zeros_like(shift)
    if bend and rng is not None:
        phases = rng.normal(size=shift.shape[1]) + 1j * rng.normal(size=shift.shape[1])
        turns = bend * phases * np.where(geometric, 1.0, np.abs(shift))
    return begin, shift, turns, geometric
