"""Doubts: intervals by curvature that are not to be trusted, since the likelihood is not the parabola they take it for.

Each end of an interval is looked at: with the unknown held there and everything else at its best, the deviance should
be what it is at the end of an interval of that level.  Where it is much less the interval is too narrow on that side,
where it is much more it is too wide, and a few more looks find about where the end should be.  An interval is doubted
if an end is elsewhere by a good part of its width, whatever the deviance was.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from odejet.clock import now
from odejet.smooth.threads import one_thread
from odejet.uncertainty.derived import Asked
from odejet.uncertainty.fisher import quantile
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.parabola import Parabola, Probe
from odejet.uncertainty.profile import Scale, deviance_quantile

MOST = 200
"""Unknowns whose intervals are looked at, at some four simulations to each look."""

SECONDS = 10.0
"""What this may take at most, so that models that are very slow to simulate end too."""

APART = 0.45
"""Parts of its width, as the likelihood has it, by which an end of an interval may be elsewhere."""

NARROW, WIDE = "too narrow", "too wide"

_VANISHING = 1e-3  # of its standard error: a value that is as good as zero
_NEAR = 0.1  # of the crossing: a deviance whose root is as near is at the end
_LOOKS = 7
_FIRST = 0.5  # where to look first from a bound, on the scale of the interval
_EVALUATIONS = 30  # of a look
_LONGEST = 4.0  # times as far as the last look, at most
_FARTHEST = math.log(1e3)  # an end that is not there, or so many times its value away, is as good as none


@dataclass(frozen=True)
class Doubt:
    """What is wrong with an interval by curvature, and about where its ends should be."""

    words: str
    interval: tuple[float, float]


@one_thread()
def doubts(
    likelihood: Likelihood,
    intervals: Mapping[str, tuple[float, float]],
    level: float,
    held: Collection[str] = (),
    seconds: float = SECONDS,
) -> dict[str, Doubt]:
    """Of these intervals of a level, by label, those that are not to be trusted; bounds keep some unknowns from going
    on."""
    if not likelihood.misfit.weighted:
        return {}
    known, deadline = likelihood.full_information, now() + seconds
    rows = np.eye(len(likelihood.optimum.z))
    sds, degrees, ratios = known.errors(rows)
    parabola = Parabola(likelihood, known)
    with np.errstate(over="ignore"):
        directions = parabola.directions(rows)
    found = {}
    for i, label in enumerate(likelihood.misfit.labels[:MOST]):
        if now() > deadline:
            break
        if label not in intervals or not math.isfinite(sds[i]) or sds[i] <= 0:
            continue
        crossing = math.sqrt(deviance_quantile(level, float(degrees[i]), float(ratios[i])))
        many = quantile(level, float(degrees[i]))
        asked, sd = likelihood.derived(label), float(sds[i])
        look = _Look(parabola, asked, i, directions[i], crossing, sd, label in held, many, deadline)
        if (doubt := look.doubt(intervals[label])) is not None:
            found[label] = doubt
    return found


@dataclass(frozen=True, eq=False)
class _Look:
    """The likelihood along one unknown, looked at where its interval should end."""

    parabola: Parabola
    asked: Asked
    place: int
    direction: np.ndarray
    crossing: float  # of the root of the deviance
    sd: float
    held: bool  # whether a bound keeps it from going on
    many: float  # standard errors that an interval by curvature reaches
    deadline: float

    @property
    def likelihood(self) -> Likelihood:
        return self.parabola.likelihood

    @property
    def value(self) -> float:
        return float(self.likelihood.optimum.z[self.place])

    @property
    def scale(self) -> Scale:
        """That of the interval: logarithmic for what keeps its sign, unless it is nothing beside its error."""
        value = self.value
        low, high = (float(end[self.place]) for end in self.likelihood.frame.given)
        one_sign = low >= 0 < value or high <= 0 > value
        if self.held and abs(value) < _VANISHING * self.sd:
            return Scale(0.0, self.sd)
        return Scale(math.copysign(1.0, value) if one_sign else 0.0, max(abs(value), self.sd))

    def doubt(self, interval: tuple[float, float]) -> Doubt | None:
        scale = self.scale
        limits = [float(end[self.place]) for end in self.likelihood.frame.given]
        here = float(scale.to(self.value))
        wanted = []
        for end, limit, sign in zip(interval, limits, (-1, 1), strict=True):
            reach, most = (self._distance(scale, here, one, sign) for one in (end, limit))
            right = self._reach(scale, here, sign, min(reach, most), most)
            wanted.append(limit if right >= most else float(scale.back(here + sign * right)))
        low, high = wanted
        room = APART * (high - low)
        words = [
            f"{NARROW if outward > 0 else WIDE} {side}"
            for outward, side in ((interval[0] - low, "below"), (high - interval[1], "above"))
            if abs(outward) > room or math.isinf(outward)
        ]
        return Doubt(" and ".join(words), (low, high)) if words else None

    @staticmethod
    def _distance(scale: Scale, here: float, end: float, sign: int) -> float:
        """How far away an end is on the scale, at most as far as anyone looks."""
        distance = sign * (float(scale.to(end)) - here) if math.isfinite(end) and (end or not scale.sign) else math.inf
        return min(max(distance, 0.0), _FARTHEST)

    def _reach(self, scale: Scale, here: float, sign: int, reach: float, most: float) -> float:
        """Where the root of the deviance is that at an end, from where curvature has it, up to a limit."""
        if most <= 0:
            return 0.0
        inner, inner_root, outer, outer_root = 0.0, 0.0, math.inf, math.inf
        at = whole = reach if reach > 0 else min(most, _FIRST)
        near = self.likelihood.optimum.z
        for _ in range(_LOOKS):
            found = self._probe(float(scale.back(here + sign * at)), sign * self.many * at / whole, near)
            if found.root >= self.crossing:
                outer, outer_root = at, found.root
            else:
                inner, inner_root, near = at, found.root, found.z
            if abs(found.root - self.crossing) <= _NEAR * self.crossing or inner >= most or now() > self.deadline:
                return at
            at = self._next(inner, inner_root, outer, outer_root, most)
        return at

    def _next(self, inner: float, inner_root: float, outer: float, outer_root: float, most: float) -> float:
        """Where the deviance should be right, if its root is straight between the looks so far."""
        if math.isinf(outer):
            slope = inner_root / inner
            return min(inner * _LONGEST, 1.02 * self.crossing / slope if slope > 0 else math.inf, most)
        if math.isinf(outer_root):
            return 0.5 * (inner + outer)
        share = (self.crossing - inner_root) / (outer_root - inner_root)
        return inner + min(max(share, 0.05), 0.95) * (outer - inner)

    def _probe(self, value: float, distance: float, near: np.ndarray) -> Probe:
        """The best point with the unknown held at a value: from where curvature would have it, and where that is not
        good enough for the inside of an interval, from the last point that was."""
        found = self.parabola.probe(self.asked, value, self.direction, distance, _EVALUATIONS)
        if found.root < (1 + _NEAR) * self.crossing:
            return found
        again = self.parabola.hold(self.asked, value, near, _EVALUATIONS)
        return again if again.root < found.root else found
