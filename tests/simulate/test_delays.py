"""Delay equations against closed forms and the method of steps in extended precision."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import odejet as oj
from odejet.errors import ModelError
from odejet.jets import delayed
from odejet.jets.direct import Direct
from odejet.simulate.steady import RestingFlow
from odejet.simulate.trajectory import Outcome
from problems.delayed import CASES, compare

QUICK = ("linear with history", "history that ends elsewhere", "first-order plant with dead time")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case.name in QUICK else pytest.mark.slow, id=case.name) for case in CASES],
)
def test_extended_precision(case):
    values, slopes = compare(case)
    assert values < 1e-11
    assert slopes < 1e-9


def step_response(t, k, a, d, when):
    """x' = -a x + k u(t - d) from zero, with a step of u from 0 to 1 at a time; and its derivative by d."""
    late = np.maximum(t - when - d, 0.0)
    return k / a * (1 - np.exp(-a * late)), np.where(late > 0, -k * np.exp(-a * late), 0.0)


@pytest.mark.parametrize("times", [(0.0, 2.0, 2.0, 9.0), (0.0, 1.0, 2.0, 2.0, 5.0, 9.0)])
def test_dead_time_of_a_sampled_step(times):
    model = oj.Model({"x": "-a*x + k*u(t - d)"}, {"y": "x"}, {"u": "sampled, hold"}, initial={"x": 0})
    values = [float(time >= 2 and i > times.index(2.0)) for i, time in enumerate(times)]
    asked = np.linspace(0, 9, 19)
    found = oj.simulate(model, {"a": 0.7, "k": 2.0, "d": 1.3}, {}, asked, True, inputs={"u": (times, values)})
    curve, slope = step_response(asked, 2.0, 0.7, 1.3, 2.0)
    assert np.abs(found["y"] - curve).max() < 1e-14
    assert np.abs(found.sensitivity("y", "d") - slope).max() < 1e-13


def test_dead_time_of_a_step_that_is_a_function_of_time():
    model = oj.Model({"x": "-a*x + k*u(t - d)"}, {"y": "x"}, {"u": "piecewise(1, t >= 2, 0)"}, initial={"x": 0})
    asked = np.linspace(0, 9, 19)
    found = oj.simulate(model, {"a": 0.7, "k": 2.0, "d": 1.3}, {}, asked, True)
    curve, slope = step_response(asked, 2.0, 0.7, 1.3, 2.0)
    assert np.abs(found["y"] - curve).max() < 1e-14
    assert np.abs(found.sensitivity("y", "d") - slope).max() < 1e-13


def test_sampled_inputs_after_a_solution_without_any(monkeypatch):
    """By the closed form, whatever the kernel was first called for: its types are those of the first call."""
    monkeypatch.setattr(delayed, "_INTEGRATE", Direct(delayed.integrate))
    oj.simulate(oj.Model({"x": "-x(t - 1)"}, {"y": "x"}, initial={"x": 1}), times=[0, 1.5])
    inputs = {
        "u": ([0, 1, 1, 2, 2, 9], [0, 0, 3, 3, 0, 0]),
        "v": ([0, 1.5, 1.5, 3, 3, 9], [0, 0, 1, 1, 0, 0]),
    }
    model = oj.Model(
        {"x": "u - v(t - d) - x(t - 5)"}, {"y": "x"}, {"u": "sampled, hold", "v": "sampled, hold"}, initial={"x": 0}
    )
    asked = np.array([1.0, 1.7, 2.0, 2.5, 3.0, 4.0])
    found = oj.simulate(model, {"d": 0.25}, {}, asked, start=0, sensitivities=True, inputs=inputs)
    late = np.clip(asked - 1.75, 0, 1.5)
    np.testing.assert_allclose(found["y"], 3 * np.clip(asked - 1, 0, 1) - late, atol=1e-14)
    np.testing.assert_allclose(found.sensitivity("y", "d"), (late > 0) & (late < 1.5), atol=1e-14)


@pytest.mark.parametrize("seen", [False, True])
def test_doses_are_looked_back_at(seen):
    doses = [oj.Event(at=[0, 2], set={"x": "x + D"}, seen=seen)]
    model = oj.Model({"x": "-k*x", "z": "x(t - tau)"}, {"y": "z", "now": "x"}, events=doses, initial={"x": 1, "z": 0})
    k, tau, dose = 0.4, 0.7, 3.0
    asked = np.array([0.0, 0.5, 1.5, 2.0, 3.3])
    found = oj.simulate(model, {"k": k, "tau": tau, "D": dose}, {}, asked, sensitivities=True)

    def integral(tau):
        """z at the times: x stands at one before the start, decays after a dose at zero and after another at two."""
        before = np.minimum(asked, tau)
        first, late = np.maximum(asked - tau, 0.0), np.maximum(asked - tau - 2, 0.0)
        return before + (1 + dose) / k * (1 - np.exp(-k * first)) + dose / k * (1 - np.exp(-k * late))

    assert np.abs(found["y"] - integral(tau)).max() < 1e-13
    slope = (integral(tau + 1e-6) - integral(tau - 1e-6)) / 2e-6
    assert np.abs(found.sensitivity("y", "tau") - slope).max() < 1e-8
    here = asked >= 2 if seen else asked > 2
    first = 1 + dose if seen else 1.0
    now = np.where(asked == 0, first, (1 + dose) * np.exp(-k * asked) + here * dose * np.exp(-k * (asked - 2)))
    assert np.abs(found["now"] - now).max() < 1e-13


def test_outcomes_and_refusals():
    model = oj.Model({"x": "-x(t - tau)"}, {"y": "x"})

    def outcome(tau, times):
        return oj.simulate(model, {"tau": tau}, {"x": 1.0}, times, start=0.0).outcome

    assert outcome(-1.0, [1.0]) is Outcome.AHEAD
    assert outcome(0.0, [1.0]) is Outcome.VANISHING
    assert outcome(1.0, [-1.0]) is Outcome.BACKWARD
    assert outcome(1.0, [0.0, 1.0]) is Outcome.COMPLETED
    with pytest.raises(ModelError, match="cannot start at rest"):
        oj.simulate(model.replace(initial="steady"), {"tau": 1.0}, {}, [1.0])
    waiting = model.replace(events=[oj.Event(when="x < 0.5", set={"x": 1})])
    with pytest.raises(ModelError, match="not solved together with delays"):
        oj.simulate(waiting, {"tau": 1.0}, {"x": 1.0}, [1.0])
    switching = oj.Model({"x": "-max(x(t - tau), 0)"})
    with pytest.raises(ModelError, match=r"switches .* not solved together with delays"):
        oj.simulate(switching, {"tau": 1.0}, {"x": 1.0}, [1.0])


def test_limits_of_steps_and_time_hold():
    model = oj.Model({"x": "-x(t - tau)"}, {"y": "x"})
    short = oj.simulate(model, {"tau": 1e-3}, {"x": 1.0}, [0.0, 1e3], max_steps=100)
    assert short.outcome is Outcome.EXHAUSTED
    late = oj.simulate(model, {"tau": 1e-5}, {"x": 1.0}, [0.0, 1e4], time_limit=0.2)
    assert late.outcome is Outcome.OUT_OF_TIME


def test_a_stiff_equation_is_an_outcome():
    model = oj.Model({"x": "-1e7*(x - x(t - 1)/2)"}, {"y": "x"})
    found = oj.simulate(model, {}, {"x": 1.0}, [0.0, 5.0])
    assert found.outcome is Outcome.STIFF_FAILURE


def test_flows_travel_to_other_processes():
    flow = pickle.loads(pickle.dumps(RestingFlow(oj.Model({"x": "-k*x(t - tau)"}, {"y": "x"}))))
    found = flow.run([1.0, 1.0], [1.0], [0.0, 1.5])
    assert found.outputs[-1, 0, 0] == pytest.approx(1 - 1.5 + 0.125, abs=1e-15)


@pytest.mark.parametrize("last", [0.2, 0.6, 1.0, 2.0, 3.0])
def test_a_last_time_that_is_a_sum_of_delays_up_to_rounding(last):
    model = oj.Model({"x": "1"}, {"y": "delay(x, 0.2)"}, initial={"x": 0})
    times = np.linspace(0, last, 11)
    found = oj.simulate(model, times=times)
    assert found.success, found.message
    assert np.abs(found["y"] - np.maximum(times - 0.2, 0)).max() < 1e-14


@pytest.mark.parametrize("start", [0.0, 3.0])
def test_the_start_alone_is_a_simulation(start):
    model = oj.Model({"x": "-x(t - 1)"}, {"y": "2*x"}, initial={"x": 1})
    found = oj.simulate(model, times=[start])
    assert found.states["x"].tolist() == [1] and found["y"].tolist() == [2]
