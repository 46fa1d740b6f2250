"""Building: what follows from a refinement for the fit that it becomes: uncertainty, noise, criteria, solutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odejet.decide import Certificate
from odejet.decide.certificate import UNSOUGHT
from odejet.decide.statistics import FitCheck
from odejet.problem import Problem
from odejet.result.estimate import Estimate
from odejet.result.intervals import LEVEL
from odejet.result.noise import sds_of
from odejet.search.refine import Refined
from odejet.uncertainty import fisher, held_labels, noise_inflation
from odejet.uncertainty.bounded import Reaches


def parts_of(
    problem: Problem, refined: Refined, checks: FitCheck, others: Sequence[Refined], rivals: Sequence[Refined]
) -> dict[str, Any]:
    """The fields of a fit that a refinement and its residuals tell, by name; its certificate is none."""
    misfit, bounds, experiments = problem.misfit, problem.bounds, problem.experiments
    simulated = refined.simulated
    inflation = noise_inflation(misfit, refined, checks) if simulated else np.full(len(misfit.outputs), math.nan)
    levels = refined.levels * inflation
    noise = dict(zip(misfit.outputs, levels.tolist(), strict=True))
    unbounded = tuple(one.sentence for one in checks.collapses)
    uncertainty = fisher(misfit, refined, checks)
    held = tuple(held_labels(refined, uncertainty.stderr, bounds))
    if simulated:
        uncertainty = replace(uncertainty, reach=Reaches(misfit, refined, checks, held, bounds, LEVEL))
    return {
        "estimates": np.array(refined.z, dtype=float),
        "uncertainty": uncertainty,
        "bounds": bounds,
        "held": held,
        "sds": sds_of(misfit, experiments, refined, levels),
        "cost": refined.cost,
        "aic": checks.aic,
        "bic": checks.bic,
        "solutions": tuple(Estimate.of(misfit.unknowns, experiments, one, bounds) for one in (refined, *others)),
        "rivals": tuple(Estimate.of(misfit.unknowns, experiments, one, bounds) for one in rivals),
        "certificate": Certificate(reasons=(UNSOUGHT, *unbounded), outputs=checks.outputs, noise=noise),
    }
