"""Fitted: what fitting takes of the residuals of each output, measurement by measurement and among neighbours.

With Q an orthonormal basis of what the unknowns can fit, the leverage of a measurement is the square of its row of Q,
and A is the banded matrix that adds up neighbours, with weights that fall with their distance.  Where measurements are
very many, the rows of Q come experiment by experiment from a further simulation, and none is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.problem.misfit import Misfit
from odejet.search.refined import Refined

LAGS = 8
"""Lags of the test for autocorrelation: errors of a model stretch over many measurements."""

WEIGHTS = 0.5 * (1 - np.arange(LAGS) / LAGS)
"""Of neighbours, by lag."""

RANK = 1e-12
"""Singular values of the scaled Jacobian below this fraction of the largest fit nothing."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting takes of one output."""

    leverages: np.ndarray
    inner: np.ndarray  # Q'AQ
    squares: float  # |AQ|^2


def fitted(misfit: Misfit, refined: Refined) -> tuple[int, tuple[Fitted, ...]]:
    """How many directions the unknowns can fit, and what that takes of every output."""
    free = refined.jacobian[:, ~refined.held]
    sizes = np.sqrt((free**2).sum(axis=0))
    units = np.where(sizes > 0, 1 / np.where(sizes > 0, sizes, 1.0), 0.0)
    u, s, vt = np.linalg.svd(free[:, sizes > 0] * units[sizes > 0], full_matrices=False)
    kept = s > RANK * s.max(initial=0.0)
    if refined.by_rows:
        return int(kept.sum()), tuple(_fitted(misfit, number, u[:, kept]) for number in range(len(misfit.outputs)))
    turn = np.zeros((len(refined.z), int(kept.sum())))
    turn[np.flatnonzero(~refined.held)[sizes > 0]] = units[sizes > 0, None] * vt[kept].T / s[kept]
    return int(kept.sum()), _streamed(misfit, refined, turn)


def _fitted(misfit: Misfit, number: int, basis: np.ndarray) -> Fitted:
    """Of an output, from the rows of Q of all."""
    rows = misfit.groups[number]
    own = basis[rows]
    courses = [slice(a.start - rows.start, a.stop - rows.start) for a in _series(misfit, number)]
    moved = beside(own, courses)
    return Fitted((own**2).sum(axis=1), own.T @ moved, float((moved**2).sum()))


def _streamed(misfit: Misfit, refined: Refined, turn: np.ndarray) -> tuple[Fitted, ...]:
    """Of all outputs, from J and the matrix that turns it into Q."""
    rank = turn.shape[1]
    leverages, squares = np.zeros(misfit.points), np.zeros(len(misfit.outputs))
    inner = np.zeros((len(misfit.outputs), rank, rank))
    for number, rows, tall in misfit.derivatives(refined.z):
        own = tall[:, : len(turn)] @ (turn / refined.levels[number])
        moved = beside(own, [slice(0, len(own))])
        leverages[rows] = (own**2).sum(axis=1)
        inner[number] += own.T @ moved
        squares[number] += (moved**2).sum()
    return tuple(Fitted(leverages[rows], inner[i], float(squares[i])) for i, rows in enumerate(misfit.groups))


def _series(misfit: Misfit, number: int) -> list[slice]:
    return misfit.measurements.series(misfit.outputs[number])


def neighbours() -> Iterator[tuple[int, float]]:
    """Lags and their weights."""
    return enumerate(WEIGHTS.tolist(), start=1)


def beside(values: np.ndarray, courses: Sequence[slice]) -> np.ndarray:
    """The weighted sums of the neighbours of every row, in the courses of time where they stand."""
    moved = np.zeros_like(values)
    for course in courses:
        begin, end = course.start, course.stop
        for lag, weight in neighbours():
            if end - begin - lag > 0:
                first, second = slice(begin, end - lag), slice(begin + lag, end)
                moved[first] += weight * values[second]
                moved[second] += weight * values[first]
    return moved
