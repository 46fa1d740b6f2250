"""Chains: errors of measurement that persist, so that each tells something of the next.

In units of their scale the errors u of one series are a stationary normal process in continuous time, whose correlation
falls by the factor rho in every unit of time (Ornstein and Uhlenbeck; sampled at equal steps an AR(1)):

    corr(u_i, u_j) = rho^|t_i - t_j|.

It has no memory but the last value.  With phi = rho^(t_i - t_before) the *innovations*

    e_i = (u_i - phi_i u_before) / sqrt(1 - phi_i^2)

are independent and standard normal, and the likelihood of a series is that of these.  A part of a series has the law
that the whole gives it, whatever is left out.

Of several measurements at one time the first follows the first at the time before, the second the second and so on:
replicates are chains of their own, as those of different samples are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

LEAST, MOST = 1e-3, 0.99
"""The correlation over a gap of the usual length is looked for from the first on, that over all of its span up to
the second, where no bounds are given: beyond, errors are independent, or an offset."""

TINY = 1e-300
"""The least rho that is a number to rely on."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Which measurement each one follows."""

    back: np.ndarray  # how many places before it that one stands; zero where a chain begins
    gaps: np.ndarray  # the time since then; infinite where a chain begins

    @classmethod
    def of(cls, times: np.ndarray) -> Chain:
        """Return the chains of one series, of which the times are in order."""
        back, gaps = np.zeros(len(times), dtype=int), np.full(len(times), math.inf)
        last, first = dict[int, int](), 0  # the last of each chain; the first measurement at the time
        for i, time in enumerate(times.tolist()):
            first = i if time != times[first] else first
            before = last.get(i - first)
            if before is not None:
                back[i], gaps[i] = i - before, time - times[before]
            last[i - first] = i
        return cls(back, gaps)

    @classmethod
    def joined(cls, chains: Sequence[Chain]) -> Chain:
        """Return the chains of several series as one."""
        return cls(np.concatenate([one.back for one in chains]), np.concatenate([one.gaps for one in chains]))

    @cached_property
    def before(self) -> np.ndarray:
        """The place of the one before; its own where a chain begins."""
        return np.arange(len(self.back)) - self.back

    def correlations(self, rho: float) -> tuple[np.ndarray, np.ndarray]:
        """Return phi of every measurement and its derivative by the logarithm of rho; zero where a chain begins."""
        phi, slopes, linked = np.zeros(len(self.back)), np.zeros(len(self.back)), np.isfinite(self.gaps)
        if rho > 0:
            phi[linked] = np.exp(self.gaps[linked] * math.log(rho))
            slopes[linked] = self.gaps[linked] * phi[linked]
        return phi, slopes

    def left(self, rho: float) -> np.ndarray:
        """Return 1 - phi^2 of every measurement, without cancellation where it is small."""
        return -np.expm1(2 * self.gaps * math.log(rho)) if rho > 0 else np.ones(len(self.back))

    def drawn(self, rho: float, rng: np.random.Generator) -> np.ndarray:
        """Return errors of unit size."""
        (phi, _), errors = self.correlations(rho), np.sqrt(self.left(rho)) * rng.normal(size=len(self.back))
        for i in np.flatnonzero(self.back).tolist():
            errors[i] += phi[i] * errors[self.before[i]]
        return errors

    def innovations(self, errors: np.ndarray, rho: float) -> Innovations:
        """Return the innovations of errors of unit size."""
        return Innovations(self, errors, *self.correlations(rho), self.left(rho))


@dataclass(frozen=True, eq=False)
class Innovations:
    """Errors of unit size as independent ones."""

    chain: Chain
    errors: np.ndarray  # u
    phi: np.ndarray
    slopes: np.ndarray  # of phi, by the logarithm of rho
    left: np.ndarray  # 1 - phi^2

    @cached_property
    def values(self) -> np.ndarray:
        """Their values e."""
        return np.asarray((self.errors - self.phi * self.errors[self.chain.before]) / np.sqrt(self.left))

    @property
    def costs(self) -> np.ndarray:
        """What the negative log-likelihood has of each beyond that of an independent error."""
        return np.asarray(0.5 * (np.log(self.left) + self.values**2 - self.errors**2))

    @property
    def links(self) -> np.ndarray:
        """What the row of an innovation has of that of the one before, both in units of what is left of their noise."""
        return np.asarray(-self.phi * np.sqrt(self.left[self.chain.before] / self.left))

    @property
    def gradient(self) -> np.ndarray:
        """The derivatives of the negative log-likelihood by the logarithms of the scale and of rho."""
        excess, e = 1 - self.values**2, self.values
        told = self.slopes * (self.errors[self.chain.before] * e / np.sqrt(self.left) + self.phi / self.left * excess)
        return np.array([excess.sum(), -told.sum()])

    @property
    def information(self) -> np.ndarray:
        """The expected information on the logarithms of the scale and of rho."""
        share = self.phi * self.slopes / self.left
        mixed = -2 * float(share.sum())
        by_rho = float((2 * share**2 + self.slopes**2 / self.left).sum())
        return np.array([[2.0 * len(self.errors), mixed], [mixed, by_rho]])

    def degrees(self, sought: np.ndarray) -> float:
        """Return how many independent errors tell the noise as well, of which scale or rho or both are to be found.

        What unknowns that move predictions slowly have for their variance is about that of a mean, 1/(1' C^-1 1).  An
        estimate of it whose logarithm has the variance v is worth 2/v degrees of freedom (Satterthwaite 1946): n of n
        independent errors, and far fewer where rho is near one and to be found.
        """
        phi, whole = self.phi, float(((1 - self.phi) / (1 + self.phi)).sum())
        slopes = np.array([2.0, 2 * float((self.slopes / (1 + phi) ** 2).sum()) / whole])[sought]
        information = self.information[np.ix_(sought, sought)]
        if not len(sought) or np.linalg.matrix_rank(information) != len(sought):
            return math.inf
        return 2 / float(slopes @ np.linalg.solve(information, slopes))


def rho_bounds(series: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """Return bounds of the correlation after one unit of time that measurements at such times can tell; None where no
    two follow each other, or where it is too small for a number."""
    gaps = np.concatenate([np.zeros(0), *(Chain.of(times).gaps for times in series)])
    gaps = gaps[np.isfinite(gaps)]
    if not len(gaps) or 0.5 ** (1 / (usual := float(np.median(gaps)))) < TINY:
        return None
    span = max(float(np.ptp(times[np.isfinite(times)])) for times in series if np.isfinite(times).any())
    return max(LEAST ** (1 / usual), TINY), MOST ** (1 / span)
