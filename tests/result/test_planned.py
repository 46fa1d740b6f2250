"""Predictions of experiments that were not measured: a new dose, a new input, with bands."""

import numpy as np
import pytest

from odejet import Data, Model, ModelError, simulate
from tests.fits import refined_fit

ABSORBED = Model({"d": "-ka*d", "c": "ka*d - ke*c + u"}, {"y": "c/v"}, initial={"d": 0, "c": 0}, inputs={"u": "0"})
TRUTH = {"ka": 1.5, "ke": 0.3, "v": 10.0}
TIMES = np.linspace(0.2, 8, 12)


def dose(amount, time=0.0):
    return {"time": [time], "state": ["d"], "amount": [amount]}


def dosed(names=("a",), **options):
    rng = np.random.default_rng(3)
    model = ABSORBED.replace(initial={"d": 100, "c": 0})
    exact = simulate(model, TRUTH, {}, TIMES, start=0)["y"]
    sets = [
        Data(TIMES, {"y": exact + 0.1 * rng.normal(size=12)}, start=0, doses=dose(100), name=name) for name in names
    ]
    return refined_fit(ABSORBED, Data.join(sets), list(TRUTH.values()), noise=0.1, **options)


def test_twice_the_dose_is_twice_the_curve_and_its_band():
    fit = dosed()
    once, twice = fit.predict(TIMES), fit.predict(TIMES, experiment=Data(None, {}, doses=dose(200), start=0))
    assert twice.experiment == "experiment1" and twice.success
    for band in ("values", "low", "high"):
        assert getattr(twice["y"], band) == pytest.approx(2 * getattr(once["y"], band), rel=1e-6)
    # A new measurement has the noise of those that were made.
    noise = twice["y"].measured_high ** 2 - twice["y"].high ** 2
    assert np.all(twice["y"].measured_high > twice["y"].high) and np.all(np.isfinite(noise))


def test_a_new_input_and_known_values():
    fit = dosed(("a", "b"))
    new = Data(None, {}, inputs={"u": "3*exp(-t)"}, initial={"d": 0, "c": "v"}, values={"ke": 0.5}, start=0, name="new")
    found = fit.predict([0, 1, 4], experiment=new)
    values = dict(fit.values) | {"ke": 0.5}
    model = ABSORBED.replace(inputs={"u": "3*exp(-t)"}, initial={"d": 0, "c": "v"})
    exact = simulate(model, values, {}, [0, 1, 4], start=0)["y"]
    assert found["y"].values == pytest.approx(exact, rel=1e-6)
    assert found["y"].high[0] == pytest.approx(found["y"].low[0])  # c/v = 1 at first, whatever v is


def test_what_nothing_tells_of_a_new_experiment_is_refused():
    model = Model({"x": "-k*x"}, {"y": "x"})
    sets = [Data(TIMES, {"y": a * np.exp(-0.4 * TIMES)}, name=name, start=0) for name, a in (("a", 2.0), ("b", 3.0))]
    fit = refined_fit(model, Data.join(sets), [2.0, 3.0, 0.4], noise=0.1)
    with pytest.raises(ModelError, match=r"new: every experiment has its own 'x'.*give initial=\{'x': ...\}"):
        fit.predict([1, 2], experiment=Data(None, {}, start=0, name="new"))
    found = fit.predict([0.0, 2.0], experiment=Data(None, {}, start=0, initial={"x": 5}, name="new"))
    assert found["y"].values[0] == pytest.approx(5) and found["y"].high[1] > found["y"].low[1]
    with pytest.raises(ModelError, match="has no times"):
        fit.predict(experiment=Data(None, {}, start=0, initial={"x": 5}))


def test_the_only_experiment_tells_what_a_new_one_leaves_open():
    model = Model({"x": "-k*x"}, {"y": "x"})
    fit = refined_fit(model, Data(TIMES, {"y": 2 * np.exp(-0.4 * TIMES)}, start=0), [2.0, 0.4], noise=0.1)
    found = fit.predict([0.0], experiment=Data(None, {}, start=0))
    assert found["y"].values == pytest.approx([2.0]) and found["y"].high[0] > 2.05
