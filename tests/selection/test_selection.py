"""Selection by switches: the model that made the data, criteria by hand, weights, averages, and honest warnings."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2

import odejet as oj
from odejet.result.nested import likelihood_ratio
from odejet.result.prediction import Band, Prediction
from odejet.selection.average import averaged
from odejet.selection.calibration import improved
from odejet.selection.candidate import Candidate
from odejet.selection.methods import METHODS
from odejet.simulate.flow import Outcome

MODEL = oj.Model({"x": "a - k*x - q*x**2"}, {"y": "x"}, name="growth")
TIMES = np.linspace(0, 6, 25)
OFF = {"a": 0, "q": 0}


def measured(a: float = 0.0, q: float = 0.0, seed: int = 3, noise: float = 0.02) -> oj.Data:
    exact = oj.simulate(MODEL, {"a": a, "k": 0.7, "q": q}, {"x": 3.0}, TIMES)["y"]
    return oj.Data(TIMES, {"y": exact + noise * np.random.default_rng(seed).normal(size=len(TIMES))})


@pytest.fixture(scope="module")
def inflow() -> oj.Selection:
    """All models for data of one with an inflow and without crowding."""
    return quiet(measured(a=0.5), method="exhaustive")


def quiet(data: oj.Data, **options: object) -> oj.Selection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return oj.select(MODEL, data, switches=OFF, positive=True, time_limit=3, **options)


def test_the_model_that_made_the_data_is_selected(inflow):
    assert {one.name for one in inflow} == {"none", "a", "q", "a + q"}
    assert inflow.best.estimated == {"a"}
    assert inflow.fit.interval("a")[0] < 0.5 < inflow.fit.interval("a")[1]
    assert inflow.importance["a"] > 0.99 and inflow.importance["q"] < 0.5


@pytest.mark.parametrize("method", ["forward", pytest.param("backward", marks=pytest.mark.slow)])
def test_stepwise_methods_end_at_the_best_of_all(inflow, method):
    found = quiet(measured(a=0.5), method=method)
    assert found.best.name == inflow.best.name
    assert found.best.aicc == pytest.approx(inflow.best.aicc, abs=1e-4)
    assert len(found) <= len(inflow)


def test_criteria_are_those_of_the_likelihood(inflow):
    """Least squares with normal noise of an unknown size: N/2 (log(2 pi s^2) + 1), with a parameter for the noise."""
    best = inflow.best
    squares = float(np.mean(inflow.fit.residuals()["y"] ** 2))
    count, k = len(TIMES), 4  # x(0), a, k and the noise
    value = -0.5 * count * (math.log(2 * math.pi * squares) + 1)
    assert best.parameters == k and best.log_likelihood == pytest.approx(value, abs=1e-6)
    assert best.aic == pytest.approx(2 * k - 2 * value)
    assert best.aicc == pytest.approx(best.aic + 2 * k * (k + 1) / (count - k - 1))
    assert best.bic == pytest.approx(k * math.log(count) - 2 * value)


def test_weights_are_akaikes(inflow):
    values = np.array([one.aicc for one in inflow])
    shares = np.exp(-0.5 * (values - values.min()))
    assert list(inflow.weights.values()) == pytest.approx(shares / shares.sum())
    assert list(values) == sorted(values)


def test_a_larger_model_never_explains_less(inflow):
    for small in inflow:
        for large in inflow:
            if small.nested_in(large):
                assert large.log_likelihood > small.log_likelihood - 1e-3


def test_a_search_that_missed_is_begun_anew_from_the_smaller_model(inflow):
    """A fit that stopped elsewhere is brought to at least the likelihood of the model that it contains."""
    small, large = inflow["a"], inflow["a + q"]
    assert large.fit is not None
    poor = oj.Fit.of(large.problem, _evaluated(large.problem, {**large.fit.values, "k": 2.0}))
    bad = Candidate("a + q", large.estimated, large.off, large.problem, poor, poor.log_likelihood, poor.free)
    assert bad.log_likelihood < small.log_likelihood
    assert improved(bad, [small]).log_likelihood == pytest.approx(large.log_likelihood, abs=1e-2)
    assert improved(large, [small]) is large


def _evaluated(problem, values):
    from odejet.search.refine import evaluated

    z = np.array([values[label] for label in problem.unknowns])
    return evaluated(problem.misfit, z, problem.frame(z))


def test_likelihood_ratios_of_neighbours(inflow):
    tests = {(test.smaller, test.larger): test for test in inflow.tests}
    assert set(tests) == {("none", "a"), ("a", "a + q")}
    one = tests["none", "a"]
    gain = inflow["a"].log_likelihood - inflow["none"].log_likelihood
    assert one.statistic == pytest.approx(2 * gain) and one.at_bound
    assert one.p_value == pytest.approx(chi2.sf(2 * gain, 1) / 2)
    assert likelihood_ratio("s", "l", -0.1, 2).p_value == 1.0
    assert likelihood_ratio("s", "l", 3.0, 2, at_bound=True).p_value == pytest.approx(chi2.sf(6.0, 2))


def test_predictions_are_averaged_with_bands_that_hold_all_models(inflow):
    times = [7.0, 9.0]
    found, weights = inflow.predict(times), inflow.weights
    counted = [one for one in inflow if weights[one.name] >= 1e-3]
    total = sum(weights[one.name] for one in counted)
    mean = sum(weights[one.name] / total * one.fit.predict(times)["y"].values for one in counted)
    assert found["y"].values == pytest.approx(mean)
    assert np.all(found["y"].low < mean) and np.all(mean < found["y"].high)
    assert np.all(found["y"].measured_high > found["y"].high)


def band(value: float, reach: float) -> Prediction:
    times, far = np.array([1.0]), reach * ndtri(0.975)
    ends = [np.array([value + end]) for end in (0.0, reach - value, -far, far, math.nan, math.nan)]
    ends[1] = np.array([reach])
    marks = np.array([False]), np.array([True])
    made = Band("y", times, *ends, *marks)
    return Prediction("e", 0.95, times, {"y": made}, {}, Outcome.COMPLETED, "")


def test_the_average_of_equal_models_is_either_and_of_distant_ones_holds_both():
    same = averaged([band(2.0, 0.5), band(2.0, 0.5)], [0.3, 0.7])["y"]
    assert same.low[0] == pytest.approx(2 - 0.5 * ndtri(0.975)) and same.stderr[0] == pytest.approx(0.5)
    apart = averaged([band(0.0, 0.01), band(10.0, 0.01)], [0.5, 0.5])["y"]
    assert apart.values[0] == 5.0 and apart.stderr[0] == pytest.approx(5.0, rel=1e-3)
    # Two and a half percent of the whole is five percent of the lower half.
    assert apart.low[0] == pytest.approx(0.01 * ndtri(0.05), abs=1e-6)
    assert apart.high[0] == pytest.approx(10 + 0.01 * ndtri(0.95), abs=1e-6)


def test_a_ranking_that_rests_on_what_is_not_confirmed_says_so():
    """Data of no model here: nothing is certified, and nothing is claimed."""
    data = oj.Data(TIMES, {"y": 2 + np.sin(3 * TIMES)}, noise=0.01)
    with pytest.warns(UserWarning, match="rests on fits that are not confirmed"):
        found = oj.select(MODEL, data, switches={"q": 0}, positive=True, time_limit=1)
    if not found.warning:
        pytest.fail("the warning is a property of the selection too")
    assert found.best.name in found.unconfirmed and "warning: the ranking rests" in repr(found)


def test_a_model_with_nothing_unknown_is_a_candidate():
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 3})
    exact = 3 * np.exp(-0.5 * TIMES)
    data = oj.Data(TIMES, {"y": exact + 0.1 * np.random.default_rng(1).normal(size=len(TIMES))}, noise=0.1)
    found = oj.select(model, data, switches={"k": 0.5})
    assert {one.name for one in found} == {"none", "k"}
    none = found["none"]
    squares = float(np.sum((data.experiments[0].outputs["y"].values - exact) ** 2))
    value = -0.5 * squares / 0.01 - len(TIMES) * math.log(0.1 * math.sqrt(2 * math.pi))
    assert none.parameters == 0 and none.fit is None and none.log_likelihood == pytest.approx(value)


def test_switches_may_be_expressions_and_initial_states():
    model = oj.Model({"x": "-k*x", "z": "k*x - d*z"}, {"y": "x", "w": "z"})
    exact = oj.simulate(model, {"k": 0.5, "d": 0.5}, {"x": 2.0, "z": 0.0}, TIMES)
    rng = np.random.default_rng(4)
    data = oj.Data(TIMES, {name: exact[name] + 0.02 * rng.normal(size=len(TIMES)) for name in ("y", "w")})
    found = oj.select(model, data, switches={"d": "k", "z": 0}, method="exhaustive", time_limit=6)
    none = found["none"]
    assert len(found) == 4 and none.aicc < found.best.aicc + 4
    assert none.fit.labels == ("x(0)", "k") and none.fit.interval("k")[0] < 0.5 < none.fit.interval("k")[1]


def test_what_is_known_of_a_switched_parameter_goes_with_it():
    data = measured()
    given = {"bounds": {"q": (0, 5), "k": (0.01, 10)}, "priors": {"q": "lognormal(0, 1)"}}
    found = oj.select(MODEL, data, switches={"q": 0}, fixed={"a": 0}, time_limit=6, **given)
    assert {one.name for one in found} == {"none", "q"}
    assert set(found["none"].problem.priors) == set() and "q" in found["q"].problem.priors


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"switches": {"kk": 0}}, "the switch 'kk' is no unknown of growth; did you mean 'k'"),
        ({"switches": {}}, "switches must name parameters and their values when off"),
        ({"switches": {"q": None}}, "the switch 'q' must be off at a number or an expression"),
        ({"switches": OFF, "criterion": "dic"}, "criterion must be one of aicc, aic, bic"),
        ({"switches": OFF, "method": "lasso"}, "method must be one of forward, backward, exhaustive"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options, sentence):
    with pytest.raises(oj.ModelError, match=sentence):
        oj.select(MODEL, measured(), **options)
    with pytest.raises(oj.DataError, match="a selection needs data"):
        oj.select(MODEL, switches=OFF)


def test_too_many_models_are_not_all_fitted():
    with pytest.raises(oj.ModelError, match="13 switches make 8,192 models"):
        METHODS["exhaustive"]([f"k{i}" for i in range(13)], lambda _: [], "aicc")
