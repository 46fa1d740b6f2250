"""Uncertainty: how far the unknowns may be from their estimates, by the curvature of the likelihood at its optimum.

With J the Jacobian of the residuals in units of their noise, the Fisher information of the unknowns is J'J.  Its
inverse is never formed: with the columns of J scaled to one, J = U S V', a small singular value is a direction in which
the data say little, and one at rounding level is a direction of which they say nothing.  Unknowns that such a direction
moves have an infinite standard error, not that of rounding.

    covariance = V S^-1 (U' C U) S^-1 V'

C is the covariance of the residuals in the units in which they were fitted: one where the noise is known, and the noise
that was found where it is not, so that plain least squares of outputs with different noise gets honest errors too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.expressions import nearest
from odejet.misfit import FEWEST, Misfit
from odejet.refine import Refined
from odejet.statistics import FitCheck

if TYPE_CHECKING:
    import pandas

RANK = 1e-12
"""Singular values below this fraction of the largest are rounding: sensitivities are known to about 1e-13."""

_VANISHING = 1e-3  # the share of its standard error below which a positive estimate is zero for all purposes
_MOVED = 1e-4  # the share of an unknown in a direction of unit length that counts as being moved by it


@dataclass(frozen=True, eq=False)
class Matrix:
    """A square matrix with names: `matrix["k1", "k2"]` is a number, `matrix["k1"]` a row by name."""

    labels: tuple[str, ...]
    values: np.ndarray

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        if isinstance(key, tuple):
            return float(self.values[find(self.labels, key[0]), find(self.labels, key[1])])
        return dict(zip(self.labels, self.values[find(self.labels, key)].tolist(), strict=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def to_dataframe(self) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(self.values, index=list(self.labels), columns=list(self.labels))

    def __repr__(self) -> str:
        width = max([10, *(len(label) for label in self.labels)])
        head = " " * width + "".join(f"  {label:>{width}}" for label in self.labels)
        rows = [
            f"{label:<{width}}" + "".join(f"  {value:>{width}.3g}" for value in row)
            for label, row in zip(self.labels, self.values, strict=True)
        ]
        return "\n".join([head, *rows])


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What the data say of all unknowns together."""

    covariance: Matrix  # infinite variances of what is not determined, and NaN beside them
    directions: tuple[Mapping[str, float], ...]  # ways to move the unknowns that change no output; largest part is one
    freedom: float  # degrees of freedom of the noise that was estimated; infinite where it is known

    @property
    def stderr(self) -> dict[str, float]:
        sds = np.sqrt(np.diag(self.covariance.values))
        return dict(zip(self.covariance.labels, sds.tolist(), strict=True))


def find(labels: Sequence[str], name: str) -> int:
    """The position of a label; an initial state answers to its state's name too where there is one experiment."""
    for label in (name, f"{name}(0)"):
        if label in labels:
            return list(labels).index(label)
    raise KeyError(f"no unknown is called '{name}'{nearest(name, labels)}")


def fisher(misfit: Misfit, refined: Refined, check: FitCheck) -> Uncertainty:
    """Covariance of the unknowns from the Jacobian at the optimum."""
    labels, n = misfit.labels, len(misfit.labels)
    if not len(refined.residuals):
        nothing = np.full((n, n), math.nan)
        np.fill_diagonal(nothing, math.inf)
        return Uncertainty(Matrix(labels, nothing), (), math.inf)
    inflation = noise_inflation(misfit, refined, check)
    values, null = covariance(refined.jacobian, misfit.row_levels(inflation))
    directions = tuple(dict(zip(labels, row.tolist(), strict=True)) for row in _scaled(null))
    estimated = misfit.estimated if misfit.weighted else np.ones(len(misfit.outputs), dtype=bool)
    freedom = sum(output.freedom for output, own in zip(check.outputs, estimated, strict=True) if own)
    return Uncertainty(Matrix(labels, values), directions, max(freedom, 1.0) if estimated.any() else math.inf)


def held_labels(refined: Refined, stderr: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]) -> list[str]:
    """Estimates that a bound keeps from going on; on a logarithmic scale, also those that vanish on their way to zero.

    Such a one is far below its standard error, and the likelihood would have it smaller still.
    """
    gradient = refined.residuals @ refined.jacobian if len(refined.residuals) else np.zeros(len(refined.z))
    held = []
    for label, value, slope, stopped in zip(refined.labels, refined.z, gradient, refined.held, strict=True):
        low, high = bounds[label]
        outward = (low == 0 and slope > 0) or (high == 0 and slope < 0)
        if stopped or (outward and abs(value) < _VANISHING * stderr[label] < math.inf):
            held.append(label)
    return held


def noise_inflation(misfit: Misfit, refined: Refined, check: FitCheck) -> np.ndarray:
    """The sd of each output's residuals in the units of the fit.

    One where the noise is known; elsewhere what was found, freed of what fitting took away.  An output of few points
    borrows that correction from all of them.
    """
    counts, freedoms = misfit.counts, np.array([output.freedom for output in check.outputs])
    if not misfit.weighted:
        own = np.array([output.level for output in check.outputs]) / refined.levels
        return np.where(counts >= FEWEST, own, math.sqrt(float(own**2 @ freedoms) / max(float(freedoms.sum()), 1.0)))
    estimated = misfit.estimated
    if not estimated.any():
        return np.ones(len(counts))
    together = float(counts[estimated].sum()) / max(float(freedoms[estimated].sum()), 1.0)
    ratios = np.where(counts >= FEWEST, counts / np.maximum(freedoms, 1.0), together)
    return np.where(estimated, np.sqrt(ratios), 1.0)


def covariance(jacobian: np.ndarray, sds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of a least-squares fit whose residuals have these sds, and directions of which nothing is known.

    Unknowns that those directions move get infinite variances and no covariances.
    """
    n = jacobian.shape[1]
    sizes = np.sqrt((jacobian**2).sum(axis=0))
    units = np.where(sizes > 0, 1 / np.where(sizes > 0, sizes, 1.0), 1.0)
    u, s, vt = np.linalg.svd(jacobian * units, full_matrices=False)
    rank = int(np.count_nonzero(s > RANK * s.max(initial=0.0)))
    known, null = vt[:rank], _complement(vt[:rank], n)
    spread = (u[:, :rank] * sds[:, None]) / s[:rank]
    # The square root of the covariance, so that variances are sums of squares and never negative.
    root = np.linalg.qr(spread, mode="r") @ known * units
    values = root.T @ root
    moved = np.sqrt((null**2).sum(axis=0)) > _MOVED
    values[moved, :] = math.nan
    values[:, moved] = math.nan
    values[moved, moved] = math.inf
    return values, _sparse(null) * units


def _complement(rows: np.ndarray, n: int) -> np.ndarray:
    """An orthonormal basis, in rows, of what is orthogonal to orthonormal rows."""
    if len(rows) == n:
        return np.zeros((0, n))
    return np.linalg.svd(rows, full_matrices=True)[2][len(rows) :] if len(rows) else np.eye(n)


def _sparse(directions: np.ndarray) -> np.ndarray:
    """The same space by directions that move few unknowns each, so that people can read them: its echelon form."""
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
    freedom: float = math.inf,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    held: bool = False,
) -> tuple[float, float]:
    """The interval that contains the true value with this probability, by Student's t (normal for known noise).

    What bounds keep positive (or negative) has a normal logarithm, so that its interval never reaches beyond zero;
    other bounds cut it.  A value that is held on a bound has no logarithm worth the name: it is normal and cut.
    """
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval is a probability between 0 and 1, such as 0.95, not {level:g}")
    low, high = bounds
    one_sign = low >= 0 < value or high <= 0 > value
    if one_sign and not held:
        with np.errstate(over="ignore"):
            factor = float(np.exp(quantile(level, freedom) * stderr / abs(value)))
        ends = sorted((value / factor, value * factor))
    else:
        reach = quantile(level, freedom) * stderr
        ends = [value - reach, value + reach]
    return min(max(ends[0], low), value), max(min(ends[1], high), value)


def quantile(level: float, freedom: float) -> float:
    """How many standard errors an interval reaches to either side."""
    from scipy.special import ndtri, stdtrit

    tail = 0.5 * (1 + level)
    return float(ndtri(tail) if math.isinf(freedom) else stdtrit(freedom, tail))
