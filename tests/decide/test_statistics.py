"""Tests of residuals: right often enough for noise, and not for what is none."""

import numpy as np
import pytest
from scipy import stats

from odejet import Data, Model, ModelError, compare, fit
from odejet.decide.statistics import check, chi_square_tail, is_plausible
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


def test_experiments_that_follow_each_other_in_time_are_not_one_course():
    """Residuals of one sign in each are as many runs as there are experiments, wherever their times are."""
    rng = np.random.default_rng(6)
    noise = [0.1 * rng.standard_normal(40) for _ in range(2)]
    checks = []
    for begin in (0.0, 10.0):
        parts = [Data(start + TIMES, {"y": 1 + 2 * TIMES + e}) for start, e in zip((0.0, begin), noise, strict=True)]
        misfit = Problem(LINE, Data.join(parts)).misfit
        checks.append(check(misfit, refine(misfit, np.ones(3))).outputs[0])
    apart, following = checks
    assert following.autocorrelation_z == pytest.approx(apart.autocorrelation_z, rel=1e-6)
    assert following.runs_p == pytest.approx(apart.runs_p, rel=1e-6)


def test_a_constant_output_has_no_autocorrelation():
    model = Model({"x": "a", "c": "0*c"}, {"y": "x", "z": "c"}, parameters=["a"])
    values = 1 + 2 * TIMES + 0.1 * np.random.default_rng(7).standard_normal(40)
    misfit = Problem(model, Data(TIMES, {"y": values, "z": np.full(40, 0.7)})).misfit
    end = refine(misfit, np.array([1.0, 0.7 * (1 + 2e-16), 2.0]))
    constant = check(misfit, end).outputs[1]
    assert constant.white_p == constant.outlier_p == constant.tails_p == 1.0 and constant.numerical


def test_suspicious_measurements_are_named():
    rng = np.random.default_rng(8)
    values = [1 + 2 * TIMES + 0.1 * rng.standard_normal(40) for _ in range(2)]
    values[1][5] += 3.0
    data = Data.join([Data(TIMES, {"y": v}, name=n) for v, n in zip(values, ("hot", "cold"), strict=True)])
    for noise in (None, 0.1):
        misfit = Problem(LINE, data, noise=noise).misfit
        found = check(misfit, refine(misfit, np.ones(3)))
        (one,) = found.suspicious
        assert (one.output, one.experiment, one.time, one.value) == ("y", "cold", TIMES[5], values[1][5])
        assert one.deviation < -15 and found.outputs[0].outlier_p < 1e-20


def test_what_a_wrong_model_misses_is_not_suspicious():
    values = np.exp(6 * TIMES) + 0.1 * np.random.default_rng(9).standard_normal(40)
    misfit, end = line(values, noise=None)
    found = check(misfit, end)
    assert found.outputs[0].white_p < 1e-4 and found.suspicious == ()


def test_errors_of_a_simulation_are_no_noise():
    rng = np.random.default_rng(10)
    for size, numerical in ((1e-12, True), (1e-7, False)):
        misfit, end = line(1 + 2 * TIMES + size * (np.sin(9 * TIMES) + 0.1 * rng.standard_normal(40)), noise=None)
        assert check(misfit, end).outputs[0].numerical is numerical
        assert is_plausible(misfit, end) is numerical


ABSORBED = Model({"d": "-ka*d", "c": "ka*d - k*c"}, {"y": "c/v"}, initial={"d": 100, "c": 0})


def absorbed(law, zeros=1, **options):
    """Concentrations after a dose, of which the first are exactly zero, as is what the model predicts of them."""
    rng, times = np.random.default_rng(1), np.array([0, 0.25, 0.5, 1, 2, 3, 4, 6, 8, 10.0])
    values = 5 * (np.exp(-0.3 * times) - np.exp(-1.5 * times)) * (1 + 0.1 * rng.standard_normal(10))
    times, values = np.append(np.zeros(zeros), times[1:]), np.append(np.zeros(zeros), values[1:])
    return fit(ABSORBED, Data(times, {"y": values}), positive=True, noise=law, time_limit=20, **options)


@pytest.mark.parametrize("law", ["normal(a + b*y)", "student(a + b*y, 4)", "normal(sqrt(a**2 + (b*y)**2))"])
def test_a_likelihood_without_an_upper_bound_is_named(law):
    found = absorbed(law)
    assert not found.certified and np.isnan(found.aic) and np.isnan(found.bic)
    (reason,) = (reason for reason in found.certificate.reasons if "no upper bound" in reason)
    assert "y = 0 at t = 0 exactly" in reason
    assert "no upper bound" in str(found) and "AIC nan" not in str(found)
    with pytest.raises(ModelError, match="no upper bound"):
        compare({"one": found, "other": found})


def test_a_noise_with_a_floor_has_a_likelihood_with_a_bound():
    found = absorbed("normal(a + b*y)", bounds={"a": (0.005, 10)})
    assert np.isfinite(found.aic) and not any("no upper bound" in reason for reason in found.certificate.reasons)


def test_several_collapsed_measurements_are_counted():
    found = absorbed("laplace(a + b*y)", zeros=3, effort="quick")
    assert any("(and 2 more) exactly" in reason for reason in found.certificate.reasons)


def test_data_without_noise_are_no_collapse():
    times = np.linspace(0, 5, 20)
    found = fit(Model({"x": "-k*x"}, {"y": "x"}), Data(times, {"y": 2 * np.exp(-0.4 * times)}), noise="normal(a)")
    assert found.values["k"] == pytest.approx(0.4, rel=1e-9)
    assert not any("no upper bound" in reason for reason in found.certificate.reasons)


def test_a_parameter_on_its_bound_is_charged_for():
    rng = np.random.default_rng(4)
    data = Data(TIMES, {"y": np.exp(0.8 * TIMES) + 0.01 * rng.standard_normal(40)})
    linear = fit(Model({"x": "k*x"}, {"y": "x"}), data)
    saturating = fit(Model({"x": "k*x/(1 + h*x**2)"}, {"y": "x"}), data, bounds={"h": (0, 10)}, positive=True)
    assert saturating.at_bound("h")  # the data were drawn so
    assert saturating.aic == pytest.approx(linear.aic + 2, abs=1e-3) and saturating.free == linear.free + 1
