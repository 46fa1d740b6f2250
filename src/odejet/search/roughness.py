"""Roughness: how many essentially different curves a model has within a box.

Along an unknown, a prediction may rise through the range of the data once, as most do, or swing through it many times,
as an oscillation does when its frequency changes.  The misfit has about as many valleys, and a search has to be as
dense as these are narrow.  How often a prediction y crosses the range R of its output along the unknown z is the
integral of |dy/dz| over the part of the box where y lies within the range, divided by R: it is estimated from
sensitivities at points drawn at random, half of them evenly on the scale of the coordinates and half evenly in the
values.

Curves crowd in parts of a box, as those of an oscillator do near its resonance, and points drawn evenly are rarest
where the best optimum is most likely to be.  So at every point that is drawn the unknowns along which predictions swing
span a volume, the product of the singular values of what they do there, and the root mean square of these volumes is
how many curves there were if all of the box were about as crowded as its crowded parts.  Other unknowns that still
change the curve, such as a decay without which a frequency cannot be told, multiply it by their own numbers.

Where a scale is free, the range is that of the prediction itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odejet.clock import now
from odejet.objective.courses import ROUGH
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates

NARROW = 3.0
"""Valleys to a swing: measurements that swing more than others close a valley before the prediction has crossed its
range once."""

DRAWS, FIRST, SELDOM = 128, 32, 0.7
"""Points at which sensitivities are taken; so many tell enough where no prediction swings so often."""

MARGIN = 0.25
"""Of the range of the data, how far beyond it predictions still count."""

MOST = 200.0
"""Swings that one point may tell of: near where solutions grow without bound sensitivities are as large as you like."""

ALIKE = 1e-6
"""Relative differences of columns that are the same."""

MOST_POINTS = 2_000_000
"""Entries of a Jacobian that are looked at; larger ones come of data that a smoother understands."""


@dataclass(frozen=True, eq=False)
class Swings:
    """How often predictions cross the range of the data: on average along each unknown, and at each point drawn."""

    along: np.ndarray
    volumes: np.ndarray  # different curves, if all of the box were as crowded as around one point

    @property
    def curves(self) -> float:
        """How many essentially different curves there are; one for most models."""
        if not (self.along > 1.0).any():
            return 1.0
        beside = np.where(self.along > 1.0, 1.0, np.maximum(NARROW * self.along, 1.0))
        return float(np.sqrt(np.mean(self.volumes**2)) * np.prod(beside))


def curves(
    misfit: Misfit, frame: Coordinates, box: tuple[np.ndarray, np.ndarray], deadline: float = math.inf, seed: int = 0
) -> float:
    """Return how many essentially different curves there are in a box of the coordinates."""
    return swings(misfit, frame, box, deadline, seed).curves


def swings(
    misfit: Misfit, frame: Coordinates, box: tuple[np.ndarray, np.ndarray], deadline: float = math.inf, seed: int = 0
) -> Swings:
    """Measure how often predictions cross the range of the data within a box of the coordinates."""
    count = len(misfit.unknowns)
    if misfit.large or misfit.in_blocks or misfit.points * count > MOST_POINTS:
        return Swings(np.zeros(count), np.ones(1))
    misfit, rng = misfit.window(1.0, effort=ROUGH.brief), np.random.default_rng(seed)
    (low, high), ends = box, (frame.back(box[0]), frame.back(box[1]))
    widths, total = np.maximum(np.abs(ends[1] - ends[0]), 1e-300), np.zeros((misfit.points, count))
    along, grams = np.zeros(count), list[np.ndarray]()
    while len(grams) < DRAWS and now() < deadline:
        cube, even = rng.random(count), rng.random(count) < 0.5
        z = np.where(even, ends[0] + cube * (ends[1] - ends[0]), frame.back(low + cube * (high - low)))
        slopes = np.abs(frame.slopes(z))
        density = 0.5 / np.maximum(high - low, 1e-300) + 0.5 * slopes / widths
        with np.errstate(all="ignore"):
            told = _swings_at(misfit, z, slopes / density)
        told[:, misfit.noise_entries] = 0.0
        total += np.abs(told)
        grams.append(told.T @ told / misfit.points)
        along = np.sqrt(((total / len(grams)) ** 2).mean(axis=0))
        if len(grams) == FIRST and not (along > SELDOM).any():
            break
    swinging = np.flatnonzero(along > 1.0)
    if not len(swinging):
        return Swings(along, np.ones(1))
    sizes = np.sqrt(np.maximum(np.linalg.eigvalsh(np.array(grams)[:, swinging[:, None], swinging]), 0.0))
    return Swings(along, np.maximum(NARROW * sizes, 1.0).prod(axis=1))


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
            told[rows] = np.where(inside[:, None], part * widths / width, 0.0)
    return np.clip(np.nan_to_num(told, nan=0.0, posinf=MOST, neginf=-MOST), -MOST, MOST)


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
