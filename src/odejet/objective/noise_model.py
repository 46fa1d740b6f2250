"""Noise model: what residuals say of the noise, and how likely they are.

    cost = sum_j N_j log(level_j) + SSE_j / (2 level_j^2) + constants

is the negative logarithm of the likelihood; with `weights="none"` it is half the sum of squares, as plain least squares
has it.  A level that is not known is at its most likely value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.model import Model
from odejet.objective.evaluation import Evaluation, NoiseAt
from odejet.objective.scoring import Scoring
from odejet.problem.conditions import Condition
from odejet.problem.distributions import Logarithmic, Normal
from odejet.problem.measurements import Measurements
from odejet.problem.priors import Truncated
from odejet.problem.unknowns import Unknown, Unknowns
from odejet.simulate.flow import Flow


@dataclass(frozen=True, eq=False)
class Simulator:
    """What the experiments of a problem need to be simulated, whichever of their measurements are looked at."""

    model: Model
    conditions: tuple[Condition, ...]
    flows: tuple[Flow, ...]
    unknowns: Unknowns
    feelings: tuple[int, ...]  # how many unknowns each output feels


class NoiseModel:
    """Measurements with the noise that they have: what an objective is, whichever unknowns it is a function of."""

    simulator: Simulator
    measurements: Measurements
    known: np.ndarray  # noise level per output; NaN where it is to be estimated
    weighted: bool  # by the likelihood, or plain squares
    priors: tuple[Truncated, ...]

    @property
    def model(self) -> Model:
        return self.simulator.model

    @property
    def unknowns(self) -> Sequence[Unknown]:
        return self.simulator.unknowns

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.unknowns)

    @property
    def points(self) -> int:
        return len(self.values)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.measurements.outputs

    @property
    def values(self) -> np.ndarray:
        return self.measurements.values

    @property
    def times(self) -> np.ndarray:
        return self.measurements.times

    @property
    def shapes(self) -> np.ndarray:
        return self.measurements.shapes

    @property
    def groups(self) -> tuple[slice, ...]:
        return self.measurements.groups

    @property
    def counts(self) -> np.ndarray:
        return self.measurements.counts

    @property
    def floors(self) -> np.ndarray:
        return self.measurements.floors

    @property
    def scales(self) -> np.ndarray:
        return self.measurements.scales

    @cached_property
    def scoring(self) -> Scoring | None:
        """The rows of what is no level times a shape; None where there is nothing of the kind."""
        if self.measurements.usual and not self.priors:
            return None
        return Scoring(self.measurements, self.priors)

    @property
    def rows(self) -> int:
        """How many residuals there are: one per measurement, then those of scales and of priors."""
        return self.points if self.scoring is None else self.scoring.rows

    @property
    def row_groups(self) -> tuple[slice, ...]:
        """Where the residuals of each output stand, and after them all others, if there are any."""
        return self.groups if self.rows == self.points else (*self.groups, slice(self.points, self.rows))

    @cached_property
    def estimated(self) -> np.ndarray:
        """Which outputs have a noise level that is to be estimated."""
        return np.isnan(self.known)

    @cached_property
    def free_noise(self) -> np.ndarray:
        """Which outputs have noise whose size the fit has to find: a level, or a scale that depends on unknowns."""
        free = {block.output for block in self.measurements.blocks if block.density and block.density.varies}
        return self.estimated | np.array([name in free for name in self.outputs])

    @cached_property
    def deviations(self) -> np.ndarray:
        """The sd of each output about its mean, in the units of its noise level; NaN where noise is known or has its
        own law."""
        found = np.full(len(self.outputs), math.nan)
        for number, rows in enumerate(self.groups):
            count = rows.stop - rows.start
            if self.estimated[number] and not self.measurements.densities[number] and count > 1:
                shapes, targets = self.shapes[rows], self.measurements.targets[rows]
                mean = float(np.average(targets, weights=1 / shapes**2))
                found[number] = math.sqrt(float(np.sum(((targets - mean) / shapes) ** 2)) / (count - 1))
        return found

    @cached_property
    def borrowing(self) -> np.ndarray:
        """Outputs with no degrees of freedom of their own: no more points than unknowns that could fit them exactly."""
        return self.estimated & (self.counts <= np.array(self.simulator.feelings))

    @cached_property
    def pool(self) -> np.ndarray:
        """Outputs that share a noise level, relative to their spread: those that borrow, and one with most points."""
        if not self.borrowing.any():
            return self.borrowing
        lenders = self.estimated & ~self.borrowing
        most = np.argmax(np.where(lenders if lenders.any() else self.estimated, self.counts, -1))
        return self.borrowing | (np.arange(len(self.outputs)) == most)

    # --- likelihood ---

    def squares(self, residuals: np.ndarray) -> np.ndarray:
        """The sum of squares per output, safe against overflow."""
        with np.errstate(over="ignore"):
            return np.array([float(residuals[rows] @ residuals[rows]) for rows in self.groups])

    def is_exact(self, found: Evaluation) -> bool:
        """Whether the residuals of every output are down to rounding."""
        assert found.residuals is not None
        rms = np.sqrt(self.squares(found.residuals) / np.maximum(self.counts, 1))
        own = self.measurements.densities if found.standing is not None else np.zeros(len(rms), dtype=bool)
        parts = () if found.standing is None else found.standing.parts
        return bool(np.all((rms <= self.floors) | own)) and all(part.is_exact for part in parts)

    def levels(self, residuals: np.ndarray) -> np.ndarray:
        """The most likely noise level per output: its rms residual where it is not known, never below rounding.

        A few points can be fitted exactly, which says nothing of their noise: an output without degrees of freedom of
        its own shares one level, relative to its spread, with the output that has most.
        """
        squares = self.squares(residuals)
        rms = np.sqrt(squares / np.maximum(self.counts, 1))
        if self.pool.any():
            spreads, counts = self.scales[self.pool], self.counts[self.pool]
            rms[self.pool] = spreads * math.sqrt(float((squares[self.pool] / spreads**2).sum()) / counts.sum())
        return np.where(self.estimated, np.maximum(rms, self.floors), self.known)

    def cost(self, residuals: np.ndarray, levels: np.ndarray | None = None, rest: float = 0.0) -> float:
        """The negative log-likelihood (half the sum of squares with weights "none"); levels as likely as possible.

        `rest` is what an evaluation has beside squares.
        """
        squares = np.where(self.measurements.densities, 0.0, self.squares(residuals))
        if not self.weighted:
            return 0.5 * float(squares.sum()) + rest
        levels = self.levels(residuals) if levels is None else levels
        # Below rounding all residuals are as good.
        squares = np.where(self.estimated, np.maximum(squares, self.counts * self.floors**2), squares)
        with np.errstate(over="ignore"):
            return float(self.counts @ np.log(levels) + 0.5 * (squares / levels**2).sum()) + self.constant + rest

    @cached_property
    def constant(self) -> float:
        """What no value changes of the cost of squares."""
        points = self.points - int(self.counts[self.measurements.densities].sum())
        logarithms = sum(
            float(np.log(block.values * block.logarithm).sum())
            for block in self.measurements.blocks
            if block.logarithm and block.density is None
        )
        return 0.5 * points * math.log(2 * math.pi) + float(np.log(self.shapes).sum()) + logarithms

    def noise_at(self, found: Evaluation, levels: np.ndarray) -> NoiseAt:
        """The noise of every measurement, with these levels where it is a level times a shape."""
        assert found.residuals is not None
        rows = np.repeat(levels, self.counts)
        scores, sds = found.residuals[: self.points] / rows, rows * self.shapes
        scales, persistent = sds.copy(), np.zeros(len(self.outputs))
        for own, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            if block.logarithm and block.density is None:
                mu = np.exp(block.logarithm * (found.residuals[own] * block.shapes + block.targets))
                sds[own] = Logarithmic(Normal(), block.logarithm).sd(mu, sds[own])
        for part in () if found.standing is None else found.standing.parts:
            law = part.density.law
            scores[part.rows] = part.scores
            sds[part.rows] = law.sd(part.mu, part.s)
            scales[part.rows] = sds[part.rows] if law.whole else part.s
            if part.memory is not None:
                persistent[self.outputs.index(part.density.output)] += part.memory.innovations.degrees(
                    part.memory.sought
                )
        return NoiseAt(scores, sds, scales, np.where(persistent > 0, np.minimum(persistent, self.counts), self.counts))

    def group_levels(self, levels: np.ndarray) -> np.ndarray:
        """A level for every group of rows: one for what belongs to no output."""
        return levels if self.rows == self.points else np.append(levels, 1.0)

    def row_levels(self, levels: np.ndarray) -> np.ndarray:
        """A level per output, repeated for every residual; one for those that belong to no output."""
        rows = np.repeat(levels, self.counts)
        return rows if self.rows == self.points else np.concatenate([rows, np.ones(self.rows - self.points)])
