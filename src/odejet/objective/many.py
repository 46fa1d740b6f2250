"""Many: the negative log-posterior at many points at once, without derivatives.

Proposals that do not depend on each other can be looked at together.  What Python does around each of them, to simulate
it and to compare it with measurements, then takes a fraction of the time: simulations by `Repeated`, laws on arrays
with one row for each point.
"""

from __future__ import annotations

import math

import numpy as np

from odejet.clock import now
from odejet.data.censored import Limits
from odejet.objective.courses import completed
from odejet.objective.misfit import Misfit
from odejet.objective.scored import admitted
from odejet.objective.scoring import Scoring
from odejet.problem.densities import costs_of
from odejet.problem.laws import Density


def values(misfit: Misfit, z: np.ndarray, each: float, until: float) -> np.ndarray:
    """Return the negative log-posterior at every row of z, infinite where there is none: a simulation may take `each`
    so many seconds.  NaN where the clock was beyond `until` before it was looked at."""
    mu, reached = _predicted(misfit, z, each, until)
    costs = np.where(np.isfinite(mu).all(axis=1), 0.0, math.inf)
    if misfit.scoring is not None:
        costs += _by_laws(misfit.scoring, z, mu) + _by_priors(misfit.scoring, z)
    if misfit.scoring is not None and misfit.measurements.densities.all():
        costs += misfit.constant
    else:
        costs += _by_squares(misfit, mu)
    return np.where(reached, np.where(np.isfinite(costs), costs, math.inf), math.nan)


def _predicted(misfit: Misfit, z: np.ndarray, each: float, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Predictions by point, NaN where there are none, and which points were looked at in time."""
    found, reached = np.full((len(z), misfit.points), math.nan), np.ones(len(z), dtype=bool)
    for course, repeated in zip(misfit.measured, misfit.repeated, strict=True):
        states = np.zeros((len(z), len(course.flow.model.states)))
        states[:, course.states] = z[:, course.entries]
        outputs = np.full((len(z), len(course.times), len(course.flow.model.outputs)), math.nan)
        if repeated is not None:
            outputs = repeated.outputs(z[:, course.parameters], states, until)
        compared = [output for _, output, _ in course.series]
        for i in np.flatnonzero(~np.isfinite(outputs[:, :, compared]).all(axis=(1, 2))):
            reached[i] &= now() <= until
            if reached[i]:
                run = course.run(z[i], misfit.effort, False, now() + each)
                if completed(run):
                    outputs[i] = run.outputs[:, :, 0]
        for rows, output, positions in course.series:
            found[:, rows] = outputs[:, positions, output]
    return found, reached


def _by_laws(scoring: Scoring, z: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """What laws with scales of their own add to the costs."""
    total = np.zeros(len(z))
    for rows, further, density, measured in scoring.blocks:
        own = mu[:, rows]
        if scoring.chains[rows.start] is not None:  # errors that persist are followed one by one
            for i in np.flatnonzero(np.isfinite(own).all(axis=1)):
                part = scoring.part(rows, further, density, measured, mu[i], z[i])
                total[i] += getattr(part, "costs", np.array(math.inf)).sum()
            continue
        own, bad = admitted(density.law, measured, own)
        s = _scales(density, own, z)
        fine = ~bad.any(axis=1) & ((s > 0) & np.isfinite(s) & np.isfinite(own)).all(axis=1)
        total[~fine] = math.inf
        # Laws take measurements in one row.
        count, limits = int(fine.sum()), scoring.limits[rows.start]
        if limits is not None:
            limits = Limits(np.tile(limits.lower, count), np.tile(limits.upper, count))
        terms = density.terms(np.tile(measured, count), own[fine].ravel(), s[fine].ravel(), limits)
        total[fine] += terms.costs.reshape(count, -1).sum(axis=1)
    return total


def _scales(density: Density, mu: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The scale of every measurement at every point."""
    if not density.varies:
        return np.broadcast_to(density.scales(mu[0], z[0])[0], mu.shape)
    return np.array([density.scales(*pair)[0] for pair in zip(mu, z, strict=True)])


def _by_priors(scoring: Scoring, z: np.ndarray) -> np.ndarray:
    total = np.zeros(len(z))
    for prior in scoring.priors:
        total += costs_of(prior.prior, z[:, prior.entry]) + prior.log_mass
    return total


def _by_squares(misfit: Misfit, mu: np.ndarray) -> np.ndarray:
    """What measurements without a law of their own add."""
    scoring, measured, found = misfit.scoring, misfit.measurements, np.full(len(mu), math.inf)
    compared, fine = mu.copy(), np.isfinite(mu).all(axis=1)
    for rows, logarithm in [] if scoring is None else scoring.logarithms:
        fine &= (mu[:, rows] > 0).all(axis=1)
        compared[:, rows] = np.log(np.maximum(mu[:, rows], 1e-300)) / logarithm
    residuals = compared - (misfit.values if scoring is None else measured.targets)
    if not measured.plain:
        residuals = residuals / misfit.shapes
    for i in np.flatnonzero(fine):
        found[i] = misfit.cost(residuals[i])
    return found
