"""Practical: what the data at hand determine, whatever the model would allow with perfect data.

    determined          the 95 % interval ends within a quarter of the value to either side
    weakly determined   it ends, within a factor of ten, or the sign is not known
    undetermined        it does not end, or farther away than that

An interval from the curvature is believed if it is narrow and profiles of other unknowns stay in it; every other one is
found by a profile.  Where unknowns are loose, products of their powers or sums may be determined all the same; those
that are, a profile having confirmed it, are named, so that the answer is the compound and not its factors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.clock import now
from odejet.numerals import between, measured, short, spread
from odejet.problem.units import units
from odejet.problem.unknowns import Unknown
from odejet.uncertainty.forms import Form, is_news, proposals, sharpest
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.profile import SECONDS as PROFILE_SECONDS
from odejet.uncertainty.profile import Profile, profile
from odejet.uncertainty.valley import SPREADS, Valley

Intervals = Mapping[str, tuple[float, float]]

DETERMINED, WEAK, UNDETERMINED = "determined", "weakly determined", "undetermined"

NARROW, WIDE = 1.25, 10.0
"""Factors between the value and an end of its interval that are still determined, and still weakly so."""

ROOM = 0.25
"""Parts of an interval by curvature by which profiles of others may leave it before it is not believed."""

PRECISIONS = (0.05, 0.1)
"""Sds of the logarithm of a compound that is worth naming; the second if there is none with the first."""

MOST, TRIED = 3, 6
"""Compounds that are named, and that are looked at, of each kind."""

EVALUATIONS, GLANCE_EVALUATIONS = 1500, 300
"""What profiles that are to confirm compounds may take together, and those of a glance."""

SECONDS, LEAST_SECONDS, QUICK = 120.0, 30.0, 10.0
"""What all profiles together may take at most, what is left for compounds in any case, and what a glance may."""


@dataclass(frozen=True)
class Finding:
    """One quantity with its interval, where that came from, and what it amounts to."""

    label: str
    value: float
    interval: tuple[float, float]
    kind: str
    method: str  # "fisher" or "profile"
    open: tuple[bool, bool] = (False, False)

    @property
    def sentence(self) -> str:
        """The value and its interval, in the digits that the interval lets mean something."""
        low, high = self.interval
        value = short(self.value) if any(self.open) else measured(self.value, spread(low, high))
        return f"{self.label} = {value} {self.shown}"

    @property
    def shown(self) -> str:
        """The interval as text, an open end as an inequality."""
        low, high = self.interval
        match self.open:
            case (True, True):
                return "any value"
            case (True, False):
                return f"below {short(high, 3)}"
            case (False, True):
                return f"above {short(low, 3)}"
        return between(low, high, spread(low, high), self.value)


@dataclass(frozen=True, eq=False)
class Practical:
    """What is known of every unknown, and which compounds of loose ones are known."""

    findings: Mapping[str, Finding]
    compounds: tuple[Finding, ...]
    profiles: Mapping[str, Profile]  # those that were needed

    def of(self, kind: str) -> tuple[str, ...]:
        """Labels of one kind."""
        return tuple(label for label, finding in self.findings.items() if finding.kind == kind)

    @property
    def determined(self) -> tuple[str, ...]:
        return self.of(DETERMINED)

    @property
    def weak(self) -> tuple[str, ...]:
        return self.of(WEAK)

    @property
    def undetermined(self) -> tuple[str, ...]:
        return self.of(UNDETERMINED)

    def __repr__(self) -> str:
        lines = [f"{one.sentence}: {one.kind}" for one in self.findings.values()]
        lines += [one.sentence for one in self.compounds]
        return "\n".join(lines)


def kind(value: float, interval: tuple[float, float], opened: tuple[bool, bool] = (False, False)) -> str:
    """What an interval amounts to."""
    low, high = interval
    if any(opened) or not (math.isfinite(low) and math.isfinite(high)):
        return UNDETERMINED
    if low * high <= 0:
        return WEAK if max(abs(low), abs(high)) <= WIDE * abs(value) or low == high else UNDETERMINED
    reach = max(high / value, value / low) if value > 0 else max(low / value, value / high)
    return DETERMINED if reach <= NARROW else WEAK if reach <= WIDE else UNDETERMINED


def practical(
    likelihood: Likelihood, intervals: Intervals, level: float = 0.95, seconds: float = SECONDS, profiled: bool = True
) -> Practical:
    """All unknowns judged, and compounds of those that are loose.

    `intervals` are those by curvature, of the same level.  Without `profiled` the unknowns are judged by them alone,
    and profiles only confirm compounds.
    """
    deadline = now() + seconds
    findings, profiles = judged(likelihood, intervals, level, deadline, profiled)
    loose = np.array([finding.kind != DETERMINED for finding in findings.values()])
    named: list[Finding] = []
    if loose.any() and likelihood.misfit.weighted:
        deadline = max(deadline, now() + LEAST_SECONDS) if profiled else deadline
        evaluations = EVALUATIONS if profiled else GLANCE_EVALUATIONS
        named = _Search(likelihood, level, loose, list(profiles.values()), deadline, evaluations).run()
    return Practical(findings, tuple(named), profiles)


def judged(
    likelihood: Likelihood,
    intervals: Intervals,
    level: float = 0.95,
    deadline: float = math.inf,
    profiled: bool = True,
) -> tuple[dict[str, Finding], dict[str, Profile]]:
    """All unknowns judged, and the profiles that were needed for it.

    Where some unknowns are loose, the likelihood is no parabola, and others may be loose that look narrow from the
    optimum: those that leave their interval along the profiles so far are profiled too.
    """
    findings: dict[str, Finding] = {}
    labels, values = likelihood.misfit.labels, likelihood.optimum.z.tolist()
    for label, value in zip(labels, values, strict=True):
        ends = intervals[label]
        findings[label] = Finding(label, value, ends, kind(value, ends), "fisher")
    profiles: dict[str, Profile] = {}
    if not profiled or not likelihood.misfit.weighted:
        return findings, profiles
    asked = [label for label, finding in findings.items() if finding.kind != DETERMINED]
    ranges = list(zip(labels, values, values, strict=True))
    while asked:
        for label in asked:
            left = deadline - now()
            if left > 0:
                found = profile(likelihood, label, level, min(left, PROFILE_SECONDS))
                if found.stopped and now() >= deadline:
                    break  # what all may take together ended it, which says nothing of this one
                profiles[label], findings[label] = found, _profiled(found)
        valley = Valley.of(likelihood.optimum.z, list(profiles.values()))
        lows, highs = valley.points.min(axis=0).tolist(), valley.points.max(axis=0).tolist()
        ranges = list(zip(labels, lows, highs, strict=True))
        asked = [label for label, low, high in ranges if label not in profiles and _leaves(findings[label], low, high)]
        asked = asked if now() < deadline else []
    return {label: _widened(findings[label], low, high) for label, low, high in ranges}, profiles


def _leaves(finding: Finding, low: float, high: float) -> bool:
    """Whether a range is wider than an interval, by more than a little."""
    room = ROOM * (finding.interval[1] - finding.interval[0])
    return low < finding.interval[0] - room or high > finding.interval[1] + room


def _widened(finding: Finding, low: float, high: float) -> Finding:
    """An interval that holds what profiles of others came by: a deviance that is low there is so for everything that
    has its value there, though the own profile may have missed it in another branch of the valley."""
    if not _leaves(finding, low, high):
        return finding
    ends = min(low, finding.interval[0]), max(high, finding.interval[1])
    return replace(finding, interval=ends, kind=kind(finding.value, ends, finding.open))


def _profiled(found: Profile) -> Finding:
    ends = found.interval()
    called = kind(found.estimate, ends, found.open)
    return Finding(found.label, found.estimate, ends, called, "profile", found.open)


class _Search:
    """The way to compounds that a profile confirms."""

    def __init__(
        self,
        likelihood: Likelihood,
        level: float,
        loose: np.ndarray,
        profiles: list[Profile],
        deadline: float,
        evaluations: int,
    ) -> None:
        self.likelihood, self.level, self.loose = likelihood, level, loose
        self.deadline, self.evaluations = deadline, evaluations
        self.names = _names(likelihood.misfit.unknowns)
        self.usable = [i for i, name in enumerate(self.names) if name]
        self.far = bool(profiles)  # whether more is known of the valley than its curvature
        self.valley = Valley.of(self.likelihood.optimum.z, profiles)
        self.confirmed: list[Finding] = []

    def run(self) -> list[Finding]:
        for forms in self.proposed():
            accepted: list[Form] = []
            tried = 0
            for form in forms:
                if len(accepted) == MOST or tried == TRIED or self.over():
                    break
                # Points of profiles that came to nothing may refute this one too.
                if self.valley.spread(form) <= SPREADS[-1] and is_news(form, accepted, self.own(form)):
                    accepted += [form] if self.confirm(form) else []
                    tried += 1
            if accepted or self.over():
                break
        return self.confirmed

    def own(self, form: Form) -> np.ndarray:
        """The loose unknowns; all, if a form has none of them."""
        return self.loose if form.coefficients[self.loose].any() else np.ones_like(self.loose)

    def over(self) -> bool:
        return self.evaluations <= 0 or now() >= self.deadline

    def confirm(self, form: Form) -> bool:
        text, left = form.text(self.names), self.deadline - now()
        found = profile(self.likelihood, text, self.level, left, self.evaluations)
        self.evaluations -= found.evaluations
        self.valley = self.valley.joined(found)
        finding = _profiled(found)
        if finding.kind == DETERMINED:
            self.confirmed.append(finding)
        return finding.kind == DETERMINED

    def proposed(self) -> Iterator[list[Form]]:
        """Forms with loose parts, the precise ones first; then products sharper than their factors."""
        z, held = self.likelihood.optimum.z, self.likelihood.optimum.held
        known, inner = self.likelihood.information, self.likelihood.inner_information
        misfit = self.likelihood.misfit
        own = units(misfit.simulator.conditions, misfit.unknowns)
        alike = [(unknown.experiment, unit) for unknown, unit in zip(misfit.unknowns, own, strict=True)]
        free = [i for i in self.usable if not held[i]]
        if self.far:
            yield self.valley.forms(self.loose, self.usable, alike)
        for precision in PRECISIONS:
            yield proposals(known, z, self.usable, precision, alike)
        if held.any():
            yield proposals(inner, z, free, PRECISIONS[0], alike)
        yield sharpest(inner, z, free, PRECISIONS[0])


def _names(unknowns: Sequence[Unknown]) -> list[str]:
    """How each unknown is written in an expression; empty where another has the same name."""
    counts = Counter(unknown.name for unknown in unknowns)
    return [unknown.name if counts[unknown.name] == 1 else "" for unknown in unknowns]
