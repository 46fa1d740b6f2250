"""Linear: residuals as a linear function of a move, the model on which a step is taken.

One dense matrix serves ordinary problems.  Where many experiments have unknowns of their own, the matrix has the form
of an arrow: blocks along the diagonal for what is local, and a border for what is shared.  Eliminating the local
unknowns block by block leaves a small problem for the shared ones, at a cost linear in the number of experiments.
Where measurements are very many, the matrix is not kept at all, but the triangle of each output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odejet.objective.courses import Blocks
from odejet.objective.reduction import Triangles, triangle
from odejet.objective.trust import Solver, Step

_RANK = 1e-10  # of the largest entry: a damping that regularises what the data do not determine
AT_ONCE = 1 << 22
"""Numbers that are copied at once to be reduced: those of most problems, and few beside those of large ones."""

_ROUNDS, _PRECISION = 30, 0.1  # of the search for a damping, which is only a guess


@dataclass(frozen=True, eq=False)
class Dense:
    """Residuals and derivatives as one matrix, reduced to a triangle per output: weights may change without it."""

    jacobian: np.ndarray
    slopes: np.ndarray  # of the unknowns by theta
    triangles: tuple[np.ndarray, ...]  # derivatives by theta, and residuals in the last column

    @classmethod
    def of(cls, jacobian: np.ndarray, slopes: np.ndarray, residuals: np.ndarray, groups: tuple[slice, ...]) -> Dense:
        return cls(jacobian, slopes, tuple(_reduced(jacobian, slopes, residuals, rows) for rows in groups))

    def times(self, move: np.ndarray) -> np.ndarray:
        return self.jacobian @ (self.slopes * move)

    def transposed(self, vector: np.ndarray) -> np.ndarray:
        return (vector @ self.jacobian) * self.slopes

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver:
        """Steps with outputs weighted by their noise levels; one triangle of the triangles of all outputs."""
        return _solver(self.triangles, levels, low, high)


def _reduced(jacobian: np.ndarray, slopes: np.ndarray, residuals: np.ndarray, rows: slice) -> np.ndarray:
    """The triangle of the rows of one output, so many at a time that the copy which is reduced stays small.

    Triangles of parts, reduced together, are the triangle of all, to the same rounding as if made at once.
    """
    columns = len(slopes) + 1
    found = np.zeros((0, columns))
    for first in range(rows.start, rows.stop, length := max(AT_ONCE // columns, columns)):
        last = min(first + length, rows.stop)
        tall = np.empty((len(found) + last - first, columns))
        tall[: len(found)] = found
        np.multiply(jacobian[first:last], slopes, out=tall[len(found) :, :-1])
        tall[len(found) :, -1] = residuals[first:last]
        # A block with no more rows than columns is as small as its triangle.
        found = tall if len(tall) <= columns else triangle(tall)
    return found


def _solver(triangles: tuple[np.ndarray, ...], levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver:
    """Steps on the triangles of all outputs together, with residuals in the last column."""
    weighted = np.concatenate([block / level for block, level in zip(triangles, levels, strict=True)])
    reduced = triangle(weighted) if len(triangles) > 1 else weighted
    return Solver(reduced[:, :-1], reduced[:, -1], low, high)


@dataclass(frozen=True, eq=False)
class Triangular:
    """The same without the matrix: what a step needs, and what tells how the gradient changes along it."""

    triangles: tuple[np.ndarray, ...]  # derivatives by theta, and the further columns of `reduction.Triangles`
    unknowns: int

    @classmethod
    def of(cls, found: Triangles, slopes: np.ndarray) -> Triangular:
        scales = [np.append(slopes, np.ones(part.shape[1] - len(slopes))) for part in found.parts]
        return cls(tuple(part * own for part, own in zip(found.parts, scales, strict=True)), found.unknowns)

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver:
        """Steps from the residuals there are."""
        return _solver(tuple(part[:, : self.unknowns + 1] for part in self.triangles), levels, low, high)

    def missing(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> Solver:
        """Steps from what residuals miss their aim by, as if these were all there is."""
        columns = [*range(self.unknowns), self.unknowns + 1]
        return _solver(tuple(part[:, columns] for part in self.triangles), levels, low, high)

    def gradient(self, levels: np.ndarray) -> np.ndarray:
        return self._times(levels, self.unknowns)

    def gradient_before(self, levels: np.ndarray) -> np.ndarray:
        """What the gradient would be with the residuals where the step to here began."""
        return self._times(levels, self.unknowns + 2)

    def _times(self, levels: np.ndarray, column: int) -> np.ndarray:
        result = np.zeros(self.unknowns)
        for part, level in zip(self.triangles, levels, strict=True):
            result += (part[:, column] / level) @ (part[:, : self.unknowns] / level)
        return result


@dataclass(frozen=True, eq=False)
class Arrow:
    """The same for many experiments: one small matrix each."""

    jacobian: Blocks
    slopes: np.ndarray
    residuals: np.ndarray
    groups: tuple[slice, ...]
    shared: np.ndarray  # columns that belong to no single experiment

    def times(self, move: np.ndarray) -> np.ndarray:
        result, scaled = np.zeros(len(self.residuals)), self.slopes * move
        for rows, columns, values in self.jacobian.parts:
            result[rows] = values @ scaled[columns]
        return result

    def transposed(self, vector: np.ndarray) -> np.ndarray:
        result = np.zeros(len(self.slopes))
        for rows, columns, values in self.jacobian.parts:
            result[columns] += vector[rows] @ values
        return result * self.slopes

    def solver(self, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> ArrowSolver:
        weights = 1 / np.repeat(levels, [rows.stop - rows.start for rows in self.groups])
        place = np.full(len(self.slopes), -1)
        place[self.shared] = np.arange(len(self.shared))
        own = [columns[place[columns] < 0] for _, columns, _ in self.jacobian.parts]
        widest, ns = max(map(len, own)), len(self.shared)
        size = widest + ns + 1
        tall = np.zeros((len(own), max(size, *(len(rows) for rows, _, _ in self.jacobian.parts)), size))
        local = np.full((len(own), widest), -1)
        for e, (rows, columns, values) in enumerate(self.jacobian.parts):
            is_shared = place[columns] >= 0
            weighted = values * self.slopes[columns] * weights[rows, None]
            mine = tall[e, : len(rows)]
            mine[:, : len(own[e])] = weighted[:, ~is_shared]
            mine[:, widest + place[columns[is_shared]]] = weighted[:, is_shared]
            mine[:, -1] = self.residuals[rows] * weights[rows]
            local[e, : len(own[e])] = own[e]
        return ArrowSolver(triangle(tall), local, self.shared, low, high)


Linear = Dense | Arrow | Triangular


@dataclass(frozen=True, eq=False)
class ArrowSolver:
    """Steps on a matrix in the form of an arrow, by elimination of what is local."""

    triangles: np.ndarray  # (experiments, size, size): local columns, shared ones, residual
    local: np.ndarray  # (experiments, local): their unknowns; -1 where an experiment has fewer
    shared: np.ndarray
    low: np.ndarray  # bounds of the move
    high: np.ndarray

    def step(self, radius: float) -> Step:
        """A move within the radius and the bounds, along the path that `trust.Solver.step` takes."""
        gradient = self.gradient()
        free = ~(((self.low >= 0) & (gradient > 0)) | ((self.high <= 0) & (gradient < 0)))
        move, damping, left = np.zeros(len(gradient)), 0.0, radius
        bounds = Solver(np.empty((0, 0)), np.empty(0), self.low, self.high)
        while free.any() and left > 0:
            part, damping = self.moved(move)._within(free, left)
            share, met = bounds.until_bound(move, part)
            move = np.where(met, np.where(part > 0, self.high, self.low), move + share * part)
            if not met.any():
                break
            free, left = free & ~met, left - share * float(np.sqrt(part @ part))
        return Step(move, self.predicted(move), damping, free)

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

    def _within(self, free: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
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
