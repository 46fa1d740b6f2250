"""Subjects whose posterior has several modes: likelihoods beside quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import odejet as oj
from odejet.population import exact
from odejet.population.modes import find_modes, scattered_starts
from tests.population.test_estimation import joined

TIMES = np.array([1.0, 2.0, 3.0])
SQUARE = oj.Model({"x": "0"}, {"y": "x"}, initial={"x": "k**2"}, parameters=["k"], name="square")
MEAN, OMEGA, SIGMA = 0.8, 1.0, 0.3


def squares() -> oj.Population:
    """Measurements of k^2, which tell k from -k by the law of the population alone."""
    k = np.array([-2.0, -1.5, 1.2, 2.2, 0.1])
    rows = k[:, None] ** 2 + SIGMA * np.random.default_rng(3).standard_normal((5, 3))
    return oj.Population(SQUARE, joined(rows, TIMES), {"k": "normal"}, noise={"y": "normal(s)"})


def minus_two_log_likelihood(population: oj.Population, mean: float, omega: float, sigma: float) -> float:
    """-2 log L by quadrature, subject by subject."""
    total = 0.0
    for subject in population.members:

        def density(k: float, values: np.ndarray = subject.values) -> float:
            residuals = (values - k * k) / sigma
            noise = math.exp(-0.5 * float(residuals @ residuals)) / (sigma * math.sqrt(2 * math.pi)) ** len(values)
            return noise * math.exp(-0.5 * ((k - mean) / omega) ** 2) / (omega * math.sqrt(2 * math.pi))

        total -= 2 * math.log(
            quad(density, -8, 0, epsabs=0, limit=200)[0] + quad(density, 0, 8, epsabs=0, limit=200)[0]
        )
    return total


def test_both_modes_of_a_subject_count() -> None:
    population = squares()
    known = minus_two_log_likelihood(population, MEAN, OMEGA, SIGMA)
    value, error = exact(population, {"k": MEAN, "omega_k": OMEGA, "s": SIGMA}, error=0.01)
    assert error < 0.02
    assert value == pytest.approx(known, abs=4 * error)


def test_the_likelihood_of_a_fit_has_both_modes() -> None:
    population = squares()
    fit = oj.fit(population)
    known = minus_two_log_likelihood(population, *(fit.values[name] for name in ("k", "omega_k", "s")))
    assert fit.minus_two_log_likelihood == pytest.approx(known, abs=0.05)


def test_modes_are_found_from_starts_that_lie_apart() -> None:
    subject, precision, noise = squares().members[0], np.eye(1), np.array([SIGMA])
    mean, common = np.array([MEAN]), np.zeros(0)
    draws = mean + 2 * np.random.default_rng(0).standard_normal((40, 1))
    starts = scattered_starts(subject, draws, mean, common, precision, noise, 4)
    assert 1 < len(starts) <= 4
    assert np.diff(np.sort(starts[:, 0])).min() > 1
    modes = find_modes(subject, starts, mean, common, precision, noise)
    first, second = (float(mode.x[0]) for mode in modes)
    assert first == pytest.approx(2.0, abs=0.2)  # k and -k explain the data, and the mean is positive
    assert second == pytest.approx(-first, abs=0.1)
    assert modes[0].log_share > modes[1].log_share
