"""The exact process: the textbook form of Gaussian-process regression with a dense Cholesky factor, as a check."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from odejet.smooth import Jet, Kernel, Linear, Standardised


@dataclass(frozen=True, eq=False)
class ExactProcess(Linear):
    """The posterior mean by a dense Cholesky factor of K + sigma_GP^2 I, hyper-parameters in natural units."""

    name: str
    data: Standardised
    kernel: Kernel
    signal: float
    noise: float
    solve: Callable[[np.ndarray], np.ndarray]

    def rows(self, t: float, order: int) -> np.ndarray:
        """w_{j,t} for j = 0..order (eq. fixed-design-weight-row)."""
        cross = self.signal**2 * self.kernel.derivatives(t - self.data.times, order)
        return self.solve(cross.T).T

    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        dual = self.solve(self.data.values - self.data.center)
        lags = np.atleast_1d(times)[:, None] - self.data.times
        out = self.signal**2 * np.einsum("jtn,n->tj", self.kernel.derivatives(lags, order), dual)
        out[:, 0] += self.data.center
        return out

    def jets(self, times: np.ndarray, order: int) -> list[Jet]:
        sds = 1.0 if self.data.sds is None else self.data.sds
        found = zip(times, self.derivatives(times, order), strict=True)
        return [Jet(float(t), mean, self.rows(float(t), order) * sds, self.noise, self) for t, mean in found]

    def weight_rows(self, jet: Jet) -> np.ndarray:
        assert jet.reduced is not None
        return jet.reduced / (1.0 if self.data.sds is None else self.data.sds)


def exact(data: Standardised, kernel: Kernel, signal: float, noise: float) -> ExactProcess:
    """The exact process for given hyper-parameters; its cost grows with the cube of the number of points."""
    sds = np.broadcast_to(1.0 if data.sds is None else data.sds, data.times.shape)
    covariance = signal**2 * kernel(data.times[:, None] - data.times)
    covariance[np.diag_indices(len(data))] += (noise * sds) ** 2
    factor = cho_factor(covariance, lower=True)
    return ExactProcess(f"exact_{kernel.name.lower()}", data, kernel, signal, noise, lambda rhs: cho_solve(factor, rhs))


def truncation(kernel: Kernel, size: int) -> float:
    """The share of the prior variance (kernel in x) at frequencies that a basis of this size cannot follow."""
    beyond = size + np.linspace(0.0, 10.0 / kernel.length, 200)
    return float(np.trapezoid(kernel.spectral_density(beyond), beyond))
