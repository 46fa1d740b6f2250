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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.decide.optima import Optimum
from odejet.decide.outliers import Measurement
from odejet.decide.statistics import WHITE, FitCheck, OutputCheck
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.multistart import SAME
from odejet.search.refine import Refined

RIVAL = 10.0
"""Optima whose negative log-likelihoods differ by less cannot be told apart by how well they explain the data."""

UNSEEN = 0.1
"""The share of starts that may belong to optima not seen yet."""

VAGUE = 0.25
"""A standard error of so many logarithmic units reaches beyond where the misfit is a parabola."""

SUSPECT, FIRM = 1e-2, 30
"""Residuals with more autocorrelation than noise has with this probability want a confirmation by so many starts: a
better optimum that a tenth of them lead to would have been met with a probability of 0.95."""

AGREEING = 2
"""Independent starts that must end at the same optimum."""

TESTED = 2
"""Degrees of freedom by which a fit can be told from one that goes through any data."""

DENSE = 100
"""Measurements of every output that let a smoother tell noise from signal."""

LARGER, UNSURE = 1.2, 5.0
"""Residuals of n points are larger than the noise that smoothing finds if they exceed it by this factor and so many
relative standard errors of a level, which are about 1/sqrt(n)."""

CLEAR_OF_ROUNDING = 4.0
"""The noise that smoothing finds is not taken to be smaller than so many times rounding."""

UNSOUGHT = "no certificate was sought"
BLUNT = "the residuals are down to the rounding of the largest measurements, but not to that of the small ones"


@dataclass(frozen=True)
class Certificate:
    """Whether a fit may be trusted to be the best there is, and why."""

    granted: bool = False
    reasons: tuple[str, ...] = (UNSOUGHT,)
    outputs: tuple[OutputCheck, ...] = ()  # size and autocorrelation of the residuals
    agreeing: int = 0  # independent starts that ended at this optimum
    noise: Mapping[str, float] = field(default_factory=dict)  # the level found, by output
    suspicious: tuple[Measurement, ...] = ()  # measurements that are no normal noise

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
class Evidence:
    """What is known beside the best optimum itself."""

    optima: Sequence[Refined]
    smoothed: np.ndarray  # noise levels of smoothing
    confirmed: bool = False  # whether a search without smoothing has found nothing better
    vague: bool = False  # whether the data leave values vague
    blunt: bool = False  # whether small measurements are not explained down to their rounding
    unknowable: tuple[str, ...] = ()  # what no data can determine
    roots: int | None = 1  # of the model's square system, if known


def certify(best: Optimum, evidence: Evidence) -> Certificate:
    """The certificate of the best optimum."""
    misfit, checks = best.misfit, best.check
    agreeing = sum(other.cost - best.cost <= SAME and other.ending.settled for other in evidence.optima)
    noise = _noise(misfit, best.refined, checks)
    reasons = [] if best.is_settled else [best.refined.message]
    if not best.is_settled:  # what the data say of each other is only known at an optimum
        checks = replace(checks, suspicious=())
    reasons += reasons_against_tests(misfit, checks)
    if best.is_exact:
        reasons += [BLUNT] if evidence.blunt else []
    else:
        reasons += reasons_against_noise(misfit, checks, evidence.smoothed)
        reasons += _reasons_against_uniqueness(best, evidence, agreeing)
    granted = not reasons
    if granted:
        reasons = [_why_granted(best, agreeing)]
        if evidence.unknowable:
            reasons.append(f"many values of {_listed(evidence.unknowable)} do as well, since no data determine them")
    return Certificate(granted, tuple(reasons), checks.outputs, agreeing, noise, checks.suspicious)


def _noise(misfit: Misfit, refined: Refined, checks: FitCheck) -> dict[str, float]:
    """The level that was found, by output; of laws with a scale of their own, the median sd."""
    found = {}
    for number, (output, known) in enumerate(zip(checks.outputs, misfit.known.tolist(), strict=True)):
        found[output.output] = output.level if math.isnan(known) else known
        if refined.noise is not None and misfit.measurements.densities[number]:
            found[output.output] = float(np.median(refined.noise.sds[misfit.groups[number]]))
    return found


def _why_granted(best: Optimum, agreeing: int) -> str:
    if best.is_exact:
        return "the residuals are down to rounding"
    if all(output.numerical for output in best.check.outputs):
        return f"the residuals are down to the errors of a simulation and {agreeing} starts agree"
    return f"the residuals look like noise and {agreeing} starts agree"


def reasons_against_tests(misfit: Misfit, checks: FitCheck) -> list[str]:
    """Nothing was tested where as many unknowns as measurements explain anything."""
    if misfit.points - checks.rank >= TESTED:
        return []
    left = "nothing is left" if misfit.points <= checks.rank else "only one degree of freedom is left"
    return [f"{misfit.points} measurements determine {checks.rank} unknowns: {left} to test the fit by"]


def _reasons_against_uniqueness(best: Optimum, evidence: Evidence, agreeing: int) -> list[str]:
    """What speaks against there being no better optimum."""
    if agreeing < AGREEING:
        return ["only one start ended at this optimum"]
    doubt = _doubt(best.misfit, best.check, evidence)
    if doubt and not evidence.confirmed:
        return [f"{doubt}, only a search without smoothing can confirm the optimum"]
    if _suspects(output for output in best.check.outputs if not output.numerical) and agreeing < FIRM:
        return [f"where residuals are a little autocorrelated, {agreeing} starts cannot rule out a better optimum"]
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
    if evidence.unknowable and evidence.roots != 1:
        return "where the equations may have several roots and some values cannot be known"
    if any(o.numerical and o.level > floor for o, floor in zip(checks.outputs, misfit.floors, strict=True)):
        return "where residuals are too small to be noise"
    if _suspects(checks.outputs):
        return "where residuals are a little autocorrelated"
    return ""


def _suspects(outputs: Iterable[OutputCheck]) -> bool:
    """Whether residuals are less like noise than those of most fits at the best optimum."""
    found = [output.white_p for output in outputs]
    return any(p < SUSPECT / len(found) for p in found)


def _rivals(best: Optimum, optima: Sequence[Refined]) -> tuple[int, int]:
    """How many starts ended at optima about as good as the best, and how many different ones these are."""
    costs = np.sort([one.cost for one in optima if one.ending.settled and one.cost - best.cost <= RIVAL])
    return len(costs), 1 + int(np.count_nonzero(np.diff(costs) > SAME))


def is_vague(refined: Refined, frame: Coordinates, unknowable: int = 0) -> bool:
    """Whether some direction is determined to no better than a factor, beside those that no data can determine."""
    jacobian = refined.jacobian * frame.slopes(refined.z)
    if not jacobian.size:
        return False
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    return bool(np.any(sizes[: max(len(sizes) - unknowable, 0)] < 1 / VAGUE))


def reasons_against_noise(misfit: Misfit, checks: FitCheck, smoothed: np.ndarray) -> list[str]:
    """What speaks against the residuals being noise."""
    reasons = []
    limit = WHITE / len(checks.outputs)
    witnesses = np.where(_witnessed(misfit), smoothed, math.inf)
    knowns = np.where(misfit.free_noise, math.nan, misfit.known)
    for output, known, floor, level in zip(checks.outputs, knowns, misfit.floors, witnesses, strict=True):
        if output.numerical:
            continue
        name, witness = output.output, max(float(level), CLEAR_OF_ROUNDING * float(floor))
        reasons += _reasons_against_normality(misfit, checks, output)
        if output.white_p < limit:
            reasons.append(f"the residuals of {name} are autocorrelated (p = {output.white_p:.1g})")
        if not math.isnan(known):
            if output.size_p < limit:
                reasons.append(f"the residuals of {name} are larger than its known noise")
        elif output.level > witness * (LARGER + UNSURE / math.sqrt(output.points)):
            reasons.append(
                f"the residuals of {name} are larger than the noise that smoothing finds "
                f"({output.level:.2g} against {witness:.2g})"
            )
    return reasons


def _witnessed(misfit: Misfit) -> np.ndarray:
    """Of which outputs smoothing can tell the noise: its errors are normal and of one size."""
    return ~(misfit.measurements.logarithmic | misfit.measurements.densities)


def _reasons_against_normality(misfit: Misfit, checks: FitCheck, output: OutputCheck) -> list[str]:
    """Outliers or heavy tails, with the measurements to look at."""
    limit, name = WHITE / len(checks.outputs), output.output
    named = sorted((one for one in checks.suspicious if one.output == name), key=lambda one: -abs(one.deviation))
    several = len(misfit.simulator.conditions) > 1
    places = [f"t = {one.time:g}" + (f" in {one.experiment}" if several else "") for one in named]
    if named and output.outlier_p < limit:
        away = abs(named[0].deviation)
        more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
        return [
            f"the measurement {name} = {named[0].value:g} at {places[0]}{more} is "
            f"{f'{away:.0f} sds' if away < 1e6 else 'very far'} away from what the others say: "
            "correct it or leave it out, or give its sd"
        ]
    if named and output.tails_p < limit:
        usual = _witnessed(misfit)[misfit.outputs.index(name)]
        law, remedy = ("normal noise", "noise = 'relative'") if usual else ("their law has", "another law")
        return [
            f"the residuals of {name} have heavier tails than {law} (p = {output.tails_p:.1g}), "
            f"most of all at {_listed(places)}: "
            f"leave out what is wrong, give the sds of the measurements, or {remedy}"
        ]
    return []


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
