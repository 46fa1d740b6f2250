"""Chebyshev least squares, the degree chosen by an information criterion.

One triangular factor holds the residual sums of squares of all degrees, so the criterion sees every degree at once:

    AICc = n log(RSS/n) + 2 p + 2 p (p + 1)/(n - p - 1),        BIC = n log(RSS/n) + p log n,

with p the number of coefficients and the noise variance.  With known sds the RSS of weighted residuals stands in the
place of n log(RSS/n).  The residual is never taken to be smaller than rounding, or noise-free data would ask for as
many degrees as there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from odejet.budget import Budget
from odejet.smooth.compressed import Compressed
from odejet.smooth.estimator import Estimator, Workspace, register
from odejet.smooth.smoother import ChebyshevSeries
from odejet.smooth.standardised import LARGEST_SIZE, Standardised

FIRST_SIZE = 160
"""The basis tried first; most outputs stay well inside."""
ROOM = 0.8
"""The share of it a degree may take before the largest basis is tried."""

OPERATIONS = 10.0
"""Floating-point operations of linear algebra in the time of one operation of other code."""
TAIL = 22
"""Basis functions beyond the degree that the data ask for."""
ROUNDINGS = 30.0
"""Residuals of so many roundings of the largest value are near rounding."""
INDEPENDENT = 1000
"""Points that count as independent evidence there."""


@dataclass(frozen=True, eq=False)
class ChebyshevFit(ChebyshevSeries):
    """A least-squares polynomial."""

    degree: int = 0


class LeastSquares(Estimator):
    """The degree by "bic" or "aicc"."""

    def __init__(self, criterion: str, rank: float, counts: bool) -> None:
        self.name, self.rank, self.criterion, self.counts = f"chebyshev_{criterion}", rank, criterion, counts

    def fit(self, given: Workspace) -> ChebyshevFit:
        return fit(given.data, given.once(size)[0], self.criterion)


register(LeastSquares("bic", 4.0, counts=True))
register(LeastSquares("aicc", 7.0, counts=False))


def size(given: Workspace) -> tuple[int, int]:
    """`needed_size` of an output."""
    return needed_size(given.data, given.budget)


def needed_size(data: Standardised, budget: Budget) -> tuple[int, int]:
    """A size of the basis that holds the signal, or the largest that the budget allows, and the degree BIC chooses."""
    largest = data.largest_size()
    size = min(FIRST_SIZE, largest)
    degree = best_degree(data, data.compressed(size), "bic")
    work = 2.0 * len(data) * with_room(largest) ** 2 / OPERATIONS
    if degree < ROOM * size or size == largest or not budget.affords(work):
        return size, degree
    budget.spend(work)
    # One factorisation serves the polynomials and the priors, whose basis is larger.
    return largest, best_degree(data, data.compressed(with_room(largest)), "bic")


def with_room(degree: int) -> int:
    """The size of a basis with room beyond a degree, for a prior has a tail; few sizes, so that tables are shared."""
    return min(8 * int(np.ceil((degree + TAIL) / 8)), LARGEST_SIZE)


def fit(data: Standardised, size: int, criterion: str) -> ChebyshevFit:
    """The polynomial of the degree that "aicc" or "bic" prefers, up to the size of the basis."""
    compressed = data.compressed(size)
    return _of_degree(data, compressed, best_degree(data, compressed, criterion), f"chebyshev_{criterion}")


def flat(data: Standardised, size: int) -> ChebyshevFit:
    """The constant, with an evidence that compares with those of Gaussian priors.

    A prior has a signal variance and a rate or length scale more than a constant, which its maximised likelihood does
    not pay for: half the logarithm of the number of points for each, as in BIC, goes to the constant, on top of what
    BIC has charged it for its value and (unless the sds are known) the noise.
    """
    constant = _of_degree(data, data.compressed(size), 0, "constant")
    charged = 2.0 if data.sds is None else 1.0
    return replace(constant, evidence=constant.evidence + 0.5 * (charged + 2.0) * float(np.log(len(data))))


def _of_degree(data: Standardised, compressed: Compressed, degree: int, name: str) -> ChebyshevFit:
    terms = degree + 1
    operator = compressed.inverse[:terms, :terms]
    freedom = max(len(data) - terms, 1)
    noise = np.sqrt(_residuals(compressed)[terms] / freedom) * data.unit
    evidence = -0.5 * float(_criterion(data, compressed, "bic")[degree])
    return ChebyshevFit(
        name,
        data,
        operator,
        compressed.coordinates[:terms],
        float(noise),
        evidence,
        compressed.size,
        f"degree {degree}",
        compressed.solve(compressed.coordinates[:terms]),
        degree,
    )


def best_degree(data: Standardised, compressed: Compressed, criterion: str) -> int:
    return int(np.argmin(_criterion(data, compressed, criterion)))


def _residuals(compressed: Compressed) -> np.ndarray:
    """Residual sums of squares with the first 0, 1, 2, ... basis functions."""
    tails = np.cumsum(compressed.coordinates[::-1] ** 2)[::-1]
    return compressed.residual**2 + np.append(tails, 0.0)


def _criterion(data: Standardised, compressed: Compressed, criterion: str) -> np.ndarray:
    """The criterion of degrees 0, 1, 2, ...; degrees that leave no freedom to estimate the noise are out."""
    n = len(data)
    most = min(len(compressed.coordinates), data.largest_size())
    parameters = np.arange(1, most + 1) + 1.0
    residuals = _residuals(compressed)[1 : most + 1] + data.floor
    if data.sds is None:
        # Rounding has structure, which many points would resolve: near it, more points are no more evidence.
        near = ROUNDINGS**2 * data.floor
        misfit = n * (np.log(2.0 * np.pi * np.maximum(residuals, near) / n) + 1.0)
        misfit += min(n, INDEPENDENT) * np.log(np.minimum(residuals, near) / near)
    else:
        misfit = residuals + n * np.log(2.0 * np.pi)
        parameters = parameters - 1.0
    if criterion == "bic":
        return misfit + parameters * np.log(n)
    return misfit + 2.0 * parameters + 2.0 * parameters * (parameters + 1.0) / np.maximum(n - parameters - 1.0, 0.5)
