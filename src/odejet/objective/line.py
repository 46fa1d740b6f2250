"""Line: an output as a linear function of its scales and offsets, and their best values within bounds.

y = B c + b        B has the simulated output in the columns of scales and ones in those of offsets
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.objective.affine import Affine
from odejet.problem.coordinates import DEEPEST, Coordinates
from odejet.problem.measurements import Measurements

_ROUNDS = 30
"""Steps to the best scale and offset of logarithms; mostly a few are enough."""

_SETTLED, _ROUNDING = 1e-8, 1e-13
"""A relative step that is the last, so that the gradient of what is left is exact to nine digits; and what the squares,
which are flat there, may rise by none the less."""


@dataclass(frozen=True, eq=False)
class Line:
    """The measurements of an output, and where its scales and offsets enter."""

    rows: slice
    entries: np.ndarray  # of z: scales, then offsets
    scale: np.ndarray  # which of these stretches each measurement; -1 where none does
    ones: np.ndarray  # what offsets add to each
    targets: np.ndarray  # what outputs, or their logarithms, are compared with
    values: np.ndarray
    base: float  # the logarithm of the base in which they are compared; zero where they are as they are
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, measurements: Measurements, part: Affine, frame: Coordinates) -> Line:
        name, group = measurements.outputs[part.output], measurements.groups[part.output]
        size, stretched = group.stop - group.start, dict(part.stretched)
        scale, ones, base = np.full(size, -1), np.zeros((size, len(part.offsets))), 0.0
        for rows, block in zip(measurements.rows, measurements.blocks, strict=True):
            if block.output != name:
                continue
            base = block.density.law.logarithm if block.density is not None else block.logarithm
            here = slice(rows.start - group.start, rows.stop - group.start)
            if block.experiment in stretched:
                scale[here] = part.scales.index(stretched[block.experiment])
            for experiment, entry in part.shifted:
                if experiment == block.experiment:
                    ones[here, part.offsets.index(entry)] = part.sign(entry)
        entries = np.array([*part.scales, *part.offsets], dtype=int)
        values = measurements.values[group]
        targets = np.log(values) / base if base else values
        low = np.maximum(frame.low, DEEPEST * frame.units) if base else frame.low
        return cls(group, entries, scale, ones, targets, values, base, low[entries], frame.high[entries])

    def columns(self, plain: np.ndarray) -> np.ndarray:
        """B, for outputs with scales of one and offsets of zero."""
        scales = len(self.entries) - self.ones.shape[1]
        stretched = np.where(self.scale[:, None] == np.arange(scales), plain[:, None], 0.0)
        return np.concatenate([stretched, self.ones], axis=1)

    def factors(self, values: np.ndarray) -> np.ndarray:
        """By what each measurement is stretched."""
        return np.append(values, 1.0)[self.scale]  # the last, where there is no scale

    def at(self, plain: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The output with these scales and offsets."""
        return self.factors(values) * plain + self.ones @ values[len(values) - self.ones.shape[1] :]

    def best(self, plain: np.ndarray, sds: np.ndarray | float) -> np.ndarray:
        """The scales and offsets that fit best, within their bounds."""
        matrix, rest = self.columns(plain), np.where(self.scale >= 0, 0.0, plain)
        if not np.isfinite(matrix).all():
            return np.full(len(self.entries), np.nan)
        if not self.base:
            weights = np.ones(len(plain)) / sds
            return bounded(matrix * weights[:, None], (self.values - rest) * weights, self.low, self.high)
        weights = 1 / (self.values * sds)
        first = bounded(matrix * weights[:, None], (self.values - rest) * weights, self.low, self.high)
        return self._of_logarithms(matrix, rest, first, sds)

    def _of_logarithms(
        self, matrix: np.ndarray, rest: np.ndarray, values: np.ndarray, sds: np.ndarray | float
    ) -> np.ndarray:
        """Find scales and offsets where logarithms are compared, by steps in the logarithms of both."""

        def residuals(values: np.ndarray) -> np.ndarray:
            return np.asarray((np.log(matrix @ values + rest) / self.base - self.targets) / sds)

        low, high, log = np.log(self.low), np.log(self.high), np.log(values)
        now = residuals(values)
        squares = float(now @ now)
        for _ in range(_ROUNDS):
            values = np.exp(log)
            slopes = matrix * values / ((matrix @ values + rest) * self.base * sds)[:, None]
            if not (np.isfinite(slopes).all() and np.isfinite(squares)):
                break
            there = bounded(slopes, slopes @ log - now, low, high)  # exactly, where it is on a bound
            if np.abs(there - log).max() <= _SETTLED:
                log = there
                break
            for _ in range(_ROUNDS):
                then = residuals(np.exp(there))
                after = float(then @ then)
                if after <= squares * (1 + _ROUNDING):
                    break
                there = log + (there - log) / 4
            else:
                break
            log, now, squares = there, then, after
        # What is on a bound is exactly there, whatever rounding says, or nobody would know that it is held.
        return np.where(log <= low, self.low, np.where(log >= high, self.high, np.exp(log)))


def bounded(matrix: np.ndarray, right: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The least-squares solution of matrix c = right within bounds.

    From the nearest point of the box towards the best one of all that is free: what meets a bound on the way stays
    there until the others are at their best, and leaves it if that would go down.
    """
    values = np.linalg.lstsq(matrix, right, rcond=None)[0]
    if np.all((values >= low) & (values <= high)):
        return np.asarray(values)
    values, free = np.clip(values, low, high), np.ones(len(values), dtype=bool)
    for _ in range(4 * len(values)):
        gradient = matrix.T @ (matrix @ values - right)
        outward = ((values <= low) & (gradient >= 0)) | ((values >= high) & (gradient <= 0))
        free &= ~outward
        if not free.any():
            free = ~outward
            if not free.any():
                break
        others = right - matrix[:, ~free] @ values[~free]
        move = np.zeros(len(values))
        move[free] = np.linalg.lstsq(matrix[:, free], others, rcond=None)[0] - values[free]
        room = np.where(move > 0, high - values, low - values)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(move != 0, room / move, np.inf)
        share = float(min(shares.min(), 1.0))
        values = np.clip(values + share * move, low, high)
        met = shares <= share
        values = np.where(met & (move > 0), high, np.where(met & (move < 0), low, values))
        if share == 1.0:
            gradient = matrix.T @ (matrix @ values - right)
            inward = ~free & (((values <= low) & (gradient < 0)) | ((values >= high) & (gradient > 0)))
            if not inward.any():
                break
            free |= inward
        else:
            free &= ~met
    return np.asarray(values)
