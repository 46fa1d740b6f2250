"""Evidence: signal and noise variance of a Gaussian prior by maximum marginal likelihood, all at once.

In coordinates in which both the prior and the noise are diagonal, the data a_i have variance s_f^2 (v_i + g), with v_i
the prior variances and g the ratio of noise to signal variance; n - r further coordinates hold noise alone and are
known through their sum of squares.  The signal variance maximises the likelihood in closed form,

    s_f^2(g) = (1/n) [ sum a_i^2/(v_i + g) + outside/g ],

so that only log g is searched: on a grid fine enough to see every maximum, then by refining around the best.  With
known sds the noise variance is one and s_f^2 = 1/g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

LOWEST, HIGHEST = -78.0, 14.0
"""Range of log g: from noise far below the rounding of the signal to no signal at all."""
GRID = 47
REFINEMENTS = 5


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


def best_ratio(variances: np.ndarray, data: np.ndarray, outside: float, points: int, known: bool) -> Ratio:
    """Maximise the likelihood over signal and noise; `outside` is the sum of squares of the other coordinates."""
    return Ratio(*_maximise(variances, data**2, outside, points, known))


@numba.njit(cache=True)
def _maximise(
    variances: np.ndarray, squares: np.ndarray, outside: float, points: int, known: bool
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    grid = np.linspace(LOWEST, HIGHEST, GRID)
    centre, signal, lowest = 0.0, 1.0, np.inf
    for _ in range(REFINEMENTS):
        for log_ratio in grid:
            deviance, variance = _deviance(log_ratio, variances, squares, outside, points, known)
            if deviance < lowest:
                centre, signal, lowest = log_ratio, variance, deviance
        step = grid[1] - grid[0]
        grid = np.linspace(max(centre - step, LOWEST), min(centre + step, HIGHEST), 9)
    return centre, signal, -0.5 * lowest


@numba.njit(cache=True)
def _deviance(
    log_ratio: float, variances: np.ndarray, squares: np.ndarray, outside: float, points: int, known: bool
) -> tuple[float, float]:  # pragma: no cover - compiled
    """Minus twice the log marginal likelihood and the signal variance for one log g."""
    ratio = np.exp(log_ratio)
    total, determinant = outside / ratio, (points - len(variances)) * log_ratio
    for i in range(len(variances)):
        variance = variances[i] + ratio
        total += squares[i] / variance
        determinant += np.log(variance)
    if known:
        return determinant - points * log_ratio + total * ratio + points * np.log(2.0 * np.pi), 1.0 / ratio
    signal = total / points
    return determinant + points * (np.log(2.0 * np.pi * signal) + 1.0), signal
