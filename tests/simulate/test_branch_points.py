"""Solutions through places without a Taylor series, against closed forms, quadrature and differences."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import odejet as oj
from odejet.simulate.flow import Outcome

TIMES = np.linspace(0, 10, 41)


def slope(model, values, name, output="y", step=1e-5):
    """The derivative of an output by central differences."""
    above, below = (oj.simulate(model, {**values, name: values[name] + d}, {}, TIMES)[output] for d in (step, -step))
    return (above - below) / (2 * step)


@pytest.mark.parametrize("n", [0.3, 0.5, 1.1, 1.5, 2.5, 7.3])
def test_a_power_of_what_begins_at_zero_feeds_what_begins_at_zero(n):
    """x = 1 - exp(-t), and y' + y = h(x) has the solution y = integral of h(x(s)) exp(s - t)."""
    model = oj.Model({"x": "1 - x", "z": "x**n/(0.5**n + x**n) - z"}, {"y": "z"}, initial={"x": 0, "z": 0})
    sim = oj.simulate(model, {"n": n}, {}, TIMES, sensitivities=True)
    assert sim.success

    def fed(s, t):
        power = (1 - np.exp(-s)) ** n
        return power / (0.5**n + power) * np.exp(s - t)

    expected = [quad(fed, 0, t, args=(t,), epsabs=1e-13, epsrel=1e-13, limit=200)[0] for t in TIMES]
    np.testing.assert_allclose(sim["y"], expected, atol=1e-11)
    np.testing.assert_allclose(sim.sensitivity("y", "n"), slope(model, {"n": n}, "n"), atol=1e-8)


def test_a_saturating_power_of_a_quotient_from_zero():
    model = oj.Model({"x": "1 - x", "z": "1/(1 + (K/x)**4) - z"}, {"y": "z"}, initial={"x": 0, "z": 0})
    same = oj.Model({"x": "1 - x", "z": "x**4/(x**4 + K**4) - z"}, {"y": "z"}, initial={"x": 0, "z": 0})
    for one in (model, same):
        assert oj.simulate(one, {"K": 0.5}, {}, TIMES).success
    sims = [oj.simulate(one, {"K": 0.5}, {}, TIMES, sensitivities=True) for one in (model, same)]
    np.testing.assert_allclose(sims[0]["y"], sims[1]["y"], atol=1e-12)
    np.testing.assert_allclose(sims[0].sensitivity("y", "K"), sims[1].sensitivity("y", "K"), atol=1e-11)


@pytest.mark.parametrize("start", [0.0, 7.0, -3.0])
@pytest.mark.parametrize("outflow", ["sqrt(max(h, 0))", "sqrt(h)", "h**0.5"])
def test_a_tank_that_fills_from_empty(start, outflow):
    """With w = sqrt(h) the solution of h' = a - b w is t = -2 (w + a/b log(1 - b w/a))/b."""
    model = oj.Model({"h": f"a - b*{outflow}"}, {"y": "h"}, initial={"h": 0})
    sim = oj.simulate(model, {"a": 1.0, "b": 0.5}, {}, start + TIMES, sensitivities=True)
    assert sim.success
    w = np.sqrt(sim["y"])
    np.testing.assert_allclose(-2 * (w + 2 * np.log(1 - 0.5 * w)) / 0.5, TIMES, atol=1e-9)
    if start == 0:
        np.testing.assert_allclose(sim.sensitivity("y", "a"), slope(model, {"a": 1.0, "b": 0.5}, "a"), atol=1e-7)


def test_a_tank_that_runs_dry_stays_empty():
    model = oj.Model({"h": "-a*sqrt(max(h, 0))"}, {"y": "h"}, initial={"h": 1})
    sim = oj.simulate(model, {"a": 0.5}, {}, TIMES, sensitivities=True)
    assert sim.success
    left = np.maximum(1 - TIMES / 4, 0)
    np.testing.assert_allclose(sim["y"], left**2, atol=1e-14)
    np.testing.assert_allclose(sim.sensitivity("y", "a"), -TIMES * left, atol=1e-12)


def test_a_tank_is_filled_again_after_it_ran_dry():
    model = oj.Model({"h": "piecewise(1, 3 < t < 5, 0) - sqrt(max(h, 0))"}, {"y": "h"}, initial={"h": 1})
    sim = oj.simulate(model, {}, {}, TIMES)
    assert sim.success
    assert np.all(sim["y"][(TIMES >= 2) & (TIMES <= 3)] == 0)
    w = np.sqrt(sim["y"][(TIMES > 3) & (TIMES <= 5)])
    np.testing.assert_allclose(-2 * (w + np.log(1 - w)), TIMES[(TIMES > 3) & (TIMES <= 5)] - 3, atol=1e-9)
    assert np.all(np.abs(sim["y"][TIMES > 7]) < 1e-20)


def test_a_tank_that_is_pumped_below_its_outlet():
    model = oj.Model({"h": "-0.1 - a*sqrt(max(h, 0))"}, {"y": "h"}, initial={"h": 1})
    sim = oj.simulate(model, {"a": 0.5}, {}, TIMES, sensitivities=True)
    assert sim.success
    reference = solve_ivp(
        lambda t, h: -0.1 - 0.5 * np.sqrt(np.maximum(h, 0)), (0, 10), [1.0], "Radau", TIMES, rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(sim["y"], reference.y[0], atol=1e-9)
    np.testing.assert_allclose(sim.sensitivity("y", "a"), slope(model, {"a": 0.5}, "a"), atol=1e-6)


@pytest.mark.parametrize("h", [0.1, 0.5, 1.0, 2.0])
def test_a_power_of_the_time_from_zero(h):
    model = oj.Model({"x": "t**h"}, {"y": "x"}, initial={"x": 0})
    sim = oj.simulate(model, {"h": h}, {}, TIMES, sensitivities=True)
    assert sim.success
    np.testing.assert_allclose(sim["y"], TIMES ** (h + 1) / (h + 1), rtol=1e-11)
    logs = np.log(np.where(TIMES > 0, TIMES, 1))
    expected = TIMES ** (h + 1) / (h + 1) * (logs - 1 / (h + 1))
    np.testing.assert_allclose(sim.sensitivity("y", "h"), expected, rtol=1e-9, atol=1e-12)


def test_a_rate_that_is_nothing_by_nothing_where_a_solution_begins():
    model = oj.Model({"x": "1", "z": "x/(1 - exp(-x))"}, {"y": "z"}, initial={"x": 0, "z": 0})
    sim = oj.simulate(model, {}, {}, TIMES)
    assert sim.success
    expected = [quad(lambda s: s / -np.expm1(-s) if s > 0 else 1.0, 0, t, epsabs=1e-13)[0] for t in TIMES]
    np.testing.assert_allclose(sim["y"], expected, rtol=1e-11)


@pytest.mark.parametrize("rate", ["1/t", "1/sqrt(t)", "sin(t)/t**2", "-1/x", "log(t)"])
def test_poles_stay_where_a_solution_ends(rate):
    sim = oj.simulate(oj.Model({"x": rate}, {"y": "x"}, initial={"x": 0}), {}, {}, TIMES)
    assert sim.outcome is Outcome.SINGULAR
    assert len(sim.times) == 0


def test_outputs_that_are_not_finite_are_nan_there_and_all_else_goes_on():
    model = oj.Model({"a": "k - a"}, {"r": "a/(a + a)", "b": "a", "w": "sqrt(a)"}, initial={"a": 0})
    sim = oj.simulate(model, {"k": 1.0}, {}, TIMES, sensitivities=True)
    assert sim.success
    assert sim.message == "every requested time was reached; r is not finite at t = 0, and NaN there"
    assert "r is not finite" in repr(sim)
    np.testing.assert_array_equal(np.isnan(sim["r"]), TIMES == 0)
    np.testing.assert_allclose(sim["r"][1:], 0.5)
    np.testing.assert_allclose(sim["b"], 1 - np.exp(-TIMES), atol=1e-14)
    # Nothing moves a at the start, so that nothing moves its root there either.
    np.testing.assert_allclose(sim.sensitivity("w", "k"), 0.5 * np.sqrt(1 - np.exp(-TIMES)), atol=1e-14)
    values = {"k": 1.0}
    assert np.isfinite(oj.Problem(model, oj.Data(TIMES, {"b": TIMES})).log_likelihood(values))
    problem = oj.Problem(model, oj.Data(TIMES, {"r": TIMES}))
    assert problem.log_likelihood(values) == -np.inf
    assert "not finite at t = 0" in problem.why(values)
