"""Comparison: data beside fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Comparison:
    """One output of one experiment: what was measured, what the fit says, and the sd of the noise."""

    experiment: str
    output: str
    times: np.ndarray
    values: np.ndarray
    fitted: np.ndarray  # NaN where the simulation did not get
    sds: np.ndarray
    suspicious: np.ndarray  # which measurements the certificate calls no normal noise

    @property
    def residuals(self) -> np.ndarray:
        """Model minus measurement."""
        return self.fitted - self.values

    @property
    def standardised(self) -> np.ndarray:
        """Residuals in units of the noise."""
        return self.residuals / self.sds
