"""Smoother: a fitted function with derivatives of any order and, where it is linear in the data, the law of its error.

`smoother.jet(t, order)` is the one thing every estimator offers, `smoother.jets(times, order)` the same at many times
for little more.  A linear estimator is a matrix acting on the data,
so its jets carry the coefficient rows w_{j,t} of the paper (eq. fixed-design-weight-row) and with them

    Sigma_d = W Sigma_eps W^T                                        (eq. fixed-design-derivative-error).

All linear estimators here are polynomials in the Chebyshev basis, whatever prior or criterion made them: their
derivatives come from the three-term recurrence, exactly, and their error law from a matrix with few columns, because
the data enter only through the coordinates of `Compressed`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from odejet.data import Series
from odejet.jets.compilation import compiled
from odejet.smooth.compressed import EPSILON
from odejet.smooth.standardised import Standardised


@dataclass(frozen=True, eq=False)
class Jet:
    """Derivatives 0..h of one output at one time, with their coefficient rows where the estimator is linear."""

    time: float
    mean: np.ndarray
    reduced: np.ndarray | None = None
    """Coefficient rows in an orthonormal basis: the same inner products as the weights, few columns."""
    noise: float = float("nan")
    """The estimated noise sd: a multiple of the known sds, or in natural units if none are known."""
    smoother: Smoother | None = field(default=None, repr=False)

    @property
    def order(self) -> int:
        return len(self.mean) - 1

    @property
    def linear(self) -> bool:
        return self.reduced is not None

    def to(self, order: int, noise: float) -> Jet:
        """Return the jet up to a lower order and with another noise sd."""
        rows = None if self.reduced is None else self.reduced[: order + 1]
        return Jet(self.time, self.mean[: order + 1], rows, noise, self.smoother)

    @cached_property
    def weights(self) -> np.ndarray:
        """The rows w_{j,t}, one per order, one column per measurement in the order of `series.times`."""
        return self._linear().weight_rows(self)

    @cached_property
    def gains(self) -> np.ndarray:
        """||w_{j,t}||, from the sd of the noise to the sd of each derivative (eq. fixed-design-noise-gain).

        With known sds the noise is measured in multiples of them.
        """
        self._linear()
        assert self.reduced is not None
        return np.sqrt(np.einsum("ji,ji->j", self.reduced, self.reduced))

    def covariance(self, noise: float | np.ndarray | None = None) -> np.ndarray:
        """Sigma_d of the derivatives of this jet.

        `noise` is one sd (a multiple of the known sds, if any; by default the estimated one), the sds of all
        measurements, or their full covariance Sigma_eps.
        """
        self._linear()
        assert self.reduced is not None
        if noise is None or np.ndim(noise) == 0:
            sd = self.noise if noise is None else float(noise)
            return sd**2 * (self.reduced @ self.reduced.T)
        spread = np.asarray(noise, dtype=float)
        if spread.ndim == 1:
            return (self.weights * spread**2) @ self.weights.T
        return self.weights @ spread @ self.weights.T

    @property
    def sd(self) -> np.ndarray:
        """The standard deviation of each derivative under the estimated noise; NaN for a nonlinear estimator."""
        return self.noise * self.gains if self.linear else np.full(len(self.mean), np.nan)

    def _linear(self) -> Linear:
        if not isinstance(self.smoother, Linear):
            raise ValueError("this estimator is not linear in the data: its jet has no coefficient rows")
        return self.smoother


class Smoother(ABC):
    """One output as a smooth function."""

    name: str
    data: Standardised

    @property
    def series(self) -> Series:
        return self.data.series

    @abstractmethod
    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        """Derivatives 0..order at each time, of shape (times, order + 1)."""

    def jets(self, times: np.ndarray, order: int) -> list[Jet]:
        """The jets at several times at once."""
        means = self.derivatives(times, order)
        return [Jet(float(t), mean, smoother=self) for t, mean in zip(times, means, strict=True)]

    def jet(self, t: float, order: int) -> Jet:
        return self.jets(np.array([t], dtype=float), order)[0]

    def __call__(self, times: np.ndarray | float) -> np.ndarray:
        return self.derivatives(times, 0)[:, 0].reshape(np.shape(times))


class Linear(Smoother):
    """A smoother that is linear in the (centred) data once its hyper-parameters are fixed."""

    noise: float
    stationary: ClassVar[bool] = False
    """Whether its prior is the same everywhere, which keeps noise gains calm near the ends."""

    @abstractmethod
    def weight_rows(self, jet: Jet) -> np.ndarray:
        """The rows w_{j,t} of one of this smoother's jets."""


@dataclass(frozen=True, eq=False)
class ChebyshevSeries(Linear):
    """A polynomial whose Chebyshev coefficients are `operator` times the coordinates of the data."""

    name: str
    data: Standardised
    operator: np.ndarray
    coordinates: np.ndarray
    noise: float
    """The sd of the noise this fit found: a multiple of the known sds, or in natural units if none are known."""
    evidence: float = float("-inf")
    """The log marginal likelihood of the standardised data, where the fit has one."""
    size: int = 0
    """The size of the factorisation the coordinates come from."""
    description: str = ""
    solved: np.ndarray | None = field(default=None, repr=False)
    """The coefficients from a solve of their own, where the operator is ill-conditioned and would lose their digits."""

    @cached_property
    def coefficients(self) -> np.ndarray:
        return self.operator @ self.coordinates if self.solved is None else self.solved

    @property
    def cancellation(self) -> float:
        """What rounding does to a value: terms much larger than their sum lose its digits."""
        return EPSILON * float(np.abs(self.coefficients).sum()) * self.data.scale

    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        return self._means(chebyshev_derivatives(self.data.inside(times), len(self.operator), order))

    def jets(self, times: np.ndarray, order: int) -> list[Jet]:
        data = self.data
        rows = chebyshev_derivatives(data.inside(times), len(self.operator), order)
        natural = data.scale / data.unit / data.half_width ** np.arange(order + 1)
        flat = rows.reshape(-1, rows.shape[2]) @ self.operator
        reduced = flat.reshape(*rows.shape[:2], -1) * natural[:, None]
        found = zip(times, self._means(rows), reduced, strict=True)
        return [Jet(float(t), mean, weights, self.noise, self) for t, mean, weights in found]

    def _means(self, rows: np.ndarray) -> np.ndarray:
        """Derivatives from those of the basis."""
        data = self.data
        out = rows @ self.coefficients * (data.scale / data.half_width ** np.arange(rows.shape[1]))
        out[:, 0] += data.center
        return np.asarray(out)

    def weight_rows(self, jet: Jet) -> np.ndarray:
        assert jet.reduced is not None
        data = self.data
        basis = data.orthonormal(self.size)[:, : self.operator.shape[1]]
        per_value = 1.0 if data.sds is None else 1.0 / data.sds
        return (jet.reduced @ basis.T) * per_value


@dataclass(frozen=True, eq=False)
class Constant(Linear):
    """An output that does not vary: its mean, and no derivatives."""

    name: str
    data: Standardised
    noise: float
    description: str = "the values do not vary"

    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        out = np.zeros((np.size(times), order + 1))
        out[:, 0] = self.data.center
        return out

    def jets(self, times: np.ndarray, order: int) -> list[Jet]:
        reduced = np.zeros((order + 1, 1))
        reduced[0] = np.linalg.norm(self._shares())
        means = self.derivatives(times, order)
        return [Jet(float(t), mean, reduced, self.noise, self) for t, mean in zip(times, means, strict=True)]

    def weight_rows(self, jet: Jet) -> np.ndarray:
        rows = np.zeros((len(jet.mean), len(self.series)))
        rows[0] = self._shares() / (1.0 if self.series.sds is None else self.series.sds)
        return rows

    def _shares(self) -> np.ndarray:
        """The weights of the mean times the sds of the noise."""
        sds = np.ones(len(self.series)) if self.series.sds is None else self.series.sds
        return (1.0 / sds) / np.sum(1.0 / sds**2)


def chebyshev_derivatives(x: np.ndarray, size: int, order: int) -> np.ndarray:
    """The j-th derivatives of T_0 .. T_{size-1} at x, of shape (points, order + 1, size).

    Differentiating T_{k+1} = 2 x T_k - T_{k-1} gives T_{k+1}^(j) = 2 x T_k^(j) + 2 j T_k^(j-1) - T_{k-1}^(j).
    """
    out = np.zeros((len(x), order + 1, size))
    _recurrence(np.ascontiguousarray(x, dtype=float), out)
    return out


@compiled
def _recurrence(x: np.ndarray, out: np.ndarray) -> None:  # pragma: no cover - compiled
    _, orders, size = out.shape
    for i in range(len(x)):
        rows = out[i]
        rows[0, 0] = 1.0
        if size > 1:
            rows[0, 1] = x[i]
            if orders > 1:
                rows[1, 1] = 1.0
        for k in range(1, size - 1):
            rows[0, k + 1] = 2.0 * x[i] * rows[0, k] - rows[0, k - 1]
            for j in range(1, orders):
                rows[j, k + 1] = 2.0 * x[i] * rows[j, k] + 2.0 * j * rows[j - 1, k] - rows[j, k - 1]
