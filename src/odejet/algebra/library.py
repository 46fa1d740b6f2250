"""Library: what algebra knows of a model before any data: its verdict, its square systems and their fibres.

All of it depends on the model alone, and is found when it is first asked for.  Each fit has libraries of its own, which
take from the `memory` of the process what an earlier one has found.  What ended because the caller's budget was small
is tried again when more is given.
"""

from __future__ import annotations

import numpy as np

from odejet.algebra.memory import MORE, Memory, memory
from odejet.algebra.monodromy import Fibre, fibre
from odejet.algebra.select import Least, least, refined
from odejet.algebra.system import SquareSystem
from odejet.budget import Budget, OutOfBudget
from odejet.errors import ModelError
from odejet.identify import Verdict
from odejet.identify.judge import judge
from odejet.model import Model

IDENTIFY_SECONDS = 10.0
"""What the verdict may take: counting solutions beyond is for those who ask for nothing else."""
FIBRE_WORK = {1: 1e10, 2: 1e9}
"""Operations to find the fibre of a system, by its number of points: a pair is a second opinion only."""
MOST_PAIR_ROOTS = 8
"""Two-point systems with more roots cost more than they tell."""
MOST_WORK, MOST_SECONDS = 3e10, 60.0
"""More than this is never used for a fibre, its system included."""


class Library:
    """The algebra of one model; every part is found when it is first asked for."""

    def __init__(self, model: Model, known: Memory | None = None) -> None:
        self.model, self.memory = model, memory(model) if known is None else known
        self._reasons: dict[int, str] = {}
        self._fibres: dict[int, Fibre | None] = {}
        self._systems: dict[int, SquareSystem] = {}
        self._least: dict[int, Least] = {}
        self._given: dict[int, np.ndarray] = {}  # work and seconds with which a fibre was looked for

    @property
    def verdict(self) -> Verdict:
        """What can be known of the model, as far as a few seconds tell."""
        return self.judged(IDENTIFY_SECONDS)

    def judged(self, seconds: float) -> Verdict:
        """The verdict that so many seconds allow; what they leave undecided is tried again when there are more."""
        seconds, known = min(seconds, IDENTIFY_SECONDS), self.memory
        if known.verdict is None or (known.verdict.reason and seconds > MORE * known.judged):
            known.verdict, known.judged = judge(self.model, (), "generic", seconds, 0, "exact"), seconds
        return known.verdict

    def system(self, points: int = 1, budget: Budget | None = None) -> SquareSystem:
        """The square system of one point or two; `ModelError` or `OutOfBudget` say why there is none."""
        if points not in self._systems:
            first, budget = self.least(points, budget), Budget() if budget is None else budget
            found = self.memory.recall("system", points, first, lambda own: refined(first, budget=own), budget)
            self._systems[points] = found
        return self._systems[points]

    def least(self, points: int = 1, budget: Budget | None = None) -> Least:
        """The rows of least order; errors as of `system`."""
        if points not in self._least:
            budget = Budget() if budget is None else budget
            found = self.memory.recall("least", points, None, lambda own: least(self.model, points, budget=own), budget)
            self._least[points] = found
        return self._least[points]

    def fibre(self, points: int, budget: Budget | None = None, highest: int | None = None) -> Fibre | None:
        """The fibre of the square system of one point or two; None for a reason.

        A system that needs derivatives above the `highest` that the data can tell is not looked at any further.
        """
        budget = Budget() if budget is None else budget
        if highest is not None and self._beyond(points, budget, highest):
            return None
        given = np.array([min(budget.left, MOST_WORK), min(budget.seconds, MOST_SECONDS)])
        known = self._fibres.get(points)
        complete = known is not None and known.complete
        if points not in self._fibres or (not complete and np.any(given > MORE * self._given[points])):
            self._reasons.pop(points, None)
            self._fibres[points], self._given[points] = self._attempt(points, budget), given
        return self._fibres[points]

    def _beyond(self, points: int, budget: Budget, highest: int) -> bool:
        """Whether the system needs derivatives of a higher order."""
        try:
            needed = self.least(points, budget).highest
        except (ModelError, OutOfBudget):
            return False  # the attempt itself says so, and why
        if needed > highest:
            times = highest + 1
            self._reasons[points] = f"it needs derivatives of order {needed}, and there are {times} different times"
        return needed > highest

    def reason(self, points: int) -> str:
        """Why there is no fibre."""
        return self._reasons.get(points, "")

    def _attempt(self, points: int, budget: Budget) -> Fibre | None:
        try:
            if points == 2 and self.fibre(1, budget) is None:
                raise OutOfBudget("one point is out of reach, and two have more unknowns")
            system = self.system(points, budget)
            if points == 2 and not self._worthwhile(system):
                return None
            limited, ones = budget.at_most(work=FIBRE_WORK[points]), np.ones(len(system.fixed))
            return self.memory.recall(
                "fibre", points, system, lambda own: fibre(system, fixed=ones, budget=own), limited
            )
        except (ModelError, OutOfBudget) as error:
            self._reasons[points] = str(error)
            return None

    def _worthwhile(self, pair: SquareSystem) -> bool:
        """Whether two points need lower derivatives than one, at a bearable number of roots."""
        if pair.highest >= self._systems[1].highest:
            self._reasons[2] = "two points need no lower derivatives than one"
        elif pair.roots is None or pair.roots > MOST_PAIR_ROOTS:
            self._reasons[2] = "two points have too many roots"
        return 2 not in self._reasons
