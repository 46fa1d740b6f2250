"""Optima: where refinements ended, which of them is best, and which are as good.

Outputs that span many decades hold more than residuals of one size can tell: values may be wrong though every residual
is down to the rounding of the largest measurement.  An optimum that explains each measurement down to its own rounding
is *sharp*, and goes before all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odejet.decide.statistics import FitCheck, check
from odejet.numerals import moment
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.candidates import ALIKE, distance
from odejet.search.refine import SAME, Ending, Refined

EQUAL = 0.05
"""Solutions whose negative log-likelihoods differ by less are as good as each other."""

TIED = 1e-6
"""Optima whose negative log-likelihoods differ by less are ordered by rounding alone: refinements end within 1e-7 of an
optimum."""

LIKELY = 3.32
"""Half the 0.99 quantile of chi-square with one degree of freedom: values of an optimum that is less likely by no more
than this belong into intervals of up to 99 %."""

FLAT = 0.1
"""A move that changes the residuals by less, in units of the noise, goes along a flat valley."""


@dataclass(frozen=True)
class Provenance:
    """Which way led to the answer."""

    rung: str = ""  # of the ladder of effort
    estimator: str = ""  # of the derivatives
    times: tuple[float, ...] = ()  # shooting points
    start: str = ""  # "algebra", "median" or "multistart"

    @property
    def sentence(self) -> str:
        times = ", ".join(map(moment, self.times))
        parts = [self.rung, self.start, self.estimator, f"t = {times}" if times else ""]
        return ", ".join(part for part in dict.fromkeys(parts) if part) or "not recorded"


@dataclass(frozen=True, eq=False)
class Optimum:
    """The end of a refinement, and where it came from."""

    misfit: Misfit
    refined: Refined
    provenance: Provenance = Provenance()
    sharp: bool = False  # whether every measurement is explained down to its own rounding

    @property
    def cost(self) -> float:
        return self.refined.cost

    @property
    def is_exact(self) -> bool:
        """Whether residuals are down to rounding."""
        return self.sharp or self.refined.ending is Ending.EXACT

    @property
    def is_settled(self) -> bool:
        return self.sharp or self.refined.ending.settled

    @property
    def attempt(self) -> Attempt:
        """What is told of it in the end."""
        one = self.refined
        start = one.start if len(one.start) else one.z
        told = one.z, one.cost, self.is_settled, one.message, one.evaluations, one.seconds
        return Attempt(self.provenance.rung, start, *told)

    @cached_property
    def check(self) -> FitCheck:
        """What its residuals say, found once."""
        return check(self.misfit, self.refined)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A start and where it has led."""

    rung: str
    start: np.ndarray
    end: np.ndarray
    cost: float
    settled: bool
    message: str
    evaluations: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Optima:
    """All that refinements found so far."""

    found: tuple[Optimum, ...] = ()
    elsewhere: tuple[Refined, ...] = ()  # other solutions, wherever they are; no independent starts led to them
    sharp: Optimum | None = None
    joined: tuple[Refined, ...] = ()  # ends along the valley of the best, which are no other optima

    def __bool__(self) -> bool:
        return bool(self.found)

    @cached_property
    def best(self) -> Optimum | None:
        finite = [optimum for optimum in self.found if math.isfinite(optimum.cost)]
        least = min(finite, key=lambda optimum: optimum.cost, default=None)
        return self.sharp or (least and _first_of_twins(least, finite))

    @property
    def refined(self) -> tuple[Refined, ...]:
        return tuple(optimum.refined for optimum in self.found)

    def adding(self, *optima: Optimum) -> Optima:
        return replace(self, found=(*self.found, *optima))

    def adding_elsewhere(self, *refined: Refined) -> Optima:
        return replace(self, elsewhere=(*self.elsewhere, *refined))

    def replacing(self, old: Optimum, new: Optimum) -> Optima:
        return replace(self, found=(*(optimum for optimum in self.found if optimum is not old), new))

    def at_best(self, rung: str | None = None) -> int:
        """How many refinements ended at the best optimum: all, or those of one rung."""
        best = self.best
        if best is None:
            return 0
        own = (one for one in self.found if rung is None or one.provenance.rung == rung)
        return sum(one.cost - best.cost <= SAME and one.is_settled for one in own)

    def others(self, frame: Coordinates, known: int | None, determined: np.ndarray | None = None) -> list[Refined]:
        """Optima as good as the best but elsewhere, inside the bounds first; as many as are `known` to exist.

        `determined` tells which unknowns have values that data can tell; by default all.
        """
        best = self.best
        if best is None:
            return []
        as_good = [one for one in (*self.refined, *self.elsewhere) if _as_good(one, best)]
        kept = _distinct(as_good, [best.refined, *self.joined], determined)
        inside = sorted(kept, key=lambda one: bool(np.any(frame.inside(one.z) != one.z)))
        return inside[: known - 1] if known is not None else inside

    def rivals(self, others: Sequence[Refined], determined: np.ndarray | None = None) -> list[Refined]:
        """Optima nearly as likely as the best that are neither this nor one of the `others`, the most likely first."""
        best = self.best
        if best is None or not math.isfinite(best.cost) or best.is_exact:
            return []
        likely = [one for one in self.refined if one.ending.settled and one.cost - best.cost <= LIKELY]
        known = [best.refined, *self.joined, *others]
        return _distinct(sorted(likely, key=lambda one: one.cost), known, determined)


def _first_of_twins(best: Optimum, found: Sequence[Optimum]) -> Optimum:
    """Choose among solutions with one and the same likelihood by their values, smallest first.

    Their costs differ by rounding alone, which is not the same on every machine.
    """
    tied = (one for one in found if one.cost - best.cost <= TIED and one.is_settled)
    twins = [one for one in tied if is_apart(one.refined, best.refined, None)]
    return min([best, *twins], key=lambda one: one.refined.z.tolist())


def _as_good(one: Refined, best: Optimum) -> bool:
    if one.ending is Ending.EXACT and best.is_exact:
        return True
    # What was only evaluated has the optimum's own trajectory, or it would have been refined.
    settled = one.ending.settled or one.ending is Ending.EVALUATED or not best.is_settled
    return settled and abs(one.cost - best.cost) <= EQUAL


def _distinct(optima: Sequence[Refined], known: Sequence[Refined], determined: np.ndarray | None) -> list[Refined]:
    """Those that differ from what is known and from each other."""
    kept: list[Refined] = []
    for one in optima:
        if all(is_apart(one, other, determined) for other in (*known, *kept)):
            kept.append(one)
    return kept


def is_apart(one: Refined, other: Refined, determined: np.ndarray | None) -> bool:
    """Tell whether two optima are different solutions: not two ends of a valley that the data leave flat, nor apart
    only in what no data determine."""
    told = np.ones(len(one.z), dtype=bool) if determined is None else determined
    if not told.any() or distance(one.z[told], other.z[told]) <= ALIKE:
        return False
    move = one.jacobian @ (other.z - one.z)
    return float(np.sqrt(move @ move)) > FLAT
