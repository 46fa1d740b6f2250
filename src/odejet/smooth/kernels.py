"""Kernels: the squared-exponential and the rational-quadratic covariance of a Gaussian process.

    k_SE(r) = exp(-r^2/(2 l^2)),        k_RQ(r) = (1 + r^2/(2 a l^2))^(-a)        (paper, eq. ker-se, ker-rq)

with unit signal variance.  Each knows its time derivatives of any order and its spectral density.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi

import numpy as np
from scipy.special import gammaln, kve


@dataclass(frozen=True)
class Kernel:
    """A stationary kernel of unit variance; `alpha` infinite is the squared exponential."""

    length: float
    alpha: float = float("inf")

    @property
    def name(self) -> str:
        return "SE" if np.isinf(self.alpha) else "RQ"

    def scaled(self, factor: float) -> Kernel:
        """Return the kernel with its length scale multiplied by `factor`."""
        return replace(self, length=self.length * factor)

    def __call__(self, r: np.ndarray) -> np.ndarray:
        half_square = 0.5 * (np.asarray(r) / self.length) ** 2
        if np.isinf(self.alpha):
            return np.exp(-half_square)
        return np.exp(-self.alpha * np.log1p(half_square / self.alpha))

    def derivatives(self, r: np.ndarray, order: int) -> np.ndarray:
        """d^j/dr^j k(r) for j = 0..order, along a new first axis.

        Differentiating the kernels' own differential equations, l^2 k' = -r k for SE and
        (2 a l^2 + r^2) k' = -2 a r k for RQ, j times by Leibniz's rule gives a three-term recurrence in j.
        """
        r = np.asarray(r, dtype=float)
        square = self.length**2
        out = np.empty((order + 1, *r.shape))
        out[0] = self(r)
        for j in range(order):
            before = out[j - 1] if j else np.zeros_like(r)
            if np.isinf(self.alpha):
                out[j + 1] = -(r * out[j] + j * before) / square
            else:
                two = 2.0 * self.alpha
                out[j + 1] = -((two + 2 * j) * r * out[j] + j * (two + j - 1) * before) / (two * square + r**2)
        return out

    def spectral_density(self, omega: np.ndarray) -> np.ndarray:
        """S with k(r) = integral_0^inf S(w) cos(w r) dw."""
        scaled = self.length * np.asarray(omega, dtype=float)
        if np.isinf(self.alpha):
            return self.length * np.sqrt(2.0 / pi) * np.exp(-0.5 * scaled**2)
        # RQ is a gamma mixture of SE kernels over the inverse square length; the mixture of their densities is a
        # Bessel function of the second kind.
        a, shift = self.alpha, self.alpha - 0.5
        argument = np.sqrt(2.0 * a) * scaled
        logs = a * log(a) - gammaln(a) + shift * np.log(scaled / np.sqrt(2.0 * a))
        return self.length * np.sqrt(2.0 / pi) * 2.0 * np.exp(logs + _log_bessel(shift, argument))


def _log_bessel(order: float, argument: np.ndarray) -> np.ndarray:
    """log K_order, where the function itself would overflow by its leading term Gamma(|order|)/2 (2/z)^|order|."""
    with np.errstate(over="ignore", divide="ignore"):
        logs = np.log(kve(order, argument)) - argument
    size = abs(order)
    return np.where(np.isfinite(logs), logs, gammaln(size) - log(2.0) + size * np.log(2.0 / argument))
