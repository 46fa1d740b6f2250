"""Profile: the likelihood along a quantity, with everything else at its best for every value of it.

    deviance(c) = 2 min { cost(z) : g(z) = c } - 2 cost(optimum)

The noise levels that are not known are among everything else.  The interval holds the values whose deviance is below
the quantile of chi-square; where the noise was estimated from N measurements with nu degrees of freedom, the quantile
is that of a linear model, N log(1 + t^2 / nu) with Student's t.  It needs no curvature: it may be lopsided, and where
the deviance never rises enough it has no end.

From the optimum the quantity walks outward in both directions, on a logarithmic scale if it keeps its sign.  The root
of the deviance is nearly linear in the distance, which tells the next step and, at the end, the crossing.  Every start
is predicted from the last two points, so that two or three evaluations find the next optimum.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.attach import attached
from odejet.clock import now
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.numerals import measured, short, spread
from odejet.smooth.threads import one_thread
from odejet.tables import html_table
from odejet.uncertainty.derived import Asked
from odejet.uncertainty.fisher import quantiles
from odejet.uncertainty.likelihood import Likelihood

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

EVALUATIONS = 1000
"""What the profile of one quantity may take; a hundred are common."""

SECONDS = 120.0
"""What it may take at most, so that models that are very slow to simulate end too: answers should not depend on how
busy a machine is."""

BETTER = 0.05
"""A profile that finds a likelihood higher by more than this (in the deviance) has found a better optimum."""

_FIRST_SHARE = 0.5  # of the crossing: where the first step aims
_FIRST_LONGEST, _LONGEST_STEP = 0.5, 3.0  # on the scale of the walk
_SHORTEST_STEP = 1e-9
_FARTHEST = math.log(1e6)  # a quantity that may be so many times larger or smaller has no end
_GROWTH = 3.0  # of a step from one to the next
_SURPRISE, _ROOM = 1.5, 0.4  # a root larger than so many times the expected one and this is not believed yet
_DOUBTS = 4  # how often in a row
_BACK = 0.35  # what is left of a step that was not believed, or led nowhere
_CLOSE = 0.02  # of the crossing: near enough for interpolation
_MOST_POINTS = 60
_CLOSINGS = 8
_RANK, _UNSEEN = 1e-9, 1e-3  # singular values that are rounding, and the share of a quantity there that counts
_HELD_EVALUATIONS = 40  # of a held optimum; one below the crossing is low enough wherever it ends
_STRAIGHT = 0.15  # a valley does not bend so near the optimum, on the scale of the walk
_CONTINUED = 4  # times so many before one beyond the crossing is given up, to be approached from nearer


class End(Enum):
    """How one side of a profile ended, as words."""

    CLOSED = "the deviance rises above the quantile"
    BOUND = "it is still below the quantile at the bound"
    FAR = "it is still below the quantile where the search ends"
    UNREACHED = "no values beyond can be simulated within the bounds"
    EFFORT = "the limit of evaluations or of time was reached"
    UNTOLD = "no measurements are left to show the noise"


@dataclass(frozen=True)
class Scale:
    """The scale of a walk: logarithmic with a sign, or that of asinh in some unit."""

    sign: float
    unit: float

    def to(self, value: float | np.ndarray) -> Any:
        with np.errstate(divide="ignore"):
            return self.sign * np.log(np.abs(value)) if self.sign else np.arcsinh(np.asarray(value) / self.unit)

    def back(self, phi: float | np.ndarray) -> Any:
        with np.errstate(over="ignore"):
            return self.sign * np.exp(self.sign * np.asarray(phi)) if self.sign else self.unit * np.sinh(phi)

    def slope(self, value: float) -> float:
        """d value / d phi."""
        return abs(value) if self.sign else math.hypot(value, self.unit)


@dataclass(frozen=True)
class Point:
    """An optimum with the quantity held: where, the root of its deviance, and all unknowns."""

    phi: float
    root: float
    z: np.ndarray


@dataclass(frozen=True, eq=False)
class Profile:
    """The deviance along a quantity; values rise, and the deviance is zero at the estimate."""

    label: str
    labels: tuple[str, ...]  # of the unknowns
    scale: Scale
    values: np.ndarray
    deviances: np.ndarray
    unknowns: np.ndarray  # all of them at every value
    estimate: float
    ends: tuple[End, End]
    level: float  # up to which it was followed
    degrees_of_freedom: float  # of the noise
    ratio: float  # measurements per degree of freedom
    bounds: tuple[float, float]
    note: str = ""
    evaluations: int = 0
    seconds: float = 0.0

    @property
    def quantile(self) -> float:
        """The deviance at the ends of the interval."""
        return deviance_quantile(self.level, self.degrees_of_freedom, self.ratio)

    @property
    def open(self) -> tuple[bool, bool]:
        """Whether the interval has no lower end, and no upper one."""
        return self.ends[0] is not End.CLOSED, self.ends[1] is not End.CLOSED

    @property
    def stopped(self) -> bool:
        """Whether a limit of evaluations or of time ended it."""
        return End.EFFORT in self.ends

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """The interval of a level up to that of the profile; an open end is the bound, or infinite."""
        level = self.level if level is None else level
        if not 0 < level <= self.level:
            raise ModelError(f"the profile reaches a level of {self.level:g}, not {level:g}; profile it again with it")
        wanted = math.sqrt(deviance_quantile(level, self.degrees_of_freedom, self.ratio))
        low, high = (self._crossing(side, wanted) for side in (-1, 1))
        return (self.bounds[0] if low is None else low), (self.bounds[1] if high is None else high)

    def _crossing(self, side: int, wanted: float) -> float | None:
        """Where the root of the deviance reaches a value on one side; None if it does not."""
        chosen = self.values * side >= self.estimate * side
        order = np.argsort(self.values[chosen] * side)
        phi, root = self.scale.to(self.values[chosen][order]), np.sqrt(self.deviances[chosen][order])
        beyond = np.flatnonzero(root >= wanted * (1 - 1e-9))
        if not len(beyond):
            return None
        i = int(beyond[0])
        if i == 0:
            return self.estimate
        share = (wanted - root[i - 1]) / (root[i] - root[i - 1])
        return float(self.scale.back(phi[i - 1] + min(share, 1.0) * (phi[i] - phi[i - 1])))

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per value: the quantity, its deviance, and what the unknowns are there."""
        pandas = needed("pandas")
        table = {"value": self.values, "deviance": self.deviances}
        return pandas.DataFrame(table | dict(zip(self.labels, self.unknowns.T, strict=True)))

    @attached
    def plot(self, path: str | os.PathLike[str] | None = None) -> matplotlib.figure.Figure:
        """The deviance over the quantity, with the interval; `path` is a file to write (PNG, PDF or SVG)."""
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        """The interval in words."""
        low, high = self.interval()
        error = spread(low, high)
        told = {
            (False, False): f"between {measured(low, error)} and {measured(high, error)}",
            (True, False): f"below {short(high)}, no lower end",
            (False, True): f"above {short(low)}, no upper end",
            (True, True): "any value",
        }[self.open]
        return f"{self.label}: {told} ({100 * self.level:g} %){f'; {self.note}' if self.note else ''}"

    def __repr__(self) -> str:
        return f"Profile of {self.sentence}, {len(self.values)} points"

    def _repr_html_(self) -> str:
        points = zip(self.values.tolist(), self.deviances.tolist(), strict=True)
        rows = [(f"{value:.6g}", f"{deviance:.3g}") for value, deviance in points]
        return html_table([(self.label, "deviance"), *rows], (0, 1), repr(self), [self.note] if self.note else [])


def deviance_quantile(level: float, degrees_of_freedom: float, ratio: float) -> float:
    """The deviance that a true value stays below with this probability.

    For a linear model with one noise level the deviance is N log(1 + t^2 / nu) with Student's t, exactly; with ratio =
    N / nu this becomes chi-square as nu grows.
    """
    return float(deviance_quantiles(level, np.array(degrees_of_freedom), np.array(ratio)))


def deviance_quantiles(level: float, degrees_of_freedom: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Return the quantile of the deviance for each of many degrees of freedom and ratios."""
    if not 0 < level < 1:
        raise ModelError(f"the level of an interval is a probability between 0 and 1, such as 0.95, not {level:g}")
    squares, known = quantiles(level, degrees_of_freedom) ** 2, np.isinf(degrees_of_freedom)
    degrees = np.where(known, 1.0, degrees_of_freedom)
    return np.where(known, squares, ratios * degrees * np.log1p(squares / degrees))


@one_thread()
def profile(
    likelihood: Likelihood,
    asked: str | Asked,
    level: float = 0.95,
    seconds: float = SECONDS,
    evaluations: int = EVALUATIONS,
) -> Profile:
    """Follow the likelihood along a quantity, or what a text means, until it leaves the interval of a level."""
    if not likelihood.misfit.weighted:
        raise ModelError(
            "a profile needs the likelihood, and this fit is of plain squares; fit with weights='likelihood'"
        )
    begin = now()
    asked = likelihood.derived(asked) if isinstance(asked, str) else asked
    walk = _Walk(likelihood, asked, level, begin + seconds)
    # Half for each side; what the first leaves is for the second.
    below, low_end = walk.side(-1, evaluations // 2)
    above, high_end = walk.side(1, evaluations)
    points = [*below[::-1], walk.origin, *above]
    roots = np.array([point.root for point in points])
    values = np.array([walk.value(point.phi) for point in points])
    values[len(below)] = walk.estimate
    low, high = walk.bounds
    return Profile(
        label=asked.label,
        labels=likelihood.misfit.labels,
        scale=walk.scale,
        values=values,
        deviances=roots**2,
        unknowns=np.array([point.z for point in points]),
        estimate=walk.estimate,
        ends=(low_end, high_end),
        level=level,
        degrees_of_freedom=walk.degrees_of_freedom,
        ratio=walk.ratio,
        bounds=(low, high),
        note=walk.note,
        evaluations=walk.evaluations,
        seconds=now() - begin,
    )


class _Walk:
    """The way from the optimum outward, along one quantity."""

    def __init__(self, likelihood: Likelihood, asked: Asked, level: float, deadline: float) -> None:
        self.likelihood, self.asked, self.deadline, self.evaluations = likelihood, asked, deadline, 0
        self.best, frame = likelihood.optimum, likelihood.frame
        self.estimate, gradient = asked.at(self.best.z)
        if not math.isfinite(self.estimate):
            raise ModelError(f"'{asked.label}' has no value at the optimum; ask for another expression")
        known = likelihood.information
        rows = gradient[None]
        self.degrees_of_freedom, self.ratio = (float(part[0]) for part in known.errors(rows)[1:])
        self.crossing = math.sqrt(deviance_quantile(level, self.degrees_of_freedom, self.ratio))
        self.untold = bool(known.untold(rows)[0])
        self.scale, self.ends, self.bounds = self._scaled()
        self.origin = Point(float(self.scale.to(self.estimate)), 0.0, self.best.z)
        self.sd, self.towards = self._tangent(gradient * frame.slopes(self.best.z) / self.scale.slope(self.estimate))
        self.note = End.UNTOLD.value if self.untold else ""

    def _scaled(self) -> tuple[Scale, tuple[float, float], tuple[float, float]]:
        """The scale of the walk, its ends there, and the bounds of the quantity."""
        frame, place = self.likelihood.frame, self.asked.place
        if place is not None:
            scale = Scale(float(frame.signs[place]), float(frame.units[place]))
            low, high = (float(end[place]) for end in frame.given)
            # An estimate that vanishes does not tell how large a quantity may be, but its unit does.
            near = [float(scale.to(size)) for size in (self.estimate, math.copysign(scale.unit, self.estimate))]
            ends = (
                max(float(frame.box[0][place]), min(near) - _FARTHEST),
                min(float(frame.box[1][place]), max(near) + _FARTHEST),
            )
            return scale, ends, (low, high)
        keeps = self.asked.keeps_sign(frame.signs) and self.estimate != 0
        unit = self.asked.unit or abs(self.estimate) or 1.0
        scale = Scale(math.copysign(1.0, self.estimate) if keeps else 0.0, unit)
        signed = {1.0: (0.0, math.inf), -1.0: (-math.inf, 0.0), 0.0: (-math.inf, math.inf)}
        here = float(scale.to(self.estimate))
        return scale, (here - _FARTHEST, here + _FARTHEST), signed[scale.sign]

    def _tangent(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """The sd of the quantity on the scale of the walk, and how all unknowns move for a unit move of it: by
        regression, those on a bound staying there; along directions of which nothing is known, if these move it."""
        free = ~self.best.held
        if self.asked.place is not None:
            free[self.asked.place] = True
        if np.linalg.norm(gradient * free) <= _UNSEEN * np.linalg.norm(gradient):
            free[:] = True  # it moves with what is on a bound, and with nothing else
        _, sizes, vt = np.linalg.svd(self.likelihood.triangle * free, full_matrices=False)
        kept = sizes > _RANK * sizes.max(initial=0.0)
        root = vt[kept] / sizes[kept, None]
        unseen = free * (gradient - vt[kept].T @ (vt[kept] @ gradient))
        if unseen @ unseen > _UNSEEN**2 * (gradient @ gradient):
            return math.inf, unseen / (unseen @ gradient)
        along = root @ gradient
        variance = float(along @ along)
        if not (variance > 0 and math.isfinite(variance)):
            return math.inf, np.zeros(len(gradient))
        return math.sqrt(variance), root.T @ along / variance

    def value(self, phi: float) -> float:
        return float(self.scale.back(phi))

    def side(self, sign: int, evaluations: int) -> tuple[list[Point], End]:
        """Points on one side, outward, and why there are no more; up to so many evaluations in all."""
        if self.untold:
            return [], End.UNTOLD
        points = [self.origin]
        limit = self.ends[0] if sign < 0 else self.ends[1]
        step, doubts = self.first_step(), 0
        while len(points) < _MOST_POINTS:
            here = points[-1]
            phi = here.phi + sign * min(step, max(sign * (limit - here.phi), 0.0))
            if abs(phi - here.phi) < _SHORTEST_STEP * max(1.0, abs(phi)):
                return points[1:], End.FAR if abs(phi - self.origin.phi) > 0.999 * _FARTHEST else End.BOUND
            if self.evaluations >= evaluations or now() > self.deadline:
                return points[1:], End.EFFORT
            found = self.reach(phi, points)
            if found is None:
                if now() > self.deadline:  # a refit that was cut short says nothing of what can be reached
                    return points[1:], End.EFFORT
                step *= _BACK
                if step < 1e-3 * max(self.first_step(), abs(here.phi - self.origin.phi)):
                    return points[1:], End.UNREACHED
            elif self.surprising(found, points) and doubts < _DOUBTS:
                # A valley that bends, or another valley: nearer, one can tell.
                step, doubts = _BACK * step, doubts + 1
            elif found.root >= self.crossing:
                points.append(found)
                return self.closed(points), End.CLOSED
            else:
                doubts = 0
                points = self.straightened([*points, found])
                step = self.next_step(points)
        return points[1:], End.FAR

    def first_step(self) -> float:
        step = min(_FIRST_SHARE * self.crossing * self.sd, _FIRST_LONGEST)
        return step if step > 0 else _FIRST_LONGEST

    def surprising(self, found: Point, points: list[Point]) -> bool:
        """Whether the deviance has risen beyond the crossing and faster than its beginning tells."""
        here = points[-1]
        slope = 1 / self.sd
        if len(points) > 1:
            slope = (here.root - points[-2].root) / abs(here.phi - points[-2].phi)
        expected = here.root + max(slope, 0.0) * abs(found.phi - here.phi)
        return found.root > max(self.crossing, _SURPRISE * expected + _ROOM)

    def straightened(self, points: list[Point]) -> list[Point]:
        """Points that a later one shows to be too high are found again from there."""
        for i in range(len(points) - 2, 0, -1):
            if points[i].root <= points[i + 1].root + _CLOSE * self.crossing:
                break
            again = self.optimum(points[i].phi, points[i + 1].z)
            if again is None or again.root >= points[i].root:
                break
            points[i] = again
        return points

    def next_step(self, points: list[Point]) -> float:
        """A step that leads a little beyond the crossing, if the root of the deviance goes on as it did."""
        before, here = points[-2], points[-1]
        step = abs(here.phi - before.phi)
        slope = (here.root - before.root) / step
        wanted = (1.01 * self.crossing - here.root) / slope if slope > 0 else math.inf
        return min(max(wanted, 0.05 * step), _GROWTH * step, _LONGEST_STEP)

    def closed(self, points: list[Point]) -> list[Point]:
        """Points until one is close enough to the crossing."""
        inner, outer = points[-2], points[-1]
        trail = points[:-1]
        for _ in range(_CLOSINGS):
            if min(outer.root - self.crossing, self.crossing - inner.root) <= _CLOSE * self.crossing:
                break
            phi = self._interpolated(trail, outer)
            found = self.reach(phi, trail, outer)
            if found is None:
                break
            if found.root >= self.crossing:
                outer = found
            else:
                inner = found
                trail.append(found)
        return [*trail[1:], outer]

    def _interpolated(self, trail: list[Point], outer: Point) -> float:
        """Where the root of the deviance should be at the crossing, by a parabola through three points if it rises."""
        inner = trail[-1]
        line = inner.phi + (self.crossing - inner.root) / (outer.root - inner.root) * (outer.phi - inner.phi)
        if len(trail) < 2:
            return line
        before = trail[-2]
        if not before.root < inner.root < outer.root:
            return line
        # Newton's divided differences: a chord, and how much the next one differs from it.
        chord = (outer.phi - inner.phi) / (outer.root - inner.root)
        bend = (chord - (inner.phi - before.phi) / (inner.root - before.root)) / (outer.root - before.root)
        curve = line + bend * (self.crossing - inner.root) * (self.crossing - outer.root)
        between = min(inner.phi, outer.phi) < curve < max(inner.phi, outer.phi)
        return curve if between else line

    def reach(self, phi: float, points: list[Point], beyond: Point | None = None) -> Point | None:
        """The optimum with the quantity held, started from where the points lead; None where none can be simulated.

        One beyond the crossing would end the interval, so far from the optimum every start has its say before it is
        believed: where the valley bends, the nearest point does not lead to its floor.
        """
        best: Point | None = None
        straight = abs(phi - self.origin.phi) <= _STRAIGHT
        for start in self.starts(phi, points, beyond):
            found = self.optimum(phi, start)
            if found is not None and (best is None or found.root < best.root):
                best = found
            if best is not None and (straight or best.root < self.crossing):
                break
        return best

    def optimum(self, phi: float, start: np.ndarray) -> Point | None:
        """The optimum that a start leads to; beyond the crossing only if the refit has come to its end there."""
        value = self.value(phi)
        for _ in range(_CONTINUED):
            found = self.likelihood.hold(self.asked, value, start, max(self.deadline - now(), 0.01), _HELD_EVALUATIONS)
            self.evaluations += 0 if found is None else found.evaluations
            if found is None or not math.isfinite(found.cost):
                return None
            deviance = 2 * (found.cost - self.best.cost)
            if deviance < -BETTER:
                self.note = "values were found that explain the data better than the fit: fit again with more effort"
            start = self.likelihood.whole(self.asked, value, start, found)
            root = math.sqrt(max(deviance, 0.0))
            if found.ending.settled or root < self.crossing:
                return Point(phi, root, start)
        return None

    def starts(self, phi: float, points: list[Point], beyond: Point | None) -> list[np.ndarray]:
        """The prediction from the points on both sides, or from the last two; then the last point itself, and the way
        straight from the optimum."""
        frame = self.likelihood.frame
        here = points[-1]
        theta, slope = frame.to(here.z), self.towards
        other = beyond if beyond is not None else points[-2] if len(points) > 1 else None
        if other is not None and other.phi != here.phi:
            slope = (theta - frame.to(other.z)) / (here.phi - other.phi)
        low, high = frame.box
        moved = np.clip(theta + (phi - here.phi) * np.where(np.isfinite(slope), slope, 0.0), low, high)
        starts = [frame.back(moved), here.z]
        if len(points) > 1:
            away = frame.to(self.best.z) + (phi - self.origin.phi) * self.towards
            starts.append(frame.back(np.clip(away, low, high)))
        return starts
