"""Error: what a fixed fit does to noise and to the truth (paper, Section 4).

For fixed hyper-parameters the derivative estimates are affine in the data, so that

    d_hat - d = b + W eps ~ N(b, Sigma_d),        Sigma_d = W Sigma_eps W^T     (eq. fixed-design-derivative-error),

with the reconstruction bias b of eq. fixed-design-bias-coordinate.  The realised gains ||w_{j,t}|| have the a-priori
bound kappa_j/sigma_GP of eq. fixed-design-kernel-envelope, and with probability at least 1 - delta every component of
d_hat - d is within the radius r_delta of eq. fixed-design-radius.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from odejet.smooth.gp import ExactProcess, GaussianProcess
from odejet.smooth.kernels import Kernel
from odejet.smooth.smoother import Jet, Linear, Polynomial

Truth = Callable[[np.ndarray, int], np.ndarray]
"""A noise-free output: times and an order to derivatives 0..order, of shape (times, order + 1)."""


def kappa(kernel: Kernel, signal: float, order: int) -> np.ndarray:
    """kappa_0 .. kappa_order for signal sd `signal` (eq. fixed-design-kernel-constants)."""
    return signal * np.array([kernel.kappa(j) for j in range(order + 1)])


def gain_bounds(process: GaussianProcess | ExactProcess, order: int) -> np.ndarray:
    """The a-priori bounds kappa_j/sigma_GP of the gains, for every time and design (eq. fixed-design-kernel-envelope).

    With known sds both sides are in multiples of them.
    """
    return kappa(process.kernel, process.signal, order) / process.noise


def covariance(jets: Sequence[Jet], noise: float | None = None) -> np.ndarray:
    """Sigma_d of several jets stacked: correlated where they come from the same data, independent otherwise.

    `noise` replaces each jet's own noise sd.
    """
    groups: dict[int, list[int]] = {}
    for i, jet in enumerate(jets):
        if not isinstance(jet.smoother, Linear):
            raise ValueError(f"the jet at t = {jet.time:g} is of an estimator that is not linear: it has no covariance")
        groups.setdefault(id(jet.smoother.series), []).append(i)
    blocks = [_shared([jets[i] for i in members], noise) for members in groups.values()]
    stacked = block_diag(*blocks)
    starts = np.cumsum([0, *(len(jet.mean) for jet in jets)])
    arranged = [np.arange(starts[i], starts[i + 1]) for members in groups.values() for i in members]
    back = np.argsort(np.concatenate(arranged))
    return stacked[np.ix_(back, back)]


def _shared(jets: Sequence[Jet], noise: float | None) -> np.ndarray:
    """Sigma_d of jets of one series."""
    scales = np.concatenate([np.full(len(jet.mean), jet.noise if noise is None else noise) for jet in jets])
    rows = _common_rows(jets) * scales[:, None]
    return rows @ rows.T


def _common_rows(jets: Sequence[Jet]) -> np.ndarray:
    """Coefficient rows in one orthonormal basis: the shared factorisation if there is one, else the data themselves."""
    sizes = {jet.smoother.size if isinstance(jet.smoother, Polynomial) else 0 for jet in jets}
    if len(sizes) > 1 or 0 in sizes:
        series = jets[0].smoother.series  # type: ignore[union-attr]
        return np.vstack([jet.weights for jet in jets]) * (1.0 if series.sds is None else series.sds)
    reduced = [jet.reduced for jet in jets if jet.reduced is not None]
    width = max(rows.shape[1] for rows in reduced)
    return np.vstack([np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in reduced])


def bias(jet: Jet, truth: Truth) -> np.ndarray:
    """The reconstruction bias b of each derivative for a known truth (eq. fixed-design-bias-coordinate)."""
    if not isinstance(jet.smoother, Linear):
        raise ValueError("only a linear estimator has a bias that does not depend on the noise")
    data = jet.smoother.series
    clean = np.asarray(truth(data.times, 0)).reshape(len(data), -1)[:, 0]
    expected = jet.weights @ (clean - data.center)
    expected[0] += data.center
    return expected - np.asarray(truth(np.array([jet.time]), jet.order)).reshape(-1)


def radius(bias: np.ndarray, covariance: np.ndarray, delta: float = 0.05) -> float:
    """r_delta: with probability at least 1 - delta no derivative is off by more (eq. fixed-design-radius)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be between 0 and 1, not {delta}")
    variances = np.diag(covariance)
    return float(np.max(np.abs(bias) + np.sqrt(2.0 * variances * np.log(2.0 * len(variances) / delta))))


@dataclass(frozen=True, eq=False)
class DerivativeError:
    """The law N(b, Sigma_d) of stacked derivative errors."""

    bias: np.ndarray
    covariance: np.ndarray

    def radius(self, delta: float = 0.05) -> float:
        return radius(self.bias, self.covariance, delta)


def derivative_error(jets: Sequence[Jet], truths: Sequence[Truth], noise: float | None = None) -> DerivativeError:
    """Bias and covariance of stacked jets for known noise-free outputs, one per jet."""
    biases = np.concatenate([bias(jet, truth) for jet, truth in zip(jets, truths, strict=True)])
    return DerivativeError(biases, covariance(jets, noise))
