"""Candidate: one of the models among which a selection chooses, fitted, with what its likelihood is worth.

    AIC = 2k - 2 log L    AICc = AIC + 2k(k + 1)/(N - k - 1)    BIC = k log N - 2 log L

for N measurements and k parameters: directions of the unknowns that the data determine, and estimated noise levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from odejet.decide.optimality import CONFIRMED
from odejet.errors import ModelError
from odejet.problem import Problem
from odejet.result import Fit

CRITERIA = ("aicc", "aic", "bic")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model with some of its switches on, and its fit; without a fit where nothing is unknown in it."""

    name: str
    estimated: frozenset[str]  # switches that are on: their parameters are estimated
    off: Mapping[str, float | str]  # the values of the others
    problem: Problem
    fit: Fit | None
    log_likelihood: float
    parameters: int
    seconds: float = 0.0

    @property
    def points(self) -> int:
        return sum(experiment.points for experiment in self.problem.experiments)

    @property
    def aic(self) -> float:
        return 2 * self.parameters - 2 * self.log_likelihood

    @property
    def aicc(self) -> float:
        """Infinite where there are too few measurements for the correction."""
        left = self.points - self.parameters - 1
        return self.aic + 2 * self.parameters * (self.parameters + 1) / left if left > 0 else math.inf

    @property
    def bic(self) -> float:
        return self.parameters * math.log(self.points) - 2 * self.log_likelihood

    def criterion(self, name: str) -> float:
        """The value to be as small as possible."""
        return float(getattr(self, name))

    @property
    def confirmed(self) -> bool:
        """Whether the fit is known to be the best that this model can do; one without unknowns has no other."""
        return self.fit is None or is_confirmed(self.fit)

    def nested_in(self, other: Candidate) -> bool:
        """Whether this is the other with more switches off."""
        return self.estimated < other.estimated and all(self.off.get(name) == off for name, off in other.off.items())


def is_confirmed(fit: Fit) -> bool:
    """Whether the search has confirmed that no better values exist, whether or not the model explains the data."""
    return fit.certified or fit.search == CONFIRMED


def checked_criterion(name: str) -> str:
    """A criterion by its name, in any spelling of its letters."""
    if not isinstance(name, str) or name.lower() not in CRITERIA:
        raise ModelError(f"criterion must be one of {', '.join(CRITERIA)}, not {name!r}")
    return name.lower()
