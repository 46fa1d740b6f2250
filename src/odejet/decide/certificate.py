"""Certificate: a fit that is the best there is, of a model that explains the data.

These are two answers (see `optimality` and `adequacy`), and a fit is certified when both are given: its residuals
cannot be told from noise, independent starts end at the same optimum, and nothing that was tried explains the data
better.  The noise that smoothing finds is a witness, not a proof: an undersampled oscillation looks like noise to a
smoother.  So where points are few, only a search that does not rest on smoothing can confirm the optimum.

Where the data leave values vague, or where other optima explain them nearly as well, the misfit has many valleys and
two starts in one of them prove little.  Then the starts are counted as Boender and Rinnooy Kan (1987) count them.
Where much of an output may be signal that is taken for noise, the box must have been looked at as densely as the
outputs can swing in it (see `search.roughness`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odejet.decide.adequacy import NO, UNTESTED, YES, Adequacy, Witness, judge, listed
from odejet.decide.optima import Optimum
from odejet.decide.optimality import CONFIRMED, LIKELY, OPEN, Effort, Optimality, Tally
from odejet.decide.outliers import Measurement
from odejet.decide.statistics import FitCheck, OutputCheck
from odejet.objective.factor import count_below
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import SAME, Refined

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

ROUGH, SURE = 4.0, 3
"""Different curves in the box from which on it must be swept, and starts that must agree then: ordinary models have one
or two."""

LOOKS = 20
"""Points of the box at which each of its curves must have been looked at, on average over its crowded parts: about two
of these are led into the narrowest basin of a best optimum that was met among hostile problems."""

DENSE = 100
"""Measurements of every output that let a smoother tell noise from signal."""

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
    search: Optimality = field(default_factory=lambda: Optimality(OPEN))  # whether this is the best fit
    adequacy: Adequacy = field(default_factory=lambda: Adequacy(UNTESTED))  # whether the model explains the data

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
        """Say whether the fit is certified, and why."""
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
    box: Sequence[Refined] = ()  # where independent starts in the box ended
    effort: Effort = field(default_factory=Effort)  # that these have taken
    apart: Optimality | None = None  # how sure the optimum is of experiments that were searched one by one
    curves: float = 1.0  # essentially different ones that the box has, where signal may be taken for noise
    looks: float = math.inf  # points of the box that were looked at


def certify(best: Optimum, evidence: Evidence) -> Certificate:
    """The certificate of the best optimum."""
    misfit, checks = best.misfit, best.check
    agreeing = sum(other.cost - best.cost <= SAME and other.ending.settled for other in evidence.optima)
    agreeing = max(agreeing, evidence.apart.agreeing if evidence.apart is not None else 0)
    noise = _noise(misfit, best.refined, checks)
    if not best.is_settled:  # what the data say of each other is only known at an optimum
        checks = replace(checks, suspicious=())
    adequacy = _adequacy(best, checks, evidence)
    tally = Tally.of(evidence.box, best.cost, evidence.effort)
    search = _search(best, evidence, agreeing, adequacy, tally)
    granted = search == CONFIRMED and adequacy == YES
    if granted:
        reasons = [_why_granted(best, "; ".join(search.reasons) if evidence.apart else f"{agreeing} starts agree")]
        if evidence.unknowable:
            reasons.append(f"many values of {listed(evidence.unknowable)} do as well, since no data determine them")
    else:
        against = [] if search == CONFIRMED else [reason for reason in search.reasons if reason != tally.sentence]
        told = [reason.sentence for reason in adequacy.reasons]
        reasons = [*told, *against] if best.is_settled else [*against, *told]
    return Certificate(granted, tuple(reasons), checks.outputs, agreeing, noise, checks.suspicious, search, adequacy)


def _adequacy(best: Optimum, checks: FitCheck, evidence: Evidence) -> Adequacy:
    """Whether the model explains the data; residuals that are down to rounding leave nothing to explain."""
    found = judge(best.misfit, checks, Witness(evidence.smoothed, evidence.curves))
    return Adequacy(YES) if best.is_exact and found != UNTESTED else found


def _search(best: Optimum, evidence: Evidence, agreeing: int, adequacy: Adequacy, tally: Tally) -> Optimality:
    """Whether the best optimum is the best there is.

    Starts in the box tell it alone.  Where residuals are the noise that the data show by themselves nothing can be
    better by much, and starts that agree tell it the sooner.
    """
    if not best.is_settled:
        return tally.answer(OPEN, [best.refined.message])
    if best.is_exact:
        exact = [BLUNT] if evidence.blunt else ["the residuals are down to rounding"]
        return tally.answer(LIKELY if evidence.blunt else CONFIRMED, exact)
    if evidence.apart is not None:
        return evidence.apart
    if rough := _reasons_against_density(evidence):
        return tally.answer(OPEN, rough)
    if adequacy == NO or tally.word == CONFIRMED:
        return tally.answer()
    against = _reasons_against_uniqueness(best, evidence, agreeing)
    if adequacy == YES and not against:
        return tally.answer(CONFIRMED, [f"{agreeing} starts agree, and what they leave is noise"])
    return tally.answer(reasons=against)


def _reasons_against_density(evidence: Evidence) -> list[str]:
    """Whether outputs can swing in the box so often that a narrow basin of a better optimum may lie between starts."""
    if evidence.curves <= ROUGH or evidence.looks >= LOOKS * evidence.curves:
        return []
    return [
        f"within the bounds there are about {evidence.curves:.2g} different curves, and {evidence.looks:.0f} points "
        "cannot rule out one that explains as signal what is taken for noise: give the noise, or narrower bounds"
    ]


def _noise(misfit: Misfit, refined: Refined, checks: FitCheck) -> dict[str, float]:
    """The level that was found, by output; of laws with a scale of their own, the median sd."""
    found = {}
    for number, (output, known) in enumerate(zip(checks.outputs, misfit.known.tolist(), strict=True)):
        found[output.output] = output.level if math.isnan(known) else known
        if refined.noise is not None and misfit.measurements.densities[number]:
            found[output.output] = float(np.median(refined.noise.sds[misfit.groups[number]]))
    return found


def _why_granted(best: Optimum, searched: str) -> str:
    if best.is_exact:
        return "the residuals are down to rounding"
    if all(output.numerical for output in best.check.outputs):
        return f"the residuals are down to the errors of a simulation and {searched}"
    return f"the residuals look like noise and {searched}"


def _reasons_against_uniqueness(best: Optimum, evidence: Evidence, agreeing: int) -> list[str]:
    """What speaks against there being no better optimum."""
    if agreeing < AGREEING:
        return ["only one start ended at this optimum"]
    if agreeing < SURE and evidence.curves > ROUGH:
        return [f"only {agreeing} starts ended at this optimum, where outputs swing so often within the bounds"]
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


def is_vague(misfit: Misfit, refined: Refined, frame: Coordinates, unknowable: int = 0) -> bool:
    """Whether some direction is determined to no better than a factor, beside those that no data can determine."""
    jacobian = refined.jacobian * frame.slopes(refined.z)
    if not jacobian.size:
        return False
    if misfit.in_blocks:
        return count_below(jacobian, misfit.blocks, misfit.shared, 1 / VAGUE) > unknowable
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    return bool(np.any(sizes[: max(len(sizes) - unknowable, 0)] < 1 / VAGUE))
