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
_SETTLED = 0.03  # times the tolerance: what may be left to be updated, relative to the states
_LEAST, _AGAIN = 0.01, 0.8  # what a step expects of its ratios: those of the one before, but not too small, to a power
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
    parts: np.ndarray  # the same, taken apart
    jacobian: np.ndarray  # in units of the states
    real: np.ndarray  # LU factors of mu_0 I - h J
    pairs: np.ndarray  # (2, pairs, states, states): real and imaginary parts of those of mu_q I - h J
    pivots: np.ndarray  # (1 + pairs, states)
    scales: np.ndarray  # the unit of each state
    largest: np.ndarray  # what each state has reached so far
    reached: np.ndarray  # and each lane of the sensitivities
    noise: np.ndarray  # how far the stages of each state may still be from their equations
    weights: np.ndarray  # (1 + stages)
    outlook: np.ndarray  # (stages, 1 + stages): from the step before to first guesses
    watched: np.ndarray  # (1 + stages, recorded): watched arguments and switching functions at the nodes
    powers: np.ndarray  # (1 + stages): one of them as powers of the place on the step
    forcing: np.ndarray  # (stages, states, lanes)
    columns: np.ndarray  # the same, taken apart
    nodes: np.ndarray  # (1 + stages, states, lanes): values and sensitivities
    ahead: np.ndarray  # the same, of the step to come


def reserve(rows: np.ndarray, stages: int, watched: int) -> Work:
    """The memory of steps that begin at rows of value and tangents."""
    n, lanes = rows.shape
    nodes, pairs = stages + 1, (stages - 1) // 2
    values, tangents = np.empty((2, nodes, n)), np.empty((2, nodes, n, lanes))
    values[:], tangents[:] = rows[:, 0], rows
    states, plane = np.zeros((3, n)), np.zeros((2, stages, n))
    columns = np.zeros((2, stages, n, lanes))
    matrices, places = np.zeros((2 + 2 * pairs, n, n)), np.zeros((2 + stages, nodes))
    return Work(
        values=values[0],
        before=values[1],
        updates=plane[0],
        parts=plane[1],
        jacobian=matrices[0],
        real=matrices[1],
        pairs=matrices[2:].reshape(2, pairs, n, n),
        pivots=np.zeros((1 + pairs, n), np.int64),
        scales=states[0],
        largest=states[1],
        reached=np.zeros(lanes),
        noise=states[2],
        weights=places[0],
        outlook=places[2:],
        watched=np.zeros((nodes, watched)),
        powers=places[1],
        forcing=columns[0],
        columns=columns[1],
        nodes=tangents[0],
        ahead=tangents[1],
    )


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
    """Solutions of all systems for the right-hand sides in `updates`, in place: apart, and together again."""
    stages, n = work.updates.shape
    updates, parts = work.updates, work.parts
    for row in range(stages):
        for a in range(n):
            parts[row, a] = 0.0
        for i in range(stages):
            weight = rule.apart[row, i]
            for a in range(n):
                parts[row, a] += weight * updates[i, a]
    solve(work.real, work.pivots[0], parts[0])
    for q in range(len(rule.rates)):
        solve_complex(work.pairs[0, q], work.pairs[1, q], work.pivots[1 + q], parts[2 * q + 1], parts[2 * q + 2])
    for i in range(stages):
        for a in range(n):
            updates[i, a] = 0.0
        for row in range(stages):
            weight = rule.together[i, row]
            for a in range(n):
                updates[i, a] += weight * parts[row, a]


@kernel
def has_stalled(update, earlier, best):
    """Whether updates shrank fast and now rounding keeps them where they were two iterations earlier."""
    return update < _ROUNDED and update > _STALLED * earlier and best < _FAST


@kernel
def left_after(update, rate):
    """What all updates to come amount to, if each is smaller than the one before by a rate."""
    return update * rate / (1 - rate) if rate < 1 else np.inf


@kernel
def solve_stages(point, piece, moving, recorded, rule, work, t, h, tolerance, rate):
    """Newton's method from the stages in `values`: whether it settles, and the ratio of its last updates.

    Until two updates tell, the ratio is expected to be about `rate`, that of the step before.
    """
    stages, n = work.updates.shape
    earlier, last, best, known, watches = np.inf, np.inf, 1.0, rate, work.watched.shape[1]
    rate = max(rate, _LEAST) ** _AGAIN
    values, updates = work.values, work.updates
    for _ in range(_ITERATIONS):
        for i in range(stages):
            put(point, moving, values[1 + i])
            find_rates(point, piece, t + rule.points[i] * h)
            for a in range(n):
                updates[i, a] = h * peek(point.p, peek(point.states, moving[a]) + point.lanes)
            for k in range(watches):
                work.watched[1 + i, k] = peek(point.p, recorded[k])
        for i in range(stages):
            for j in range(stages):
                weight = rule.inverse[i, j]
                for a in range(n):
                    updates[i, a] -= weight * (values[1 + j, a] - values[0, a])
            for a in range(n):
                updates[i, a] /= work.scales[a]
        solve_updates(rule, work)
        largest = 0.0
        for a in range(n):
            work.noise[a] = 0.0
            for i in range(stages):
                update = updates[i, a]
                if not abs(update) < np.inf:
                    return False, np.inf
                work.noise[a] = max(work.noise[a], abs(update))
                values[1 + i, a] += update * work.scales[a]
            largest = max(largest, work.noise[a])
        if last < np.inf:
            rate = largest / last if last > 0 else 0.0
            best = min(best, rate)
        left = left_after(largest, rate)
        if left <= _SETTLED * tolerance:
            for a in range(n):
                work.noise[a] *= left / largest if largest > 0 else 1.0
            return True, (best if last < np.inf else known)
        if has_stalled(largest, earlier, best):
            return True, best
        if largest > _SLOWEST * last and largest > _ROUNDED:
            break
        earlier, last = last, largest
    return False, best


@kernel
def solve_tangents(point, piece, moving, rule, work, t, h, tolerance, rate):
    """Sensitivities of the stages in `ahead`, from guesses there: whether the iterations settle.

    They are those of Newton's method, so that updates shrink at the `rate` of the latter.
    """
    stages, n, lanes = work.forcing.shape
    earlier, last, best = np.inf, np.inf, 1.0
    rate = max(rate, _LEAST) ** _AGAIN
    ahead, forcing = work.ahead, work.forcing
    for _ in range(_TANGENT_ITERATIONS):
        for i in range(stages):
            for a in range(n):
                place = peek(point.states, moving[a])
                for k in range(1, lanes):
                    poke(point.p, place + k, ahead[1 + i, a, k])
                poke(point.p, place, work.values[1 + i, a])
            find_rates(point, piece, t + rule.points[i] * h)
            for a in range(n):
                place, unit = peek(point.states, moving[a]) + lanes, 1 / work.scales[a]
                for k in range(lanes):
                    forcing[i, a, k] = h * peek(point.p, place + k)
                for j in range(stages):
                    weight = rule.inverse[i, j]
                    for k in range(lanes):
                        forcing[i, a, k] -= weight * (ahead[1 + j, a, k] - ahead[0, a, k])
                forcing[i, a, 0] = 0.0
                for k in range(lanes):
                    forcing[i, a, k] *= unit
        solve_columns(rule, work)
        largest = take_updates(work)
        if last < np.inf:
            rate = largest / last if last > 0 else 0.0
            best = min(best, rate)
        if left_after(largest, rate) <= _SETTLED * tolerance or has_stalled(largest, earlier, best):
            return True
        if not largest < np.inf:
            break
        earlier, last = last, largest
    return best < _FAST  # a contraction that went on for so long has left only rounding


@kernel
def take_updates(work):
    """Add the updates in `forcing` to the sensitivities; the largest, relative to the sizes of their lanes."""
    stages, n, lanes = work.forcing.shape
    largest, ahead, forcing = 0.0, work.ahead, work.forcing
    for k in range(1, lanes):
        size, moved = 0.0, 0.0
        for i in range(stages):
            for a in range(n):
                size = max(size, abs(ahead[1 + i, a, k]) / work.scales[a])
                moved = max(moved, abs(forcing[i, a, k]))
        work.reached[k] = max(work.reached[k], size)
        size = max(size, BEHIND * work.reached[k])
        if moved > 0:
            largest = max(largest, moved / size if size > 0 else 1.0)
    for i in range(stages):
        for a in range(n):
            unit = work.scales[a]
            for k in range(1, lanes):
                ahead[1 + i, a, k] += forcing[i, a, k] * unit
    return largest


@kernel
def solve_columns(rule, work):
    """`solve_updates` for all lanes of `forcing` at once."""
    blend(rule.apart, work.forcing, work.columns)
    solve_many(work.real, work.pivots[0], work.columns[0])
    for q in range(len(rule.rates)):
        low = 2 * q + 1
        solve_many_complex(
            work.pairs[0, q], work.pairs[1, q], work.pivots[1 + q], work.columns[low], work.columns[low + 1]
        )
    blend(rule.together, work.columns, work.forcing)


@kernel
def blend(weights, source, target):
    """Planes of `target` as sums of those of `source`."""
    stages, n, lanes = source.shape
    for i in range(stages):
        for a in range(n):
            for k in range(lanes):
                target[i, a, k] = 0.0
            for j in range(stages):
                weight = weights[i, j]
                for k in range(lanes):
                    target[i, a, k] += weight * source[j, a, k]
