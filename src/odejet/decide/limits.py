"""Limits: unknowns that run off, because the model fits best where it has become a simpler one.

Data without a sign of saturation want its constant infinite, and a second compartment that nothing shows wants its
exchange to stop.  The likelihood then rises, or stays as it is, all the way to a bound or without end, so that the value
that a search ends with means nothing; what means something is the model in the limit, which has an unknown less.

Where a combination of unknowns makes no difference, the one that moves most in it is taken to both ends of its range,
and all others follow to the lowest point.  If only one end is as good as the best, it runs off to there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from odejet.budget import Budget
from odejet.decide.adequacy import listed
from odejet.decide.state import State
from odejet.decide.valleys import pinned
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import Refined, refine

WEAK = 0.05
"""What a factor e of a combination does to all residuals together, in units of the noise, where it makes no
difference."""

MOST, EVALUATIONS = 4, 40
"""Combinations that are followed, the weakest first, and evaluations for each end."""

AS_GOOD = 0.05
"""Units of the log-likelihood by which a limit may be worse and is as good."""

FAR = 1e3
"""Times the unit of an unknown, or its value if that is farther, that stand for infinity; one by this for zero."""

ALONG = 0.3
"""An unknown moves along if it moves by this part of the one that moves most."""


@dataclass(frozen=True)
class Limit:
    """An unknown that runs off, and those that it takes along."""

    label: str
    where: str  # "infinity", "zero" or the bound
    along: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        others = f" and takes {listed(self.along)} along" if self.along else ""
        return (
            f"{self.label} runs off to {self.where}{others}: no value of it does better than that limit, in which the "
            "model has an unknown less"
        )


@dataclass(frozen=True, eq=False)
class Ends:
    """Where the ends of the ranges of unknowns are, and what the misfit is there."""

    misfit: Misfit
    frame: Coordinates
    best: Refined

    def limits(self, determined: np.ndarray, budget: Budget) -> Iterator[Limit]:
        """Yield the unknowns that run off, of those whose values data can tell."""
        seen = set[int]()
        for direction in self._weak(determined):
            pivot = int(np.argmax(np.abs(direction)))
            if pivot in seen or budget.over:
                continue
            seen.add(pivot)
            ends = [self._end(pivot, up) for up in (False, True)]
            good = [self._reaches(direction, pivot, end, budget) for end in ends]
            if where := self._where(direction, pivot, good, budget):
                moves = np.abs(direction) >= ALONG * abs(direction[pivot])
                along = [i for i in np.flatnonzero(moves).tolist() if i != pivot]
                seen.update(along)
                labels = self.misfit.labels
                yield Limit(labels[pivot], where, tuple(labels[i] for i in along))

    def _weak(self, determined: np.ndarray) -> list[np.ndarray]:
        """Combinations that make no difference, the weakest first."""
        told = determined.copy()
        told[self.misfit.noise_entries] = False
        jacobian = (self.best.jacobian * self.frame.slopes(self.best.z))[:, told]
        if not jacobian.size or not np.isfinite(jacobian).all():
            return []
        _, sizes, rows = np.linalg.svd(jacobian, full_matrices=len(jacobian) < jacobian.shape[1])
        sizes = np.concatenate([sizes, np.zeros(len(rows) - len(sizes))])
        found = np.zeros((len(rows), len(told)))
        found[:, told] = rows
        return [found[i] for i in np.argsort(sizes, kind="stable")[:MOST] if sizes[i] < WEAK]

    def _end(self, place: int, up: bool) -> float:
        """Where the range of an unknown ends, or what stands for it where it has no end."""
        frame, z = self.frame, float(self.best.z[place])
        given = float(frame.given[int(up)][place])
        if np.isfinite(given) and given != 0:
            return given
        unit, sign = float(frame.units[place]), 1.0 if up else -1.0
        end = sign * max(abs(z), unit) * FAR if given else -sign * min(abs(z), unit) / FAR
        return float(np.clip(end, frame.low[place], frame.high[place]))

    def _where(self, direction: np.ndarray, pivot: int, good: list[bool], budget: Budget) -> str:
        """Where an unknown runs off to, by which ends of its range are as good as the best; empty for nowhere."""
        if sum(good) == 1:
            up = good[1]
            given = float(self.frame.given[int(up)][pivot])
            if not np.isfinite(given):
                return "infinity" if up else "minus infinity"
            return f"its bound {given:g}" if given else "zero"
        if all(good) and self.frame.signs[pivot] == 0:  # a reciprocal that is zero has no sign
            near = float(np.copysign(self.frame.units[pivot] / FAR, self.best.z[pivot]))
            return "" if self._reaches(direction, pivot, near, budget) else "infinity, of either sign"
        return ""

    def _reaches(self, direction: np.ndarray, pivot: int, end: float, budget: Budget) -> bool:
        """Whether this value of an unknown is as good as the best, when all others follow."""
        frame, begin = self.frame, self.frame.to(self.best.z)
        z = self.best.z.copy()
        z[pivot] = end
        move = float(frame.to(z)[pivot] - begin[pivot])
        theta = np.clip(begin + direction * (move / direction[pivot]), *frame.box)
        start = frame.back(theta)
        start[pivot] = z[pivot]
        found = refine(
            self.misfit,
            start,
            levels=self.best.levels,
            frame=pinned(frame, pivot, z[pivot]),
            max_evaluations=EVALUATIONS,
            time_limit=budget.seconds,
        )
        return bool(found.cost <= self.best.cost + AS_GOOD)


def find(state: State) -> State:
    """Find which unknowns of the best optimum run off."""
    best, task = state.best, state.task
    if best is None or best.is_exact or not best.is_settled or task.misfit.large or task.misfit.in_blocks:
        return state
    with task.stage("limits", last=True) as budget:
        found = Ends(task.misfit, state.frame, best.refined).limits(state.determined, budget)
        return replace(state, limits=tuple(one.sentence for one in found))
