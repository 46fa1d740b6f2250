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
from odejet.smooth.chain import Chain

LOWEST, HIGHEST = -78.0, 14.0
"""Range of log g: from noise far below the rounding of the signal to no signal at all."""
GRID = 47
REFINEMENTS = 5
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
    return Ratio(*_maximise(*chain, outside, points, known))


@compiled
def _maximise(
    diagonal: np.ndarray, below: np.ndarray, data: np.ndarray, outside: float, points: int, known: bool
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    grid = np.linspace(LOWEST, HIGHEST, GRID)
    centre, signal, lowest = 0.0, 1.0, np.inf
    for _ in range(REFINEMENTS):
        deviances, variances = _deviances(grid, diagonal, below, data, outside, points, known)
        best = np.argmin(deviances)
        if deviances[best] < lowest:
            centre, signal, lowest = grid[best], variances[best], deviances[best]
        step = grid[1] - grid[0]
        grid = np.linspace(max(centre - step, LOWEST), min(centre + step, HIGHEST), 9)
    return centre, signal, -0.5 * lowest


@compiled
def _deviances(
    logs: np.ndarray,
    diagonal: np.ndarray,
    below: np.ndarray,
    data: np.ndarray,
    outside: float,
    points: int,
    known: bool,
) -> tuple[np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """Minus twice the log marginal likelihood and the signal variance for several log g side by side."""
    ratios = np.exp(logs)
    totals, determinants = outside / ratios, (points - len(diagonal)) * logs
    kept, products = np.ones(len(logs)), np.ones(len(logs))
    for i in range(len(diagonal) - 1, -1, -1):
        if below[i] == 0.0:
            # A link on its own, or the first of a part: nothing is carried on, and one division is spared.
            for j in range(len(logs)):
                pivot = ratios[j] + diagonal[i] * kept[j]
                kept[j] = 1.0
                totals[j] += data[i] / pivot
                products[j] *= pivot
        else:
            for j in range(len(logs)):
                inner = ratios[j] + diagonal[i] * kept[j]
                pivot = inner + below[i]
                kept[j] = inner / pivot
                totals[j] += data[i] / pivot
                products[j] *= pivot
        # One logarithm for several pivots, which lie between exp(LOWEST) and the number of points: no underflow.
        if i % PIVOTS == 0:
            determinants += np.log(products)
            products[:] = 1.0
    if known:
        return determinants - points * logs + totals * ratios + points * np.log(2.0 * np.pi), 1.0 / ratios
    signals = totals / points
    return determinants + points * (np.log(2.0 * np.pi * signals) + 1.0), signals
