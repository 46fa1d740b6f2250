"""Expected: what the design of a population can tell, before anybody has measured.

The model of a subject, linear in its random effects around the typical subject, has y_i ~ N(f_i, V_i) with
V_i = G_i Omega G_i' + R_i.  Its expected Fisher information is

    M_ab = sum over i of  df_i/da' V_i^-1 df_i/db + 1/2 tr(V_i^-1 dV_i/da V_i^-1 dV_i/db)

where V_i moves with Omega and the noise alone: the reduced information of programs for optimal design (PFIM, PopED),
which is nearer to what simulations show than one in which V_i moves with typical values too (Nyberg et al. 2015).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from odejet.population.approximations import Linear, check_values, linear, variances
from odejet.population.estimates import Estimates, Parameter, interval_of
from odejet.population.layout import Layout
from odejet.population.population import Population
from odejet.population.subject import Subject

Array = np.ndarray

STEP = 1e-5
"""Of a difference of variances, on the scale of u."""

RANK = 1e-10
"""Eigenvalues of the information, as shares of the largest, that are rounding."""

UNSEEN = 1e-3
"""The part of an estimate in directions without information from which on nothing is known of it."""


def expected(population: Population, values: Mapping[str, float], level: float = 0.95) -> Estimates:
    """Return the standard errors that a design promises for a population with these values, by name.

    Times, doses and covariates are those of the population's data; what was measured does not matter.
    """
    check_values(population, values)
    layout = population.layout
    u = layout.to(values)
    errors = _errors(information(population, u), layout.slopes(u))
    rows = {}
    for name, error in zip(layout.names, errors.tolist(), strict=True):
        value = float(values[name])
        rows[name] = Parameter(name, value, error, interval_of(layout, name, value, error, level))
    return Estimates.of_population(rows)


def information(population: Population, u: Array) -> Array:
    """Return the expected information on u."""
    layout = population.layout
    found, moments = np.zeros((len(u), len(u))), layout.moments(u)
    first, factor, noise = layout.fixed_effects, layout.cholesky(u), layout.noise_values(u)
    changes = _changes_of_omega(layout, u)
    for i, subject in enumerate(population.members):
        at = linear(subject, moments.means[i], moments.common[i], noise)
        inverse = np.linalg.inv(at.slopes @ factor @ factor.T @ at.slopes.T + np.diag(at.variances))
        moved = at.slopes @ moments.by_means[i] + at.by_common @ moments.by_common[i]
        found[:first, :first] += moved.T @ inverse @ moved
        of_variances = [at.slopes @ change @ at.slopes.T for change in changes]
        of_variances += [np.diag(row) for row in _changes_of_noise(subject, at, u, layout)]
        weighted = np.array([inverse @ one for one in of_variances])
        found[first:, first:] += 0.5 * np.einsum("aij,bji->ab", weighted, weighted)
    return found


def _changes_of_omega(layout: Layout, u: Array) -> list[Array]:
    """Derivatives of the whole Omega by the entries of its factors and by sds between occasions."""
    changes = []
    for entry in range(layout.omegas.start, layout.gammas.stop):
        step = np.zeros(len(u))
        step[entry] = STEP
        ends = [factor @ factor.T for factor in (layout.cholesky(u + step), layout.cholesky(u - step))]
        changes.append((ends[0] - ends[1]) / (2 * STEP))
    return changes


def _changes_of_noise(subject: Subject, at: Linear, u: Array, layout: Layout) -> list[Array]:
    """Derivatives of the variances of measurements by the logarithms of what the noise depends on."""
    changes = []
    for entry in range(layout.noises.start, layout.noises.stop):
        ends = []
        for sign in (1, -1):
            moved = u.copy()
            moved[entry] += sign * STEP
            ends.append(variances(subject, at.predictions, layout.noise_values(moved)))
        changes.append((ends[0] - ends[1]) / (2 * STEP))
    return changes


def _errors(found: Array, slopes: Array) -> Array:
    """Standard errors of what people read; infinite where there is no information."""
    scale = np.sqrt(np.maximum(np.diag(found), 1e-300))
    values, vectors = np.linalg.eigh(found / np.outer(scale, scale))
    rows = (slopes / scale) @ vectors
    known = values > RANK * values.max()
    sizes = np.sqrt((rows**2).sum(axis=1))
    unseen = np.sqrt((rows[:, ~known] ** 2).sum(axis=1)) > UNSEEN * sizes
    errors = np.sqrt((rows[:, known] ** 2 / values[known]).sum(axis=1))
    return np.where(unseen, math.inf, errors)
