"""Roughness: how many essentially different curves a model has within a box.

Along an unknown, a prediction may rise through the range of the data once, as most do, or swing through it many times,
as an oscillation does when its frequency changes.  The misfit has about as many valleys, and a search has to be as
dense as these are narrow.  How often a prediction y crosses the range R of its output along the unknown z is the
integral of |dy/dz| over the part of the box where y lies within the range, divided by R: it is estimated from
sensitivities at points drawn at random, half of them evenly on the scale of the coordinates and half evenly in the
values.  The numbers of all unknowns multiply.

Where a scale is free, the range is that of the prediction itself.
"""

from __future__ import annotations

import math

import numpy as np

from odejet.clock import now
from odejet.objective.courses import ROUGH
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates

NARROW = 3.0
"""Valleys to a swing: measurements that swing more than others close a valley before the prediction has crossed its
range once."""

DRAWS = 128
"""Points at which sensitivities are taken."""

MARGIN = 0.25
"""Of the range of the data, how far beyond it predictions still count."""

MOST = 200.0
"""Swings that one point may tell of: near where solutions grow without bound sensitivities are as large as you like."""

ALIKE = 1e-6
"""Relative differences of columns that are the same."""

MOST_POINTS = 2_000_000
"""Entries of a Jacobian that are looked at; larger ones come of data that a smoother understands."""


def curves(
    misfit: Misfit, frame: Coordinates, box: tuple[np.ndarray, np.ndarray], deadline: float = math.inf, seed: int = 0
) -> float:
    """How many essentially different curves there are in a box of the coordinates; one for most models."""
    found = swings(misfit, frame, box, deadline, seed)
    return float(np.prod(np.where(found > 1.0, NARROW * found, 1.0)))


def swings(
    misfit: Misfit, frame: Coordinates, box: tuple[np.ndarray, np.ndarray], deadline: float = math.inf, seed: int = 0
) -> np.ndarray:
    """How often predictions cross the range of the data along each unknown."""
    count = len(misfit.unknowns)
    if misfit.large or misfit.in_blocks or misfit.points * count > MOST_POINTS:
        return np.zeros(count)
    misfit, rng = misfit.window(1.0, effort=ROUGH.brief), np.random.default_rng(seed)
    (low, high), ends = box, (frame.back(box[0]), frame.back(box[1]))
    widths, told = np.maximum(np.abs(ends[1] - ends[0]), 1e-300), np.zeros((misfit.points, count))
    drawn = 0
    while drawn < DRAWS and now() < deadline:
        drawn += 1
        cube, even = rng.random(count), rng.random(count) < 0.5
        z = np.where(even, ends[0] + cube * (ends[1] - ends[0]), frame.back(low + cube * (high - low)))
        slopes = np.abs(frame.slopes(z))
        density = 0.5 / np.maximum(high - low, 1e-300) + 0.5 * slopes / widths
        with np.errstate(all="ignore"):
            told += _swings_at(misfit, z, slopes / density)
    told /= max(drawn, 1)
    found = np.sqrt((told**2).mean(axis=0))
    found[misfit.noise_entries] = 0.0
    return found


def _swings_at(misfit: Misfit, z: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """What every measurement says at one point, if the unknowns go on to change it as they do there."""
    found = misfit.predicted(z)
    if found.residuals is None:
        return np.zeros((misfit.points, len(z)))
    predicted, jacobian = found.residuals[: misfit.points], found.dense[: misfit.points]
    told = np.zeros_like(jacobian)
    for rows in misfit.measurements.rows:
        own, values, part = predicted[rows], misfit.values[rows], jacobian[rows]
        low, high = float(values.min()), float(values.max())
        inside = (own >= low - MARGIN * (high - low)) & (own <= high + MARGIN * (high - low))
        width = (1 + 2 * MARGIN) * (high - low)
        if (free := _scaled(own, part, z)) is not None:  # what a free scale or offset undoes makes no other curve
            part, inside = part - free @ (free.T @ part), np.ones(len(own), dtype=bool)
            width = float(own.max() - own.min()) if free.shape[1] > 1 else 2 * float(np.abs(own).max())
        if width > 0:
            told[rows] = np.where(inside[:, None], np.abs(part) * widths / width, 0.0)
    return np.minimum(np.nan_to_num(told, nan=0.0, posinf=MOST), MOST)


def _scaled(predicted: np.ndarray, jacobian: np.ndarray, z: np.ndarray) -> np.ndarray | None:
    """A basis of what a free scale, and perhaps an offset, do to a series; None where the scale is not free.

    An unknown that is a factor of all predictions, up to a constant, has them as its derivative times its value.
    """
    centred = predicted - predicted.mean()
    size = float(np.sqrt(centred @ centred))
    if not math.isfinite(size) or size == 0:
        return None
    means = jacobian.mean(axis=0)
    columns = (jacobian - means) * z
    scales = np.sqrt(((columns - centred[:, None]) ** 2).sum(axis=0)) <= ALIKE * size
    if not scales.any():
        return None
    offsets = (means != 0) & (np.abs(jacobian - means).max(axis=0) <= ALIKE * np.abs(means))
    basis = [predicted, np.ones(len(predicted))] if offsets.any() else [predicted]
    return np.linalg.qr(np.array(basis).T)[0]
