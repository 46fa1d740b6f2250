"""Bands: how far outputs and states may be from their predictions, at any time.

By the *delta method* the variance of a quantity g is that of its tangent, g'Cg with the covariance C of the unknowns,
and the band reaches as many standard errors as Student's t says.  It is right where the likelihood is nearly a parabola
and g nearly straight within it.  Both are checked: the unknowns move along a few directions, chosen so that every
quantity has one near its own, to where the band should end, and the likelihood and all curves are looked at there.

Where this does not hold, or the tangent says nothing, a *prediction profile* tells: the quantity at a time is held at a
value, everything else refitted, until the data contradict it (Kreutz and others 2012).  Such profiles are made at some
of the times, more where they differ from what lies between their neighbours.  Every point that the data allow is a
whole course, which cannot leave the band at any time: where one does, the band is wider.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from odejet.clock import now
from odejet.errors import ModelError
from odejet.simulate.flow import Outcome
from odejet.smooth.threads import one_thread
from odejet.uncertainty.fisher import quantiles
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.parabola import ROOM, Parabola
from odejet.uncertainty.predicted import Curves, Predicted
from odejet.uncertainty.profile import End, Profile, deviance_quantiles, profile

METHODS = ("auto", "delta", "profile")

EVALUATIONS, GLANCE_EVALUATIONS = 4000, 1000
"""What the prediction profiles of all bands may take together, and those of a glance."""

SECONDS, QUICK = 120.0, 10.0
"""What they may take at most, so that models that are very slow to simulate end too."""

_ALIKE = math.cos(math.radians(20))  # of directions that one probe stands for
_MOST_PROBES = 40
_EVEN = 0.1  # parts of its reach by which a profile may differ from what lies between its neighbours
_SAME = 1e-10  # of curves that differ by rounding
_EDGE = 1.005  # of the crossing: as near as interpolation finds it


@one_thread()
def bands(
    likelihood: Likelihood,
    number: int,
    times: np.ndarray,
    level: float = 0.95,
    method: str = "auto",
    states: bool = True,
    evaluations: int = EVALUATIONS,
    seconds: float = SECONDS,
) -> tuple[Tangent, Ends]:
    """The outputs, and states if wanted, of an experiment at any times that its inputs cover, and where their bands
    end."""
    if method not in METHODS:
        raise ModelError(f"the method of bands is one of {', '.join(METHODS)}, not {method!r}")
    if not 0 < level < 1:
        raise ModelError(f"the level of a band is a probability between 0 and 1, such as 0.95, not {level:g}")
    weighted = likelihood.misfit.weighted
    if method == "profile" and not weighted:
        raise ModelError(
            "a profile needs the likelihood, and this fit is of plain squares; fit with weights='likelihood'"
        )
    # In the order of time, so that the answer does not depend on the order in which it is asked for.
    order = np.argsort(times, kind="stable")
    tangent = Tangent.of(likelihood, Curves.of(likelihood.misfit, number, times[order], states), level)
    ends = Ends.of(tangent)
    if method != "delta" and weighted and tangent.values.size:
        deadline, doubtful = now() + seconds, tangent.sds > 0
        if method == "auto":
            doubtful = doubtful & _Look(likelihood, tangent, deadline).doubtful(ends)
        _Profiles(likelihood, tangent, ends, evaluations, deadline, thorough=method == "profile").fill(doubtful)
    asked = np.argsort(order[tangent.reached], kind="stable")
    return tangent.arranged(asked), ends.arranged(asked)


@dataclass(frozen=True, eq=False)
class Tangent:
    """The prediction and the reach of its band by the delta method; arrays are (times, quantities)."""

    curves: Curves
    level: float
    reached: np.ndarray  # positions of the times that were reached
    times: np.ndarray
    values: np.ndarray
    gradients: np.ndarray  # and by unknowns
    sds: np.ndarray
    reaches: np.ndarray
    crossings: np.ndarray  # the root of the deviance at the ends of the bands
    sizes: np.ndarray  # of the quantities
    outcome: Outcome
    message: str

    @classmethod
    def of(cls, likelihood: Likelihood, curves: Curves, level: float) -> Tangent:
        found = curves.run(likelihood.optimum.z, gradients=True)
        assert found.gradients is not None
        shape, known = found.values.shape, likelihood.information
        rows = found.gradients.reshape(-1, found.gradients.shape[2])
        sds, degrees, ratios = (part.reshape(shape) for part in known.errors(rows))
        sds = np.where(np.abs(found.gradients).max(axis=2, initial=0.0) > 0, sds, 0.0)
        sizes = np.abs(found.values).max(axis=0, initial=0.0)
        return cls(
            curves,
            level,
            found.reached,
            curves.course.times[found.reached],
            found.values,
            found.gradients,
            sds,
            quantiles(level, degrees) * sds,
            np.sqrt(deviance_quantiles(level, degrees, ratios)),
            np.where(sizes > 0, sizes, 1.0),
            found.outcome,
            found.message,
        )

    @property
    def logarithmic(self) -> np.ndarray:
        """Which quantities are known to be positive, so that the delta method is of their logarithms."""
        return np.array([name in self.curves.positive for name in (*self.curves.outputs, *self.curves.states)])

    def moved(self, by: np.ndarray) -> np.ndarray:
        """Return the values where the curves have moved so far by the delta method."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.where(self.logarithmic, self.values * np.exp(by / self.values), self.values + by)

    def moves(self, to: np.ndarray) -> np.ndarray:
        """Return how far the curves have moved to such values, in the units of the delta method."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.where(self.logarithmic, self.values * np.log(to / self.values), to - self.values)

    def arranged(self, places: np.ndarray) -> Tangent:
        """Return a copy with its times in another order."""
        names = ("reached", "times", "values", "gradients", "sds", "reaches", "crossings")
        return replace(self, **{name: getattr(self, name)[places] for name in names})


@dataclass(eq=False)
class Ends:
    """Where bands end as far as is known; those by the delta method are replaced as profiles are made."""

    low: np.ndarray
    high: np.ndarray
    profiled: np.ndarray
    trusted: np.ndarray
    lowest: np.ndarray  # that any course which the data allow was seen to reach
    highest: np.ndarray

    @classmethod
    def of(cls, tangent: Tangent) -> Ends:
        low, high = tangent.moved(-tangent.reaches), tangent.moved(tangent.reaches)
        no, yes = np.zeros(low.shape, dtype=bool), np.ones(low.shape, dtype=bool)
        return cls(low, high, no, yes, tangent.values.copy(), tangent.values.copy())

    def arranged(self, places: np.ndarray) -> Ends:
        """Return a copy with its times in another order."""
        return Ends(*(getattr(self, one.name)[places] for one in fields(self)))

    def met(self, tangent: Tangent, z: np.ndarray, root: float) -> np.ndarray | None:
        """Remember a course that the data allow; its values, if it can be simulated to the end."""
        found = tangent.curves.run(z)
        if not found.complete or len(found.values) != len(tangent.values):
            return None
        allowed = root <= _EDGE * tangent.crossings
        self.lowest = np.where(allowed, np.fmin(self.lowest, found.values), self.lowest)
        self.highest = np.where(allowed, np.fmax(self.highest, found.values), self.highest)
        return found.values

    def copy(self, column: int, first: int, factor: float) -> None:
        """Let a quantity have the band of another that it is a multiple of."""
        if column != first:
            low, high = (self.low, self.high) if factor > 0 else (self.high, self.low)
            self.low[:, column], self.high[:, column] = factor * low[:, first], factor * high[:, first]
            self.profiled[:, column], self.trusted[:, column] = self.profiled[:, first], self.trusted[:, first]

    def left(self, room: np.ndarray) -> np.ndarray:
        """Where courses leave the band by more than some room."""
        return (self.lowest < self.low - room) | (self.highest > self.high + room)


@dataclass(frozen=True, eq=False)
class _Look:
    """A look at the ends of bands, along few directions for all of them."""

    likelihood: Likelihood
    tangent: Tangent
    deadline: float

    def doubtful(self, ends: Ends) -> np.ndarray:
        """Where the delta method is not to be trusted: it says nothing, a probe near its end is not as expected, or
        some course leaves the band."""
        tangent, shape = self.tangent, self.tangent.sds.shape
        doubts = ~np.isfinite(tangent.sds)
        places = np.flatnonzero((tangent.sds > 0) & ~doubts)
        if not len(places):
            return doubts
        parabola, wrong = Parabola(self.likelihood), doubts.ravel()
        directions = parabola.directions(tangent.gradients.reshape(-1, tangent.gradients.shape[2])[places])
        chosen = _spread(directions)
        cosines = directions @ directions[chosen].T
        nearest_one = np.argmax(np.abs(cosines), axis=1)
        for k, sign in itertools.product(range(len(chosen)), (-1, 1)):
            mine = nearest_one == k
            if now() > self.deadline:
                wrong[places[mine]] = True
                continue
            moved = self._probe(parabola, ends, int(places[chosen[k]]), directions[chosen[k]], sign)
            reaches = tangent.reaches.ravel()[places]
            right = np.abs(moved.ravel()[places] - sign * cosines[:, k] * reaches) <= ROOM * reaches
            wrong[places[mine & ~right]] = True
        return wrong.reshape(shape) | ends.left(ROOM * tangent.reaches)

    def _probe(self, parabola: Parabola, ends: Ends, place: int, direction: np.ndarray, sign: int) -> np.ndarray:
        """How far all curves move while one quantity moves to the end of its band; NaN if that is not to be found."""
        tangent = self.tangent
        time, column = np.unravel_index(place, tangent.sds.shape)
        reach, sd, crossing = (float(part[time, column]) for part in (tangent.reaches, tangent.sds, tangent.crossings))
        asked, aim = _asked(tangent, int(time), int(column)), float(tangent.moved(sign * tangent.reaches)[time, column])
        probe = parabola.probe(asked, aim, direction, sign * reach / sd)
        seen = ends.met(tangent, probe.z, probe.root) if math.isfinite(probe.root) else None
        if seen is None or not probe.confirms(crossing):
            return np.full(tangent.values.shape, math.nan)
        # A root that is a little off would have the end a little farther, or nearer.
        return tangent.moves(seen) * crossing / probe.root


def _spread(directions: np.ndarray) -> list[int]:
    """Few of many directions, so that each has one near its own: always the one farthest from those so far."""
    chosen = [0]
    closeness = np.abs(directions @ directions[0])
    while len(chosen) < _MOST_PROBES and closeness.min() < _ALIKE:
        chosen.append(int(np.argmin(closeness)))
        closeness = np.maximum(closeness, np.abs(directions @ directions[chosen[-1]]))
    return chosen


def _asked(tangent: Tangent, time: int, column: int) -> Predicted:
    """One quantity at one time; what is small beside its band counts as zero."""
    reach = min(float(tangent.reaches[time, column]), float(tangent.sizes[column]))
    unit = max(abs(float(tangent.values[time, column])), reach)
    return tangent.curves.quantity(float(tangent.times[time]), column, unit)


@dataclass(eq=False)
class _Profiles:
    """Prediction profiles at some times, and bands between them."""

    likelihood: Likelihood
    tangent: Tangent
    ends: Ends
    evaluations: int  # that are left
    deadline: float
    thorough: bool  # at all times that are asked for

    def fill(self, doubtful: np.ndarray) -> None:
        """Replace the ends of doubtful bands, as far as the effort goes."""
        self.ends.trusted[doubtful] = False
        same = _multiples(self.tangent)
        firsts = dict.fromkeys(first for first, _ in same)
        runs = [(column, run) for column in firsts for run in _runs(np.flatnonzero(doubtful[:, column]))]
        for column, run in runs:
            for place in dict.fromkeys((run[0], run[-1])):
                self.profile(int(place), column)
        # Breadth first, so that a small effort is spread over all of them.
        waiting = list(runs)
        while waiting:
            column, run = waiting.pop(0)
            self.between(column, run)
            if len(run) < 3 or not (self.known(column, run[0]) and self.known(column, run[-1])):
                continue
            middle = len(run) // 2
            halves = [(column, run[: middle + 1]), (column, run[middle:])]
            if self.profile(int(run[middle]), column) or self.thorough:
                waiting += halves
            else:
                for half in halves:
                    self.between(*half)
        for column, (first, factor) in enumerate(same):
            self.ends.copy(column, first, factor)
        self.widen(doubtful)

    def known(self, column: int, place: int) -> bool:
        return bool(self.ends.trusted[place, column])

    def profile(self, place: int, column: int) -> bool:
        """Make one profile; whether it brings news, its ends being others than stood there."""
        if self.evaluations <= 0 or now() > self.deadline:
            return False
        found = profile(
            self.likelihood,
            _asked(self.tangent, place, column),
            self.tangent.level,
            max(self.deadline - now(), 0.01),
            self.evaluations,
        )
        self.evaluations -= found.evaluations
        low, high = _ends(found)
        for z, root in _outermost(found):
            self.ends.met(self.tangent, z, root)
        here = place, column
        # Of a side that took too long, what is known is better than nothing.
        low = min(float(self.ends.low[here]), found.values[0]) if found.ends[0] is End.EFFORT else low
        high = max(float(self.ends.high[here]), found.values[-1]) if found.ends[1] is End.EFFORT else high
        known = _alike((self.ends.low[here], low), (self.ends.high[here], high), self.tangent, here)
        self.ends.low[here], self.ends.high[here] = low, high
        self.ends.profiled[here], self.ends.trusted[here] = True, End.EFFORT not in found.ends
        return not known

    def between(self, column: int, run: np.ndarray) -> None:
        """Fill what lies between two profiles, by their reach in units of that of the delta method."""
        first, last, inner = run[0], run[-1], run[1:-1]
        if not len(inner) or not (self.known(column, first) and self.known(column, last)):
            return
        times, values = self.tangent.times, self.tangent.values[:, column]
        units = self.tangent.reaches[:, column]
        units = units if np.all(np.isfinite(units[run])) and np.all(units[run] > 0) else np.ones(len(times))
        share = (times[inner] - times[first]) / ((times[last] - times[first]) or 1.0)
        for ends in (self.ends.low, self.ends.high):
            a, b = ((ends[place, column] - values[place]) / units[place] for place in (first, last))
            ends[inner, column] = values[inner] + units[inner] * _mean(a, b, share)
        self.ends.profiled[inner, column] = self.ends.trusted[inner, column] = True

    def widen(self, doubtful: np.ndarray) -> None:
        """No course that the data allow leaves the band: where one was seen to, the band is as wide as that."""
        left = self.ends.left(np.where(doubtful, 0.0, ROOM * self.tangent.reaches))
        self.ends.low = np.where(left, np.fmin(self.ends.low, self.ends.lowest), self.ends.low)
        self.ends.high = np.where(left, np.fmax(self.ends.high, self.ends.highest), self.ends.high)
        self.ends.profiled |= left


def _alike(low: tuple[float, float], high: tuple[float, float], tangent: Tangent, here: tuple[int, int]) -> bool:
    """Whether two bands are nearly the same at a place; a side that hardly reaches anywhere need not be exact."""
    value, usual = float(tangent.values[here]), float(tangent.reaches[here])
    below, above = value - low[1], high[1] - value
    pairs = ((low, max(below, min(above, usual))), (high, max(above, min(below, usual))))
    return all(a == b or abs(a - b) <= _EVEN * reach < math.inf for (a, b), reach in pairs)


def _mean(a: float, b: float, share: np.ndarray) -> np.ndarray:
    """Between two ends: what grows does so by a factor.  Between an end and none there may be none."""
    if math.isinf(a) or math.isinf(b):
        return np.full(len(share), a if math.isinf(a) else b)
    return np.copysign(abs(a) ** (1 - share) * abs(b) ** share, a) if a * b > 0 else (1 - share) * a + share * b


def _multiples(tangent: Tangent) -> list[tuple[int, float]]:
    """For every quantity the first that it is a multiple of, and which: an output may be a state, in other units."""
    curves = np.concatenate([tangent.values[:, :, None], tangent.gradients], axis=2)
    found: list[tuple[int, float]] = []
    for column in range(curves.shape[1]):
        own = curves[:, column]
        for other in dict.fromkeys(first for first, _ in found):
            square = float((curves[:, other] ** 2).sum())
            factor = float((own * curves[:, other]).sum()) / square if square > 0 else 0.0
            if factor and np.allclose(own, factor * curves[:, other], rtol=_SAME, atol=_SAME * np.abs(own).max()):
                found.append((other, factor))
                break
        else:
            found.append((column, 1.0))
    return found


def _runs(places: np.ndarray) -> list[np.ndarray]:
    """Places one after the other, cut where others lie between them."""
    return np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []


def _ends(found: Profile) -> tuple[float, float]:
    """The ends of a prediction: beyond what can be simulated within the bounds there is nothing."""
    ends = list(found.interval())
    for side, outermost in ((0, found.values[0]), (1, found.values[-1])):
        if found.ends[side] in (End.UNREACHED, End.BOUND):
            ends[side] = float(outermost)
    return ends[0], ends[1]


def _outermost(found: Profile) -> Iterator[tuple[np.ndarray, float]]:
    """The unknowns at both ends of a profile, with the roots of their deviances: where it crosses the quantile, between
    its last two points."""
    crossing = math.sqrt(found.quantile)
    for last, inner in ((0, 1), (-1, -2)):
        root = math.sqrt(found.deviances[last])
        if root <= crossing or len(found.values) < 2:
            yield found.unknowns[last], root
            continue
        before = math.sqrt(found.deviances[inner])
        share = (crossing - before) / (root - before)
        yield found.unknowns[inner] + share * (found.unknowns[last] - found.unknowns[inner]), crossing
