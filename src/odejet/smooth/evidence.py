"""Evidence: signal and noise variance of a Gaussian prior by maximum marginal likelihood, all at once.

The data have covariance s_f^2 (A A^T + g I), with A A^T the prior covariance of unit signal variance and g the ratio of
noise to signal variance; further coordinates hold noise alone and are known through their sum of squares.  The signal
variance maximises the likelihood in closed form,

    s_f^2(g) = (1/n) [ z^T (A A^T + g I)^{-1} z + outside/g ],

so that only log g is searched: on a grid fine enough to see every maximum, then by refining around the best.  With
known sds the noise variance is one and s_f^2 = 1/g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odejet.jets.compilation import compiled
from odejet.jets.lanes import kernel
from odejet.smooth.chain import Chain

LOWEST, HIGHEST = -78.0, 14.0
"""Range of log g: from noise far below the rounding of the signal to no signal at all."""
GRID = 47
FINER = 9
"""Points of the grids around the best."""
REFINEMENTS = 5
_LOGS = np.linspace(LOWEST, HIGHEST, GRID)
PIVOTS = 8
"""Pivots multiplied before a logarithm is taken."""


@dataclass(frozen=True)
class Ratio:
    """The best ratio of noise to signal variance for one prior."""

    log_ratio: float
    signal: float
    """Signal variance of the standardised data."""
    evidence: float

    @property
    def ratio(self) -> float:
        return float(np.exp(self.log_ratio))

    @property
    def noise(self) -> float:
        """The sd of the standardised noise."""
        return float(np.sqrt(self.signal * self.ratio))


def best_ratio(chain: Chain, outside: float, points: int, known: bool) -> Ratio:
    """Maximise the likelihood over signal and noise; `outside` is the sum of squares of the other coordinates."""
    work = np.empty((6, GRID))
    work[0] = _LOGS
    return Ratio(*_maximise(*chain, outside, points, known, REFINEMENTS, work))


@compiled
def _maximise(
    diagonal: np.ndarray,
    below: np.ndarray,
    data: np.ndarray,
    outside: float,
    points: int,
    known: bool,
    refinements: int,
    work: np.ndarray,
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    """The best log g of a grid, the first row of `work`, refined; its signal variance and evidence."""
    logs, ratios, totals, determinants, kept, products = work[0], work[1], work[2], work[3], work[4], work[5]
    centre, signal, lowest, size = 0.0, 1.0, np.inf, work.shape[1]
    for refinement in range(refinements):
        if refinement > 0:
            step = logs[1] - logs[0]
            first, last, size = max(centre - step, LOWEST), min(centre + step, HIGHEST), FINER
            for j in range(size):
                logs[j] = first + j * ((last - first) / (size - 1))
            logs[size - 1] = last
        for j in range(size):
            ratios[j] = np.exp(logs[j])
            totals[j], determinants[j] = outside / ratios[j], (points - len(diagonal)) * logs[j]
            kept[j] = products[j] = 1.0
        _eliminate(diagonal, below, data, size, ratios, totals, determinants, kept, products)
        for j in range(size):
            if known:
                variance = 1.0 / ratios[j]
                fitted = totals[j] * ratios[j] - points * logs[j] + points * np.log(2.0 * np.pi)
            else:
                variance = totals[j] / points
                fitted = points * (np.log(2.0 * np.pi * variance) + 1.0)
            if determinants[j] + fitted < lowest:  # minus twice the log marginal likelihood
                centre, signal, lowest = logs[j], variance, determinants[j] + fitted
    return centre, signal, -0.5 * lowest


@kernel
def _eliminate(
    diagonal: np.ndarray,
    below: np.ndarray,
    data: np.ndarray,
    size: int,
    ratios: np.ndarray,
    totals: np.ndarray,
    determinants: np.ndarray,
    kept: np.ndarray,
    products: np.ndarray,
) -> None:  # pragma: no cover - compiled
    """The chain from its end, for several g side by side: quadratic forms and log determinants."""
    for i in range(len(diagonal) - 1, -1, -1):
        if below[i] == 0.0:
            # A link on its own, or the first of a part: nothing is carried on, and one division is spared.
            for j in range(size):
                pivot = ratios[j] + diagonal[i] * kept[j]
                kept[j] = 1.0
                totals[j] += data[i] / pivot
                products[j] *= pivot
        else:
            for j in range(size):
                inner = ratios[j] + diagonal[i] * kept[j]
                pivot = inner + below[i]
                kept[j] = inner / pivot
                totals[j] += data[i] / pivot
                products[j] *= pivot
        # One logarithm for several pivots, which lie between exp(LOWEST) and the number of points: no underflow.
        if i % PIVOTS == 0:
            for j in range(size):
                determinants[j] += np.log(products[j])
                products[j] = 1.0
