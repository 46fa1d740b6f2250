"""Adequacy: whether a model explains the data, where it does not, and what to do about it.

A model is adequate when what it leaves of the data cannot be told from noise: residuals without autocorrelation, no
larger than the noise is known to be, without outliers or heavy tails, and smaller than the data about their mean.  It
is untested where as many unknowns as measurements would explain anything.  Whether the optimum is the best there is, is
another question (see `optimality`): real data are rarely explained to the last residual, and yet have a best fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odejet.decide.statistics import WHITE, FitCheck, OutputCheck
from odejet.objective.misfit import Misfit

YES, NO, UNTESTED = "yes", "no", "untested"

TESTED = 2
"""Degrees of freedom by which a fit can be told from one that goes through any data."""

LARGER, UNSURE = 1.2, 5.0
"""Residuals of n points are larger than the noise that smoothing finds if they exceed it by this factor and so many
relative standard errors of a level, which are about 1/sqrt(n)."""

CLEAR_OF_ROUNDING = 4.0
"""The noise that smoothing finds is not taken to be smaller than so many times rounding."""

BY_CHANCE = 0.05
"""A curve that noise alone would follow as closely as this with such a probability explains nothing."""


class Shortcoming(NamedTuple):
    """A way in which what is left of an output is not noise."""

    output: str  # empty where it concerns all of them
    experiments: tuple[str, ...]  # those that show it most; none where they cannot be told apart
    kind: str  # "autocorrelation", "size", "outliers", "tails", "nothing explained" or "nothing left"
    sentence: str


class Adequacy(str):
    """Whether the model explains the data: "yes", "no" or "untested", with reasons and advice."""

    __slots__ = ("advice", "reasons")
    reasons: tuple[Shortcoming, ...]
    advice: tuple[str, ...]  # what to do about it

    def __new__(cls, word: str, reasons: Sequence[Shortcoming] = (), advice: Sequence[str] = ()) -> Adequacy:
        if word not in (YES, NO, UNTESTED):
            raise ValueError(f"{word!r} is no answer to whether a model explains the data")
        self = super().__new__(cls, word)
        self.reasons, self.advice = tuple(reasons), tuple(advice)
        return self

    def __getnewargs__(self) -> tuple[str, tuple[Shortcoming, ...], tuple[str, ...]]:  # type: ignore[override]
        return str(self), self.reasons, self.advice

    @property
    def sentence(self) -> str:
        """The answer with its reasons."""
        return "; ".join((str(self), *(reason.sentence for reason in self.reasons)))


@dataclass(frozen=True)
class Witness:
    """What is known of the noise beside the residuals, and of how many curves were there to choose from."""

    smoothed: np.ndarray  # noise levels of smoothing, by output
    curves: float = 1.0  # essentially different ones in the box: the best of many follows noise by chance


def judge(misfit: Misfit, checks: FitCheck, witness: Witness) -> Adequacy:
    """Whether residuals are noise; advice is found by `advise`."""
    if untested := reasons_against_tests(misfit, checks):
        return Adequacy(UNTESTED, [Shortcoming("", (), "nothing left", untested[0])])
    against = shortcomings(misfit, checks, witness)
    return Adequacy(NO, against) if against else Adequacy(YES)


def reasons_against_tests(misfit: Misfit, checks: FitCheck) -> list[str]:
    """Nothing was tested where as many unknowns as measurements explain anything, nor by a likelihood that grows for
    ever."""
    if checks.collapses:
        return [one.sentence for one in checks.collapses]
    if misfit.points - checks.rank >= TESTED:
        return []
    left = "nothing is left" if misfit.points <= checks.rank else "only one degree of freedom is left"
    return [f"{misfit.points} measurements determine {checks.rank} unknowns: {left} to test the fit by"]


def shortcomings(misfit: Misfit, checks: FitCheck, witness: Witness) -> list[Shortcoming]:
    """What speaks against the residuals being noise."""
    reasons = []
    limit = WHITE / len(checks.outputs)
    witnesses = np.where(_witnessed(misfit), witness.smoothed, math.inf)
    knowns = np.where(misfit.free_noise, math.nan, misfit.known)
    for output, known, floor, level in zip(checks.outputs, knowns, misfit.floors, witnesses, strict=True):
        if output.numerical:
            continue
        name, witnessed = output.output, max(float(level), CLEAR_OF_ROUNDING * float(floor))
        reasons += _abnormal(misfit, checks, output)
        if output.white_p < limit:
            told = f"the residuals of {name} are autocorrelated (p = {output.white_p:.1g})"
            reasons.append(Shortcoming(name, (), "autocorrelation", told))
        if not math.isnan(known):
            if output.size_p < limit:
                told = f"the residuals of {name} are larger than its known noise"
                reasons.append(Shortcoming(name, (), "size", told))
        elif output.level > witnessed * (LARGER + UNSURE / math.sqrt(output.points)):
            told = (
                f"the residuals of {name} are larger than the noise that smoothing finds "
                f"({output.level:.2g} against {witnessed:.2g})"
            )
            reasons.append(Shortcoming(name, (), "size", told))
    return reasons or _nothing_explained(misfit, checks, witness.curves)


def _witnessed(misfit: Misfit) -> np.ndarray:
    """Of which outputs smoothing can tell the noise: its errors are normal and of one size."""
    return ~(misfit.measurements.logarithmic | misfit.measurements.densities)


def _nothing_explained(misfit: Misfit, checks: FitCheck, curves: float) -> list[Shortcoming]:
    """Whether all outputs of unknown noise are as well explained by their means: then signal may be taken for noise."""
    spreads = misfit.deviations
    asked = [
        (output, float(spreads[number]))
        for number, output in enumerate(checks.outputs)
        if spreads[number] > 0 and not output.numerical
    ]
    if not asked or min(_by_chance_p(*one) for one in asked) * len(asked) * curves < BY_CHANCE:
        return []
    output, spread = min(asked, key=lambda one: one[0].level / one[1])
    sds = f"sd {output.level:.2g} against {spread:.2g}"
    told = f"the fit explains hardly more of {output.output} than its mean does ({sds})"
    return [Shortcoming(output.output, (), "nothing explained", told)]


def _by_chance_p(output: OutputCheck, spread: float) -> float:
    """The probability that a curve with as many unknowns follows noise about a mean as closely (Fisher's F)."""
    from scipy.special import fdtrc

    free, left = output.points - 1.0, output.degrees_of_freedom
    took = max(free - left, 1.0)  # a curve of one unknown takes as much as a mean, and may follow the data closely
    before, after = spread**2 * free, output.level**2 * left
    return float(fdtrc(took, left, (before - after) / took / (after / left))) if before > after else 1.0


def _abnormal(misfit: Misfit, checks: FitCheck, output: OutputCheck) -> list[Shortcoming]:
    """Outliers or heavy tails, with the measurements to look at."""
    limit, name = WHITE / len(checks.outputs), output.output
    named = sorted((one for one in checks.suspicious if one.output == name), key=lambda one: -abs(one.deviation))
    several = len(misfit.simulator.conditions) > 1
    places = [f"t = {one.time:g}" + (f" in {one.experiment}" if several else "") for one in named]
    experiments = tuple(dict.fromkeys(one.experiment for one in named))
    if named and output.outlier_p < limit:
        away = abs(named[0].deviation)
        more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
        told = (
            f"the measurement {name} = {named[0].value:g} at {places[0]}{more} is "
            f"{f'{away:.0f} sds' if away < 1e6 else 'very far'} away from what the others say: "
            "correct it or leave it out, or give its sd"
        )
        return [Shortcoming(name, experiments, "outliers", told)]
    if named and output.tails_p < limit:
        usual = _witnessed(misfit)[misfit.outputs.index(name)]
        law, remedy = ("normal noise", "noise = 'relative'") if usual else ("their law has", "another law")
        told = (
            f"the residuals of {name} have heavier tails than {law} (p = {output.tails_p:.1g}), "
            f"most of all at {listed(places)}: "
            f"leave out what is wrong, give the sds of the measurements, or {remedy}"
        )
        return [Shortcoming(name, experiments, "tails", told)]
    return []


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in one phrase, of very many only the first."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
