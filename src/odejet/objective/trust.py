"""Trust: one step of bounded least squares within a trust region, on matrices as small as the number of unknowns.

A tall weighted system is first reduced to its triangle by Householder reflections, which keeps the digits that normal
equations would lose: problems with condition 1e9 and more are the ordinary case here.  Then

    minimise |R d + c|^2 / 2   subject to   |d| <= radius   and   low <= d <= high

by singular values: Moré's (1978) secular equation for the radius, and unknowns that would cross a bound held on it.
Where residuals are large and curved, so that R'R is not their Hessian, `curved` adds what `secant` has learnt of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

_RANK = 1e-15  # singular values below this fraction of the largest are rounding
_SECULAR_ROUNDS = 12
_SECULAR_PRECISION = 0.1  # a radius is only a guess


@dataclass(frozen=True)
class Step:
    """A move, the decrease of |r|^2 / 2 that the linear model predicts, and how it was found."""

    move: np.ndarray
    decrease: float
    damping: float  # zero where the radius did not limit the move
    free: np.ndarray  # which unknowns are not held on a bound

    @property
    def length(self) -> float:
        return float(np.sqrt(self.move @ self.move))


@dataclass(frozen=True)
class Solver:
    """The linear model at a point, with what every step from there needs."""

    triangle: np.ndarray
    residual: np.ndarray
    low: np.ndarray  # bounds of the move
    high: np.ndarray

    def step(self, radius: float) -> Step:
        """Return a move within the radius and the bounds."""
        return bounded_step(self, radius)

    def gradient(self) -> np.ndarray:
        return np.asarray(self.triangle.T @ self.residual)

    def moved(self, move: np.ndarray) -> Solver:
        """Return the model after a move."""
        return replace(self, residual=self.residual + self.triangle @ move)

    def within(self, free: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
        """Return the best move of the free unknowns, damped if it would be longer than the radius, and the damping."""
        move = np.zeros(len(free))
        move[free], damping = _within(self.triangle[:, free], self.residual, radius)
        return move, damping

    def predicted(self, move: np.ndarray) -> float:
        """Return the decrease that the model predicts for any move; not a number where squares are none."""
        change = self.triangle @ move
        with np.errstate(over="ignore", invalid="ignore"):
            return -float((self.residual @ self.triangle) @ move) - 0.5 * float(change @ change)

    def curved(self, curvature: np.ndarray) -> Solver:
        """The model with second derivatives of the residuals added: R'R + S, negative curvature taken as positive.

        Where that is too large for a number, the linear model is all there is.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            hessian = self.triangle.T @ self.triangle + curvature
        if not np.isfinite(hessian).all():
            return self
        values, vectors = np.linalg.eigh(hessian)
        sizes = np.abs(values)
        roots = np.sqrt(np.maximum(sizes, _RANK * sizes.max(initial=0.0) + 1e-300))
        gradient = vectors.T @ (self.triangle.T @ self.residual)
        return Solver(roots[:, None] * vectors.T, gradient / roots, self.low, self.high)

    def correction(self, step: Step, so_far: np.ndarray, there: Solver) -> np.ndarray:
        """A further move that undoes the residual of the linear model at another point, as far as the damping of the
        step allows."""
        move, excess = np.zeros(len(step.move)), there.residual
        if step.free.any():
            u, s, vt = np.linalg.svd(there.triangle[:, step.free], full_matrices=False)
            kept = s > _RANK * s[0]
            move[step.free] = (-(excess @ u) * np.where(kept, s, 0.0) / (s * s + step.damping + ~kept)) @ vt
        return np.clip(so_far + move, self.low, self.high) - so_far


class Steps(Protocol):
    """A linear model within bounds of its move, from which steps are taken."""

    @property
    def low(self) -> np.ndarray: ...
    @property
    def high(self) -> np.ndarray: ...
    def gradient(self) -> np.ndarray: ...
    def moved(self, move: np.ndarray) -> Steps: ...
    def within(self, free: np.ndarray, radius: float) -> tuple[np.ndarray, float]: ...
    def predicted(self, move: np.ndarray) -> float: ...


def bounded_step(model: Steps, radius: float) -> Step:
    """Return a move within the radius and the bounds: the best one, or where bounds are met a path that goes down.

    The path leads towards the best point of the free unknowns; one that meets a bound on the way stays there, and the
    others go on.  Every part of it decreases the squares.
    """
    gradient, low, high = model.gradient(), model.low, model.high
    free = ~(((low >= 0) & (gradient > 0)) | ((high <= 0) & (gradient < 0)))
    move, damping, left, here = np.zeros(len(gradient)), 0.0, radius, model
    while free.any() and left > 0:
        part, damping = here.within(free, left)
        share, met = _until_bound(low, high, move, part)
        move = np.where(met, np.where(part > 0, high, low), move + share * part)
        if not met.any():
            break
        here = model.moved(move)
        free, left = free & ~met, left - share * float(np.sqrt(part @ part))
    return Step(move, model.predicted(move), damping, free)


def _until_bound(low: np.ndarray, high: np.ndarray, move: np.ndarray, part: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the share of a further move that stays within the bounds, and which unknowns meet theirs there."""
    room = np.where(part > 0, high - move, low - move)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(part != 0, np.maximum(room / part, 0.0), np.inf)
    share = float(shares.min())
    return (1.0, np.zeros(len(part), dtype=bool)) if share >= 1 else (share, shares <= share)


def _within(matrix: np.ndarray, right: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """The least-squares solution of matrix d = -right, damped if it would be longer than the radius; the damping."""
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    rank = int(np.count_nonzero(s > _RANK * s[0])) if s[0] > 0 else 0
    if rank == 0:
        return np.zeros(matrix.shape[1]), 0.0
    unit = np.ldexp(1.0, int(np.frexp(s[0])[1]))  # squares of singular values may be too large for a number
    s, beta = s[:rank] / unit, -(right @ u[:, :rank]) / unit
    solution = beta / s
    length = float(np.sqrt(solution @ solution))
    if length <= radius:
        return solution @ vt[:rank], 0.0
    # Newton's method on 1/|d(t)| - 1/radius, convex and nearly linear in the damping t; it rises from t = 0.
    squared, damping = s * s, 0.0
    for _ in range(_SECULAR_ROUNDS):
        slope = float(solution @ (solution / (squared + damping))) / length
        damping += (length / radius - 1) * length / slope
        solution = s * beta / (squared + damping)
        length = float(np.sqrt(solution @ solution))
        if length == 0:  # a radius below what numbers resolve leaves no step
            return np.zeros(matrix.shape[1]), 0.0
        if abs(length - radius) <= _SECULAR_PRECISION * radius:
            break
    with np.errstate(over="ignore"):
        return solution @ vt[:rank], float(damping * unit * unit)


def secant(matrix: np.ndarray, move: np.ndarray, change: np.ndarray, structured: np.ndarray) -> np.ndarray:
    """The second-order part S of a Hessian J'J + S after a move, from what it did to the gradient.

    `change` is that of the gradient, `structured` what of it came from the change of J: (J_new - J)' r_new.  The update
    and its sizing are those of Dennis, Gay and Welsch (1981).
    """
    along = float(change @ move)
    if along <= 1e-12 * float(np.sqrt((change @ change) * (move @ move))):
        return matrix
    bent = float(move @ matrix @ move)
    size = min(1.0, abs(float(structured @ move) / bent)) if bent else 1.0
    matrix = size * matrix
    gap = structured - matrix @ move
    outer = np.outer(gap, change)
    return matrix + (outer + outer.T) / along - float(gap @ move) / along**2 * np.outer(change, change)
