"""Diagnostics: what tells whether a population model explains its data.

Conditional weighted residuals (CWRES) are residuals of the model linearised at each subject's mode, decorrelated: they
are standard normal where the linear model is good.  Prediction discrepancies (NPDE) compare each measurement with
simulations of the same design, decorrelated by the covariance of the simulations: they are standard normal whatever the
model is.  For both, a censored value is drawn from its law within its limits, given the subject's most probable
parameters: what follows from all that is known of it.
"""

from __future__ import annotations

import math

import numpy as np

from odejet.population.modes import Mode, find_mode
from odejet.population.population import Population
from odejet.population.subject import Subject
from odejet.problem.distributions.interval import drawn_within

Array = np.ndarray


class Design:
    """A population with values of everything: what is simulated."""

    def __init__(self, population: Population, u: Array) -> None:
        layout = population.layout
        moments = layout.moments(u)
        self.population = population
        self.means, self.common = moments.means, moments.common
        self.factor, self.noise = layout.cholesky(u), layout.noise_values(u)

    def mode(self, i: int) -> Mode:
        """The most probable parameters of a subject."""
        precision = np.linalg.inv(self.factor @ self.factor.T)
        subject, mean = self.population.members[i], self.means[i]
        return find_mode(subject, mean, mean, self.common[i], precision, self.noise)

    def simulated(self, i: int, count: int, rng: np.random.Generator) -> Array:
        """Measurements of so many subjects like one of the data, in rows."""
        subject = self.population.members[i]
        x = self.means[i] + rng.standard_normal((count, len(self.factor))) @ self.factor.T
        predictions = subject.predict(x, self.common[i])
        scales, _, _ = subject.scales(predictions, self.noise)
        places, found = rng.random(predictions.shape), np.empty_like(predictions)
        for block in subject.blocks:
            rows = block.rows
            found[:, rows] = _quantiles(block.density.law, places[:, rows], predictions[:, rows], scales[:, rows])
        return found


def _quantiles(law: object, places: Array, mu: Array, scale: Array) -> Array:
    quantile = law.quantile  # type: ignore[attr-defined]
    with np.errstate(all="ignore"):
        try:
            return np.asarray(quantile(places, mu, scale))
        except (TypeError, ValueError):  # a law of one probability at a time
            flat = [
                float(np.ravel(quantile(float(p), np.array([m]), np.array([s])))[0])
                for p, m, s in zip(places.ravel(), mu.ravel(), scale.ravel(), strict=True)
            ]
            return np.array(flat).reshape(mu.shape)


def completed(design: Design, i: int, mode: Mode) -> Array:
    """Return the measurements of a subject, with censored ones drawn within their limits."""
    subject = design.population.members[i]
    scales, _, _ = subject.scales(mode.predictions[None], design.noise)
    values = subject.values.copy()
    first = sum(member.points for member in design.population.members[:i])
    for block in subject.blocks:
        if block.limits is None or not (hidden := block.censored).any():
            continue
        mu, s = mode.predictions[block.rows][hidden], scales[0, block.rows][hidden]
        ends = block.limits.lower[hidden], block.limits.upper[hidden]
        own = values[block.rows]
        own[hidden] = drawn_within(block.density.law, *ends, mu, s, first + block.rows.start)
    return values


def conditional_residuals(design: Design, i: int, mode: Mode, observed: Array) -> Array:
    """Return CWRES of a subject with these measurements."""
    subject: Subject = design.population.members[i]
    predictions, slopes = mode.predictions, mode.by_x
    scales, _, _ = subject.scales(predictions[None], design.noise)
    variances = np.concatenate(
        [np.square(block.density.law.sd(predictions[block.rows], scales[0, block.rows])) for block in subject.blocks]
    )
    spread = slopes @ design.factor
    covariance = np.diag(variances) + spread @ spread.T
    residuals = observed - predictions + slopes @ (mode.x - design.means[i])
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors @ ((vectors.T @ residuals) / np.sqrt(np.maximum(values, 1e-300))))


def prediction_discrepancies(observed: Array, simulated: Array) -> Array:
    """Return NPDE of one subject from its measurements and rows of simulated ones."""
    from scipy.special import ndtri

    usable = simulated[np.isfinite(simulated).all(axis=1)]
    mean, covariance = usable.mean(axis=0), np.atleast_2d(np.cov(usable.T))
    factor = np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(len(mean)))
    below = np.linalg.solve(factor, (usable - mean).T) < np.linalg.solve(factor, observed - mean)[:, None]
    count = len(usable)
    share = np.clip(below.mean(axis=1), 0.5 / count, 1 - 0.5 / count)
    return np.asarray(ndtri(share))


def normality(values: Array) -> float:
    """Return the probability that standard normal numbers look at least as unusual, by Kolmogorov's and Smirnov's
    test."""
    from scipy.stats import kstest

    usable = values[np.isfinite(values)]
    return float(kstest(usable, "norm").pvalue) if len(usable) else math.nan
