"""Optima: where refinements ended, which of them is best, and which are as good.

Outputs that span many decades hold more than residuals of one size can tell: values may be wrong though every residual
is down to the rounding of the largest measurement.  What rounding does to a simulation is relative to the output at the
time, so such a fit is *sharpened*: refined again with residuals of that size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Misfit
from odejet.result import Provenance
from odejet.search.candidates import ALIKE, distance
from odejet.search.multistart import multistart
from odejet.search.refine import Ending, Refined, refine

EQUAL = 0.05
"""Solutions whose negative log-likelihoods differ by less are as good as each other."""

SHARPENED = 4
"""Optima from which a sharper one is looked for, before starts are drawn."""
SHARP_STARTS = 384
SHARP = 8.0
"""Relative residuals of so many times the rounding of one operation are those of a whole simulation."""

BLUNT = "the residuals are down to the rounding of the largest measurements, but not to that of the small ones"


FLAT = 0.1
"""A move that changes the residuals by less, in units of the noise, goes along a flat valley."""


@dataclass(frozen=True)
class Optimum:
    refined: Refined
    provenance: Provenance


@dataclass
class Optima:
    """All that refinements found so far; `sharp` goes before everything else."""

    found: list[Optimum] = field(default_factory=list)
    elsewhere: list[Refined] = field(default_factory=list)  # other solutions, wherever they are
    sharp: Optimum | None = None
    blunt: bool = False  # whether sharpening failed

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def best(self) -> Optimum | None:
        finite = [o for o in self.found if math.isfinite(o.refined.cost)]
        return self.sharp or min(finite, key=lambda o: o.refined.cost, default=None)

    @property
    def refined(self) -> list[Refined]:
        return [optimum.refined for optimum in self.found]

    def add(self, refined: Refined, provenance: Provenance) -> None:
        self.found.append(Optimum(refined, provenance))

    def sharpen(self, misfit: Misfit, frame: Coordinates, time_limit: float) -> None:
        """Go on to the rounding of every measurement, if residuals of one size are at that of the largest."""
        best, fine = self.best, misfit.by_rounding()
        if self.sharp is not None or best is None or fine is None or best.refined.ending is not Ending.EXACT:
            return
        order = sorted(self.found, key=lambda o: (o.refined.ending is not Ending.EXACT, o.refined.cost))
        for optimum in self.found[-1:] if self.blunt else order[:SHARPENED]:
            one = refine(fine, optimum.refined.z, frame=frame, time_limit=time_limit)
            if self._keep(misfit, fine, frame, one, optimum.provenance):
                return
        if self.blunt:
            return
        box = {u.label: (float(a), float(b)) for u, a, b in zip(misfit.unknowns, frame.low, frame.high, strict=True)}
        for one in multistart(fine, box, starts=SHARP_STARTS, time_limit=time_limit)[:1]:
            if self._keep(misfit, fine, frame, one, Provenance("multistart", start="multistart")):
                return
        self.blunt = True

    def _keep(self, misfit: Misfit, fine: Misfit, frame: Coordinates, one: Refined, provenance: Provenance) -> bool:
        """Take a sharp optimum, in the terms of the misfit itself."""
        if not one.ending.settled or np.any(one.levels > SHARP * fine.floors):
            return False
        as_it_is = refine(misfit, one.z, frame=frame, max_evaluations=1)
        self.sharp = Optimum(replace(as_it_is, ending=Ending.EXACT), provenance)
        self.blunt = False
        return True

    def others(self, frame: Coordinates, known: int | None) -> list[Refined]:
        """Optima as good as the best but elsewhere, inside the bounds first; as many as are `known` to exist."""
        best = self.best
        kept: list[Refined] = []
        if best is None:
            return kept
        for one in [*self.refined, *self.elsewhere]:
            exact = one.ending is best.refined.ending is Ending.EXACT
            settled = one.ending.settled or not best.refined.ending.settled
            equal = exact or (settled and abs(one.cost - best.refined.cost) <= EQUAL)
            if equal and all(_apart(one, other) for other in (best.refined, *kept)):
                kept.append(one)
        inside = sorted(kept, key=lambda one: bool(np.any(frame.inside(one.z) != one.z)))
        return inside[: known - 1] if known is not None else inside


def _apart(one: Refined, other: Refined) -> bool:
    """Whether two optima are different solutions, and not two ends of a valley that the data leave flat."""
    move = one.jacobian @ (other.z - one.z)
    return distance(one.z, other.z) > ALIKE and float(np.sqrt(move @ move)) > FLAT
