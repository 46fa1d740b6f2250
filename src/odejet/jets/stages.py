"""Stages: the equations of one implicit step, by Newton's method, and those of its sensitivities.

One Jacobian serves all stages; Butcher's transformation (see `radau`) makes of their joint system one real and a few
complex ones of the size of the model, whose factors are kept from step to step while they serve.  The sensitivities of
the stages satisfy linear equations, which the same factors solve by iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.lanes import kernel, peek, poke
from odejet.jets.linear import factor, factor_complex, solve, solve_complex, solve_many, solve_many_complex
from odejet.jets.points import find_rates

_ITERATIONS = 25  # of Newton's method
_SLOWEST = 0.6  # the largest ratio of one update to the last with which iterations go on
_SETTLED = 0.03  # times the tolerance: updates this small, relative to the states, are the last
_ROUNDED = 1e-8  # updates this small that have shrunk by _FAST and in two more by no more than _STALLED are rounding
_FAST, _STALLED = 0.1, 0.5
_OUTGROWN = 0.2  # the size of a state in its unit below which units are chosen again
_TANGENT_ITERATIONS = 40
BEHIND = 1e-3  # the size of sensitivities whose relative accuracy matters, relative to the largest so far
_BESIDE = 1e-16  # the size of a state that does not matter, relative to its largest so far
_NOTHING = 1e-290  # the size of a state that is as good as zero: nothing is divided by less


class Work(NamedTuple):
    """Memory of the steps.  Stages come first in every array."""

    values: np.ndarray  # (1 + stages, states): the start of the step and its stages
    before: np.ndarray  # the same of the step before
    updates: np.ndarray  # (stages, states)
    jacobian: np.ndarray  # in units of the states
    real: np.ndarray  # LU factors of mu_0 I - h J
    pairs: np.ndarray  # (2, pairs, states, states): real and imaginary parts of those of mu_q I - h J
    pivots: np.ndarray  # (1 + pairs, states)
    parts: np.ndarray  # (2, states): a right-hand side taken apart
    scales: np.ndarray  # the unit of each state
    largest: np.ndarray  # what each state has reached so far
    reached: np.ndarray  # and each lane of the sensitivities
    noise: np.ndarray  # how far the last update still moved each state
    weights: np.ndarray
    watched: np.ndarray  # (1 + stages, recorded): watched arguments and switching functions at the nodes
    powers: np.ndarray  # (1 + stages): one of them as powers of the place on the step
    forcing: np.ndarray  # (stages, states, lanes)
    columns: np.ndarray  # (2, states, lanes)
    nodes: np.ndarray  # (1 + stages, states, lanes): values and sensitivities
    ahead: np.ndarray  # the same, of the step to come
    after: np.ndarray  # (stages, states, lanes)


def reserve(rows: np.ndarray, stages: int, watched: int) -> Work:
    """The memory of steps that begin at rows of value and tangents."""
    n, lanes = rows.shape
    pairs = (stages - 1) // 2
    shapes = {"updates": (stages, n), "jacobian": (n, n), "real": (n, n), "pairs": (2, pairs, n, n), "parts": (2, n)}
    shapes |= {
        "scales": (n,),
        "largest": (n,),
        "reached": (lanes,),
        "noise": (n,),
        "weights": (stages + 1,),
        "powers": (stages + 1,),
    }
    shapes |= {
        "watched": (stages + 1, watched),
        "forcing": (stages, n, lanes),
        "after": (stages, n, lanes),
        "columns": (2, n, lanes),
    }
    values, nodes = np.tile(rows[:, 0], (stages + 1, 1)), np.tile(rows, (stages + 1, 1, 1))
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    pivots = np.zeros((1 + pairs, n), np.int64)
    return Work(values=values, before=values.copy(), pivots=pivots, nodes=nodes, ahead=nodes.copy(), **arrays)


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
def put(point, moving, values):
    """Values of the moving states into the registers."""
    for a in range(len(moving)):
        poke(point.p, peek(point.states, moving[a]), values[a])


@kernel
def is_nothing(work, a):
    """Whether a state is as good as zero on all of the step."""
    size = 0.0
    for i in range(len(work.values)):
        size = max(size, abs(work.values[i, a]))
    return size <= _NOTHING


@kernel
def size_of(work, a):
    """The largest value of a state on the step, or what does not matter of it."""
    size = _BESIDE * work.largest[a]
    for i in range(len(work.values)):
        size = max(size, abs(work.values[i, a]))
    return size if _NOTHING < size < np.inf else 1.0


@kernel
def is_outgrown(work):
    """Whether a state has become much smaller than its unit."""
    least = 1.0
    for a in range(len(work.scales)):
        least = min(least, size_of(work, a) / work.scales[a])
    return least < _OUTGROWN


@kernel
def differentiate(slope, piece, t, h, moving, values, work):
    """The Jacobian at a point, in units of the states, which are chosen here.

    A state that is zero has no size.  Its unit is what it gains on the step, or else at most what would change a state
    that it feeds by that one's own size: a larger one would let rounding of the zero drown a state that is tiny.
    """
    put(slope, moving, values)
    find_rates(slope, piece, t)
    for a in range(len(moving)):
        work.scales[a] = size_of(work, a)
    for b in range(len(moving)):
        if is_nothing(work, b):
            for a in range(len(moving)):
                feeds = abs(h * peek(slope.p, peek(slope.states, moving[a]) + slope.lanes + 1 + b))
                if a != b and feeds > 0 and not is_nothing(work, a):
                    work.scales[b] = min(work.scales[b], work.scales[a] / feeds)
            work.scales[b] = max(work.scales[b], abs(h * peek(slope.p, peek(slope.states, moving[b]) + slope.lanes)))
    for a in range(len(moving)):
        place = peek(slope.states, moving[a]) + slope.lanes + 1
        for b in range(len(moving)):
            work.jacobian[a, b] = peek(slope.p, place + b) * work.scales[b] / work.scales[a]


@kernel
def decompose(rule, work, h):
    """The factors of all systems; whether there are any."""
    n = len(work.jacobian)
    for a in range(n):
        for b in range(n):
            work.real[a, b] = -h * work.jacobian[a, b]
        work.real[a, a] += rule.real_rate
    if not factor(work.real, work.pivots[0]):
        return False
    for q in range(len(rule.rates)):
        for a in range(n):
            for b in range(n):
                work.pairs[0, q, a, b] = -h * work.jacobian[a, b]
                work.pairs[1, q, a, b] = 0.0
            work.pairs[0, q, a, a] += rule.rates[q, 0]
            work.pairs[1, q, a, a] = rule.rates[q, 1]
        if not factor_complex(work.pairs[0, q], work.pairs[1, q], work.pivots[1 + q]):
            return False
    return True


@kernel
def solve_updates(rule, work):
    """Solutions of all systems for the right-hand sides in `updates`, in place: apart, and together again.

    Each part is kept in the row of the weights it was made with, in `forcing`'s first lane.
    """
    stages, n = work.updates.shape
    for row in range(stages):
        for a in range(n):
            total = 0.0
            for i in range(stages):
                total += rule.apart[row, i] * work.updates[i, a]
            work.forcing[row, a, 0] = total
    for a in range(n):
        work.parts[0, a] = work.forcing[0, a, 0]
    solve(work.real, work.pivots[0], work.parts[0])
    for i in range(stages):
        for a in range(n):
            work.updates[i, a] = rule.together[i, 0] * work.parts[0, a]
    for q in range(len(rule.rates)):
        for a in range(n):
            work.parts[0, a], work.parts[1, a] = work.forcing[2 * q + 1, a, 0], work.forcing[2 * q + 2, a, 0]
        solve_complex(work.pairs[0, q], work.pairs[1, q], work.pivots[1 + q], work.parts[0], work.parts[1])
        for i in range(stages):
            x, y = 2 * rule.together[i, 2 * q + 1], 2 * rule.together[i, 2 * q + 2]
            for a in range(n):
                work.updates[i, a] += x * work.parts[0, a] - y * work.parts[1, a]


@kernel
def has_settled(update, earlier, best, tolerance):
    """Whether iterations have come to their end: updates are small, or they shrank fast and now rounding keeps them
    where they were two iterations earlier."""
    return update <= tolerance or (update < _ROUNDED and update > _STALLED * earlier and best < _FAST)


@kernel
def solve_stages(point, piece, moving, recorded, rule, work, t, h, tolerance):
    """Newton's method from the stages in `values`: whether it settles, and the smallest ratio of two updates."""
    stages, n = work.updates.shape
    earlier, last, best, watches = np.inf, np.inf, 1.0, work.watched.shape[1]
    for _ in range(_ITERATIONS):
        for i in range(stages):
            put(point, moving, work.values[1 + i])
            find_rates(point, piece, t + rule.points[i] * h)
            for a in range(n):
                work.updates[i, a] = h * peek(point.p, peek(point.states, moving[a]) + point.lanes) / work.scales[a]
            for k in range(watches):
                work.watched[1 + i, k] = peek(point.p, recorded[k])
        for i in range(stages):
            for j in range(stages):
                weight = rule.inverse[i, j]
                for a in range(n):
                    work.updates[i, a] -= weight * (work.values[1 + j, a] - work.values[0, a]) / work.scales[a]
        solve_updates(rule, work)
        largest = 0.0
        for a in range(n):
            work.noise[a] = 0.0
            for i in range(stages):
                update = work.updates[i, a]
                if not abs(update) < np.inf:
                    return False, np.inf
                work.noise[a] = max(work.noise[a], abs(update))
                work.values[1 + i, a] += update * work.scales[a]
            largest = max(largest, work.noise[a])
        if has_settled(largest, earlier, best, _SETTLED * tolerance):
            return True, (min(best, largest / last) if last < np.inf else 0.0)
        if largest > _SLOWEST * last and largest > _ROUNDED:
            break
        best, earlier, last = (min(best, largest / last) if last < np.inf else best), last, largest
    return False, best


@kernel
def solve_tangents(point, piece, moving, rule, work, t, h, tolerance):
    """Sensitivities of the stages in `ahead`, from guesses there: whether the iterations settle."""
    stages, n, lanes = work.forcing.shape
    earlier, last, best = np.inf, np.inf, 1.0
    for _ in range(_TANGENT_ITERATIONS):
        for i in range(stages):
            for a in range(n):
                place = peek(point.states, moving[a])
                poke(point.p, place, work.values[1 + i, a])
                for k in range(1, lanes):
                    poke(point.p, place + k, work.ahead[1 + i, a, k])
            find_rates(point, piece, t + rule.points[i] * h)
            for a in range(n):
                place, unit = peek(point.states, moving[a]) + lanes, 1 / work.scales[a]
                for k in range(lanes):
                    work.forcing[i, a, k] = h * peek(point.p, place + k)
                for j in range(stages):
                    weight = rule.inverse[i, j]
                    for k in range(lanes):
                        work.forcing[i, a, k] -= weight * (work.ahead[1 + j, a, k] - work.ahead[0, a, k])
                work.forcing[i, a, 0] = 0.0
                for k in range(lanes):
                    work.forcing[i, a, k] *= unit
        solve_columns(rule, work)
        largest = 0.0
        for k in range(1, lanes):
            size, moved = 0.0, 0.0
            for i in range(stages):
                for a in range(n):
                    size = max(size, abs(work.ahead[1 + i, a, k]) / work.scales[a])
                    moved = max(moved, abs(work.forcing[i, a, k]))
            work.reached[k] = max(work.reached[k], size)
            size = max(size, BEHIND * work.reached[k])
            if moved > 0:
                largest = max(largest, moved / size if size > 0 else 1.0)
        for i in range(stages):
            for a in range(n):
                for k in range(1, lanes):
                    work.ahead[1 + i, a, k] += work.forcing[i, a, k] * work.scales[a]
        if has_settled(largest, earlier, best, tolerance):
            return True
        if not largest < np.inf:
            break
        best, earlier, last = (min(best, largest / last) if last < np.inf else best), last, largest
    return best < _FAST  # a contraction that went on for so long has left only rounding


@kernel
def solve_columns(rule, work):
    """`solve_updates` for all lanes of `forcing` at once."""
    stages, n, lanes = work.forcing.shape
    solution, columns = work.after, work.columns
    for i in range(stages):
        for a in range(n):
            for k in range(lanes):
                solution[i, a, k] = 0.0
    for q in range(-1, len(rule.rates)):
        low = 0 if q < 0 else 2 * q + 1
        for part in range(1 if q < 0 else 2):
            for a in range(n):
                for k in range(lanes):
                    columns[part, a, k] = 0.0
                for i in range(stages):
                    weight = rule.apart[low + part, i]
                    for k in range(lanes):
                        columns[part, a, k] += weight * work.forcing[i, a, k]
        if q < 0:
            solve_many(work.real, work.pivots[0], columns[0])
        else:
            solve_many_complex(work.pairs[0, q], work.pairs[1, q], work.pivots[1 + q], columns[0], columns[1])
        for i in range(stages):
            x = rule.together[i, low] * (1 if q < 0 else 2)
            y = 0.0 if q < 0 else -2 * rule.together[i, low + 1]
            for a in range(n):
                for k in range(lanes):
                    solution[i, a, k] += x * columns[0, a, k] + y * columns[1, a, k]
    for i in range(stages):
        for a in range(n):
            for k in range(lanes):
                work.forcing[i, a, k] = solution[i, a, k]
