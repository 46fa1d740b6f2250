"""Certificate: when a search may end.

A fit is certified when its residuals cannot be told from noise, when independent starts end at the same optimum, and
when nothing that was tried explains the data better.  The noise that smoothing finds is a witness, not a proof: an
undersampled oscillation looks like noise to a smoother.  So where points are few, only a search that does not rest on
smoothing can confirm the optimum.

Where the data leave values vague, or where other optima explain them nearly as well, the misfit has many valleys and
two starts in one of them prove little.  Then the starts are counted as Boender and Rinnooy Kan (1987) count them: if n
starts ended in w different optima, those not seen yet hold the share w(w+1)/(n(n-1)) of all starts, by expectation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odejet.decide.optima import BLUNT
from odejet.decide.statistics import FitCheck
from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Misfit
from odejet.result import Certificate
from odejet.search.multistart import SAME, WHITE
from odejet.search.refine import Ending, Refined

RIVAL = 10.0
"""Optima whose negative log-likelihoods differ by less cannot be told apart by how well they explain the data."""

UNSEEN = 0.1
"""The share of starts that may belong to optima not seen yet."""

VAGUE = 0.5
"""A standard error of so many logarithmic units reaches beyond where the misfit is a parabola."""

SUSPECT = 1e-2
"""Residuals with more memory than noise has with this probability want a confirmation."""

AGREEING = 2

DENSE = 100
"""Measurements of every output that let a smoother tell noise from signal."""


@dataclass(frozen=True)
class Evidence:
    """What is known beside the best optimum itself."""

    optima: Sequence[Refined]
    smoothed: np.ndarray  # noise levels of smoothing
    confirmed: bool = False  # whether a search without smoothing has found nothing better
    vague: bool = False  # whether the data leave values vague
    blunt: bool = False  # whether small measurements are not explained down to their rounding
    unknowable: tuple[str, ...] = ()  # what no data can determine
    roots: int = 1  # of the model's square system


def certify(misfit: Misfit, best: Refined, checks: FitCheck, evidence: Evidence) -> Certificate:
    """The certificate of the best optimum."""
    agreeing = sum(other.cost - best.cost <= SAME and other.ending.settled for other in evidence.optima)
    levels = [
        o.level if math.isnan(known) else float(known) for o, known in zip(checks.outputs, misfit.known, strict=True)
    ]
    noise = dict(zip(misfit.outputs, levels, strict=True))
    exact = best.ending is Ending.EXACT
    reasons = [] if best.ending.settled else [best.message]
    if exact:
        reasons += [BLUNT] if evidence.blunt else []
    else:
        reasons += like_noise(misfit, checks, evidence.smoothed)
        reasons += _alone(misfit, best, checks, evidence, agreeing)
    granted = not reasons
    if granted:
        reasons = [
            "the residuals are down to rounding"
            if exact
            else f"the residuals look like noise and {agreeing} starts agree"
        ]
        if evidence.unknowable:
            reasons.append(f"many values of {_listed(evidence.unknowable)} do as well, since no data determine them")
    return Certificate(granted, tuple(reasons), checks.outputs, agreeing, noise)


def _alone(misfit: Misfit, best: Refined, checks: FitCheck, evidence: Evidence, agreeing: int) -> list[str]:
    """What speaks against there being no better optimum."""
    if agreeing < AGREEING:
        return ["only one start ended at this optimum"]
    doubt = _doubt(misfit, checks, evidence)
    if doubt and not evidence.confirmed:
        return [f"{doubt}, only a search without smoothing can confirm the optimum"]
    starts, valleys = _rivals(best, evidence.optima)
    if (valleys > 1 or evidence.vague) and valleys * (valleys + 1) > UNSEEN * starts * (starts - 1):
        if valleys == 1:
            return [f"the data leave values so vague that {starts} starts cannot rule out a better optimum"]
        return [f"{starts} starts ended at {valleys} optima of nearly the same likelihood, and there may be a better"]
    return []


def _doubt(misfit: Misfit, checks: FitCheck, evidence: Evidence) -> str:
    """Why starts from smoothed data are not enough, though some agree: they may err together."""
    if np.min(misfit.counts) < DENSE:
        return "with so few points"
    if evidence.vague:
        return "where data leave values so vague"
    if evidence.unknowable and evidence.roots > 1:
        return "where the equations have several roots and some values cannot be known"
    if any(output.white_p < SUSPECT / len(checks.outputs) for output in checks.outputs):
        return "where residuals have a little memory"
    return ""


def _rivals(best: Refined, optima: Sequence[Refined]) -> tuple[int, int]:
    """How many starts ended at optima about as good as the best, and how many different ones these are."""
    costs = np.sort([one.cost for one in optima if one.ending.settled and one.cost - best.cost <= RIVAL])
    return len(costs), 1 + int(np.count_nonzero(np.diff(costs) > SAME))


def vague(refined: Refined, frame: Coordinates, unknowable: int = 0) -> bool:
    """Whether some direction is determined to no better than a factor, beside those that no data can determine."""
    jacobian = refined.jacobian * frame.slopes(refined.z)
    if not jacobian.size:
        return False
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    return bool(np.any(sizes[: max(len(sizes) - unknowable, 0)] < 1 / VAGUE))


def like_noise(misfit: Misfit, checks: FitCheck, smoothed: np.ndarray) -> list[str]:
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


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
