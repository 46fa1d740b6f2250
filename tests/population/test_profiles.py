"""Profiles of population parameters beside closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import odejet as oj
from tests.population.test_estimation import DECAY, LEVEL, TIMES, decays, joined, levels

CHI_SQUARE = 3.841458820694124


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return levels(1.0, np.random.default_rng(1))


@pytest.fixture(scope="module")
def fit(rows):
    return oj.fit(oj.Population(LEVEL, joined(rows, TIMES), {"m": "normal"}, noise={"y": "normal(s)"}))


def minus_two(rows: np.ndarray, mean: float, between: float, within: float) -> float:
    """-2 log L of a one-way layout with these sds."""
    count, points = rows.shape
    whole = within**2 + points * between**2
    found = float(((rows - rows.mean(axis=1)[:, None]) ** 2).sum()) / within**2
    found += points * float(((rows.mean(axis=1) - mean) ** 2).sum()) / whole
    found += count * ((points - 1) * math.log(within**2) + math.log(whole))
    return found + rows.size * math.log(2 * math.pi)


def test_the_profile_of_an_omega_ends_where_the_likelihood_says(fit, rows) -> None:
    from scipy.optimize import minimize_scalar

    def held(between: float) -> float:
        found = minimize_scalar(lambda s: minus_two(rows, rows.mean(), between, s), bounds=(0.1, 3), method="bounded")
        return float(found.fun) - fit.minus_two_log_likelihood - CHI_SQUARE

    between = fit.values["omega_m"]
    low, high = fit.profile("omega_m").interval()
    assert low == pytest.approx(brentq(held, 0.2 * between, between), rel=0.01)
    assert high == pytest.approx(brentq(held, between, 4 * between), rel=0.01)


def test_the_profile_of_a_mean_ends_where_the_likelihood_says(fit, rows) -> None:
    count, points = rows.shape
    within = float(((rows - rows.mean(axis=1)[:, None]) ** 2).sum())

    # With the mean held, sums of squares tell the best variances.
    def held(mean: float) -> float:
        whole = points * float(((rows.mean(axis=1) - mean) ** 2).sum()) / count
        return count * math.log(whole) - count * math.log(points * float(rows.mean(axis=1).var())) - CHI_SQUARE

    assert within > 0
    low, high = fit.profile("m").interval()
    middle = float(rows.mean())
    assert low == pytest.approx(brentq(held, middle - 3, middle), abs=0.01)
    assert high == pytest.approx(brentq(held, middle, middle + 3), abs=0.01)


def test_profiles_of_common_parameters_are_near_their_intervals() -> None:
    fit = oj.fit(oj.Population(DECAY, decays(np.random.default_rng(5), 16), {"k": "lognormal"}))
    found = fit.profile("x0")
    assert found.interval() == pytest.approx(fit.population["x0"].interval, rel=0.005)
    assert found.deviances.min() == 0
    assert repr(found).startswith("Profile of x0: between")


def test_a_parameter_that_is_not_there_has_no_profile(fit) -> None:
    with pytest.raises(oj.ModelError, match="there is no parameter 'omega_x'; did you mean"):
        fit.profile("omega_x")
