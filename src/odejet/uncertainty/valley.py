"""Valley: points that the data cannot tell apart, and combinations that are nearly the same at all of them.

Profiles of loose unknowns lead along the floor of the likelihood, as far as it is low.  What the data determine can
hardly change there, which rules out most combinations at no cost; curvature at the optimum, which sees no bend of the
valley and no bound, cannot.  A profile that was to confirm a combination and did not adds the points that refute it.

Products have small whole exponents.  Sums may have a coefficient: where one term grows as another shrinks, the slope
of the one over the other is the coefficient that makes their sum constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.uncertainty.forms import FACTORS, TERMS, Form, exponents_of, oriented
from odejet.uncertainty.profile import Profile

SPREADS = (0.1, math.log(1.25))
"""How far the logarithm of a combination worth naming may be from that at the optimum; the second if there is none
with the first."""

_GAIN = 3.0  # how much less a combination must change than a loose part of it
_MOST_POINTS = 40  # of a profile; more are no news
_MOST_TRIED = 400_000
_SLACK = 1.05  # the last point of a profile is a little beyond the crossing
_DIGITS = 2  # of a coefficient


@dataclass(frozen=True, eq=False)
class Valley:
    """Plausible unknowns in rows, the optimum first."""

    points: np.ndarray

    @classmethod
    def of(cls, optimum: np.ndarray, profiles: Sequence[Profile]) -> Valley:
        valley = cls(optimum[None])
        for one in profiles:
            valley = valley.joined(one)
        return valley

    def joined(self, found: Profile) -> Valley:
        """The valley with the plausible points of one more profile."""
        plausible = np.flatnonzero(found.deviances <= _SLACK * found.quantile)
        chosen = plausible[np.unique(np.linspace(0, len(plausible) - 1, _MOST_POINTS).round().astype(int))]
        return Valley(np.concatenate([self.points, found.unknowns[chosen]]))

    def spread(self, form: Form) -> float:
        """How far the logarithm of a form gets from that at the optimum; infinite if its sign is not sure."""
        values = form.at(self.points)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios = values / values[0]
            return float(np.abs(np.log(ratios)).max()) if np.all(ratios > 0) else math.inf

    def forms(self, loose: np.ndarray, usable: Sequence[int], alike: Sequence[object]) -> list[Form]:
        """Combinations with loose parts that hardly change, the least changing and simplest first."""
        found = [
            *self._products(loose, usable),
            *self._sums(loose, usable, alike),
        ]
        tier = lambda form: sum(form.sd > limit for limit in SPREADS)  # noqa: E731
        return sorted(found, key=lambda form: (tier(form), *form.complexity, form.sd))

    def _products(self, loose: np.ndarray, usable: Sequence[int]) -> Iterator[Form]:
        """All products of few positive unknowns with small whole exponents; their sds are spreads."""
        usable = [i for i in usable if np.all(self.points[:, i] > 0)]
        logs = np.log(self.points[:, usable] / self.points[0, usable])
        reach, free = np.abs(logs).max(axis=0), loose[usable]
        tried = 0
        for count in range(2, min(FACTORS, len(usable)) + 1):
            powers = exponents_of(count)
            for chosen in map(list, itertools.combinations(range(len(usable)), count)):
                if not free[chosen].any():
                    continue
                tried += len(powers)
                if tried > _MOST_TRIED:
                    return
                spreads = np.abs(powers @ logs[:, chosen].T).max(axis=1)
                parts = (np.abs(powers) * np.where(free[chosen], reach[chosen], 0.0)).max(axis=1)
                for k in np.flatnonzero((spreads <= SPREADS[-1]) & (parts > _GAIN * spreads)):
                    exponents = np.zeros(len(loose))
                    exponents[[usable[i] for i in chosen]] = powers[k]
                    yield Form(exponents if exponents.sum() >= 0 else -exponents, float(spreads[k]))

    def _sums(self, loose: np.ndarray, usable: Sequence[int], alike: Sequence[object]) -> Iterator[Form]:
        """Sums of few unknowns of one sort: plain ones, and those of two with the coefficient that fits."""
        for count in range(2, min(TERMS, len(usable)) + 1):
            for chosen in map(list, itertools.combinations(usable, count)):
                if len({alike[i] for i in chosen}) > 1 or not loose[chosen].any():
                    continue
                weights = [[1.0, *signs] for signs in itertools.product((1.0, -1.0), repeat=count - 1)]
                if count == 2:
                    weights += self._fitted(chosen)
                for row in weights:
                    form = self._sum(chosen, row)
                    if form is not None:
                        yield form

    def _fitted(self, pair: Sequence[int]) -> list[list[float]]:
        """The coefficient that makes a sum of two constant, none of the two above one."""
        moves = self.points[:, pair] - self.points[0, pair]
        squares = (moves**2).sum(axis=0)
        if not np.all(squares > 0):
            return []
        slope = float(moves[:, 0] @ moves[:, 1]) / squares
        # Of the two regressions the one whose coefficient is small: its term moves far.
        if squares[1] >= squares[0]:
            return [[1.0, _rounded(-float(slope[1]))]]
        return [[_rounded(-float(slope[0])), 1.0]]

    def _sum(self, chosen: Sequence[int], weights: Sequence[float]) -> Form | None:
        coefficients = np.zeros(self.points.shape[1])
        coefficients[chosen] = weights
        value = float(coefficients @ self.points[0])
        if value == 0 or not np.all(coefficients[chosen]):
            return None
        form = Form(oriented(coefficients, value), 0.0, product=False)
        spread = self.spread(form)
        moves = np.abs((self.points - self.points[0]) * coefficients)[:, chosen].max(axis=0) / abs(value)
        # A term that moves the sum by little says nothing, however precisely the sum is known.
        if spread > SPREADS[-1] or moves.min() <= max(_GAIN * spread, SPREADS[0]):
            return None
        return Form(form.coefficients, spread, product=False)


def _rounded(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
