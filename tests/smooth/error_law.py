"""The law of the error of a fixed fit where the truth is known, and its a-priori bound (paper, Section 4).

The realised gains ||w_{j,t}|| of a Gaussian process have the bound kappa_j/sigma_GP of
eq. fixed-design-kernel-envelope; the reconstruction bias is that of eq. fixed-design-bias-coordinate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lgamma, log

import numpy as np

from odejet.smooth import Jet, Kernel, Linear, covariance, radius

Truth = Callable[[np.ndarray, int], np.ndarray]
"""A noise-free output: times and an order to derivatives 0..order, of shape (times, order + 1)."""


def kappa(kernel: Kernel, order: int) -> float:
    """kappa_j of unit signal variance (eq. fixed-design-kernel-constants)."""
    logs = lgamma(2 * order + 1) - lgamma(order + 1) - order * log(2.0)
    if not np.isinf(kernel.alpha):
        logs += sum(np.log1p(i / kernel.alpha) for i in range(order))
    return float(np.exp(0.5 * logs - order * log(kernel.length)))


def gain_bounds(process, order: int) -> np.ndarray:
    """The a-priori bounds kappa_j/sigma_GP of the gains, for every time and design (eq. fixed-design-kernel-envelope).

    With known sds both sides are in multiples of them.
    """
    return process.signal / process.noise * np.array([kappa(process.kernel, j) for j in range(order + 1)])


def bias(jet: Jet, truth: Truth) -> np.ndarray:
    """The reconstruction bias b of each derivative for a known truth (eq. fixed-design-bias-coordinate)."""
    if not isinstance(jet.smoother, Linear):
        raise ValueError("only a linear estimator has a bias that does not depend on the noise")
    data = jet.smoother.data
    clean = np.asarray(truth(data.times, 0)).reshape(len(data), -1)[:, 0]
    expected = jet.weights @ (clean - data.center)
    expected[0] += data.center
    return expected - np.asarray(truth(np.array([jet.time]), jet.order)).reshape(-1)


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
