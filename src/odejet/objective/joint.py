"""Joint: the scales and offsets of an output together with noise that depends on the output itself.

Neither follows from the other, but all of them follow from the simulated output alone (see `objective.likeliest`).  An
output without scales and offsets has its noise found in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.model.formula import NUMBER
from odejet.objective.likeliest import Points, ScaleLaws, likeliest
from odejet.objective.line import LinearOutput
from odejet.problem.laws import Density
from odejet.problem.measurements import Measurements


@dataclass(frozen=True, eq=False)
class JointNoise:
    """An output with scales, offsets and noise that are to be found together."""

    entries: np.ndarray  # of z: scales, offsets, then what only the noise of this output depends on
    own: int  # how many of these are scales and offsets
    points: Points
    laws: ScaleLaws
    outside: np.ndarray  # (laws, most): entries of z behind the symbols of laws, found here or not
    low: np.ndarray  # bounds of the entries
    high: np.ndarray

    @classmethod
    def of(
        cls,
        line: LinearOutput,
        output: str,
        noise: np.ndarray,
        measurements: Measurements,
        box: tuple[np.ndarray, np.ndarray],
    ) -> JointNoise:
        entries = np.concatenate([line.entries, noise])
        densities: dict[Any, tuple[int, Density]] = {}
        law = np.zeros(len(line.values), dtype=np.int64)
        for rows, block in zip(measurements.rows, measurements.blocks, strict=True):
            if block.output == output and block.density is not None:
                number, _ = densities.setdefault(block.density.key, (len(densities), block.density))
                law[rows.start - line.rows.start : rows.stop - line.rows.start] = number
        laws, outside = _laws([density for _, density in densities.values()], entries)
        points = Points(line.values, line.targets, float(line.base), line.scale, line.ones, law)
        low = np.maximum(box[0][entries], np.finfo(float).tiny)
        return cls(entries, len(line.entries), points, laws, outside, low, box[1][entries])

    def best(self, plain: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The most likely scales, offsets and noise for an output with scales of one and offsets of zero; NaN where
        there are none.  All else that its noise depends on is as it is in z."""
        known, first = z[self.outside], z[self.entries]
        return likeliest(self.points, self.laws, known, plain, self.own, first, self.low, self.high)


def _laws(densities: list[Density], entries: np.ndarray) -> tuple[ScaleLaws, np.ndarray]:
    """Their formulas, one after the other, and the entries of z behind the symbols of each."""
    place, most = {int(entry): i for i, entry in enumerate(entries)}, max(len(one.entries) for one in densities)
    symbols, outside = np.full((len(densities), most), -1), np.zeros((len(densities), most), dtype=np.int64)
    codes, numbers, counts = list[np.ndarray](), np.empty(0), np.array([len(one.entries) for one in densities])
    for i, (one, count) in enumerate(zip(densities, counts, strict=True)):
        code = one.formula.code.copy()
        code[code[:, 0] == NUMBER, 1] += len(numbers)
        codes.append(code)
        numbers = np.append(numbers, one.formula.numbers)
        outside[i, :count] = one.entries
        symbols[i, :count] = [place.get(int(entry), -1) for entry in one.entries]
    return ScaleLaws(np.concatenate(codes), numbers, np.cumsum([0, *map(len, codes)]), symbols, counts), outside
