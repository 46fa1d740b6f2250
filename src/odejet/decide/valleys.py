"""Valleys: optima to which a way leads from the best without going uphill are no others but its own valley.

Data that hardly determine a combination of unknowns leave a long, bent valley of nearly equal likelihood, and descents
end anywhere along it.  From one end to another a path is followed as a profile is: the unknown in which the ends differ
most goes from its value at the one to that at the other, step by step, and all else follows to the lowest point.  If
the path rises nowhere and arrives, the ends are one optimum: an interval around the one has the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.budget import Budget
from odejet.decide.optima import is_apart
from odejet.decide.state import State
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import Refined, refine

STEPS, EVALUATIONS = 5, 40
"""Of a path from one end of a valley to another, and evaluations for each step."""

RISE = 0.5
"""How far a path may rise above the higher end: data that are less likely by no more than that tell nobody which of
the two ends is meant."""

MOST = 12
"""Optima that are asked, the most likely first."""


@dataclass(frozen=True, eq=False)
class Valley:
    """The ground on which paths are followed."""

    misfit: Misfit
    frame: Coordinates
    determined: np.ndarray  # which unknowns have values that data can tell

    def holds(self, one: Refined, other: Refined, budget: Budget) -> bool:
        """Whether a path along the valley leads from one end to the other."""
        moves = np.where(self.determined, self.frame.to(other.z) - self.frame.to(one.z), 0.0)
        pivot = int(np.argmax(np.abs(moves)))
        begin, top = float(self.frame.to(one.z)[pivot]), max(one.cost, other.cost) + RISE
        end = one
        for step in range(1, STEPS + 1):
            if budget.over:
                return False
            theta = self.frame.to(end.z)
            theta[pivot] = begin + moves[pivot] * step / STEPS
            z = self.frame.back(theta) if step < STEPS else np.where(np.arange(len(theta)) == pivot, other.z, end.z)
            end = refine(
                self.misfit,
                z,
                levels=one.levels,
                frame=pinned(self.frame, pivot, z[pivot]),
                max_evaluations=EVALUATIONS,
                time_limit=budget.seconds,
            )
            if not end.cost <= top:
                return False
        return not is_apart(end, other, self.determined)


def pinned(frame: Coordinates, place: int, value: float) -> Coordinates:
    """The same scales with one unknown kept at a value."""
    low, high = frame.low.copy(), frame.high.copy()
    low[place] = high[place] = value
    return replace(frame, low=low, high=high)


def join(state: State) -> State:
    """Recognise optima that lie along the valley of the best, where several are about as likely."""
    best, task = state.best, state.task
    asked = [*(state.others if state.counts_nothing else ()), *state.rivals][:MOST]
    if best is None or not asked or task.misfit.large or task.misfit.in_blocks:
        return state
    ground = Valley(task.misfit, state.frame, state.determined)
    with task.stage("valleys", last=True) as budget:
        found = _joined(ground, best.refined, asked, budget)
    return replace(state, optima=replace(state.optima, joined=tuple(found)))


def _joined(ground: Valley, best: Refined, asked: Sequence[Refined], budget: Budget) -> list[Refined]:
    """Those of some optima that lie along the valley of the best, which nearer ones may lead to."""
    found = list[Refined]()
    for one in sorted(asked, key=lambda other: _distance(ground, best, other)):
        nearest = min((best, *found), key=lambda known: _distance(ground, known, one))
        if ground.holds(nearest, one, budget):
            found.append(one)
    return found


def _distance(ground: Valley, one: Refined, other: Refined) -> float:
    apart = np.abs(ground.frame.to(other.z) - ground.frame.to(one.z))
    return float(np.max(apart[ground.determined], initial=0.0))
