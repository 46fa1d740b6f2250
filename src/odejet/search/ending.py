"""Ending: how a refinement ended, in words."""

from __future__ import annotations

from enum import Enum


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
