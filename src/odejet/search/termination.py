"""Termination: how a refinement ended, what it may spend, and whether it still gains anything."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from odejet.clock import now
from odejet.objective.evaluation import Evaluation

_LONG = 3
"""Times the work of an ordinary simulation that an evaluation may take without counting as more than one."""


class Ending(Enum):
    """How a refinement ended, as a sentence."""

    CONVERGED = "no step decreases the misfit by anything that matters beside the noise"
    EXACT = "the residuals are down to rounding"
    STALLED = "no step decreases the misfit, though the linear model predicts it"
    TIME_LIMIT = "the time limit was reached before the optimum"
    EVALUATION_LIMIT = "the limit of evaluations was reached before the optimum"
    EVALUATED = "the values were taken as they are, without refinement"
    NO_START = "the model cannot be simulated from the start"

    @property
    def settled(self) -> bool:
        """Whether this is an optimum, as far as rounding lets one tell."""
        return self in (Ending.CONVERGED, Ending.EXACT, Ending.STALLED)


@dataclass
class Allowance:
    """What a refinement may spend, and what it has spent."""

    deadline: float
    limit: int  # of evaluations
    evaluations: int = 0
    work: int = 0

    @property
    def used(self) -> int:
        """How much of the limit is used up: evaluations, or what they cost where simulations are long."""
        return max(self.evaluations, self.work // _LONG)

    @property
    def left(self) -> int:
        return self.limit - self.used

    def charge(self, found: Evaluation) -> None:
        """Count an evaluation."""
        self.evaluations, self.work = self.evaluations + 1, self.work + found.work

    def charge_all(self, other: Allowance) -> None:
        """Count what another refinement has spent."""
        self.evaluations, self.work = self.evaluations + other.evaluations, self.work + other.work

    def over(self) -> Ending | None:
        """Return the ending that is due, if there is nothing left to spend."""
        if now() > self.deadline:
            return Ending.TIME_LIMIT
        return Ending.EVALUATION_LIMIT if self.used >= self.limit else None


@dataclass
class Creep:
    """The cost of late, to notice when many evaluations together gain nothing, as on the floor of a flat valley."""

    least: float = 1e-4  # a decrease in units of the noise that matters to nobody ...
    evaluations: int = 30  # ... if it takes so many of them
    past: deque[tuple[int, float]] = field(default_factory=deque)  # after how many evaluations, and the cost

    def creeps(self, evaluations: int, cost: float, unit: float) -> bool:
        """Take down a cost, and tell whether the last evaluations gained nothing that matters."""
        since = evaluations - self.evaluations
        self.past.append((evaluations, cost))
        while len(self.past) > 1 and self.past[1][0] <= since:
            self.past.popleft()
        when, before = self.past[0]
        return when <= since and before - cost <= self.least * unit
