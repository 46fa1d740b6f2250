"""Fitted: the residuals of each output, and what fitting took of them, one by one and among neighbours.

With Q an orthonormal basis of what the unknowns can fit, the leverage of a measurement is the square of its row of Q,
and A is the banded matrix that adds up neighbours, with weights that fall with their distance.  Where experiments are
many that have unknowns of their own, Q has blocks (see `objective.factor`).  Where measurements are very many,
residuals and rows of Q come experiment by experiment from a further simulation, and no row is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.objective.factor import ArrowFactor
from odejet.objective.misfit import Misfit
from odejet.search.refined import Refined

LAGS = 8
"""Lags of the test for autocorrelation: errors of a model stretch over many measurements."""

WEIGHTS = 0.5 * (1 - np.arange(LAGS) / LAGS)
"""Of neighbours, by lag."""

RANK = 1e-12
"""Singular values of the scaled Jacobian below this fraction of the largest fit nothing."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The residuals of one output, in units of the shape of its noise, and what fitting took of them."""

    residuals: np.ndarray
    leverages: np.ndarray
    trace: float  # of Q'AQ
    inner: float  # |Q'AQ|^2
    squares: float  # |AQ|^2


def fitted(misfit: Misfit, refined: Refined) -> tuple[int, tuple[Fitted, ...]]:
    """How many directions the unknowns can fit, and what that took of every output."""
    if misfit.in_blocks and refined.simulated:
        arrow = ArrowFactor.of(refined.jacobian, misfit.blocks, misfit.shared, ~refined.held)
        if arrow is not None:
            numbers = range(len(misfit.outputs))
            return arrow.rank, tuple(_by_blocks(misfit, refined, number, arrow) for number in numbers)
    free = refined.jacobian[:, ~refined.held]
    sizes = np.sqrt((free**2).sum(axis=0))
    units = np.where(sizes > 0, 1 / np.where(sizes > 0, sizes, 1.0), 0.0)
    u, s, vt = np.linalg.svd(free[:, sizes > 0] * units[sizes > 0], full_matrices=False)
    kept = s > RANK * s.max(initial=0.0)
    if refined.by_rows:
        numbers = range(len(misfit.outputs))
        return int(kept.sum()), tuple(_fitted(misfit, refined, number, u[:, kept]) for number in numbers)
    turn = np.zeros((len(refined.z), int(kept.sum())))
    turn[np.flatnonzero(~refined.held)[sizes > 0]] = units[sizes > 0, None] * vt[kept].T / s[kept]
    return int(kept.sum()), _streamed(misfit, refined, turn)


def _fitted(misfit: Misfit, refined: Refined, number: int, basis: np.ndarray) -> Fitted:
    """Of an output, from the rows of Q of all."""
    rows = misfit.groups[number]
    own, residuals = basis[rows], refined.residuals[rows] * refined.levels[number]
    series = misfit.measurements.series(misfit.outputs[number])
    moved = beside(own, [slice(one.start - rows.start, one.stop - rows.start) for one in series])
    inner = own.T @ moved
    return Fitted(
        residuals,
        (own**2).sum(axis=1),
        float(np.trace(inner)),
        float((inner * inner.T).sum()),
        float((moved**2).sum()),
    )


def _by_blocks(misfit: Misfit, refined: Refined, number: int, arrow: ArrowFactor) -> Fitted:
    """Of an output, from the blocks of Q: experiments meet only in what is shared."""
    rows, shared = misfit.groups[number], len(arrow.shared)
    leverages, squares = np.zeros(rows.stop - rows.start), 0.0
    inner_parts, borders, corner = dict[int, np.ndarray](), dict[int, np.ndarray](), np.zeros((shared, shared))
    homes, places = arrow.home
    for series in misfit.measurements.series(misfit.outputs[number]):
        home = int(homes[series.start])
        block, here = arrow.blocks[home], places[series]
        own, border = block.own[here], block.border[here]
        leverages[series.start - rows.start : series.stop - rows.start] = (own**2).sum(axis=1) + (border**2).sum(axis=1)
        course = [slice(0, len(here))]
        own_moved, border_moved = beside(own, course), beside(border, course)
        squares += float((own_moved**2).sum()) + float((border_moved**2).sum())
        inner_parts[home] = inner_parts.get(home, 0.0) + own.T @ own_moved
        borders[home] = borders.get(home, 0.0) + own.T @ border_moved
        corner += border.T @ border_moved
    trace = float(np.trace(corner)) + sum(float(np.trace(part)) for part in inner_parts.values())
    inner = float((corner * corner.T).sum()) + sum(float((part * part.T).sum()) for part in inner_parts.values())
    inner += 2 * sum(float((part**2).sum()) for part in borders.values())
    return Fitted(refined.residuals[rows] * refined.levels[number], leverages, trace, inner, squares)


def _streamed(misfit: Misfit, refined: Refined, turn: np.ndarray) -> tuple[Fitted, ...]:
    """Of all outputs, from J and the matrix that turns it into Q."""
    rank = turn.shape[1]
    residuals, leverages, squares = np.zeros(misfit.points), np.zeros(misfit.points), np.zeros(len(misfit.outputs))
    inner = np.zeros((len(misfit.outputs), rank, rank))
    for part in misfit.stream(refined.z, expected=True):
        if part.rows.start >= misfit.points:
            continue
        number = next(i for i, group in enumerate(misfit.groups) if group.start <= part.rows.start < group.stop)
        own = part.jacobian @ (turn / refined.levels[number])
        moved = beside(own, [slice(0, len(own))])
        residuals[part.rows], leverages[part.rows] = part.residuals, (own**2).sum(axis=1)
        inner[number] += own.T @ moved
        squares[number] += (moved**2).sum()
    return tuple(
        Fitted(
            residuals[rows],
            leverages[rows],
            float(np.trace(inner[i])),
            float((inner[i] * inner[i].T).sum()),
            float(squares[i]),
        )
        for i, rows in enumerate(misfit.groups)
    )


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
