"""Projection: a misfit without the scales and offsets of its outputs, which follow from all other unknowns.

For every value of the others the residuals of an output are r + A c with c its scales and offsets, and the best c is
that of linear least squares: the noise level of the output changes nothing of it.  What is left is a misfit in fewer
unknowns (Golub and Pereyra 1973) with the residuals (I - QQ') r, where Q spans the columns of A, and Kaufman's (1975)
derivative (I - QQ') J of them.  Its gradient is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.problem import Unknown
from odejet.problem.affine import Affine
from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Eliminated, Evaluation, Misfit

_RANK = 1e-12
"""Of the largest singular value: scales and offsets that the data do not tell apart."""


def projected(misfit: Misfit, frame: Coordinates) -> Projected | None:
    """The misfit without the scales and offsets that are free to take any value; None where there are none."""
    if type(misfit) is not Misfit or misfit.in_blocks or not misfit.weighted:
        return None
    found = _free(misfit, frame, misfit.affine)
    gone = sorted({entry for one in found for entry in (*one.scales, *one.offsets)})
    if not gone or len(gone) == len(misfit.unknowns):
        return None
    return Projected.of(misfit, frame, found, np.array(gone))


def _free(misfit: Misfit, frame: Coordinates, found: Sequence[Affine]) -> tuple[Affine, ...]:
    """Without those that have bounds or priors; a scale of logarithms is positive anyway."""
    low, high = frame.given
    stated = {one.entry for one in misfit.priors}
    kept = []
    for one in found:
        least = 0.0 if misfit.measurements.logarithmic[one.output] else -np.inf

        def loose(entry: int, least: float = least) -> bool:
            return entry not in stated and low[entry] <= least and high[entry] == np.inf

        own = replace(
            one,
            stretched=tuple(pair for pair in one.stretched if loose(pair[1])),
            shifted=tuple(pair for pair in one.shifted if loose(pair[1])),
        )
        if own.scales or own.offsets:
            kept.append(own)
    return tuple(kept)


@dataclass(frozen=True, eq=False)
class Projected(Misfit):
    """A misfit as a function of all unknowns but scales and offsets."""

    whole: Misfit = field(kw_only=True)
    frame: Coordinates = field(kw_only=True)
    parts: tuple[Affine, ...] = field(kw_only=True)
    gone: np.ndarray = field(kw_only=True)  # entries of z that are eliminated

    @classmethod
    def of(cls, whole: Misfit, frame: Coordinates, parts: tuple[Affine, ...], gone: np.ndarray) -> Projected:
        same = {one.name: getattr(whole, one.name) for one in fields(Misfit)}
        return cls(**same, whole=whole, frame=frame, parts=parts, gone=gone)

    @property
    def unknowns(self) -> Sequence[Unknown]:
        return tuple(self.whole.unknowns[i] for i in self.kept)

    @cached_property
    def kept(self) -> np.ndarray:
        return np.setdiff1d(np.arange(len(self.whole.unknowns)), self.gone)

    @cached_property
    def rest(self) -> Coordinates:
        """The coordinates of the unknowns that are left."""
        frame = self.frame
        return Coordinates(*(a[self.kept] for a in (frame.low, frame.high, frame.signs, frame.units)))

    @cached_property
    def plain_values(self) -> np.ndarray:
        """Scales of one and offsets of zero, with which outputs are simulated."""
        scales = {entry for part in self.parts for entry in part.scales}
        return np.array([1.0 if entry in scales else 0.0 for entry in self.gone.tolist()])

    def filled(self, z: np.ndarray, eliminated: np.ndarray | None = None) -> np.ndarray:
        """All unknowns, with these scales and offsets."""
        full = np.empty(len(self.whole.unknowns))
        full[self.kept], full[self.gone] = z, self.plain_values if eliminated is None else eliminated
        return full

    def evaluate(self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf) -> Evaluation:
        found = self.whole.evaluate(self.filled(z), jacobian, deadline)
        if found.residuals is None or jacobian:
            return self._projected(found)
        residuals = found.residuals.copy()
        for part in self.parts:
            rows = self.groups[part.output]
            basis = _basis(self._columns(part, residuals[rows]))[0]
            residuals[rows] -= basis @ (basis.T @ residuals[rows])
        return replace(found, residuals=residuals)

    def _columns(self, part: Affine, residuals: np.ndarray) -> np.ndarray:
        """What scales and offsets of an output can do to its residuals, told by these."""
        rows, name = self.groups[part.output], self.outputs[part.output]
        plain = residuals + self.measurements.targets[rows] / self.shapes[rows]
        ones = 1 / self.shapes[rows]
        scales, offsets = part.scales, part.offsets
        columns = np.zeros((len(residuals), len(scales) + len(offsets)))
        for own, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            if block.output == name:
                here = slice(own.start - rows.start, own.stop - rows.start)
                for experiment, entry in part.stretched:
                    if experiment == block.experiment:
                        columns[here, scales.index(entry)] = (ones if block.logarithm else plain)[here]
                for experiment, entry in part.shifted:
                    if experiment == block.experiment:
                        columns[here, len(scales) + offsets.index(entry)] = ones[here]
        return columns

    def tuned(
        self, z: np.ndarray, found: Evaluation, entries: np.ndarray | None = None
    ) -> tuple[np.ndarray, Evaluation]:
        full, again = self.whole.tuned(self.filled(z), found, entries)
        return (z, found) if again is found else (full[self.kept], self._projected(again))

    def _projected(self, found: Evaluation) -> Evaluation:
        """An evaluation with plain scales and offsets, at the best ones."""
        if found.residuals is None:
            return found
        residuals, whole = found.residuals.copy(), found.dense.copy()
        best = self.plain_values.copy()
        place, bases = {int(entry): i for i, entry in enumerate(self.gone)}, []
        for part in self.parts:
            rows, columns = self.groups[part.output], [*part.scales, *part.offsets]
            basis, inverse = _basis(whole[rows][:, columns])
            moves = -inverse @ residuals[rows]
            for entry, move in zip(columns, moves.tolist(), strict=True):
                best[place[entry]] = np.exp(move) if self._logarithm(part.output) else best[place[entry]] + move
            self._stretch(whole, part, best, place)
            bases.append((rows, basis))
        kept = whole[:, self.kept]
        for rows, basis in bases:
            for rest in (residuals, kept):
                rest[rows] -= basis @ (basis.T @ rest[rows])
        standing = found.standing
        if standing is not None:
            positions = standing.positions.copy()
            for part in self.parts:
                positions[self.groups[part.output]] = residuals[self.groups[part.output]]
            standing = replace(standing, positions=positions)
        told = Eliminated(best, whole)
        return replace(found, residuals=residuals, jacobian=kept, standing=standing, eliminated=told)

    def complete(self, found: Evaluation) -> Evaluation:
        """An evaluation at the best scales and offsets, as a function of all unknowns."""
        assert found.eliminated is not None
        return replace(found, jacobian=found.eliminated.jacobian, eliminated=None, predicted=None)

    def _logarithm(self, output: int) -> bool:
        return bool(self.measurements.logarithmic[output])

    def _stretch(self, jacobian: np.ndarray, part: Affine, best: np.ndarray, place: dict[int, int]) -> None:
        """Derivatives with the best scales in place of one; that of a logarithm by its scale is one over it."""
        scale, group = dict(part.stretched), self.groups[part.output]
        if self._logarithm(part.output):
            for entry in part.scales:
                jacobian[group, entry] /= best[place[entry]]
            return
        name = self.outputs[part.output]
        for rows, block in zip(self.measurements.rows, self.measurements.blocks, strict=True):
            if block.output == name and block.experiment in scale:
                jacobian[np.ix_(np.arange(rows.start, rows.stop), self.kept)] *= best[place[scale[block.experiment]]]

    def window(self, *arguments: Any, **options: Any) -> Misfit:
        return Projected.of(self.whole.window(*arguments, **options), self.frame, self.parts, self.gone)


def _basis(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis of the columns of a matrix, and its pseudo-inverse."""
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    rank = int(np.count_nonzero(s > _RANK * s.max(initial=0.0)))
    return u[:, :rank], vt[:rank].T @ (u[:, :rank].T / s[:rank, None])
