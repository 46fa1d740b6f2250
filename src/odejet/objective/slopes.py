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
    slopes, gradient = np.zeros(misfit.rows), np.zeros(len(z))
    cost = cost_of(misfit, z, found.residuals, slopes, gradient)
    gradient += found.jacobian.rmatvec(slopes)
    # A sum is finite where all its parts are.
    return (cost, gradient) if np.isfinite(cost + gradient.sum()) else None


def value(misfit: Misfit, z: np.ndarray, deadline: float) -> float:
    """Return the negative log-posterior at z; infinite where there is none."""
    found = misfit.predicted(z, False, deadline)
    cost = np.inf if found.residuals is None else cost_of(misfit, z, found.residuals)
    return cost if np.isfinite(cost) else np.inf


def cost_of(
    misfit: Misfit,
    z: np.ndarray,
    mu: np.ndarray,
    slopes: np.ndarray | None = None,
    gradient: np.ndarray | None = None,
) -> float:
    """Return the cost of predictions; slopes by these and a gradient by z are added to, where they are asked for."""
    scoring, total, compared, factors = misfit.scoring, 0.0, mu, None
    if scoring is not None:
        refused = scoring.compared(mu)
        if isinstance(refused, Refusal):
            return np.inf
        compared, factors = refused
        total = _by_laws(scoring, z, mu, slopes, gradient) + _by_priors(scoring, z, gradient)
    measured = misfit.measurements
    if scoring is not None and measured.densities.all():
        return total + misfit.constant
    residuals = compared - (misfit.values if scoring is None else measured.targets)
    if not measured.plain:
        residuals = residuals / misfit.shapes
    levels = misfit.levels(residuals)
    if slopes is not None:
        by_mu = residuals / np.repeat(levels, misfit.counts) ** 2
        by_mu = by_mu if measured.plain else by_mu / misfit.shapes
        by_mu = by_mu if factors is None else by_mu * factors
        slopes[: misfit.points] += by_mu if scoring is None else np.where(scoring.squares, by_mu, 0.0)
    return misfit.cost(residuals, levels, total)


def _by_laws(
    scoring: Scoring, z: np.ndarray, mu: np.ndarray, slopes: np.ndarray | None, gradient: np.ndarray | None
) -> float:
    """What laws with scales of their own add to the cost, and to slopes and gradient."""
    total = 0.0
    for rows, further, density, values in scoring.blocks:
        part = scoring.part(rows, further, density, values, mu, z)
        if isinstance(part, Refusal):
            return np.inf
        total += float(part.costs.sum())
        if slopes is not None and gradient is not None:
            slopes[rows], by_entries = part.gradient
            if density.varies and len(density.entries):
                gradient[density.entries] += by_entries
    return total


def _by_priors(scoring: Scoring, z: np.ndarray, gradient: np.ndarray | None) -> float:
    """What priors add to the cost, and to the gradient."""
    total = 0.0
    for prior in scoring.priors:
        term = prior.at(float(z[prior.entry]))
        total += term.cost
        if gradient is not None:
            gradient[prior.entry] += term.slope
    return total
