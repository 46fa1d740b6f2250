"""Scored: measurements of one law at their predictions, and what their likelihood says of these and of the noise.

Where errors persist from one measurement to the next the independent *innovations* are compared in their place (see
`problem.chains`), and what is to be found of the noise, its scale and its correlation, has rows of its own.  With
L L' = M, the expected information on the logarithms of both, these are L' times the derivatives of both, so that they
add up to M, and residuals are such that J'r is the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odejet.data.censored import Limits
from odejet.objective.jacobian import Links
from odejet.problem.chains import Chain, Innovations
from odejet.problem.distributions import Distribution, Terms
from odejet.problem.laws import Density
from odejet.problem.measurements import ROUNDING

_ROUNDED = 1e-9
"""Of the largest measurement: a mean of counts below zero by less is rounding."""


@dataclass(frozen=True, eq=False)
class Refusal:
    """A measurement that cannot be compared with its prediction."""

    row: int
    message: str


@dataclass(frozen=True, eq=False)
class Memory:
    """What errors that persist tell."""

    innovations: Innovations
    rho: float
    scale: float
    by_entries: np.ndarray  # derivatives of the logarithms of scale and rho
    sought: np.ndarray  # which of both are to be found

    @property
    def links(self) -> Links:
        """What each row of a measurement has of that of the one before."""
        return Links(self.innovations.chain.back, self.innovations.links)

    @cached_property
    def noise_rows(self) -> NoiseRows:
        """The rows of what is to be found of the noise."""
        sought = self.sought
        information, gradient = self.innovations.information[np.ix_(sought, sought)], self.innovations.gradient[sought]
        positions = np.log(np.maximum([self.scale, self.rho], np.finfo(float).tiny))[sought]
        roots = np.sqrt(information.diagonal())
        if len(sought) < 2:
            links = Links(np.zeros(len(sought), dtype=int), np.zeros(len(sought)))
        else:
            mixed = information[0, 1] / roots[0]
            roots[1] = math.sqrt(max(roots[1] ** 2 - mixed**2, 0.0))
            links = Links(np.array([-1, 0]), np.array([mixed / roots[1] if roots[1] else 0.0, 0.0]))
            gradient[1] -= gradient[0] * mixed / roots[0]
        residuals = np.where(roots > 0, gradient / np.where(roots > 0, roots, 1.0), 0.0)
        derivatives = links.applied(roots[:, None] * self.by_entries[sought])
        return NoiseRows(residuals, positions, roots, links, derivatives)


@dataclass(frozen=True, eq=False)
class NoiseRows:
    """Rows of the scale of noise, or of its correlation, or of both."""

    residuals: np.ndarray
    positions: np.ndarray  # the logarithms of both
    roots: np.ndarray
    links: Links  # what the row of the scale has of that of the correlation
    derivatives: np.ndarray  # by the entries of z


@dataclass(frozen=True, eq=False)
class Scored:
    """Measurements of one law at predictions and scales."""

    rows: slice
    further: slice  # the rows of their scales; empty where these are known
    density: Density
    values: np.ndarray
    mu: np.ndarray
    s: np.ndarray
    by_mu: np.ndarray  # derivatives of s
    by_entries: np.ndarray
    limits: Limits | None = None  # of values that are censored
    memory: Memory | None = None  # of errors that persist

    @cached_property
    def terms(self) -> Terms:
        """Their negative log-likelihoods with derivatives."""
        return self.density.terms(self.values, self.mu, self.s, self.limits)

    @property
    def costs(self) -> np.ndarray:
        """The negative log-likelihood of each; where errors persist, given those before."""
        return self.terms.costs if self.memory is None else self.terms.costs + self.memory.innovations.costs

    @property
    def scores(self) -> np.ndarray:
        """Their normal scores; those of the innovations where errors persist."""
        if self.memory is not None:
            return self.memory.innovations.values
        return self.density.scores(self.values, self.mu, self.s, self.limits, self.rows.start)

    @property
    def gradient(self) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of their negative log-likelihood by predictions, and by the entries of z that the noise
        depends on by itself."""
        if self.memory is not None:
            roots = np.sqrt(self.density.law.information(self.mu, self.s)[0] / self.memory.innovations.left)
            by_mu = roots * self.memory.links.transposed(self.memory.innovations.values)
            return by_mu, self.memory.innovations.gradient @ self.memory.by_entries
        terms, density = self.terms, self.density
        by_mu = terms.by_mu + terms.by_s * self.by_mu if density.follows_output else terms.by_mu
        return by_mu, self.by_entries @ terms.by_s if density.varies else np.zeros(0)

    @property
    def is_exact(self) -> bool:
        """Whether predictions differ from measurements by no more than rounding."""
        values, mu, base = self.values, self.mu, self.density.law.logarithm
        if self.limits is not None:
            values, mu = values[~self.limits.censored], mu[~self.limits.censored]
        if not len(values):
            return True
        if base:
            with np.errstate(divide="ignore"):
                values, mu = np.log(values) / base, np.log(mu) / base
        largest = float(np.abs(values).max(initial=1.0 if base else 0.0))
        return bool(np.sqrt(np.mean((mu - values) ** 2)) <= ROUNDING * largest)


def scored(
    rows: slice,
    further: slice,
    density: Density,
    values: np.ndarray,
    limits: Limits | None,
    chain: Chain | None,
    mu: np.ndarray,
    z: np.ndarray,
) -> Scored | Refusal:
    """Measurements at their predictions, if their law allows these."""
    mu, bad = admitted(density.law, values, mu)
    if bad.any():
        most = density.law.largest
        if math.isfinite(most) and not (~(mu > 0) & bad).any():
            return Refusal(rows.start + int(np.argmax(bad)), f"{density.output} is above {most:g}, all there are")
        return not_positive(rows, bad)
    s, by_mu, by_entries = density.scales(mu, z)
    if (bad := ~((s > 0) & np.isfinite(s))).any():
        return Refusal(rows.start + int(np.argmax(bad)), f"the scale of the noise of {density.output} is not positive")
    if chain is None:
        return Scored(rows, further, density, values, mu, s, by_mu, by_entries, limits)
    rho, by_rho = density.memory(z)
    if not 0 <= rho < 1:
        return Refusal(rows.start, f"the correlation of the noise of {density.output} is {rho:g}, and not below 1")
    innovations = chain.innovations(density.law.scores(values, mu, s), rho)
    memory = Memory(
        innovations, rho, float(s[0]), np.array([by_entries[:, 0] / s[0], by_rho / (rho or 1.0)]), density.sought
    )
    return Scored(rows, further, density, values, mu, s, by_mu, by_entries, limits, memory)


def admitted(law: Distribution, values: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions within what a law allows, where only rounding led out of it, and which are beyond;
    predictions may have further axes in front."""
    bad = np.zeros(mu.shape, dtype=bool)
    if law.positive:
        least = 0.0 if law.logarithm else -_ROUNDED * (1 + float(values.max(initial=0.0)))
        bad |= ~(mu > 0) & ((values > 0) | ~(mu >= least))
        mu = np.where(bad, mu, np.maximum(mu, 0.0))
    if math.isfinite(largest := law.largest):
        bad |= (mu >= largest) & ((values < largest) | (mu > largest * (1 + _ROUNDED)))
        mu = np.minimum(mu, largest)
    return mu.copy(), bad


def not_positive(rows: slice, bad: np.ndarray) -> Refusal:
    """Refuse a prediction that has no logarithm, or no mean of counts."""
    return Refusal(rows.start + int(np.argmax(bad)), "an output is not positive, as its noise demands")
