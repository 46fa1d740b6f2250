"""Collocation: stiff trajectories with their sensitivities, in large implicit steps.

Where a solution is smooth but explicit steps must stay tiny for stability, the states on a step of length h are a
polynomial that satisfies the equations at the points of a Radau rule:

    Z_i = x + h sum_j A_ij f(t + c_j h, Z_j)

Newton's method with one Jacobian for all stages solves it in one real and a few complex systems of the size of the
model (see `radau`).  A step is accepted when the last coefficients of its polynomial in Legendre's basis have decayed
to the tolerance, and when no function of the tape hides a change between the points (see `features`).  Then follow the
sensitivities of the stages: the same factors solve their linear equations, with exact derivatives at every stage, until
they are the derivatives of the computed trajectory itself.  So values do not depend on whether sensitivities are asked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.features import awake_step, exponent_of, may_hide, next_peak, slack_of
from odejet.jets.kernel import TABLES, lay_out
from odejet.jets.lanes import WIDTH, entry, kernel, padded, peek, pointer, poke
from odejet.jets.linear import factor, factor_complex, solve, solve_complex, solve_many, solve_many_complex
from odejet.jets.points import find_rates, point_of
from odejet.jets.radau import radau, stages_for
from odejet.jets.registers import Registers
from odejet.jets.steps import Drive, observe
from odejet.model.tape import Tape

_ITERATIONS = 25  # of Newton's method
_SLOWEST = 0.6  # the largest ratio of one update to the last with which iterations go on
_SETTLED = 0.03  # times the tolerance: updates this small, relative to the states, are the last
_ROUNDED = 1e-8  # updates this small that have shrunk by _FAST and in two more by no more than _STALLED are rounding
_FAST, _STALLED = 0.1, 0.5
_FRESH = 0.02  # ratios of updates beyond which the Jacobian is computed again
_OUTGROWN = 0.2  # the size of a state in its unit below which units are chosen again
_TANGENT_ITERATIONS = 40
_BEHIND = 1e-3  # the size of sensitivities whose relative accuracy matters, relative to the largest so far
_LOOSE = 1e4  # times the tolerance: that of the polynomials of sensitivities
_NOISE = 10.0  # times the last Newton update: what it may contribute to a coefficient
_SHRINK, _GROW = 0.2, 4.0  # limits of the change of the step size
_KEPT = 1.15  # a step that could grow by less keeps its length, and with it the factors
_SAFE = 0.8
_SHORT = 5  # steps in a row that are too short to be worth their effort
_RESOLUTION = 1e-13  # the smallest step, relative to the time
_BESIDE = 1e-16  # the size of a state that does not matter, relative to its largest so far
_UNSEEN = 300.0  # times the tolerance: what a hidden change may do to a state


class _Work(NamedTuple):
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
    watched: np.ndarray  # (1 + stages, watched): arguments at the nodes
    powers: np.ndarray  # (1 + stages): one of them as powers of the place on the step
    forcing: np.ndarray  # (stages, states, lanes)
    columns: np.ndarray  # (2, states, lanes)
    nodes: np.ndarray  # (1 + stages, states, lanes): values and sensitivities
    ahead: np.ndarray  # the same, of the step to come
    after: np.ndarray  # (stages, states, lanes)


def _reserve(rows: np.ndarray, stages: int, watched: int) -> _Work:
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
    return _Work(values=values, before=values.copy(), pivots=pivots, nodes=nodes, ahead=nodes.copy(), **arrays)


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
    stages: int | None = None,
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
    layouts = tuple(lay_out(tape, width, 2, True) for width in (WIDTH, inner, lanes))
    memories = []
    given = ((alone[:, :WIDTH], seeds[:, :WIDTH] * (np.arange(WIDTH) == 0)), (alone, seeds), (parameters, states))
    for layout, (constants, rows) in zip(layouts, given, strict=True):
        registers = Registers(layout, 1, float, TABLES)
        registers.prepare(tape.constant_values, constants[None], rows[None])
        memories.append(registers.memory[0])
    rule = radau(stages or stages_for(tolerance))
    found = np.empty((len(times), *states.shape)), np.empty((len(times), len(tape.outputs), lanes))
    done, reached, steps = follow(
        layouts,
        tuple(memories),
        _reserve(states[moving], len(rule.points), len(layouts[0].watched)),
        moving,
        states,
        rule,
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
def put(point, moving, values):
    """Values of the moving states into the registers."""
    for a in range(len(moving)):
        poke(point.p, peek(point.states, moving[a]), values[a])


@kernel
def size_of(work, a):
    """The largest value of a state on the step, or what does not matter of it."""
    size = _BESIDE * work.largest[a]
    for i in range(len(work.values)):
        size = max(size, abs(work.values[i, a]))
    return size if 0 < size < np.inf else 1.0


@kernel
def is_outgrown(work):
    """Whether a state has become much smaller than its unit."""
    least = 1.0
    for a in range(len(work.scales)):
        least = min(least, size_of(work, a) / work.scales[a])
    return least < _OUTGROWN


@kernel
def differentiate(slope, piece, t, moving, values, work):
    """The Jacobian at a point, in units of the states."""
    put(slope, moving, values)
    find_rates(slope, piece, t)
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
def solve_stages(point, piece, moving, watched, rule, work, t, h, tolerance):
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
                work.watched[1 + i, k] = peek(point.p, watched[k, 1])
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
            size = max(size, _BEHIND * work.reached[k])
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


@kernel
def roughness(rule, work):
    """The last two Legendre coefficients of every state beyond rounding, relative to its size on the step."""
    nodes, n = work.values.shape
    rough = 0.0
    for a in range(n):
        last, before = 0.0, 0.0
        for i in range(nodes):
            last += rule.analysis[nodes - 1, i] * work.values[i, a]
            before += rule.analysis[nodes - 2, i] * work.values[i, a]
        size, noise = size_of(work, a), _NOISE * work.noise[a] * work.scales[a]
        last, before = max(abs(last) - noise, 0.0) / size, max(abs(before) - noise, 0.0) / size
        # The last but one is counted as it would look one degree further on.
        rough = max(rough, last, before ** (nodes / (nodes - 1)))
    return rough


@kernel
def tangent_roughness(rule, work):
    """The last Legendre coefficient of every sensitivity, in units of the states and relative to its lane."""
    nodes, n, lanes = work.ahead.shape
    rough = 0.0
    for k in range(1, lanes):
        size, largest = _BEHIND * work.reached[k], 0.0
        for a in range(n):
            last = 0.0
            for i in range(nodes):
                last += rule.analysis[nodes - 1, i] * work.ahead[i, a, k]
                size = max(size, abs(work.ahead[i, a, k]) / work.scales[a])
            largest = max(largest, abs(last) / work.scales[a])
        if size > 0:
            rough = max(rough, largest / size)
    return rough


@kernel
def gap(point, piece, moving, rule, work, t, h, s):
    """How far the polynomial is from the equations at a place, in units of the states, after one implicit correction.

    Its derivative follows from Legendre's basis by P'_{k+1} = P'_{k-1} + (2k + 1) P_k.
    """
    nodes, n = work.values.shape
    place_weights(rule, s, work.weights)
    for a in range(n):
        total = 0.0
        for j in range(nodes):
            total += work.weights[j] * work.values[j, a]
        poke(point.p, peek(point.states, moving[a]), total)
    find_rates(point, piece, t + s * h)
    x = 2 * s - 1
    for a in range(n):
        value, earlier, slope, slope_earlier, total = x, 1.0, 1.0, 0.0, 0.0  # P_1, P_0 and their derivatives
        for k in range(1, nodes):
            coefficient = 0.0
            for j in range(nodes):
                coefficient += rule.analysis[k, j] * work.values[j, a]
            total += 2 * coefficient * slope
            slope, slope_earlier = slope_earlier + (2 * k + 1) * value, slope
            value, earlier = ((2 * k + 1) * x * value - k * earlier) / (k + 1), value
        rate = peek(point.p, peek(point.states, moving[a]) + point.lanes)
        work.parts[0, a] = (h * rate - total) / work.scales[a]
    solve(work.real, work.pivots[0], work.parts[0])
    largest = 0.0
    for a in range(n):
        if not abs(work.parts[0, a]) < np.inf:
            return np.inf
        largest = max(largest, abs(work.parts[0, a]))
    return largest


@kernel
def attentive_part(point, piece, moving, watched, rule, work, t, h, tolerance):
    """The part of a step, at most one, in which every watched argument holds and nothing hides."""
    nodes, c, lanes = len(work.powers), pointer(work.powers), np.int64(1)
    part = 1.0
    # The points do not see the start of the step.
    if len(watched) > 0 and gap(point, piece, moving, rule, work, t, h, 0.0) > _UNSEEN * tolerance:
        return _SHRINK
    for i in range(len(watched)):
        kind, power = watched[i, 0], watched[i, 2]
        exponent = exponent_of(point.p, power)
        change, last, size = 0.0, 0.0, 0.0
        for k in range(nodes):
            coefficient, total, size = 0.0, 0.0, max(size, abs(work.watched[k, i]))
            for j in range(nodes):
                coefficient += rule.analysis[k, j] * work.watched[j, i]
                total += rule.powers[k, j] * work.watched[j, i]
            work.powers[k] = total
            if k > 0:
                change += 2 * abs(coefficient)
                last = abs(coefficient)
        slack = slack_of(kind, size)
        if last > slack:
            part = min(part, max(_SHRINK, (slack / last) ** (1 / nodes)))
        elif may_hide(kind, work.powers[0], change, exponent):
            degree = np.int64(nodes - 1)
            part = min(part, awake_step(c, np.int64(0), lanes, degree, kind, exponent, part))
            j, s = 0, 1.0
            while s != 0 and part == 1:
                s, j = next_peak(c, np.int64(0), lanes, degree, kind, exponent, 1.0, j)
                if s != 0 and gap(point, piece, moving, rule, work, t, h, s) > _UNSEEN * tolerance:
                    part = 0.5 * s
    return part


@kernel
def first_step(point, piece, t, moving, watched, work, longest):
    """A tenth of the time in which a state would change by its own size; the watched arguments at the start."""
    put(point, moving, work.values[0])
    find_rates(point, piece, t)
    h = abs(longest)
    for a in range(len(moving)):
        speed, size = abs(peek(point.p, peek(point.states, moving[a]) + point.lanes)), abs(work.values[0, a])
        if speed * h > 0.1 * size > 0:
            h = 0.1 * size / speed
    for k in range(len(watched)):
        work.watched[0, k] = peek(point.p, watched[k, 1])
    return h if longest >= 0 else -h


@kernel
def start_next(work):
    """The end of a step is the start of the next, and its polynomial that of the step before from now on."""
    last = len(work.values) - 1
    for a in range(work.values.shape[1]):
        for j in range(last + 1):
            work.before[j, a] = work.values[j, a]
            work.largest[a] = max(work.largest[a], abs(work.values[j, a]))
            for k in range(1, work.nodes.shape[2]):
                work.nodes[j, a, k] = work.ahead[j, a, k]
            work.nodes[j, a, 0] = work.values[j, a]
        work.values[0, a] = work.values[last, a]
        for k in range(work.nodes.shape[2]):
            work.ahead[0, a, k] = work.nodes[last, a, k]
    for k in range(work.watched.shape[1]):
        work.watched[0, k] = work.watched[last, k]


@kernel
def extrapolate(rule, work, step):
    """First guesses of the stages: the polynomial of the step before, beyond its end and over `step` of its units."""
    nodes, n = work.values.shape
    for i in range(1, nodes):
        place_weights(rule, 1.0 + rule.nodes[i] * step, work.weights)
        for a in range(n):
            guess = 0.0
            for j in range(nodes):
                guess += work.weights[j] * work.before[j, a]
            work.values[i, a] = guess


@kernel
def extrapolate_tangents(rule, work, step):
    """The same for the sensitivities."""
    nodes, n, lanes = work.nodes.shape
    for i in range(1, nodes):
        place_weights(rule, 1.0 + rule.nodes[i] * step, work.weights)
        for a in range(n):
            for k in range(lanes):
                work.ahead[i, a, k] = 0.0
            for j in range(nodes):
                for k in range(lanes):
                    work.ahead[i, a, k] += work.weights[j] * work.nodes[j, a, k]


@kernel
def sample(rule, work, moving, states, place, row):
    """All states with their tangents at a place on the last step; those at rest are as they were."""
    place_weights(rule, place, work.weights)
    lanes = states.shape[1]
    for a in range(len(states)):
        for k in range(lanes):
            row[a, k] = states[a, k]
    for a in range(len(moving)):
        for k in range(lanes):
            row[moving[a], k] = 0.0
        for j in range(len(work.nodes)):
            for k in range(lanes):
                row[moving[a], k] += work.weights[j] * work.nodes[j, a, k]


@entry
def follow(layouts, memories, work, moving, states, rule, drive, piece, start, times, limits, tables, found):
    """`collocate`, with the registers of all layouts prepared: times done, the time reached, steps.

    The layouts carry no tangents, a lane per moving state, and the lanes of `states`; states and outputs are `found`.
    """
    (tolerance, max_steps, least, with_tangents), (trajectory, outputs) = limits, found
    point, slope = point_of(layouts[0], memories[0], drive, tables), point_of(layouts[1], memories[1], drive, tables)
    force, stages, watched = point_of(layouts[2], memories[2], drive, tables), len(rule.points), layouts[0].watched
    t, end, done, steps, short = start, times[-1], 0, 0, 0
    h = first_step(point, piece, t, moving, watched, work, end - t)
    before, factored, ratio = h, 0.0, np.inf
    while done < len(times) and steps < max_steps and short < _SHORT:
        steps += 1
        h = end - t if abs(h) >= abs(end - t) else h
        if abs(h) <= _RESOLUTION * abs(t):
            break
        extrapolate(rule, work, h / before)
        if h != factored or ratio > _FRESH or is_outgrown(work):
            for a in range(len(moving)):
                work.scales[a] = size_of(work, a)
            middle = stages // 2
            differentiate(slope, piece, t + rule.nodes[middle] * h, moving, work.values[middle], work)
            factored = h if decompose(rule, work, h) else 0.0
        settled, ratio = solve_stages(point, piece, moving, watched, rule, work, t, h, tolerance)
        if factored == 0.0 or not settled:
            h, ratio = 0.4 * h, np.inf
            continue
        rough = roughness(rule, work)
        if rough > tolerance:
            h *= max(_SHRINK, _SAFE * (tolerance / rough) ** (1 / stages))
            continue
        part = attentive_part(point, piece, moving, watched, rule, work, t, h, tolerance)
        if part < 1:
            h *= part
            continue
        if with_tangents:
            extrapolate_tangents(rule, work, h / before)
            if not solve_tangents(force, piece, moving, rule, work, t, h, tolerance):
                h, ratio = 0.4 * h, np.inf
                continue
            # Sensitivities may change where values do not, as those to the height of a pulse of no height.
            unlike = tangent_roughness(rule, work)
            if unlike > _LOOSE * tolerance:
                h *= max(_SHRINK, _SAFE * (_LOOSE * tolerance / unlike) ** (1 / stages))
                continue
        start_next(work)
        while done < len(times) and abs(times[done] - start) <= abs(t + h - start):
            sample(rule, work, moving, states, (times[done] - t) / h, trajectory[done])
            done += 1
        short = short + 1 if abs(h) < least else 0
        before, t = h, (end if done == len(times) else t + h)
        growth = min(_GROW, _SAFE * (tolerance / max(rough, 1e-300)) ** (1 / stages))
        h *= 1.0 if 1 <= growth < _KEPT else growth
    for a in range(len(moving)):
        for k in range(states.shape[1]):
            states[moving[a], k] = work.ahead[0, a, k]
    observe(memories[2], layouts[2], drive, times, 0, done, trajectory, outputs, point.tables, 0)
    memories[0][0] += 0.0  # a last use, for pointers do not keep the memory alive
    memories[1][0] += 0.0
    return done, t, steps
