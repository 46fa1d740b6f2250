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

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import legendre

from odejet.jets.lanes import entry

STAGES = 9

_ITERATIONS = 12  # of Newton's method
_SETTLED = 1e-10  # an update this small, relative to the states, is followed by one last
_NOISE = 10.0  # times the last, idle Newton update: what rounding may contribute to a coefficient
_SHRINK, _GROW = 0.2, 3.0  # limits of the change of the step size
_RESOLUTION = 1e-13  # the smallest step, relative to the time

Slopes = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(times, rows of value and tangents at each) -> their time derivatives, of shape (points, states, lanes)."""


@dataclass(frozen=True)
class Radau:
    """The points c and matrix A of Radau IIA, and what its polynomials need: nodes are 0 and the points."""

    points: np.ndarray
    matrix: np.ndarray
    nodes: np.ndarray
    barycentric: np.ndarray
    analysis: np.ndarray  # values at the nodes -> Legendre coefficients

    def weights(self, places: np.ndarray) -> np.ndarray:
        """Lagrange weights of the nodes at places in [0, 1], one row each."""
        distance = places[:, None] - self.nodes[None, :]
        exact = distance == 0
        ratio = self.barycentric / np.where(exact, 1.0, distance)
        ratio[exact.any(axis=1)] = exact[exact.any(axis=1)]
        return ratio / ratio.sum(axis=1, keepdims=True)


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


def collocate(
    slopes: Slopes,
    jacobian: Slopes,
    start: float,
    rows: np.ndarray,
    times: np.ndarray,
    tolerance: float,
    max_steps: int,
) -> tuple[np.ndarray, bool]:
    """Rows of value and tangents at `times`, which lead away from `start`; False when the last was not reached.

    `slopes` carries the lanes of `rows`; `jacobian` carries one lane per state.
    """
    rule = radau()
    trajectory = np.empty((len(times), *rows.shape))
    t, end, done = start, times[-1], 0
    h, previous = _first_step(jacobian, start, rows[:, 0], end - start), None
    for _ in range(max_steps):
        h = end - t if abs(h) >= abs(end - t) else h
        if abs(h) <= _RESOLUTION * abs(t):
            break
        guess = rows[None, :, 0] if previous is None else previous(t + rule.points * h)
        solved = _solve_stages(rule, jacobian, t, h, rows[:, 0], guess)
        if solved is None:
            h *= _SHRINK
            continue
        values = np.concatenate([rows[None, :, 0], solved.values])
        rough = _roughness(rule, values, solved.noise)
        if rough > tolerance:
            h *= max(_SHRINK, 0.8 * (tolerance / rough) ** (1 / STAGES))
            continue
        nodes = np.concatenate([rows[None], _solve_tangents(rule, slopes, t, h, rows, solved)])
        inside = done + int(np.searchsorted(np.abs(times[done:] - start), abs(t + h - start), side="right"))
        trajectory[done:inside] = np.tensordot(rule.weights((times[done:inside] - t) / h), nodes, axes=1)
        done, previous = inside, _Extrapolation(rule, t, h, values)
        if done == len(times):
            return trajectory, True
        t, rows = t + h, nodes[-1]
        h *= min(_GROW, 0.8 * (tolerance / max(rough, 1e-300)) ** (1 / STAGES))
    return trajectory[:done], False


def _first_step(jacobian: Slopes, t: float, x: np.ndarray, longest: float) -> float:
    """A tenth of the time in which a state would change by its own size."""
    rows = np.zeros((1, len(x), 1 + len(x)))
    rows[0, :, 0] = x
    rates = np.abs(jacobian(np.array([t]), rows)[0, :, 0])
    moving = (rates > 0) & (x != 0)
    return math.copysign(min([abs(longest), *(0.1 * np.abs(x[moving]) / rates[moving])]), longest)


@dataclass(frozen=True)
class _Extrapolation:
    """The polynomial of the last step, as a first guess for the next."""

    rule: Radau
    start: float
    step: float
    values: np.ndarray

    def __call__(self, times: np.ndarray) -> np.ndarray:
        return self.rule.weights((times - self.start) / self.step) @ self.values


@dataclass(frozen=True)
class _Stages:
    """Solved stages, the linear system at them, and how far rounding still moves each state."""

    values: np.ndarray
    system: _System
    noise: np.ndarray


def _solve_stages(
    rule: Radau, jacobian: Slopes, t: float, h: float, x: np.ndarray, guess: np.ndarray
) -> _Stages | None:
    """Newton's method; None where it does not settle."""
    stages = np.repeat(guess, STAGES, axis=0) if len(guess) == 1 else guess
    rows = np.zeros((STAGES, len(x), 1 + len(x)))
    rows[:, np.arange(len(x)), 1 + np.arange(len(x))] = 1
    settled = False
    for _ in range(_ITERATIONS):
        rows[:, :, 0] = stages
        rates = jacobian(t + rule.points * h, rows)
        residual = x - stages + h * rule.matrix @ rates[:, :, 0]
        system = _System.build(rule, h, rates[:, :, 1:], np.maximum(np.abs(stages).max(axis=0), np.abs(x)))
        update = system.solve(residual[:, :, None])
        if update is None:
            return None
        stages = stages + update[:, :, 0]
        if settled:
            return _Stages(stages, system, np.abs(update[:, :, 0]).max(axis=0))
        settled = bool(np.max(np.abs(update[:, :, 0]) / system.scales) < _SETTLED)
    return None


def _solve_tangents(rule: Radau, slopes: Slopes, t: float, h: float, rows: np.ndarray, stages: _Stages) -> np.ndarray:
    """Stages with their sensitivities: (I - h A (x) J) S = S_0 + h A df/dp."""
    result = np.empty((STAGES, *rows.shape))
    result[:, :, 0] = stages.values
    if rows.shape[1] > 1:
        at_rest = np.zeros_like(result)
        at_rest[:, :, 0] = stages.values
        forcing = slopes(t + rule.points * h, at_rest)[:, :, 1:]
        result[:, :, 1:] = stages.system.solve(rows[None, :, 1:] + h * np.tensordot(rule.matrix, forcing, axes=1))
    return result


@dataclass(frozen=True)
class _System:
    """I - h A (x) J, in units of the states: stiff systems span many decades."""

    rule: Radau
    step: float
    jacobians: np.ndarray
    scales: np.ndarray

    @classmethod
    def build(cls, rule: Radau, h: float, jacobians: np.ndarray, sizes: np.ndarray) -> _System:
        return cls(rule, h, np.ascontiguousarray(jacobians), np.where(sizes > 0, sizes, 1.0))

    def solve(self, right: np.ndarray) -> np.ndarray | None:
        """The solution for right-hand sides of shape (stages, states, columns), or None where there is none."""
        right = np.ascontiguousarray(right)
        solution, regular = eliminate(self.rule.matrix, self.step, self.jacobians, self.scales, right)
        return solution if regular else None


@entry
def eliminate(weights, h, jacobians, scales, right):
    """The solution X of (I - h A (x) J) X = right by Gaussian elimination with row pivots, and whether there is one.

    Columns are in units of the scales and rows are balanced before the pivots are chosen.
    """
    stages, n, columns = right.shape
    size = stages * n
    matrix = np.empty((size, size + columns))
    for row in range(size):
        i, a = row // n, row % n
        largest = 0.0
        for column in range(size):
            j, b = column // n, column % n
            value = -h * weights[i, j] * jacobians[j, a, b] * scales[b] + (scales[a] if row == column else 0.0)
            matrix[row, column] = value
            largest = max(largest, abs(value))
        for k in range(columns):
            matrix[row, size + k] = right[i, a, k]
        factor = 1 / max(largest, 1e-300)
        for column in range(size + columns):
            matrix[row, column] *= factor
            if not np.isfinite(matrix[row, column]):
                return np.zeros(right.shape), False
    for pivot in range(size):
        best = pivot
        for row in range(pivot + 1, size):
            if abs(matrix[row, pivot]) > abs(matrix[best, pivot]):
                best = row
        if matrix[best, pivot] == 0:
            return np.zeros(right.shape), False
        if best != pivot:
            for column in range(pivot, size + columns):
                matrix[best, column], matrix[pivot, column] = matrix[pivot, column], matrix[best, column]
        for row in range(pivot + 1, size):
            ratio = matrix[row, pivot] / matrix[pivot, pivot]
            if ratio != 0:
                for column in range(pivot + 1, size + columns):
                    matrix[row, column] -= ratio * matrix[pivot, column]
    solution = np.empty(right.shape)
    for k in range(size, size + columns):
        for row in range(size - 1, -1, -1):
            total = matrix[row, k]
            for column in range(row + 1, size):
                total -= matrix[row, column] * matrix[column, k]
            matrix[row, k] = total / matrix[row, row]
    for row in range(size):
        for k in range(columns):
            solution[row // n, row % n, k] = matrix[row, size + k] * scales[row % n]
    return solution, True


def _roughness(rule: Radau, values: np.ndarray, noise: np.ndarray) -> float:
    """The last two Legendre coefficients of every state beyond rounding, relative to its size on the step."""
    last = np.maximum(np.abs(rule.analysis[-2:] @ values) - _NOISE * noise, 0)
    size = np.abs(values).max(axis=0)
    ratio = last / np.where(size > 0, size, np.inf)
    # The last but one is counted as it would look one degree further on.
    return float(max(ratio[1].max(), (ratio[0] ** ((STAGES + 1) / STAGES)).max()))
