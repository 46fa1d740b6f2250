"""Bands against regression, profiles of expressions that say the same, another optimiser, and courses at random."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from odejet import Data, DataError, Model, ModelError, simulate
from odejet.uncertainty.bands import bands
from odejet.uncertainty.predicted import Curves
from tests.fits import STRAIGHT, driven, predators, refined_fit

TIMES = np.linspace(0, 4, 25)
VALUES = 0.5 + 1.5 * TIMES + 0.3 * np.random.default_rng(3).normal(size=25)
LINE = refined_fit(STRAIGHT, Data(TIMES, {"y": VALUES}), [0.5, 1.5])
DECAY = Model({"x": "-k*x"}, {"y": "x"}, name="decay")
FADING = Data(TIMES[::3], {"y": np.exp(-0.7 * TIMES[::3]) + 0.08 * np.random.default_rng(8).normal(size=9)})
LATER = np.array([0.0, 2.0, 6.0, 9.0])


def decay(**told):
    return refined_fit(DECAY, FADING, [1.0, 0.7], **told)


@pytest.mark.parametrize(("method", "precision"), [("delta", 1e-6), ("auto", 1e-6), ("profile", 2e-3)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_straight_line_has_the_bands_of_regression(method, precision, level):
    found = LINE.predict(LATER, level=level, method=method)["y"]
    regression, about = stats.linregress(TIMES, VALUES), ((TIMES - TIMES.mean()) ** 2).sum()
    noise, t = regression.stderr * math.sqrt(about), stats.t.ppf(0.5 + 0.5 * level, 23)
    sds = noise * np.sqrt(1 / 25 + (LATER - TIMES.mean()) ** 2 / about)
    middle = regression.intercept + regression.slope * LATER
    np.testing.assert_allclose(found.values, middle, rtol=1e-4)
    for ends, reach in (
        ((found.low, found.high), t * sds),
        ((found.measured_low, found.measured_high), t * np.hypot(sds, noise)),
    ):
        np.testing.assert_allclose(ends[0], middle - reach, atol=precision * t * noise + 1e-4 * noise)
        np.testing.assert_allclose(ends[1], middle + reach, atol=precision * t * noise + 1e-4 * noise)
    assert found.trusted.all() and found.profiled.all() == (method == "profile")


def test_a_band_is_the_profile_of_an_expression_that_says_the_same():
    fit = decay(bounds=(0, 10))
    found = fit.predict(LATER)["y"]
    assert found.profiled.tolist() == [False, False, True, True]  # far away a decay is not straight
    for i in (2, 3):
        low, high = fit.profile(f"x*exp(-{LATER[i]}*k)").interval()
        assert (found.low[i], found.high[i]) == pytest.approx((low, high), abs=5e-3 * (high - low))


@pytest.mark.parametrize("time", [4.0, 8.0])
def test_another_optimiser_finds_the_quantile_at_the_ends(time):
    """With the value c at the time held, the decay is c exp(k (time - t))."""
    fit = decay()
    band = fit.predict([time], method="profile")["y"]
    times, values = FADING.experiments[0].outputs["y"].times, FADING.experiments[0].outputs["y"].values

    def cost(k, end):
        residuals = end * np.exp(k * (time - times)) - values
        return 9 * math.log(residuals @ residuals)

    best = optimize.minimize(
        lambda z: 9 * math.log(((z[0] * np.exp(-z[1] * times) - values) ** 2).sum()), [1.0, 0.7], method="Nelder-Mead"
    ).fun
    wanted = 9 * math.log1p(stats.t.ppf(0.975, 7) ** 2 / 7)
    for end in (band.low[0], band.high[0]):
        found = optimize.minimize_scalar(cost, bounds=(0.1, 3), args=(end,), method="bounded").fun
        assert found - best == pytest.approx(wanted, abs=0.05)


def test_a_state_that_is_only_bounded_has_the_ends_of_its_bounds():
    """Of x' = -(a+b) x, z' = b x only a + b is known: z may be anything up to what has left x."""
    model = Model({"x": "-(a + b)*x", "z": "b*x"}, {"y": "x"})
    data = Data(TIMES, {"y": np.exp(-0.7 * TIMES) + 0.03 * np.random.default_rng(4).normal(size=25)}, initial={"z": 0})
    fit = refined_fit(model, data, [1.0, 0.3, 0.4], bounds=(0, 10))
    plain = fit.predict([0.0, 2.0], method="delta").states["z"]
    assert plain.open.tolist() == [False, True] and plain.high[0] == 0  # known at the start, and nothing later
    found = fit.predict([0.0, 2.0]).states["z"]
    assert found.profiled.tolist() == [False, True]
    most = fit.profile("x*(1 - exp(-2*(a + b)))").interval()[1]
    assert found.low[1] == pytest.approx(0, abs=0.01) and found.high[1] == pytest.approx(most, rel=0.02)


def test_gradients_are_those_of_finite_differences():
    fit = driven()
    times = np.array([3.0, 1.0, 5.0])
    for number in range(2):
        curves, z = Curves.of(fit.problem.misfit, number, times), fit.estimates
        found = curves.run(z, gradients=True)
        for i in range(len(z)):
            step = np.zeros(len(z))
            step[i] = 1e-5
            slope = (curves.run(z + step).values - curves.run(z - step).values) / 2e-5
            np.testing.assert_allclose(found.gradients[:, :, i], slope, atol=1e-8)
        simulation = fit.simulate(times, fit.data.experiments[number].name)
        np.testing.assert_allclose(found.values[:, :2].T, list(simulation.outputs.values()), rtol=1e-12)


def test_no_course_that_the_data_allow_leaves_a_band():
    fit = decay(bounds=(0, 10))
    times = np.linspace(0, 10, 30)
    found = fit.predict(times)
    band, crossing = found["y"], 9 * math.log1p(stats.t.ppf(0.975, 7) ** 2 / 7)
    rng, seen = np.random.default_rng(0), 0
    for z in fit.estimates * np.exp(0.4 * rng.normal(size=(2000, 2))):
        deviance = 2 * (fit.problem.misfit.score(z) - fit.cost)
        if 0.5 * crossing < deviance <= crossing:
            seen += 1
            course = z[0] * np.exp(-z[1] * times)
            # By the delta method a band may be off by a fifth of its reach before profiles take over.
            room = np.where(band.profiled, 0.03, 0.25) * (band.high - band.low)
            assert np.all((course >= band.low - room) & (course <= band.high + room))
    assert seen > 50


def test_times_between_have_the_bands_that_they_have_alone():
    fit = predators(points=25)
    times = np.linspace(0, 30, 200)
    whole = fit.predict(times)
    assert whole.trusted and whole.states["w"].profiled.any()
    chosen = [17, 61, 140]
    alone = fit.predict(times[chosen], method="profile")
    for band, exact in ((whole["y1"], alone["y1"]), (whole.states["w"], alone.states["w"])):
        room = 0.2 * (exact.high - exact.low)
        assert np.all(np.abs(band.low[chosen] - exact.low) <= room)
        assert np.all(np.abs(band.high[chosen] - exact.high) <= room)


def test_an_output_that_is_a_state_has_its_band():
    found = decay(bounds=(0, 10)).predict(LATER)
    for part in ("values", "stderr", "low", "high", "profiled", "trusted"):
        np.testing.assert_array_equal(getattr(found["y"], part), getattr(found.states["x"], part))
    assert np.isnan(found.states["x"].measured_low).all()  # states are not measured


def test_times_in_any_order_and_before_the_start():
    fit = decay()
    ordered, mixed = (fit.predict(times, method="delta")["y"] for times in ([-1.0, 1.0, 5.0], [5.0, -1.0, 1.0]))
    np.testing.assert_allclose(mixed.low[[1, 2, 0]], ordered.low, rtol=1e-9)
    assert ordered.values[0] == pytest.approx(fit.values["x"] * math.exp(fit.values["k"]))
    shuffled = fit.predict(LATER[[3, 0, 2, 1]])["y"]
    np.testing.assert_allclose(shuffled.high, fit.predict(LATER)["y"].high[[3, 0, 2, 1]], rtol=1e-6)


def test_effort_that_runs_out_is_told():
    found = decay(bounds=(0, 10)).predict(LATER, evaluations=0)
    assert found["y"].trusted.tolist() == [True, True, False, False] and not found.trusted
    assert "not to be trusted at some times" in str(found)


def test_plain_squares_have_bands_by_the_delta_method_only():
    fit = decay(weights="none")
    band = fit.predict(LATER)["y"]
    assert np.all(band.low < band.values) and not band.profiled.any()
    np.testing.assert_allclose(band.high, decay().predict(LATER, method="delta")["y"].high, rtol=1e-3)
    with pytest.raises(ModelError, match="needs the likelihood"):
        fit.predict(LATER, method="profile")


def test_what_goes_to_infinity_is_predicted_until_then():
    model = Model({"x": "x**2"}, {"y": "x"})
    times = np.linspace(0, 0.5, 12)
    exact = simulate(model, {}, {"x": 1.0}, times)["y"]
    fit = refined_fit(model, Data(times, {"y": exact + 0.01 * np.random.default_rng(1).normal(size=12)}), [1.0])
    found = fit.predict([0.4, 0.8, 2.0])
    assert found.times.tolist() == [0.4, 0.8] and not found.success
    assert "grows without bound" in found.message and "stopped" in str(found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"times": [1.0], "method": "fisher"}, "one of auto, delta, profile"),
        ({"times": [1.0], "level": 1.5}, "probability between 0 and 1"),
        ({"times": []}, "non-empty"),
        ({"times": [math.nan]}, "finite"),
        ({"times": [1.0], "experiment": "other"}, "no experiment 'other'"),
    ],
)
def test_predictions_are_refused_with_a_sentence(options, said):
    with pytest.raises(ModelError, match=said):
        LINE.predict(**options)


def test_inputs_must_be_known_at_all_times():
    fit = driven()
    with pytest.raises(ModelError, match="name one experiment"):
        fit.predict([1.0])
    with pytest.raises(DataError, match="sample longer"):
        fit.predict([1.0, 6.0], "first")
    assert fit.predict([1.0, 5.0], "first").trusted


def test_directions_of_which_nothing_is_known_cost_no_more_than_allowed():
    model = Model({"x": "-a*b*x", "z": "b*x"}, {"y": "x"})
    data = Data(TIMES, {"y": np.exp(-0.7 * TIMES) + 0.03 * np.random.default_rng(4).normal(size=25)}, initial={"z": 0})
    fit = refined_fit(model, data, [1.0, 1.0, 0.7])
    tangent, ends = bands(fit.likelihood, 0, np.linspace(0, 5, 50), evaluations=200)
    assert np.isinf(tangent.sds[1:, 2]).all() and np.isfinite(ends.low[:, 0]).all()
    assert not np.isfinite(ends.high[-1, 2] - ends.low[-1, 2])
