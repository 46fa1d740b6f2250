"""Bounded: intervals by curvature where unknowns sit on bounds, or have bounds within reach.

Around an optimum the negative log-likelihood is a parabola in the unknowns u, each on the scale of its interval, but
there is no way beyond their bounds, and at a bound that holds an unknown it has a slope too.  With K the unknowns that
have a bound within reach, h their moves and g the slopes by them, the deviance of a quantity q is the least of

    m^2 V + h'Sh + 2 g'h        over h within the bounds,    where  q = m V + b'h,

S is the curvature by h when all else follows, b how q moves with h then, and V the variance of q with h known.  All
come from one triangular factor of the Jacobian with the columns of K last.  As m grows, h moves along straight lines
from bound to bound; where the deviance reaches the quantile the interval ends.  Unknowns that a bound holds firmly are
as good as known, and what is loose but bounded spoils nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.decide.statistics import FitCheck
from odejet.objective.misfit import Misfit
from odejet.search.refine import Refined
from odejet.uncertainty.fisher import Information, information, noise_inflation, quantile

_FLAT = 1e-6
"""Of its column: the curvature that an unknown has at least, so that every direction has some."""

_PIECES = 40
"""Straight lines of a way, for every unknown with a bound; more are a circle."""

_SWEEPS = 60
"""Rounds of Gibbs' sampler over unknowns with bounds, which start at the optimum."""

REACH = 3.0
"""Standard errors within which a bound is within reach: some more than an interval has, since bounds of several
unknowns come nearer together."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """The parabola at an optimum, and how far unknowns may move."""

    jacobian: np.ndarray  # of the residuals in units of their noise, by u
    slopes: np.ndarray  # of the negative log-likelihood by u, zero but for unknowns on a bound
    low: np.ndarray  # least moves of u
    high: np.ndarray
    units: np.ndarray  # dz/du

    @classmethod
    def of(
        cls,
        misfit: Misfit,
        refined: Refined,
        check: FitCheck,
        held: np.ndarray,
        bounds: tuple[np.ndarray, np.ndarray],
    ) -> Bounded:
        """What keeps its sign has a parabola in its logarithm, unless it is held at zero or near."""
        low, high = bounds
        inflation = noise_inflation(misfit, refined, check)
        sds = np.append(inflation, np.ones(len(refined.groups) - len(inflation)))
        jacobian = refined.jacobian / np.repeat(sds, [rows.stop - rows.start for rows in refined.groups])[:, None]
        # One ratio for all slopes: the noise that was found is larger than that of the likelihood by about as much.
        gradient, z = refined.gradient / float(np.mean(inflation**2)), refined.z
        one_sign = ((low >= 0) & (z > 0)) | ((high <= 0) & (z < 0))
        inner = np.minimum(np.abs(low), np.abs(high))  # the bound that is nearer to zero
        vanishing = held & ((np.where(z > 0, low, high) == 0) | (np.abs(z) <= 2 * inner))
        logarithmic = one_sign & ~vanishing
        units = np.where(logarithmic, np.abs(z), 1.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            least = np.where(logarithmic, np.where(z > 0, np.log(low / z), -np.log(low / z)), low - z)
            most = np.where(logarithmic, np.where(z > 0, np.log(high / z), -np.log(high / z)), high - z)
        least, most = np.where(least < 0, least, 0.0), np.where(most > 0, most, 0.0)
        least, most = np.where(held & (gradient > 0), 0.0, least), np.where(held & (gradient < 0), 0.0, most)
        return cls(jacobian * units, np.where(held, gradient * units, 0.0), least, most, units)

    @cached_property
    def triangle(self) -> np.ndarray:
        """R of the Jacobian, every direction with some curvature."""
        sizes = np.sqrt((self.jacobian**2).sum(axis=0))
        least = _FLAT * np.where(sizes > 0, sizes, 1.0)
        return np.asarray(np.linalg.qr(np.concatenate([self.jacobian, np.diag(least)]), mode="r"))

    @cached_property
    def sds(self) -> np.ndarray:
        """Standard errors of u, as if there were no bounds."""
        return np.asarray(np.sqrt((np.linalg.inv(self.triangle) ** 2).sum(axis=1)))

    @cached_property
    def near(self) -> np.ndarray:
        """Which unknowns have a bound within reach."""
        return (self.slopes != 0) | (np.minimum(-self.low, self.high) < REACH * self.sds)

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """R of the unknowns far from bounds, what those near add to its rows, and R of these when all else follows."""
        order, count = np.argsort(self.near, kind="stable"), int(np.count_nonzero(~self.near))
        whole = np.asarray(np.linalg.qr(self.triangle[:, order], mode="r"))
        return whole[:count, :count], whole[:count, count:], whole[count:, count:]

    def reach(self, gradient: np.ndarray, quantile: float) -> tuple[float, float]:
        """Parts of so many standard errors that an interval reaches below and above, of a quantity with this gradient
        by z: one where no bound is near."""
        if not self.near.any():
            return 1.0, 1.0
        by_u = gradient * self.units
        free, across, last = self.parts
        follow = np.linalg.solve(free.T, by_u[~self.near])
        pull = by_u[self.near] - across.T @ follow
        variance = float(follow @ follow)
        whole = variance + float(np.sum(np.linalg.solve(last.T, pull) ** 2))
        if not (whole > 0 and math.isfinite(whole)):
            return 1.0, 1.0
        way = _Way(variance, last.T @ last, pull, self.slopes[self.near], self.low[self.near], self.high[self.near])
        full = quantile * math.sqrt(whole)
        below, above = -way.end(-1.0, quantile**2) / full, way.end(1.0, quantile**2) / full
        return max(below, 0.0), max(above, 0.0)

    def moved(self, z: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Values of unknowns that have moved from z."""
        with np.errstate(over="ignore"):
            return np.where(self.units == 1, z + moves, z * np.exp(moves * np.sign(z)))

    def reaches(self, known: Information, gradient: np.ndarray, quantile: float) -> tuple[float, float]:
        """How far an interval of a quantity reaches below and above; infinite where the data say nothing of it."""
        full = quantile * float(known.stderr(gradient[None])[0])
        below, above = self.reach(gradient, quantile)
        return (full * below, full * above) if math.isfinite(full) else (full, full)

    def draws(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Moves of all unknowns, by the normal law within the bounds."""
        free, across, last = self.parts
        moves = np.zeros((*shape, len(self.slopes)))
        near = moves[..., self.near]
        if self.near.any():
            near = _truncated(
                last.T @ last, self.slopes[self.near], self.low[self.near], self.high[self.near], shape, rng
            )
        normal = rng.normal(size=(*shape, len(free)))
        moves[..., self.near] = near
        moves[..., ~self.near] = np.linalg.solve(free, (normal - near @ across.T)[..., None])[..., 0]
        return moves


@dataclass(frozen=True, eq=False)
class _Way:
    """The best moves of unknowns with bounds, as a quantity is pulled away from its value."""

    variance: float  # of the quantity, with these known
    curvature: np.ndarray
    pull: np.ndarray  # how the quantity moves with them when all else follows
    slopes: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def end(self, sign: float, wanted: float) -> float:
        """How far the quantity gets from its value until the deviance is what is wanted, or until it cannot go on."""
        pull, h, m = sign * self.pull, np.zeros(len(self.low)), 0.0
        fixed = self.slopes != 0
        for _ in range(_PIECES * (1 + len(h))):
            move = np.zeros(len(h))
            if (~fixed).any():
                move[~fixed] = np.linalg.solve(self.curvature[np.ix_(~fixed, ~fixed)], pull[~fixed])
            length, place = self._piece(pull, h, m, move, fixed)
            stop = self._crossing(h, m, move, wanted)
            if stop <= length and math.isfinite(stop):
                return sign * ((m + stop) * self.variance + float(pull @ (h + stop * move)))
            if not math.isfinite(length):
                break
            m, h = m + length, np.clip(h + length * move, self.low, self.high)
            fixed[place] = not fixed[place]
        return sign * (m * self.variance + float(pull @ h))

    def _piece(
        self, pull: np.ndarray, h: np.ndarray, m: float, move: np.ndarray, fixed: np.ndarray
    ) -> tuple[float, int]:
        """How far the way is straight, and whose bound is met or left then."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move > 0, (self.high - h) / move, np.where(move < 0, (self.low - h) / move, np.inf))
        # A bound is left when the push against it has gone.
        push, change = self.curvature @ h + self.slopes - m * pull, self.curvature @ move - pull
        with np.errstate(divide="ignore", invalid="ignore"):
            inward = np.where(h <= 0.5 * (self.low + self.high), 1.0, -1.0)
            leave = np.where(inward * change < 0, np.maximum(-push / change, 0.0), np.inf)
        stuck = self.low >= self.high
        lengths = np.where(fixed, np.where(stuck, np.inf, leave), np.maximum(room, 0.0))
        place = int(np.argmin(lengths))
        return float(lengths[place]), place

    def _crossing(self, h: np.ndarray, m: float, move: np.ndarray, wanted: float) -> float:
        """How far on the deviance reaches what is wanted, if the way goes on straight."""
        square = self.variance + float(move @ self.curvature @ move)
        cross = m * self.variance + float(move @ (self.curvature @ h + self.slopes))
        short = wanted - m * m * self.variance - float(h @ self.curvature @ h + 2 * self.slopes @ h)
        if short <= 0:
            return 0.0
        if square <= 0:
            return short / (2 * cross) if cross > 0 else math.inf
        return (math.sqrt(cross * cross + square * short) - cross) / square


@dataclass(frozen=True, eq=False)
class Reaches(Mapping[str, tuple[float, float]]):
    """How far intervals of a level reach below and above all unknowns, by label; none where no bound is near any.

    They are found when somebody asks: a fit whose table nobody reads does without.
    """

    misfit: Misfit
    refined: Refined
    check: FitCheck
    held: Sequence[str]
    bounds: Mapping[str, tuple[float, float]]
    level: float

    def __getitem__(self, label: str) -> tuple[float, float]:
        return self.pairs[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __reduce__(self) -> tuple[type[dict[str, tuple[float, float]]], tuple[dict[str, tuple[float, float]]]]:
        return dict, (self.pairs,)

    @cached_property
    def pairs(self) -> dict[str, tuple[float, float]]:
        misfit, labels = self.misfit, self.refined.labels
        ends = np.array([self.bounds[label] for label in labels]).reshape(-1, 2)
        if not misfit.weighted or not (self.held or np.any(np.isfinite(ends) & (ends != 0))):
            return {}
        on = np.array([label in self.held for label in labels])
        bounded = Bounded.of(misfit, self.refined, self.check, on, (ends[:, 0], ends[:, 1]))
        if not bounded.near.any():
            return {}
        known, rows = information(misfit, self.refined, self.check), np.eye(len(on))
        many = [quantile(self.level, degrees) for degrees in known.degrees_of_freedom(rows).tolist()]
        return {label: bounded.reaches(known, rows[i], many[i]) for i, label in enumerate(labels)}


def _truncated(
    curvature: np.ndarray,
    slopes: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> np.ndarray:
    """Draws of h within bounds with a density like exp(-h'Sh/2 - g'h), by Gibbs' sampler."""
    from scipy.stats import truncnorm

    moves = np.zeros((*shape, len(slopes)))
    for _ in range(_SWEEPS if len(slopes) > 1 else 1):
        for j, own in enumerate(np.diag(curvature)):
            others = moves @ curvature[j] - moves[..., j] * own
            sd, middle = 1 / math.sqrt(own), -(slopes[j] + others) / own
            ends = (low[j] - middle) / sd, (high[j] - middle) / sd
            moves[..., j] = np.clip(middle + sd * truncnorm.rvs(*ends, size=shape, random_state=rng), low[j], high[j])
    return moves
