"""Counting: fits that the truth leads to, whether a true value belongs to an interval, and shares of those that hold.

What all benchmarks of uncertainty have in common.  Only the uncertainty is under test, so fits start from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odejet.problem import Problem
from odejet.result import Fit
from odejet.search.refine import refine
from odejet.uncertainty.profile import deviance_quantile

LEVEL = 0.95
HELD_EVALUATIONS = 200
"""What a fit with a quantity held at its true value may take."""

Line = Mapping[str, Any]
"""Counts of one fit, as they are stored."""


def fitted(problem: Problem, start: np.ndarray, evaluations: int = 500, **told: Any) -> Fit:
    """The fit to which a start leads."""
    found = refine(problem.misfit, start, frame=problem.frame(start), max_evaluations=evaluations)
    return Fit.of(problem, found, **told)


def held_at(fit: Fit, label: str, true: float, z: np.ndarray) -> tuple[float, float]:
    """The deviance of the true value, and the quantile it has to stay below."""
    likelihood = fit.likelihood
    asked = likelihood.derived(label)
    _, gradient = asked.at(fit.estimates)
    known = likelihood.information
    freedom, ratio = (float(part[0]) for part in known.errors(gradient[None])[1:])
    least, quantile = math.inf, deviance_quantile(LEVEL, freedom, ratio)
    for start in (z, np.where(np.arange(len(z)) == asked.place, true, fit.estimates)):
        found = likelihood.hold(asked, true, start, evaluations=HELD_EVALUATIONS)
        if found is not None and math.isfinite(found.cost):
            least = min(least, max(2 * (found.cost - fit.cost), 0.0))
        if least <= quantile:
            break  # another start could only find less
    return least, quantile


def grouped(lines: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Lines by system and noise."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault(f"{line['system']} {line['noise']:g}", []).append(line)
    return groups


def share(lines: Sequence[Line], count: str, hits: str) -> tuple[float, float, float]:
    """Percent that hold, its standard error over fits, and how many there are: what a fit tells errs together."""
    return percent([line[count] for line in lines], [line[hits] for line in lines])


def percent(counts: Sequence[float], hits: Sequence[float]) -> tuple[float, float, float]:
    """The same from the counts of every fit."""
    totals, holds = np.array(counts, dtype=float), np.array(hits, dtype=float)
    total = float(totals.sum())
    if not total:
        return math.nan, math.nan, 0
    mean = float(holds.sum()) / total
    spread = math.sqrt(float(((holds - mean * totals) ** 2).sum())) / total
    return 100 * mean, 100 * spread, total
