"""Evidence: whether a fit may be trusted, which way led to it, and what else was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from odejet.decide.statistics import OutputCheck

UNSOUGHT = "no certificate was sought"


@dataclass(frozen=True)
class Certificate:
    """Whether a fit may be trusted to be the best there is, and why."""

    granted: bool = False
    reasons: tuple[str, ...] = (UNSOUGHT,)
    outputs: tuple[OutputCheck, ...] = ()  # size and memory of the residuals
    agreeing: int = 0  # independent starts that ended at this optimum
    noise: Mapping[str, float] = field(default_factory=dict)  # the level found, by output

    @property
    def chi_square(self) -> dict[str, float]:
        return {check.output: check.chi_square for check in self.outputs}

    @property
    def chi_square_p(self) -> dict[str, float]:
        """The probability of residuals so large or larger, by output."""
        return {check.output: check.size_p for check in self.outputs}

    @property
    def whiteness_p(self) -> dict[str, float]:
        """The probability that noise looks as little like noise as the residuals, by output."""
        return {check.output: check.white_p for check in self.outputs}

    @property
    def sentence(self) -> str:
        return f"{'granted' if self.granted else 'not granted'}: {self._why}"

    @property
    def message(self) -> str:
        """The same of the fit that has it or not."""
        return f"{'certified' if self.granted else 'not certified'}: {self._why}"

    @property
    def _why(self) -> str:
        return "; ".join(self.reasons) or "no reason given"


@dataclass(frozen=True)
class Provenance:
    """Which way led to the answer."""

    rung: str = ""  # of the ladder of effort
    estimator: str = ""  # of the derivatives
    times: tuple[float, ...] = ()  # shooting points
    start: str = ""  # "algebra", "median" or "multistart"

    @property
    def sentence(self) -> str:
        times = ", ".join(f"{t:.4g}" for t in self.times)
        parts = [self.rung, self.start, self.estimator, f"t = {times}" if times else ""]
        return ", ".join(part for part in dict.fromkeys(parts) if part) or "not recorded"


@dataclass(frozen=True, eq=False)
class Candidates:
    """The cloud of candidates: one row of unknowns each, with its misfit and who proposed it."""

    values: np.ndarray
    costs: np.ndarray
    sources: tuple[str, ...]
