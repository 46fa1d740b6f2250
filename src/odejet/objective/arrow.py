"""Arrow: least squares in which every experiment has unknowns of its own, and some are shared.

Eliminating the local unknowns block by block leaves a small problem for the shared ones, at a cost linear in the number
of experiments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from odejet.objective.triangles import Groups, by_rows, triangle
from odejet.objective.trust import Solver, Step, bounded_step

_RANK = 1e-10  # of the largest entry: a damping that regularises what the data do not determine
_ROUNDS, _PRECISION = 30, 0.1  # of the search for a damping, which is only a guess


class Reduced(Protocol):
    """What is left of a linear model when weights of groups may still change."""

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver | ArrowSolver:
        """Return steps within these bounds of the move, with groups weighted by their noise levels."""


@dataclass(frozen=True, eq=False)
class Arrow:
    """Blocks whose local unknowns are eliminated one experiment after the other, at a cost linear in their number."""

    blocks: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]  # rows, columns and values of an experiment
    shared: np.ndarray  # columns that belong to no single experiment
    slopes: np.ndarray
    residuals: np.ndarray
    groups: Groups

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> ArrowSolver:
        weights, shared = 1 / by_rows(levels, self.groups), self.shared
        place = np.full(len(self.slopes), -1)
        place[shared] = np.arange(len(shared))
        own = [columns[place[columns] < 0] for _, columns, _ in self.blocks]
        widest, ns = max(map(len, own)), len(shared)
        size = widest + ns + 1
        tall = np.zeros((len(own), max(size, *(len(rows) for rows, _, _ in self.blocks)), size))
        local = np.full((len(own), widest), -1)
        for e, (rows, columns, values) in enumerate(self.blocks):
            is_shared = place[columns] >= 0
            weighted = values * self.slopes[columns] * weights[rows, None]
            mine = tall[e, : len(rows)]
            mine[:, : len(own[e])] = weighted[:, ~is_shared]
            mine[:, widest + place[columns[is_shared]]] = weighted[:, is_shared]
            mine[:, -1] = self.residuals[rows] * weights[rows]
            local[e, : len(own[e])] = own[e]
        return ArrowSolver(triangle(tall), local, shared, low, high)


@dataclass(frozen=True, eq=False)
class ArrowSolver:
    """Steps on a matrix in the form of an arrow, by elimination of what is local."""

    triangles: np.ndarray  # (experiments, size, size): local columns, shared ones, residual
    local: np.ndarray  # (experiments, local): their unknowns; -1 where an experiment has fewer
    shared: np.ndarray
    low: np.ndarray  # bounds of the move
    high: np.ndarray

    def step(self, radius: float) -> Step:
        """Return a move within the radius and the bounds."""
        return bounded_step(self, radius)

    def gradient(self) -> np.ndarray:
        return self._spread(np.einsum("eij,ei->ej", self.triangles[:, :, :-1], self.triangles[:, :, -1]))

    def predicted(self, move: np.ndarray) -> float:
        """The decrease that the model predicts for any move."""
        change = self._times(move)
        return -float((change * self.triangles[:, :, -1]).sum()) - 0.5 * float((change * change).sum())

    def correction(self, step: Step, so_far: np.ndarray, there: ArrowSolver) -> np.ndarray:
        """A further move that undoes the residual of another model, as far as the damping of the step allows."""
        move = there._solve(step.free, max(step.damping, there._least()))
        return np.clip(so_far + move, self.low, self.high) - so_far

    def moved(self, move: np.ndarray) -> ArrowSolver:
        """The model after a move."""
        triangles = self.triangles.copy()
        triangles[:, :, -1] += self._times(move)
        return replace(self, triangles=triangles)

    def _times(self, move: np.ndarray) -> np.ndarray:
        own = np.where(self.local >= 0, move[self.local], 0.0)
        shared = np.broadcast_to(move[self.shared], (len(own), len(self.shared)))
        return np.einsum("eij,ej->ei", self.triangles[:, :, :-1], np.concatenate([own, shared], axis=1))

    def _spread(self, columns: np.ndarray) -> np.ndarray:
        """Values per experiment and column, added up by unknown."""
        result, widest = np.zeros(len(self.low)), self.local.shape[1]
        known = self.local >= 0
        np.add.at(result, self.local[known], columns[:, :widest][known])
        result[self.shared] += columns[:, widest:].sum(axis=0)
        return result

    def _least(self) -> float:
        return (_RANK * float(np.abs(self.triangles[:, :, :-1]).max(initial=0.0))) ** 2 + 1e-300

    def within(self, free: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
        """The best move of the free unknowns, damped if it would be longer than the radius; the damping."""
        least = self._least()
        move = self._solve(free, least)
        length = float(np.sqrt(move @ move))
        if length <= radius:
            return move, 0.0
        low, high = np.log(least), np.log(least)
        while length > radius and high < 700:
            low, high = high, high + 5.0
            move = self._solve(free, float(np.exp(high)))
            length = float(np.sqrt(move @ move))
        for _ in range(_ROUNDS):
            if abs(length - radius) <= _PRECISION * radius:
                break
            middle = 0.5 * (low + high)
            move = self._solve(free, float(np.exp(middle)))
            length = float(np.sqrt(move @ move))
            low, high = (middle, high) if length > radius else (low, middle)
        return move, float(np.exp(0.5 * (low + high)))

    def _solve(self, free: np.ndarray, damping: float) -> np.ndarray:
        """The minimum of |J d + r|^2 + damping |d|^2 over the free unknowns."""
        count, size, _ = self.triangles.shape
        widest, root = self.local.shape[1], np.sqrt(damping)
        stacked = np.zeros((count, size + widest, size))
        stacked[:, :size] = self.triangles
        usable = (self.local >= 0) & free[self.local]
        stacked[:, :size, :widest] *= usable[:, None, :]
        stacked[:, :size, widest:-1] *= free[self.shared]
        stacked[:, size:, :widest] = root * np.eye(widest)
        reduced = np.asarray(np.linalg.qr(stacked, mode="r"))
        border = np.concatenate(
            [
                reduced[:, widest:, widest:].reshape(-1, size - widest),
                root * np.eye(len(self.shared), size - widest),
            ]
        )
        solved = np.zeros(len(self.low))
        shared = np.linalg.lstsq(border[:, :-1], -border[:, -1], rcond=None)[0]
        solved[self.shared] = np.where(free[self.shared], shared, 0.0)
        right = -reduced[:, :widest, -1] - reduced[:, :widest, widest:-1] @ shared
        own = np.linalg.solve(reduced[:, :widest, :widest], right[:, :, None])[:, :, 0]
        solved[self.local[usable]] = own[usable]
        return solved
