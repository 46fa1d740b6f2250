"""Exponentials beyond all numbers: where it matters what they count as there is none, and elsewhere no difference."""

import numpy as np
import pytest

import odejet as oj

TIMES = np.linspace(0, 4, 9)


def test_an_output_that_would_be_wrong_is_nan():
    model = oj.Model({"x": "-x"}, {"y": "log(exp(400*t))/400", "z": "x"}, initial={"x": 1})
    sim = oj.simulate(model, {}, {}, TIMES)
    assert sim.success and "y is not finite at t = 1.5" in sim.message
    np.testing.assert_allclose(sim["y"][:3], TIMES[:3], atol=1e-15)
    assert np.isnan(sim["y"][3:]).all()
    np.testing.assert_allclose(sim["z"], np.exp(-TIMES))


def test_functions_of_parameters_count_too():
    model = oj.Model({"x": "-x"}, {"y": "log(exp(k))", "z": "1/(1 + exp(k))"}, initial={"x": 1})
    sim = oj.simulate(model, {"k": 800.0}, {}, TIMES)
    assert np.isnan(sim["y"]).all()
    assert np.all(np.abs(sim["z"]) < 1e-200)
    np.testing.assert_allclose(oj.simulate(model, {"k": 500.0}, {}, TIMES)["y"], 500)


@pytest.mark.parametrize("rate", ["0*x", "1e6*(cos(t) - x)"], ids=["", "stiff"])
def test_a_solution_ends_where_its_rates_would_be_wrong(rate):
    model = oj.Model({"x": f"{rate} + exp(400*t)*exp(-400*t)"}, {"y": "x"}, initial={"x": 1})
    sim = oj.simulate(model, {}, {}, TIMES)
    assert not sim.success and "number too large" in sim.message
    assert sim.trajectory.time == pytest.approx(1.5, abs=0.1)
    expected = 1 + sim.times if rate == "0*x" else np.cos(sim.times)
    np.testing.assert_allclose(sim["y"], expected, atol=1e-5)


def test_what_saturates_goes_on():
    """The integral of 1/(1 + exp(s (t - 2))), whose exponential leaves the numbers on both sides."""
    model = oj.Model(
        {"x": "1/(1 + exp(s*(t - 2)))", "z": "1/(1 + exp(-s*(t - 2)))"}, {"y": "x"}, initial={"x": 0, "z": 0}
    )
    sim = oj.simulate(model, {"s": 1000.0}, {}, TIMES)
    assert sim.success
    risen = np.logaddexp(0, 1000 * (TIMES - 2)) / 1000 - np.logaddexp(0, -2000) / 1000
    np.testing.assert_allclose(sim.states["z"], risen, atol=1e-12)
    np.testing.assert_allclose(sim["y"], TIMES - risen, atol=1e-12)


def test_nothing_times_the_logarithm_of_nothing_is_nothing():
    model = oj.Model({"x": "-x", "w": "0"}, {"y": "w*log(w)"}, initial={"x": 1, "w": 0})
    assert np.all(oj.simulate(model, {}, {}, TIMES)["y"] == 0)
    assert not oj.simulate(oj.Model({"x": "log(t)"}, {"y": "x"}, initial={"x": 0}), {}, {}, TIMES).success
