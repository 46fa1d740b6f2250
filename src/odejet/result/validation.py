"""Validation: how well a fit foretells an experiment that it has not seen.

Each experiment is left out in turn: the rest is refined anew from the optimum of all, and the log-likelihood of what
was left out is that of its measurements with these values and the noise that the others show.  Their sum is compared
between models like AIC/(-2), without counting parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odejet.data import Data
from odejet.errors import DataError, ModelError
from odejet.problem.noise import Noise
from odejet.problem.variants import variant
from odejet.result.fit import Fit
from odejet.search.refine import refine

SECONDS = 30.0
"""What the refinement without one experiment may take."""


@dataclass(frozen=True)
class Validation:
    """The log-likelihood of every experiment by the fit to all others."""

    by_experiment: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.by_experiment.values())


def cross_validated(name: str, fit: Fit) -> Validation:
    """Leave out every experiment of a fit in turn."""
    experiments = fit.data.experiments
    if len(experiments) < 2:
        raise DataError("cross-validation leaves out one experiment after the other, and there is only one")
    for unknown in fit.unknowns:
        if unknown.experiment is not None:
            raise ModelError(
                f"'{name}': {unknown.label} is unknown in one experiment alone, so that the others cannot foretell it; "
                "give it a value, or compare without cross-validation"
            )
    return Validation({one.name: _left_out(fit, one.name) for one in experiments})


def _left_out(fit: Fit, name: str) -> float:
    """The log-likelihood of an experiment by the fit to the others."""
    whole = fit.problem
    others = variant(whole, Data.of(one for one in whole.experiments if one.name != name))
    alone = Data.of(one for one in whole.experiments if one.name == name)
    missing = [label for label in fit.labels if label not in others.unknowns]
    unseen = [output for output in alone.experiments[0].outputs if output not in others.measurements.outputs]
    if missing or unseen:
        told = missing[0] if missing else f"the noise of {unseen[0]}"
        raise ModelError(f"without the experiment '{name}' nothing tells {told}; compare without cross-validation")
    start = np.array([fit.values[label] for label in others.unknowns])
    found = refine(others.misfit, start, bounds=others.given_bounds, positive=others.positive, time_limit=SECONDS)
    if not math.isfinite(found.cost):
        return -math.inf
    values = dict(zip(others.unknowns, found.z.tolist(), strict=True))
    levels = dict(zip(others.measurements.outputs, found.levels.tolist(), strict=True))
    noise = {
        output: law for output, level in levels.items() if (law := _known(others.noises[output], level)) is not None
    }
    posed = variant(whole, alone, noise=noise)
    return posed.log_likelihood({label: values[label] for label in posed.unknowns})


def _known(noise: Noise, level: float) -> float | str | None:
    """The noise of an output with the level that other experiments show; None where the data have it themselves."""
    if noise.kind == "data" and not math.isnan(noise.level):
        return None
    if noise.kind == "relative":
        return f"{100 * level!r}%"
    return level if (law := noise.told(level)) is None else law
