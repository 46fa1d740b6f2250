"""Predictions: the noise of new measurements, tables and pictures."""

import math

import numpy as np
import pytest
from scipy import stats

import odejet as oj
from odejet import Data, Model
from tests.fits import driven, predators, refined_fit

TIMES = np.linspace(0, 4, 25)
DECAY = Model({"x": "-k*x"}, {"y": "x"}, name="decay")
EXACT = 10 * np.exp(-0.5 * TIMES)


def reach(band, level=0.95):
    """What noise alone adds to the band."""
    return np.sqrt((band.measured_high - band.values) ** 2 - (band.high - band.values) ** 2)


def test_known_noise_is_normal():
    fit = refined_fit(DECAY, Data(TIMES, {"y": EXACT}), [10.0, 0.5], noise=0.2)
    np.testing.assert_allclose(reach(fit.predict([1.0, 9.0])["y"]), 1.959964 * 0.2, rtol=1e-6)


def test_relative_noise_follows_the_prediction():
    rng = np.random.default_rng(3)
    data = Data(TIMES, {"y": EXACT * (1 + 0.05 * rng.normal(size=25))})
    fit = refined_fit(DECAY, data, [10.0, 0.5], noise="5%")
    band = fit.predict([0.0, 4.0, 8.0])["y"]
    np.testing.assert_allclose(reach(band), 1.959964 * 0.05 * band.values, rtol=1e-6)


def test_estimated_noise_has_the_degrees_of_freedom_of_its_output():
    fit = refined_fit(DECAY, Data(TIMES, {"y": EXACT + 0.1 * np.random.default_rng(2).normal(size=25)}), [10.0, 0.5])
    np.testing.assert_allclose(reach(fit.predict([2.0])["y"]), stats.t.ppf(0.975, 23) * fit.noise["y"], rtol=1e-6)


def test_known_sds_are_those_of_the_nearest_measurements():
    fit = driven()
    band = fit.predict([0.5, 1.0, 4.5, 5.0], "second")["y2"]
    np.testing.assert_allclose(reach(band) / 1.959964, [0.02, 0.0225, 0.04, 0.04], rtol=1e-6)


def test_what_was_never_measured_has_no_noise():
    model = Model({"x": "-k*x"}, {"y": "x", "other": "2*x"})
    fit = refined_fit(model, Data(TIMES, {"y": EXACT}), [10.0, 0.5], noise=0.1)
    found = fit.predict([1.0])
    assert np.isnan(found["other"].measured_high[0]) and found["other"].high[0] == pytest.approx(2 * found["y"].high[0])


def test_tables_have_a_row_per_quantity_and_time():
    fit = predators(points=30)
    found = fit.predict([0.0, 25.0], method="delta")
    table = found.to_dataframe()
    assert table["quantity"].tolist() == ["y1", "y1", "r", "r", "w", "w"]
    assert table["kind"].tolist() == ["output"] * 2 + ["state"] * 4
    assert table["high"].tolist()[4:] == found.states["w"].high.tolist()
    assert len(found.to_dataframe(states=False)) == 2 and set(table["method"]) == {"delta"}
    assert list(fit.predict([0.0], states=False).states) == []


def test_the_times_of_the_data_are_the_default():
    fit = driven()
    assert (
        fit.predict(experiment="second", method="delta").times.tolist()
        == fit.simulate(experiment="second").times.tolist()
    )


def test_names_are_those_of_a_simulation():
    found = predators(points=30).predict([1.0], method="delta")
    assert list(found) == ["y1"] and len(found) == 1 and found.success
    with pytest.raises(KeyError, match=r"prediction\.states"):
        found["w"]
    assert "Prediction of experiment1: 1 times" in str(found) and "Band of y1" in str(found["y1"])


def test_pictures_show_bands_and_open_ends():
    fit = predators(points=30)
    figure = fit.predict(np.linspace(0, 30, 20), method="delta").plot()
    assert [panel.get_title(loc="left") for panel in figure.axes if panel.get_visible()] == ["y1", "r", "w"]
    assert len(figure.axes[0].collections) == 2 and len(figure.axes[2].collections) == 1
    model = Model({"x": "-(a + b)*x", "z": "b*x"}, {"y": "x"})
    loose = refined_fit(model, Data(TIMES, {"y": EXACT}, initial={"z": 0}), [10.0, 0.2, 0.3], noise=0.1)
    panels = loose.predict(TIMES, method="delta").plot().axes
    assert all(math.isfinite(end) for panel in panels for end in panel.get_ylim())


def test_measurements_of_other_laws_lie_within_their_quantiles():
    rng = np.random.default_rng(5)
    times = np.linspace(0, 4, 60)
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    clean = 50 * np.exp(-0.6 * times)
    for noise, drawn in (
        ("lognormal(s)", clean * np.exp(0.2 * rng.normal(size=60))),
        ("poisson", rng.poisson(clean)),
        ("normal(0.3 + 0.1*y)", clean + (0.3 + 0.1 * clean) * rng.normal(size=60)),
    ):
        band = oj.fit(model, oj.Data(times, {"y": drawn}), noise=noise, positive=True).predict()["y"]
        inside = (drawn >= band.measured_low) & (drawn <= band.measured_high)
        assert 0.85 <= inside.mean() <= 1.0
        assert np.all(band.measured_low <= band.low) and np.all(band.measured_high >= band.high)
        if noise == "lognormal(s)":
            below, above = band.values / band.measured_low, band.measured_high / band.values
            np.testing.assert_allclose(np.log(above), 1.96 * 0.2, rtol=0.25)
            assert np.all(above - 1 > 1 - 1 / below)
