"""Box: where starts are drawn, around the sizes of unknowns and within their bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates

BATCH = 64
"""Starts drawn at a time, as one Latin hypercube."""

DECADES, NEAR_DECADES = 2.0, 1.0
"""On either side of the scale: where to look for what has no bounds, and where first."""


def ties(misfit: Misfit) -> np.ndarray:
    """Which unknowns are drawn together, by number: all of one name where there are very many experiments, since these
    are likely to be alike; otherwise each by itself."""
    names = [unknown.name for unknown in misfit.unknowns]
    return np.array([names.index(name) for name in names] if misfit.in_blocks else range(len(names)))


def batches(
    frame: Coordinates, sizes: np.ndarray, ties: np.ndarray, starts: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Latin hypercubes, in turn near the given sizes, on the scale of the coordinates, and even in the values.

    Evenly drawn values of a quantity that spans many decades are all of its largest size, so it keeps its scale; bounds
    that begin at zero say that its largest size is meant.
    """
    low, high = sampled_box(frame, sizes)
    near_low, near_high = sampled_box(frame, sizes, NEAR_DECADES, whole=False)
    drawn, kind = 0, 0
    while drawn < starts:
        size = min(BATCH, starts - drawn)
        cube = (np.argsort(rng.random((size, len(sizes))), axis=0) + rng.random((size, len(sizes)))) / size
        cube = cube[:, ties]
        if kind == 0:
            batch = frame.back(near_low + cube * (near_high - near_low))
        elif kind == 1:
            batch = frame.back(low + cube * (high - low))
        else:
            ends = frame.back(low), frame.back(high)
            even = ends[0] + cube * (ends[1] - ends[0])
            narrow = (frame.signs == 0) | (np.abs(high - low) <= 2 * DECADES * math.log(10) + 1e-9) | from_zero(frame)
            batch = np.where(narrow, even, frame.back(low + cube * (high - low)))
        yield batch
        drawn, kind = drawn + size, (kind + 1) % 3


def from_zero(frame: Coordinates) -> np.ndarray:
    """Of which unknowns the bounds begin, or end, at zero."""
    low, high = frame.given
    return ((low == 0) & np.isfinite(high)) | ((high == 0) & np.isfinite(low))


def sampled_box(
    frame: Coordinates, sizes: np.ndarray, decades: float = DECADES, whole: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Where to draw: around the sizes and within the bounds.

    The whole means the bounds themselves where both are given, and either sign where it is not known; otherwise an
    unknown keeps the sign of its size, since few quantities of models are negative.
    """
    theta_low, theta_high = frame.box
    signs = np.where(frame.signs != 0, frame.signs, np.where(sizes < 0, -1.0, 1.0))
    ends = np.sort(signs * np.where(sizes == 0, 1.0, np.abs(sizes)) * 10.0 ** np.array([[-decades], [decades]]), axis=0)
    if whole:
        ends = np.where(frame.signs == 0, np.abs(ends).max(axis=0) * np.array([[-1.0], [1.0]]), ends)
    low, high = np.maximum(frame.to(ends[0]), theta_low), np.minimum(frame.to(ends[1]), theta_high)
    given = np.isfinite(frame.given[0]) & np.isfinite(frame.given[1])
    all_of_it = (given & whole) | (low >= high)
    return np.where(all_of_it, theta_low, low), np.where(all_of_it, theta_high, high)
