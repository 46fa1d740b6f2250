"""Marginal: the likelihood of a population with the random effects integrated out, on given nodes.

    L_i(theta) = integral p(y_i | x) N(x; m_i, Omega) dx  =  sum_k w_k p(y_i | x_k) N(x_k; m_i, Omega)

Nodes lie in the space of x, so that predictions there stay as they are while typical values, Omega and noise move: a
value with its gradient costs no simulation.  By parameters without random effects predictions are linear from where
they were simulated, which makes the gradient exact there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.population.layout import Layout
from odejet.population.nodes import LOG_2PI, Nodes, Normal
from odejet.population.subject import Subject

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Sample:
    """The nodes of one subject with the predictions there."""

    subject: Subject
    nodes: Nodes
    predictions: Array
    common: Array  # parameters without random effects, as simulated
    by_common: Array | None  # slopes of predictions, where there are such parameters

    def of_shift(self, shift: int) -> Sample:
        """Return the nodes of one sequence, or all where they are a grid."""
        if self.nodes.is_grid:
            return self
        own = self.nodes.shifts == shift
        nodes = Nodes(self.nodes.x[own], self.nodes.log_weights[own], np.zeros(int(own.sum()), int), is_grid=False)
        slopes = None if self.by_common is None else self.by_common[own]
        return Sample(self.subject, nodes, self.predictions[own], self.common, slopes)


@dataclass(frozen=True, eq=False)
class Integral:
    """The logarithm of one subject's likelihood, how it is shared among nodes, and derivatives."""

    log: float
    shares: Array  # of the nodes; they add up to one
    by_mean: Array
    by_omega: Array
    by_common: Array
    by_noise: Array

    def spread(self, nodes: Nodes) -> float:
        """The standard error of the logarithm, from how much shifts of quasi-random nodes differ."""
        shifts = int(nodes.shifts.max()) + 1
        parts = shifts * np.bincount(nodes.shifts, self.shares, shifts)
        return float(parts.std(ddof=1) / math.sqrt(shifts)) if shifts > 1 else math.inf

    def effective(self) -> float:
        """The effective number of nodes."""
        return float(1 / (self.shares**2).sum())

    def evenness(self) -> float:
        """The effective share of nodes: one where all have the same weight in the posterior."""
        return self.effective() / len(self.shares)

    def posterior(self, nodes: Nodes) -> tuple[Array, Array]:
        """The mean and the covariance of x given the measurements."""
        mean = self.shares @ nodes.x
        away = nodes.x - mean
        return mean, (away.T * self.shares) @ away


def integrate(sample: Sample, mean: Array, common: Array, factor: Array, noise: Array) -> Integral | None:
    """Return the integral of a subject; None where no node has any likelihood."""
    predictions = sample.predictions
    if sample.by_common is not None:
        predictions = predictions + sample.by_common @ (common - sample.common)
    found = sample.subject.likelihood(predictions, noise)
    law = Normal(mean, factor)
    with np.errstate(all="ignore"):
        z = law.standard(sample.nodes.x)
        logs = found.values + sample.nodes.log_weights - 0.5 * (z * z).sum(axis=1)
        largest = logs.max()
        if not math.isfinite(largest):
            return None
        shares = np.exp(logs - largest)
    total = shares.sum()
    shares /= total
    used = shares > 0
    # Where a node has no likelihood its derivatives may be NaN.
    by_noise = shares[used] @ found.by_noise[used]
    by_common = np.zeros(len(common))
    if sample.by_common is not None:
        by_common = np.einsum("k,kn,knc->c", shares[used], found.by_predictions[used], sample.by_common[used])
    inverse = np.linalg.inv(factor)
    squares = (z[used].T * shares[used]) @ z[used]
    return Integral(
        float(largest + math.log(total) - law.log_scale - 0.5 * len(mean) * LOG_2PI),
        shares,
        inverse.T @ (shares @ z),
        0.5 * inverse.T @ (squares - np.eye(len(mean))) @ inverse,
        by_common,
        by_noise,
    )


@dataclass(frozen=True, eq=False)
class Marginal:
    """The marginal likelihood of all subjects on their nodes, as a function of u."""

    layout: Layout
    samples: Sequence[Sample]
    penalty: Callable[[Array], tuple[float, Array]] | None = None  # - log of priors, and its gradient

    def integrals(self, u: Array) -> list[Integral | None]:
        """Return what is known of every subject at u."""
        moments, factor, noise = self.layout.moments(u), self.layout.cholesky(u), self.layout.noise_values(u)
        if not (np.isfinite(moments.means).all() and np.isfinite(moments.common).all() and np.isfinite(factor).all()):
            return [None] * len(self.samples)
        return [
            integrate(sample, moments.means[i], moments.common[i], factor, noise)
            for i, sample in enumerate(self.samples)
        ]

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """Return - log L, with what priors cost, and its gradient by u; (inf, 0) where there is none."""
        scores = self.scores(u)
        if scores is None:
            return math.inf, np.zeros(len(u))
        logs, rows = scores
        cost, slope = (0.0, 0.0) if self.penalty is None else self.penalty(u)
        return cost - float(logs.sum()), slope - rows.sum(axis=0)

    def score_errors(self, u: Array) -> Array:
        """Return how gradients of subjects err, by sequences of their nodes: (subjects, sequences, entries of u).

        The sum over sequences of the products of a subject's rows is the covariance of its gradient's error.
        """
        found = np.zeros((len(self.samples), max(int(s.nodes.shifts.max()) + 1 for s in self.samples), len(u)))
        shifts = found.shape[1]
        if shifts == 1:
            return found
        rows = []
        for k in range(shifts):
            parts = Marginal(self.layout, [sample.of_shift(k) for sample in self.samples])
            scores = parts.scores(u)
            if scores is None:
                return found
            rows.append(scores[1])
        found = np.stack(rows, axis=1)
        return (found - found.mean(axis=1, keepdims=True)) / math.sqrt(shifts * (shifts - 1))

    def scores(self, u: Array) -> tuple[Array, Array] | None:
        """Return log L of every subject, and in rows its gradients by u."""
        layout, integrals = self.layout, self.integrals(u)
        moments, factor = layout.moments(u), layout.cholesky(u)
        rows, logs = np.zeros((len(integrals), len(u))), np.zeros(len(integrals))
        noise = layout.noise_values(u)
        for i, found in enumerate(integrals):
            if found is None:
                return None
            logs[i] = found.log
            rows[i, : layout.fixed_effects] = (
                found.by_mean @ moments.by_means[i] + found.by_common @ moments.by_common[i]
            )
            between = slice(layout.omegas.start, layout.gammas.stop)
            rows[i, between] = layout.cholesky_gradient(found.by_omega, factor)
            rows[i, layout.noises] = found.by_noise * noise
        return logs, rows
