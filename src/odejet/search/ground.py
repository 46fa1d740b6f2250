"""Ground: the objective of a search within its box, exact where an optimum needs it and rough on the way there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from odejet.clock import now
from odejet.objective.courses import ROUGH, Effort
from odejet.objective.misfit import Misfit
from odejet.objective.projection import projected
from odejet.objective.reduced import AnyMisfit
from odejet.problem.coordinates import Coordinates
from odejet.search import quasi_newton
from odejet.search.refine import Refined, refine
from odejet.search.screen import Screen
from odejet.search.workers import Question


class Ground:
    """A misfit in its box, which strategies explore until a deadline; what becomes of one start depends on no other."""

    def __init__(
        self,
        misfit: Misfit,
        frame: Coordinates,
        levels: np.ndarray | None,
        deadline: float,
        effort: Effort = ROUGH,
    ) -> None:
        self.misfit, self.frame, self.levels, self.deadline, self.effort = misfit, frame, levels, deadline, effort
        self.rough = misfit.window(1.0, effort=effort)
        self.screen = Screen.of(self.rough, frame)
        self._windows: dict[tuple[float, int], tuple[Misfit, AnyMisfit]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Whoever gets a copy makes what follows from these, which is more than they are.
        return Ground, (replace(self.misfit), self.frame, self.levels, self.deadline, self.effort)

    def window(self, part: float, points: int) -> tuple[Misfit, AnyMisfit]:
        """The first part of every experiment at so many points of a series, and without what can be eliminated."""
        key = part, points
        if key not in self._windows:
            window = self.misfit.window(part, points, self.misfit.scales, self.effort)
            reduced = None if quasi_newton.serves(window) else projected(window, self.frame)
            self._windows[key] = window, reduced or window
        return self._windows[key]

    def exact(self, z: np.ndarray, evaluations: int) -> Refined:
        """Where exact simulations lead."""
        return self._refined(self.misfit, z, evaluations)

    def roughly(self, z: np.ndarray, evaluations: int) -> Refined:
        """Where rough simulations lead."""
        return self._refined(self.rough, z, evaluations)

    def _refined(self, misfit: Misfit, z: np.ndarray, evaluations: int) -> Refined:
        left = self.deadline - now()
        return refine(misfit, z, levels=self.levels, time_limit=left, max_evaluations=evaluations, frame=self.frame)


def exactly(z: np.ndarray, evaluations: int) -> Question:
    """Ask where exact simulations lead."""
    return Question(("exactly", z.tobytes(), evaluations), _exact, (z, evaluations))


def roughly(z: np.ndarray, evaluations: int) -> Question:
    """Ask where rough simulations lead."""
    return Question(("roughly", z.tobytes(), evaluations), _rough, (z, evaluations))


def _exact(ground: Ground, item: tuple[np.ndarray, int]) -> Refined:
    return ground.exact(*item)


def _rough(ground: Ground, item: tuple[np.ndarray, int]) -> Refined:
    return ground.roughly(*item)
