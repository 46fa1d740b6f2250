"""Certificate: when a search may end.

A fit is certified when its residuals cannot be told from noise, when independent starts end at the same optimum, and
when nothing that was tried explains the data better.  The noise that smoothing finds is a witness, not a proof: an
undersampled oscillation looks like noise to a smoother.  So where points are few, only a search that does not rest on
smoothing can confirm the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from odejet.misfit import Misfit
from odejet.refine import Ending, Refined
from odejet.result import Certificate
from odejet.statistics import FitCheck

SAME = 1e-3
"""Optima whose negative log-likelihoods differ by less are one."""

WHITE = 1e-4
"""Residuals with more memory than noise has with this probability are those of a wrong model or a wrong optimum."""

AGREEING = 2

DENSE = 100
"""Measurements of every output that let a smoother tell noise from signal."""


def certify(
    misfit: Misfit,
    best: Refined,
    optima: Sequence[Refined],
    checks: FitCheck,
    smoothed: np.ndarray,
    confirmed: bool,
) -> Certificate:
    """The certificate of the best optimum; `smoothed` are the noise levels of smoothing, `confirmed` says that a search
    without smoothing has found nothing better."""
    agreeing = sum(other.cost - best.cost <= SAME and other.ending.settled for other in optima)
    noise = dict(zip(misfit.outputs, best.levels.tolist(), strict=True))
    reasons = []
    if not best.ending.settled:
        reasons.append(best.message)
    exact = best.ending is Ending.EXACT
    if not exact:
        reasons += _like_noise(misfit, best, checks, smoothed)
        if agreeing < AGREEING:
            reasons.append("only one start ended at this optimum")
        if np.min(misfit.counts) < DENSE and not confirmed:
            reasons.append("with so few points only a search without smoothing can confirm the optimum")
    granted = not reasons
    if granted and exact:
        reasons = ["the residuals are down to rounding"]
    elif granted:
        reasons = [f"the residuals look like noise and {agreeing} starts agree"]
    return Certificate(granted, tuple(reasons), checks.outputs, agreeing, noise)


def _like_noise(misfit: Misfit, best: Refined, checks: FitCheck, smoothed: np.ndarray) -> list[str]:
    """What speaks against the residuals being noise."""
    reasons = []
    for number, output in enumerate(checks.outputs):
        if output.white_p < WHITE / len(checks.outputs):
            reasons.append(f"the residuals of {output.output} have memory (p = {output.white_p:.1g})")
        witness = max(float(smoothed[number]), 4 * float(misfit.floors[number]))
        known = misfit.known[number]
        if not math.isnan(known):
            if output.size_p < WHITE / len(checks.outputs):
                reasons.append(f"the residuals of {output.output} are larger than its known noise")
        elif output.level > witness * (1.2 + 5 / math.sqrt(output.points)):
            reasons.append(
                f"the residuals of {output.output} are larger than the noise that smoothing finds "
                f"({output.level:.2g} against {witness:.2g})"
            )
    return reasons
