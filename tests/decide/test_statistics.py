"""Tests of residuals: right often enough for noise, and not for what is none."""

import numpy as np
import pytest
from scipy import stats

from odejet import Data, Model
from odejet.decide.statistics import check, chi_square_tail
from odejet.problem import Problem
from odejet.search.refine import refine

LINE = Model({"x": "a"}, {"y": "x"}, parameters=["a"])
TIMES = np.linspace(0, 1, 40)


def line(values, times=TIMES, noise=0.1):
    misfit = Problem(LINE, Data(times, {"y": values}), noise=noise).misfit
    return misfit, refine(misfit, np.array([1.0, 1.0]))


@pytest.mark.parametrize(("value", "degrees"), [(3.0, 2.0), (40.0, 37.5), (700.0, 741.3)])
def test_chi_square_tail(value, degrees):
    assert chi_square_tail(value, degrees) == pytest.approx(stats.chi2.sf(value, degrees), rel=1e-10)


def test_degrees_of_freedom_level_and_criteria_of_a_straight_line():
    rng = np.random.default_rng(1)
    values = 1 + 2 * TIMES + 0.1 * rng.standard_normal(40)
    misfit, end = line(values)
    found = check(misfit, end)
    slope = stats.linregress(TIMES, values)
    squares = np.sum((values - slope.intercept - slope.slope * TIMES) ** 2)
    (output,) = found.outputs
    assert found.rank == 2 and output.degrees_of_freedom == pytest.approx(38)
    assert output.level == pytest.approx(np.sqrt(squares / 38), rel=1e-6)
    assert output.chi_square == pytest.approx(squares / 0.01, rel=1e-6)
    assert output.size_p == pytest.approx(stats.chi2.sf(squares / 0.01, 38), rel=1e-5)
    loglikelihood = stats.norm.logpdf(values - slope.intercept - slope.slope * TIMES, scale=0.1).sum()
    assert found.aic == pytest.approx(4 - 2 * loglikelihood)
    assert found.bic == pytest.approx(2 * np.log(40) - 2 * loglikelihood)
    misfit, end = line(values, noise=None)
    assert check(misfit, end).aic == pytest.approx(2 * 3 + 2 * end.cost)
    plain = Problem(LINE, Data(TIMES, {"y": values}), weights="none").misfit
    assert check(plain, refine(plain, np.ones(2))).aic == pytest.approx(2 * 3 + 2 * end.cost)


def test_a_reference_level_judges_the_size():
    rng = np.random.default_rng(2)
    misfit, end = line(1 + 2 * TIMES + 0.1 * rng.standard_normal(40), noise=None)
    assert check(misfit, end, np.array([0.1])).outputs[0].size_p > 1e-3
    assert check(misfit, end, np.array([0.03])).outputs[0].size_p < 1e-6


@pytest.mark.parametrize("regular", [True, False])
def test_noise_is_rarely_taken_for_autocorrelated(regular):
    rng = np.random.default_rng(3)
    autocorrelation, white = [], []
    for _ in range(150):
        times = TIMES if regular else np.sort(rng.random(40))
        misfit, end = line(1 + 2 * times + 0.1 * rng.standard_normal(40), times)
        (output,) = check(misfit, end).outputs
        autocorrelation.append(output.autocorrelation_z)
        white.append(output.white_p)
    assert abs(np.mean(autocorrelation)) < 0.2 and 0.8 < np.std(autocorrelation) < 1.2
    assert np.mean(np.array(white) < 0.05) < 0.09
    assert np.mean(np.array(white) < 0.01) < 0.03


def test_what_the_model_misses_is_autocorrelated():
    rng = np.random.default_rng(4)
    misfit, end = line(1 + 2 * TIMES + 0.3 * np.sin(9 * TIMES) + 0.1 * rng.standard_normal(40), noise=None)
    (output,) = check(misfit, end).outputs
    assert output.white_p < 1e-4 and output.autocorrelation_z > 3


def test_autocorrelation_does_not_reach_from_one_experiment_to_the_next():
    rng = np.random.default_rng(5)
    values = [1 + 2 * TIMES + 0.1 * rng.standard_normal(40) for _ in range(2)]
    misfit = Problem(LINE, Data.join([Data(TIMES, {"y": v}) for v in values])).misfit
    end = refine(misfit, np.ones(3))
    (output,) = check(misfit, end).outputs
    assert output.points == 80 and output.degrees_of_freedom == pytest.approx(77)
    assert output.white_p > 0.01
