"""Replicates: the log-likelihood of every measurement, and new measurements where a model predicts them."""

from __future__ import annotations

import math

import numpy as np

from odejet.objective.evaluation import Evaluation
from odejet.objective.misfit import Misfit


def levels_drawn(misfit: Misfit, found: Evaluation, rng: np.random.Generator) -> np.ndarray:
    """Return noise levels per output: those that are not known from their law given the residuals."""
    assert found.residuals is not None
    # The square of a level is SSE over a chi-square, with Jeffreys' prior.
    freedom = rng.chisquare(np.maximum(misfit.counts, 1))
    levels = misfit.levels(found.residuals)
    return np.where(misfit.estimated, levels * np.sqrt(np.maximum(misfit.counts, 1) / freedom), levels)


def replicate(
    misfit: Misfit, found: Evaluation, levels: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-likelihood of every measurement and a new one of each; NaN where there is no simulation."""
    nothing = np.full(misfit.points, math.nan)
    if found.residuals is None:
        return nothing, nothing
    from scipy.special import ndtr

    pointwise, values = nothing.copy(), nothing.copy()
    for rows, block in zip(misfit.measurements.rows, misfit.measurements.blocks, strict=True):
        if block.density is not None:
            continue
        level = levels[misfit.outputs.index(block.output)]
        residuals, size = found.residuals[rows], level * block.shapes
        logarithms = np.log(block.values * block.logarithm) if block.logarithm else 0.0
        pointwise[rows] = -0.5 * (residuals / level) ** 2 - np.log(size) - 0.5 * math.log(2 * math.pi) - logarithms
        place = block.targets + residuals * block.shapes + size * rng.normal(size=len(size))
        values[rows] = np.exp(place * block.logarithm) if block.logarithm else place
    for part in () if found.standing is None else found.standing.parts:
        pointwise[part.rows] = -part.costs
        if part.memory is None:
            shares = rng.uniform(size=len(part.mu))
        else:
            shares = ndtr(part.memory.innovations.chain.drawn(part.memory.rho, rng))
        values[part.rows] = part.density.law.quantile(shares, part.mu, part.s)
    return pointwise, values
