"""Estimator: a way to smooth one output; each stands in a file of its own and registers itself there.

    class Mean(Estimator):
        name, rank = "mean", 20.0

        def fit(self, given):
            return ...                       # a Smoother of given.data

    register(Mean())

An estimator says when it is unsuited, fits, refuses its own fit where that failed, and how far it is to be trusted.
What several of them need is computed once per output, in a `Workspace`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from odejet.budget import Budget
from odejet.smooth import noise as noise_of
from odejet.smooth.smoother import ChebyshevSeries, Linear, Smoother
from odejet.smooth.standardised import Standardised

OVERSMOOTHED = 2.0
"""A fit whose own noise is this many times the robust estimate has smoothed the signal away."""
CANCELLED = 3.0
"""Rounding in the evaluation of a polynomial may reach this many times the noise."""

Shared = TypeVar("Shared")


class Estimator(ABC):
    """What a way to smooth must say of itself."""

    name: str
    rank: float
    """Its place in the order of trust."""
    counts: bool = False
    """Whether the noise that its fit finds counts in the robust estimate for the output."""

    def unsuited(self, given: Workspace) -> str | None:
        """Why the output is not for this estimator, if so; it is then not fitted."""
        return None

    @abstractmethod
    def fit(self, given: Workspace) -> Smoother: ...

    def noise(self, given: Workspace) -> float | None:
        """The noise sd of its fit, if that counts."""
        fitted = given.fitted(self.name) if self.counts else None
        return fitted.noise if isinstance(fitted, Linear) else None

    def refusal(self, given: Workspace, fitted: Smoother) -> str | None:
        """Why its fit is not to be used anywhere for this output, if so."""
        rounding = noise_of.CLEAN * noise_of.floor(given.data)
        if isinstance(fitted, Linear) and fitted.noise > max(OVERSMOOTHED * given.noise, rounding):
            return f"it leaves residuals of sd {fitted.noise:.2g} where the noise is {given.noise:.2g}"
        lost = fitted.cancellation if isinstance(fitted, ChebyshevSeries) else 0.0
        if lost > CANCELLED * given.noise * given.data.typical_sd:
            return f"its coefficients cancel: evaluation loses {lost:.1g} to rounding"
        return None

    def trust(self, given: Workspace) -> float:
        """Estimators with smaller numbers are tried first."""
        return self.rank


ESTIMATORS: dict[str, Estimator] = {}


def register(estimator: Estimator) -> None:
    """Make an estimator known; every output is fitted by all that are."""
    ESTIMATORS[estimator.name] = estimator


class Workspace:
    """One output while its estimators are fitted: its data, fits by name, and what several fits share."""

    def __init__(self, data: Standardised, budget: Budget | None = None) -> None:
        self.data, self.budget = data, budget or Budget()
        self._fits: dict[str, Smoother] = {}
        self._shared: dict[Callable, object] = {}

    def fitted(self, name: str) -> Smoother:
        """The fit of one estimator, found when it is first asked for."""
        if name not in self._fits:
            self._fits[name] = ESTIMATORS[name].fit(self)
        return self._fits[name]

    def once(self, function: Callable[[Workspace], Shared]) -> Shared:
        """What a function makes of this output, computed when it is first asked for."""
        if function not in self._shared:
            self._shared[function] = function(self)
        return cast(Shared, self._shared[function])

    @cached_property
    def noise(self) -> float:
        """The noise sd: in natural units, or as a multiple of the known sds."""
        told = (estimator.noise(self) for estimator in ESTIMATORS.values())
        return max(float(np.median([noise for noise in told if noise is not None])), noise_of.floor(self.data))

    @property
    def clean(self) -> bool:
        """Whether the noise is no larger than rounding can explain."""
        return noise_of.is_clean(self.data, self.noise)
