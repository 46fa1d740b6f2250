"""Arrivals: when a fit first came how low, so that it can be told afterwards how soon it was at any optimum."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np

from odejet.jets import compilation
from odejet.objective.evaluation import Evaluation
from odejet.objective.misfit import Misfit
from odejet.search.descent import Descent

Arrival = tuple[float, float]
"""Processor seconds since the beginning, without those of compiling, and the cost at which a descent stood then."""

LAST = 1.0
"""Units of the log-likelihood above its end in which the course of a fit is kept."""


@contextmanager
def recording(misfit: Misfit) -> Iterator[list[Arrival]]:
    """When descents on all of the data stood lower than any before.

    Searches also fit all of the data with noise levels of their own, whose likelihood is another one.
    """
    began, lower = _clock(), list[Arrival]()
    plain = Descent.stand

    def stand(self: Descent, theta: np.ndarray, found: Evaluation) -> None:
        plain(self, theta, found)
        if found.residuals is not None and is_same(self.misfit, misfit):
            cost = self.misfit.cost(found.residuals, rest=found.rest)
            if not lower or cost < lower[-1][1]:
                lower.append((_clock() - began, cost))

    with mock.patch.object(Descent, "stand", stand):
        yield lower


def last_of(course: Sequence[Arrival]) -> list[tuple[float, float]]:
    """The end of a course, in few digits."""
    return [(round(seconds, 2), round(cost, 4)) for seconds, cost in course if cost <= course[-1][1] + LAST]


def arrival(course: Sequence[Sequence[float]], goal: float) -> float:
    """When a fit came as low as a goal; never is infinite."""
    return next((seconds for seconds, cost in course if cost <= goal), math.inf)


def is_same(one: Misfit, other: Misfit) -> bool:
    """Whether two misfits have the same likelihood: that of as many measurements, with the same noise and priors."""
    return (
        one.points == other.points
        and one.weighted == other.weighted
        and len(one.priors) == len(other.priors)
        and np.array_equal(one.known, other.known, equal_nan=True)
        and np.array_equal(one.measurements.densities, other.measurements.densities)
    )


def _clock() -> float:
    return time.process_time() - compilation.seconds()
