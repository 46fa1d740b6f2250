"""Covariances against closed forms and against published verdicts on what data can tell."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from odejet import Data, Model, fit, simulate
from odejet.problem import Problem, Unknown
from odejet.problem.unknowns import find
from odejet.uncertainty import Matrix, covariance, interval, quantile
from tests import zoo
from tests.fits import predators, refined_fit

# Verdicts are for generic inputs, which those written with the models need not be.  Two models grow without bound from
# most values, and the weakest directions of three (2e-13 of the strongest and less) are beyond doubles.
BEYOND = {"quadratic_pair", "exponential_of_state", "seaijrc", "qy", "tumour_hu"}
JUDGED = [entry for entry in zoo.ENTRIES if not entry.model.inputs and entry.name not in BEYOND]


@pytest.mark.parametrize("entry", JUDGED, ids=lambda entry: entry.name)
def test_what_cannot_be_known_has_an_infinite_error(entry):
    model, rng, times = entry.model, np.random.default_rng(5), np.linspace(0, 2, 80)
    while True:
        parameters = {name: rng.uniform(0.3, 1.3) for name in model.parameters}
        states = {name: rng.uniform(0.3, 1.3) for name in model.states if name not in model.initial}
        simulation = simulate(model, parameters, states, times)
        if simulation.success:
            break
    misfit = Problem(model, Data(times, dict(simulation))).misfit
    found = misfit.evaluate(np.array([*states.values(), *parameters.values()]))
    values, null = covariance(found.dense / misfit.row_levels(misfit.scales)[:, None], np.ones(misfit.points))
    variances = dict(zip((unknown.name for unknown in misfit.unknowns), np.diag(values), strict=True))
    judged = {name: kind for name, kind in entry.verdicts.items() if name in variances}
    assert {name for name in judged if math.isinf(variances[name])} == {n for n, k in judged.items() if k == "none"}
    # A move along an undetermined direction changes no residual.
    sizes = np.abs(found.dense) @ np.abs(null.T)
    assert np.all(np.abs(found.dense @ null.T) <= 1e-6 * np.maximum(sizes.max(axis=0), 1e-300))


@st.composite
def designs(draw):
    """Tall matrices of full rank with columns of any size, and the sds of residuals."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 6))
    rows = n + draw(st.integers(0, 10))
    sizes = 10.0 ** np.array(draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n)))
    return rng.normal(size=(rows, n)), sizes, np.exp(rng.normal(size=rows))


@given(designs())
def test_covariance_of_full_rank(case):
    matrix, sizes, sds = case
    values, null = covariance(matrix * sizes, sds)
    inverse = np.linalg.pinv(matrix)
    expected = (inverse * sds**2) @ inverse.T / np.outer(sizes, sizes)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(values / scale, expected / scale, atol=1e-8)
    assert null.shape == (0, matrix.shape[1])


@given(designs(), st.integers(0, 5))
def test_a_column_without_effect_does_not_disturb_the_others(case, place):
    matrix, _, sds = case
    place = min(place, matrix.shape[1])
    values, null = covariance(np.insert(matrix, place, 0.0, axis=1), sds)
    rest = np.delete(np.delete(values, place, axis=0), place, axis=1)
    np.testing.assert_allclose(rest, covariance(matrix, sds)[0], rtol=1e-9, atol=1e-12 * np.abs(rest).max())
    assert math.isinf(values[place, place]) and len(null) == 1


def test_fewer_residuals_than_unknowns():
    values, null = covariance(np.array([[1.0, 1.0, 0.0]]), np.ones(1))
    assert np.isinf(np.diag(values)).all() and null.shape == (2, 3)
    np.testing.assert_allclose(null @ [1.0, 1.0, 0.0], 0, atol=1e-12)


@given(
    st.floats(1e-6, 1e6),
    st.floats(0, 1e3),
    st.floats(0.01, 0.99),
    st.floats(1, 1e6) | st.just(math.inf),
    st.sampled_from([(-math.inf, math.inf), (0.0, math.inf), (0.0, 1e7), (-math.inf, 0.0), (1e-7, 1e7)]),
)
def test_intervals_contain_the_value_and_obey_bounds(size, stderr, level, freedom, bounds):
    value = -size if bounds[1] == 0 else size
    low, high = interval(value, stderr, level, freedom, bounds)
    assert bounds[0] <= low <= value <= high <= bounds[1]
    wider = interval(value, stderr, 0.5 * (1 + level), freedom, bounds)
    assert wider[0] <= low and high <= wider[1]


def test_intervals_of_one_sign_are_mirrored():
    low, high = interval(2.0, 0.5, bounds=(0, math.inf))
    assert interval(-2.0, 0.5, bounds=(-math.inf, 0)) == (-high, -low)
    assert (low, high) == pytest.approx(tuple(2 * np.exp(np.array([-1, 1]) * stats.norm.ppf(0.975) * 0.25)))
    assert interval(2.0, math.inf, bounds=(0, math.inf)) == (0, math.inf)
    assert interval(2.0, 1e9, bounds=(0, 5.0)) == (0, 5.0)


def test_quantiles():
    assert quantile(0.95, 4.0) == pytest.approx(stats.t.ppf(0.975, 4))
    assert quantile(0.95, math.inf) == pytest.approx(stats.norm.ppf(0.975))


def test_names_of_matrices():
    unknowns = (Unknown("r", "r(1.5)", "experiment1"), Unknown("k1", "k1"))
    matrix = Matrix(unknowns, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert matrix["r", "k1"] == matrix["r(1.5)", "k1"] == 2.0
    assert matrix["k1"] == {"r(1.5)": 3.0, "k1": 4.0} and matrix["k1"]["r"] == 3.0
    np.testing.assert_array_equal(np.asarray(matrix), matrix.values)
    with pytest.raises(KeyError, match="did you mean 'k1'"):
        find(matrix.unknowns, "k2")
    with pytest.raises(KeyError, match=r"several unknowns are called 'r'; ask for one of r\(0\) in a, r\(0\) in b"):
        find([Unknown("r", f"r(0) in {name}", name) for name in "ab"], "r")


def test_each_unknown_has_the_degrees_of_freedom_of_the_outputs_that_tell_it():
    """Two lines that share nothing: one with few points, one with many."""
    model = Model({"u": "a + 0*u", "v": "b + 0*v"}, {"y1": "u", "y2": "v"})
    rng, few, many = np.random.default_rng(4), np.linspace(0, 1, 12), np.linspace(0, 1, 300)
    data = Data(None, {"y1": (few, few + 0.1 * rng.normal(size=12)), "y2": (many, many + rng.normal(size=300))})
    fit = refined_fit(model, data, [0.1, 0.1, 1.0, 1.0])
    assert fit.uncertainty.degrees_of_freedom == pytest.approx({"u(0)": 10, "a": 10, "v(0)": 298, "b": 298}, rel=1e-6)
    line = stats.linregress(few, data.experiments[0].outputs["y1"].values)
    assert fit.stderr["a"] == pytest.approx(line.stderr, rel=1e-6)
    reach = stats.t.ppf(0.975, 10) * line.stderr
    assert fit.interval("a") == pytest.approx((line.slope - reach, line.slope + reach), rel=1e-6)
    known = refined_fit(model, data, [0.1, 0.1, 1.0, 1.0], noise={"y1": 0.1, "y2": 1.0})
    assert set(known.uncertainty.degrees_of_freedom.values()) == {math.inf}


def test_an_expression_has_the_error_of_its_gradient():
    fit = predators()
    low, high = fit.interval("k1/k2")
    j = np.array([0, 0, 1 / fit.parameters["k2"], -fit.parameters["k1"] / fit.parameters["k2"] ** 2, 0])
    sd = math.sqrt(j @ fit.covariance.values @ j)
    ratio = fit.parameters["k1"] / fit.parameters["k2"]
    reach = stats.t.ppf(0.975, fit.uncertainty.degrees_of_freedom["k1"]) * sd / ratio
    assert (low, high) == pytest.approx((ratio * math.exp(-reach), ratio * math.exp(reach)), rel=1e-6)


def test_an_expression_of_what_is_lost_can_be_known():
    """Only the sum of two rates acts."""
    times = np.linspace(0, 3, 60)
    values = 2 * np.exp(-0.8 * times) + 0.01 * np.random.default_rng(1).normal(size=60)
    fit = refined_fit(Model({"x": "-(a + b)*x"}, {"y": "x"}), Data(times, {"y": values}), [2, 0.3, 0.5])
    assert fit.undetermined == ("a", "b")
    low, high = fit.interval("a + b")
    assert low < 0.8 < high < 1.05 * low
    assert math.isinf(fit.interval("a - b")[1])


@pytest.mark.parametrize("bounds", [None, (0.0, 5.0)])
def test_as_many_unknowns_as_measurements_have_no_standard_errors(bounds: tuple[float, float] | None) -> None:
    # Residuals that are zero whatever the noise was must not pass for noise of zero.
    decay = Model(states={"x": "-k*x"}, outputs={"y": "x"})
    found = fit(decay, Data([0.0, 1.0], {"y": [1.0, 0.5]}), bounds=bounds)
    assert found.parameters["k"] == pytest.approx(np.log(2))
    assert set(found.stderr.values()) == {np.inf}
    assert found.without_error == ("x(0)", "k") and not found.undetermined
    assert found.interval("k") == found.profile("k").interval() == (bounds or (-np.inf, np.inf))
    assert "of unknown accuracy" in str(found) and "noise: unknown" in str(found)


def test_known_noise_gives_standard_errors_without_degrees_of_freedom() -> None:
    decay = Model(states={"x": "-k*x"}, outputs={"y": "x"})
    found = fit(decay, Data([0.0, 1.0], {"y": [1.0, 0.5]}), noise={"y": 0.01})
    assert found.stderr["x"] == pytest.approx(0.01)
    assert found.stderr["k"] == pytest.approx(0.01 * np.sqrt(1 + 4))  # k = log(y0 / y1)
    assert not found.without_error
