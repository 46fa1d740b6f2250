"""Fisher: how far the unknowns may be from their estimates, by the curvature of the likelihood at its optimum.

With J the Jacobian of the residuals in units of their noise, the Fisher information of the unknowns is J'J.  Its
inverse is never formed: with the columns of J scaled to one, J = U S V', a small singular value is a direction in which
the data say little, and one at rounding level is a direction of which they say nothing.  Unknowns that such a direction
moves have an infinite standard error, not that of rounding.

    covariance = V S^-1 (U' C U) S^-1 V'

C is the covariance of the residuals in the units in which they were fitted: one where the noise is known, and the noise
that was found where it is not, so that plain least squares of outputs with different noise gets honest errors too.  It
is a sum over the outputs.  Where their noise was estimated, each with its own degrees of freedom, the variance of an
unknown has those of Welch (1947) and Satterthwaite (1946), and intervals are wider by Student's t.  Where the unknowns
take all degrees of freedom, residuals of zero say nothing of the noise: standard errors are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from odejet.decide.statistics import LEAST_DEGREES, TOLD, FitCheck
from odejet.objective.factor import ArrowFactor
from odejet.objective.misfit import Misfit
from odejet.search.refine import Refined
from odejet.uncertainty.names import Matrix

RANK = 1e-12
"""Singular values below this fraction of the largest are rounding: sensitivities are known to about 1e-13."""

_VANISHING = 1e-3  # the share of its standard error below which a positive estimate is zero for all purposes
_NOTHING = 1e-12  # of a value: an end of its interval that is nothing beside it
_MOVED = 1e-4  # the share of an unknown in a direction of unit length that counts as being moved by it


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What the data say of all unknowns together."""

    covariance: Matrix  # infinite variances of what is not determined, and NaN beside them
    directions: tuple[Mapping[str, float], ...]  # ways to move the unknowns that change no output; largest part is one
    degrees_of_freedom: Mapping[str, float]  # of each variance, by label; infinite where the noise is known
    reach: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of intervals in tables, if bounds are near

    @property
    def stderr(self) -> dict[str, float]:
        sds = np.sqrt(np.diag(self.covariance.values))
        return dict(zip(self.covariance.labels, sds.tolist(), strict=True))

    @property
    def untold(self) -> tuple[str, ...]:
        """What has an error that nothing tells, since no residual is left to show the noise."""
        return tuple(label for label, degrees in self.degrees_of_freedom.items() if degrees < TOLD)


def fisher(misfit: Misfit, refined: Refined, check: FitCheck) -> Uncertainty:
    """Covariance of the unknowns from the Jacobian at the optimum."""
    labels, n = misfit.labels, len(misfit.labels)
    if not refined.simulated:
        nothing = np.full((n, n), math.nan)
        np.fill_diagonal(nothing, math.inf)
        return Uncertainty(Matrix(tuple(misfit.unknowns), nothing), (), dict.fromkeys(labels, math.inf))
    known = information(misfit, refined, check)
    values = known.covariance
    if (firm := firmly_held(known, refined)).any():
        # Beside what a bound holds, all else has the errors that it has where that is known.
        inner = information(misfit, refined, check, ~firm)
        values[np.ix_(~firm, ~firm)] = inner.covariance[np.ix_(~firm, ~firm)]
        values[np.ix_(firm, ~firm)] = values[np.ix_(~firm, firm)] = 0.0
    directions = tuple(dict(zip(labels, row.tolist(), strict=True)) for row in _scaled(known.null))
    degrees = dict(zip(labels, known.degrees_of_freedom(np.eye(n)).tolist(), strict=True))
    return Uncertainty(Matrix(tuple(misfit.unknowns), values), directions, degrees)


def firmly_held(known: Information, refined: Refined) -> np.ndarray:
    """Unknowns on a bound whose best values without it are a standard error beyond, or farther: these stay where they
    are while others move.  What the data say nothing of is held by nothing."""
    held = refined.held.copy()
    if held.any():
        sds = known.stderr(np.eye(len(held)))
        held &= np.isfinite(sds) & (np.abs(refined.gradient) * np.where(np.isfinite(sds), sds, 0.0) >= 1)
    return held


@dataclass(frozen=True, eq=False)
class Information:
    """What the data say of all unknowns and of anything that is made of them."""

    roots: tuple[np.ndarray, ...]  # a square root of what each output's noise adds to the covariance of the unknowns
    null: np.ndarray  # in rows, directions of which nothing is known
    sizes: np.ndarray  # of the columns of the Jacobian: a move of one over this size is one unit of residual
    degrees: np.ndarray  # of freedom of each output's noise; infinite where it is known
    ratios: np.ndarray  # measurements per degree of freedom of each output

    @property
    def covariance(self) -> np.ndarray:
        """Of the unknowns: infinite variances of what is not determined, and NaN beside them."""
        values = sum((root.T @ root for root in self.roots), np.zeros((len(self.sizes),) * 2))
        every = np.eye(len(self.sizes))
        unknown = self.moved(every) | self.untold(every)
        values[unknown, :] = math.nan
        values[:, unknown] = math.nan
        values[unknown, unknown] = math.inf
        return values

    def moved(self, gradients: np.ndarray) -> np.ndarray:
        """Which quantities, by their gradients in rows, change along a direction of which nothing is known."""
        if not len(self.null):
            return np.zeros(len(gradients), dtype=bool)
        # On the scale of the Jacobian's columns both have unit length.
        directions = np.linalg.qr((self.null * self.sizes).T)[0]
        scaled = gradients / self.sizes
        lengths = np.maximum(np.sqrt((scaled**2).sum(axis=1)), 1e-300)
        return np.sqrt(((scaled @ directions) ** 2).sum(axis=1)) > _MOVED * lengths

    def parts(self, gradients: np.ndarray) -> np.ndarray:
        """What each output (columns) adds to the variance of each quantity (rows)."""
        return np.array([((gradients @ root.T) ** 2).sum(axis=1) for root in self.roots]).T

    def untold(self, gradients: np.ndarray) -> np.ndarray:
        """Which quantities have an error that nothing tells, since no residual is left to show the noise."""
        return self.degrees_of_freedom(gradients) < TOLD

    def stderr(self, gradients: np.ndarray) -> np.ndarray:
        return self.errors(gradients)[0]

    def degrees_of_freedom(self, gradients: np.ndarray) -> np.ndarray:
        """Degrees of freedom of each variance: (sum_j v_j)^2 / sum_j (v_j^2 / nu_j), infinite for known noise."""
        return self._degrees(_shares(self.parts(gradients)))

    def errors(self, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The standard error of each quantity, the degrees of freedom of its variance, and the measurements per degree
        of freedom as they enter it."""
        parts = self.parts(gradients)
        shares = _shares(parts)
        degrees = self._degrees(shares)
        unknown = self.moved(gradients) | (degrees < TOLD)
        return np.where(unknown, math.inf, np.sqrt(parts.sum(axis=1))), degrees, shares @ self.ratios

    def _degrees(self, shares: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return 1 / np.maximum((shares**2 / self.degrees).sum(axis=1), 0.0)


def _shares(parts: np.ndarray) -> np.ndarray:
    """What each output adds to variances, of one."""
    total = parts.sum(axis=1, keepdims=True)
    even = np.full(parts.shape, 1 / max(parts.shape[1], 1))
    return np.where(total > 0, parts / np.where(total > 0, total, 1.0), even)


def information(misfit: Misfit, refined: Refined, check: FitCheck, free: np.ndarray | None = None) -> Information:
    """What the data say around an optimum, its residuals judged by `check`; all but the `free` unknowns are known."""
    inflation = noise_inflation(misfit, refined, check)
    estimated = misfit.free_noise if misfit.weighted else np.ones(len(misfit.outputs), dtype=bool)
    own = np.array([output.degrees_of_freedom for output in check.outputs])
    if refined.noise is not None:  # errors that persist tell less of their noise
        own = own * np.minimum(refined.noise.degrees / np.maximum(misfit.counts, 1), 1.0)
    degrees = np.maximum(own, 1.0)
    # An output without degrees of freedom of its own takes its noise from all, and their degrees of freedom with it.
    together = float(degrees[estimated].sum()) if own[estimated].sum() >= TOLD else LEAST_DEGREES
    degrees = np.where(_on_their_own(misfit, check), degrees, together)
    degrees = np.where(estimated, degrees, math.inf)
    ratios = inflation**2 if misfit.weighted else np.ones(len(degrees))
    free = np.ones(len(refined.z), dtype=bool) if free is None else free
    further = np.ones(len(refined.groups) - len(inflation))  # what scales of the noise and priors tell
    if len(further):  # whose own errors are not estimated
        degrees, ratios = np.append(degrees, math.inf), np.append(ratios, 1.0)
    levels = np.append(inflation, further)
    if misfit.in_blocks:
        arrow = ArrowFactor.of(refined.jacobian, misfit.blocks, misfit.shared, free)
        if arrow is not None:
            groups = zip(refined.groups, levels.tolist(), strict=True)
            roots = tuple(arrow.root(rows, sd) for rows, sd in groups)
            return Information(roots, np.zeros((0, len(free))), 1 / arrow.units, degrees, ratios)
    sds = np.repeat(levels, [rows.stop - rows.start for rows in refined.groups])
    parts = _inverse(refined.jacobian[:, free], sds)
    roots = tuple(_widened(_root(parts, rows), free) for rows in refined.groups)
    sizes = np.ones(len(free))
    sizes[free] = 1 / parts.units
    return Information(roots, _widened(parts.null * parts.units, free), sizes, degrees, ratios)


def _widened(rows: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Rows for the free unknowns, with zeros for the others."""
    wide = np.zeros((len(rows), len(free)))
    wide[:, free] = rows
    return wide


def held_labels(refined: Refined, stderr: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]) -> list[str]:
    """Estimates that a bound keeps from going on; on a logarithmic scale, also those that vanish on their way to zero.

    Such a one is far below its standard error, and the likelihood would have it smaller still.
    """
    gradient = refined.gradient if refined.simulated else np.zeros(len(refined.z))
    held = []
    for label, value, slope, stopped in zip(refined.labels, refined.z, gradient, refined.held, strict=True):
        low, high = bounds[label]
        outward = (low == 0 and slope > 0) or (high == 0 and slope < 0)
        if stopped or (outward and abs(value) < _VANISHING * stderr[label] < math.inf):
            held.append(label)
    return held


def noise_inflation(misfit: Misfit, refined: Refined, check: FitCheck) -> np.ndarray:
    """The sd of each output's residuals in the units of the fit.

    One where the noise is known; elsewhere what was found, freed of what fitting took away.  An output without degrees
    of freedom of its own borrows that correction from all of them.
    """
    counts, degrees = misfit.counts, np.array([output.degrees_of_freedom for output in check.outputs])
    if not misfit.weighted:
        own = np.array([output.level for output in check.outputs]) / refined.levels
        together = math.sqrt(float(own**2 @ degrees) / max(float(degrees.sum()), 1.0))
        return np.where(_on_their_own(misfit, check), own, together)
    estimated = misfit.free_noise
    if not estimated.any():
        return np.ones(len(counts))
    together = float(counts[estimated].sum()) / max(float(degrees[estimated].sum()), 1.0)
    ratios = np.where(_on_their_own(misfit, check), counts / np.maximum(degrees, 1.0), together)
    return np.where(estimated, np.sqrt(ratios), 1.0)


def _on_their_own(misfit: Misfit, check: FitCheck) -> np.ndarray:
    """Which outputs have residuals that tell their own noise."""
    return ~misfit.borrowing & np.array([output.degrees_of_freedom >= 1.0 for output in check.outputs])


def covariance(jacobian: np.ndarray, sds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of a least-squares fit whose residuals have these sds, and directions of which nothing is known.

    Unknowns that those directions move get infinite variances and no covariances.
    """
    parts = _inverse(jacobian, sds)
    rows, degrees = slice(0, len(jacobian)), np.array([math.inf])
    known = Information((_root(parts, rows),), parts.null * parts.units, 1 / parts.units, degrees, np.ones(1))
    return known.covariance, known.null


@dataclass(frozen=True)
class _Inverse:
    """A pseudo-inverse in parts: the transpose of V S^-1 U' C^(1/2) is `spread @ known * units`."""

    spread: np.ndarray
    known: np.ndarray
    units: np.ndarray
    null: np.ndarray


def _inverse(jacobian: np.ndarray, sds: np.ndarray) -> _Inverse:
    n = jacobian.shape[1]
    sizes = np.sqrt((jacobian**2).sum(axis=0))
    units = np.where(sizes > 0, 1 / np.where(sizes > 0, sizes, 1.0), 1.0)
    u, s, vt = np.linalg.svd(jacobian * units, full_matrices=False)
    rank = int(np.count_nonzero(s > RANK * s.max(initial=0.0)))
    spread = (u[:, :rank] * sds[:, None]) / s[:rank]
    return _Inverse(spread, vt[:rank], units, _sparse(_complement(vt[:rank], n)))


def _root(parts: _Inverse, rows: slice) -> np.ndarray:
    """The square root of a covariance from some of the residuals, so that variances are sums of squares."""
    return np.asarray(np.linalg.qr(parts.spread[rows], mode="r") @ parts.known * parts.units)


def _complement(rows: np.ndarray, n: int) -> np.ndarray:
    """An orthonormal basis, in rows, of what is orthogonal to orthonormal rows."""
    if len(rows) == n:
        return np.zeros((0, n))
    return np.linalg.svd(rows, full_matrices=True)[2][len(rows) :] if len(rows) else np.eye(n)


def _sparse(directions: np.ndarray) -> np.ndarray:
    """Span the space by directions that move few unknowns each, so that people can read them: its echelon form."""
    from scipy.linalg import qr

    if not len(directions):
        return directions
    pivots = qr(directions, mode="r", pivoting=True)[1][: len(directions)]
    echelon = np.linalg.solve(directions[:, pivots], directions)
    return np.where(np.abs(echelon) < _MOVED, 0.0, echelon)


def _scaled(directions: np.ndarray) -> np.ndarray:
    """Each direction with its largest part made one."""
    return np.array([row / row[np.argmax(np.abs(row))] for row in directions]).reshape(directions.shape) + 0.0


def interval(
    value: float,
    stderr: float,
    level: float = 0.95,
    degrees_of_freedom: float = math.inf,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    held: bool = False,
    reach: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """The interval that contains the true value with this probability, by Student's t (normal for known noise).

    What bounds keep positive (or negative) has a normal logarithm, so that its interval never reaches beyond zero;
    other bounds cut it.  A value that is held on a bound has no logarithm worth the name: it is normal and cut.
    `reach` is how far it reaches to either side, where that is not a number of standard errors (see `bounded`).
    """
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval is a probability between 0 and 1, such as 0.95, not {level:g}")
    low, high = bounds
    one_sign = low >= 0 < value or high <= 0 > value
    below, above = reach or (quantile(level, degrees_of_freedom) * stderr,) * 2
    if one_sign and not held:
        with np.errstate(over="ignore"):
            ends = [value * float(np.exp(-below / value)), value * float(np.exp(above / value))]
        if abs(ends[0]) < _NOTHING * value:  # zero, but for how far numbers go
            ends[0] = 0.0
        if abs(ends[1]) < -_NOTHING * value:
            ends[1] = 0.0
    else:
        ends = [value - below, value + above]
    if held and reach:  # as good as on its bound
        ends = [end if far else bound for end, far, bound in zip(ends, reach, bounds, strict=True)]
    return min(max(ends[0], low), value), max(min(ends[1], high), value)


def quantile(level: float, degrees_of_freedom: float) -> float:
    """How many standard errors an interval reaches to either side."""
    return float(quantiles(level, np.array(degrees_of_freedom)))


def quantiles(level: float, degrees_of_freedom: np.ndarray) -> np.ndarray:
    """Return the quantile for each of many degrees of freedom: Student's t, and normal where the noise is known."""
    from scipy.special import ndtri, stdtrit

    tail, known = 0.5 * (1 + level), np.isinf(degrees_of_freedom)
    return np.where(known, ndtri(tail), stdtrit(np.where(known, 1.0, degrees_of_freedom), tail))
