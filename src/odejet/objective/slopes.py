"""Slopes: the negative log-posterior with its gradient and nothing else, for samplers that ask very often.

A search needs rows of least squares, whose products give steps; a sampler needs one number and one vector.  Both follow
from predictions and their derivatives, and from how much each measurement's share of the cost changes with its
prediction:

    gradient = sum_i (dcost_i / dmu_i) dmu_i/dz + what scales of noise and priors depend on by themselves

so that no rows are weighed, mapped or scaled.
"""

from __future__ import annotations

import numpy as np

from odejet.objective.misfit import Misfit
from odejet.objective.scoring import Refusal, Scoring


def value_and_gradient(misfit: Misfit, z: np.ndarray, deadline: float) -> tuple[float, np.ndarray] | None:
    """Return the negative log-posterior at z and its gradient; None where there is none.

    Not for what is large: there rows of derivatives are not kept.
    """
    found = misfit.predicted(z, True, deadline)
    if found.residuals is None or found.jacobian is None:
        return None
    mu, points = found.residuals, misfit.points
    slopes, gradient = np.zeros(misfit.rows), np.zeros(len(z))
    cost, residuals, factors = 0.0, mu, None
    scoring = misfit.scoring
    if scoring is not None:
        scored = _scored(scoring, z, mu, slopes, gradient)
        if scored is None:
            return None
        cost, residuals, factors = scored
    if scoring is None or not misfit.measurements.densities.all():
        residuals = residuals - (misfit.values if scoring is None else misfit.measurements.targets)
        if not misfit.measurements.plain:
            residuals = residuals / misfit.shapes
            factors = 1 / misfit.shapes if factors is None else factors / misfit.shapes
        levels = misfit.levels(residuals)
        cost = misfit.cost(residuals, levels, cost)
        by_mu = residuals / np.repeat(levels, misfit.counts) ** 2
        by_mu = by_mu if factors is None else by_mu * factors
        slopes[:points] += by_mu if scoring is None else np.where(scoring.squares, by_mu, 0.0)
    else:
        cost += misfit.constant
    gradient += found.jacobian.rmatvec(slopes)
    # A sum is finite where all its parts are.
    return (cost, gradient) if np.isfinite(cost + gradient.sum()) else None


def _scored(
    scoring: Scoring, z: np.ndarray, mu: np.ndarray, slopes: np.ndarray, gradient: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray | None] | None:
    """Add what laws and priors say to slopes and gradient; return their cost, predictions as they are compared, and
    the derivatives of these by predictions."""
    compared = scoring.compared(mu)
    if isinstance(compared, Refusal):
        return None
    total = 0.0
    for rows, further, density, values in scoring.blocks:
        part = scoring.part(rows, further, density, values, mu, z)
        if isinstance(part, Refusal):
            return None
        terms = part.terms
        total += float(terms.costs.sum())
        slopes[rows] = terms.by_mu + terms.by_s * part.by_mu if density.follows_output else terms.by_mu
        if density.varies and len(density.entries):
            gradient[density.entries] += part.by_entries @ terms.by_s
    for prior in scoring.priors:
        term = prior.at(float(z[prior.entry]))
        total += term.cost
        gradient[prior.entry] += term.slope
    return total, *compared
