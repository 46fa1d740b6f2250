"""Approximations: the objective functions of other programs at given values, beside the exact one.

    fo       the model linearised in eta at eta = 0: y ~ N(f, R + G Omega G')
    foce     linearised at each subject's mode, with the noise of eta = 0
    focei    Laplace's method with the expected curvature at the mode, where noise follows the prediction
    laplace  Laplace's method with the exact curvature
    exact    -2 log L itself, integrated as in a fit

All have all constants.  NONMEM leaves out n log(2 pi), for n measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from odejet.errors import ModelError
from odejet.population.integration import Integrator
from odejet.population.modes import Mode, find_mode
from odejet.population.population import Population
from odejet.population.simulating import Members, Simulator
from odejet.population.subject import Subject

Array = np.ndarray

METHODS = ("fo", "foce", "focei", "laplace", "exact")
LOG_2PI = math.log(2 * math.pi)
ITERATIONS = 100
STEP = 1e-4
"""Of a difference of gradients, in units of the sd of a random effect."""


def objective(population: Population, values: Mapping[str, float], method: str = "focei") -> float:
    """Return -2 log L or an approximation of it at values by name, those of `population.names`."""
    if method not in METHODS:
        raise ModelError(f"the method must be one of {', '.join(METHODS)}, not {method!r}")
    if method == "exact":
        return exact(population, values)[0]
    check_values(population, values)
    layout = population.layout
    u = layout.to(values)
    factor, noise, moments = layout.cholesky(u), layout.noise_values(u), layout.moments(u)
    total = 0.0
    for i, subject in enumerate(population.members):
        parts = subject, moments.means[i], moments.common[i], factor @ factor.T, noise
        total += {"fo": _first_order, "foce": _conditional, "focei": _expected, "laplace": _exact}[method](*parts)
    return total


def exact(
    population: Population, values: Mapping[str, float], error: float = 0.02, seed: int = 0
) -> tuple[float, float]:
    """Return -2 log L at values by name with the standard error of its computation, which is to be about so large."""
    check_values(population, values)
    u = population.layout.to(values)
    with Simulator(Members(population.members)) as simulator:
        integrator = Integrator(population.layout, simulator, seed)
        integrator.adapt_to_modes(u, range(integrator.count))
        integrator.look_for_modes(u)
        marginal, errors = integrator.integrated(u, error)
        return 2 * marginal.value_and_gradient(u)[0], 2 * float(np.linalg.norm(errors))


def check_values(population: Population, values: Mapping[str, float]) -> None:
    """Refuse values in which one that is estimated is missing."""
    missing = [name for name in population.names if name not in values]
    if missing:
        raise ModelError(f"no value is given for {', '.join(missing)}")


def _first_order(subject: Subject, mean: Array, common: Array, omega: Array, noise: Array) -> float:
    _refuse_censored(subject)
    at_mean = linear(subject, mean, common, noise)
    return at_mean.measure(at_mean.residuals, omega)


def _conditional(subject: Subject, mean: Array, common: Array, omega: Array, noise: Array) -> float:
    _refuse_censored(subject)
    fixed, precision, x = linear(subject, mean, common, noise).variances, np.linalg.inv(omega), mean
    for _ in range(ITERATIONS):  # least squares whose weights do not move
        at_x = replace(linear(subject, x, common, noise), variances=fixed)
        weighted = at_x.slopes.T / fixed
        target = weighted @ (at_x.residuals + at_x.slopes @ (x - mean))
        x, before = mean + np.linalg.solve(precision + weighted @ at_x.slopes, target), x
        if np.abs(x - before).max() < 1e-10:
            break
    at_x = replace(linear(subject, x, common, noise), variances=fixed)
    return at_x.measure(at_x.residuals + at_x.slopes @ (x - mean), omega)


@dataclass(frozen=True, eq=False)
class Linear:
    """A subject's measurements, or their logarithms where the noise is of these, linear in x."""

    residuals: Array
    slopes: Array  # by x
    by_common: Array  # by parameters without random effects
    variances: Array
    jacobian: float  # twice the sum of the logarithms of the slopes of the measurements by what is compared
    predictions: Array

    def measure(self, residuals: Array, omega: Array) -> float:
        return _normal(residuals, np.diag(self.variances) + self.slopes @ omega @ self.slopes.T) + self.jacobian


def linear(subject: Subject, x: Array, common: Array, noise: Array) -> Linear:
    """Return a subject's measurements as they are expected near x."""
    predictions, by_x, by_common = subject.linearise(x[None], common)
    residuals, slopes, others = subject.values - predictions[0], by_x[0].copy(), by_common[0].copy()
    jacobian = 0.0
    for block in subject.blocks:
        rows, base, mu = block.rows, block.density.law.logarithm, predictions[0, block.rows]
        if base:
            residuals[rows] = (np.log(block.values) - np.log(mu)) / base
            slopes[rows] /= mu[:, None] * base
            others[rows] /= mu[:, None] * base
            jacobian += 2 * float(np.log(block.values * base).sum())
    return Linear(residuals, slopes, others, variances(subject, predictions[0], noise), jacobian, predictions[0])


def variances(subject: Subject, predictions: Array, noise: Array) -> Array:
    """Return the variances of a subject's measurements, or of their logarithms where the noise is of these."""
    scales = subject.scales(predictions[None], noise)[0][0]
    found = scales**2
    for block in subject.blocks:
        if not block.density.law.logarithm:
            found[block.rows] = block.density.law.sd(predictions[block.rows], scales[block.rows]) ** 2
    return found


def _refuse_censored(subject: Subject) -> None:
    if any(block.limits is not None for block in subject.blocks):
        raise ModelError(f"{subject.name}: censored values have no residuals that could be linearised; use laplace")


def _normal(residuals: Array, covariance: Array) -> float:
    sign, logarithm = np.linalg.slogdet(covariance)
    if sign <= 0:
        return math.inf
    return float(logarithm + residuals @ np.linalg.solve(covariance, residuals) + len(residuals) * LOG_2PI)


def _expected(subject: Subject, mean: Array, common: Array, omega: Array, noise: Array) -> float:
    mode = find_mode(subject, mean, mean, common, np.linalg.inv(omega), noise)
    return _laplace(mode.value, mode.curvature, omega)


def _exact(subject: Subject, mean: Array, common: Array, omega: Array, noise: Array) -> float:
    mode = find_mode(subject, mean, mean, common, np.linalg.inv(omega), noise)
    return _laplace(mode.value, exact_curvature(subject, mode, common, omega, noise), omega)


def exact_curvature(subject: Subject, mode: Mode, common: Array, omega: Array, noise: Array) -> Array:
    """Return the curvature of the joint density at a mode, from differences of exact gradients."""
    steps = STEP * np.sqrt(np.diag(omega))
    points = np.concatenate([mode.x + np.diag(steps), mode.x - np.diag(steps)])
    predictions, by_x, _ = subject.linearise(points, common)
    slopes = -np.einsum("kn,knd->kd", subject.likelihood(predictions, noise).by_predictions, by_x)
    count = len(steps)
    rows = (slopes[:count] - slopes[count:]) / (2 * steps[:, None])
    return np.linalg.inv(omega) + 0.5 * (rows + rows.T)


def _laplace(value: float, curvature: Array, omega: Array) -> float:
    """-2 log of the integral of exp(-value) N(x; m, Omega) with its Gaussian approximation."""
    sign, logarithm = np.linalg.slogdet(curvature)
    if sign <= 0 or not math.isfinite(value):
        return math.inf
    return float(2 * value + np.linalg.slogdet(omega)[1] + logarithm)
