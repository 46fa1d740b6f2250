"""Solutions that start at rest and stay there for a while, against closed forms."""

import numpy as np
import pytest

import odejet as oj
from odejet.model import Event, Model
from odejet.simulate.steady import RestingFlow

TIMES = np.array([0.0, 1.0, 3.5, 7.0])


@pytest.mark.parametrize("lag", ["3", "lag"])
def test_a_late_stimulus_is_waited_for(lag):
    """x' = b + k [t >= lag] - d x rests at b/d until then; sensitivities know that the lag moves."""
    model = oj.Model({"x": f"b + piecewise(0, t < {lag}, k) - d*x"}, {"y": "x + t"}, initial="steady")
    values = {"b": 0.6, "k": 2.0, "d": 0.4} | ({"lag": 3.0} if lag == "lag" else {})
    found = oj.simulate(model, values, {}, TIMES, sensitivities=True)
    after, past = TIMES > 3, np.maximum(TIMES - 3, 0)
    gone = np.exp(-0.4 * past)
    x = 1.5 + after * 5.0 * (1 - gone)
    np.testing.assert_allclose(found["y"], x + TIMES, rtol=1e-14)
    np.testing.assert_allclose(found.sensitivity("y", "b"), 2.5 + 0 * x, rtol=1e-13)
    np.testing.assert_allclose(found.sensitivity("y", "k"), after * 2.5 * (1 - gone), rtol=1e-12, atol=1e-15)
    if lag == "lag":
        np.testing.assert_allclose(found.sensitivity("y", "lag"), -2.0 * after * gone, rtol=1e-12, atol=1e-15)


def test_a_dose_that_was_zero_before_is_waited_for_through_any_switch():
    """The dose is known to come at t = 5; before the start there was none at all."""
    rate = "b + dose*piecewise(0, t < when, 1) - d*x"
    model = oj.Model({"x": rate}, {"y": "x"}, initial="steady", before={"dose": 0}, fixed={"dose": 2, "when": 5})
    flow = RestingFlow(model)
    still = flow.still(0.0)
    assert still is not None and still.until({"b": 1.0, "d": 1.0, "dose": 2.0, "when": 5.0}) == 5.0
    found = oj.simulate(model, {"b": 0.6, "d": 0.4}, {}, TIMES, sensitivities=True)
    np.testing.assert_allclose(found["y"], 1.5 + 5 * (1 - np.exp(-0.4 * np.maximum(TIMES - 5, 0))), rtol=1e-14)


def test_a_stiff_model_at_rest_takes_no_steps():
    """Sensitivities at rest are rounding, as far as they move: nothing of that is to be followed."""
    rates = {"L": "a - d*L - f*L*R + f*K*C + piecewise(0, t < 900, 1)", "R": "s - g*R - f*L*R + f*K*C"}
    rates["C"] = "f*L*R - f*K*C - g*C"
    start = {"L": 1, "R": 1, "C": 0}
    model = Model(rates, {"y": "C"}, initial="steady", before=start)
    values = {"a": 0.9, "d": 0.1, "f": 4e5, "K": 0.3, "s": 0.4, "g": 0.02}
    p = np.array([values[name] for name in model.parameters])
    run = RestingFlow(model).run(p, np.zeros(3), [0.0, 400.0, 899.0], start=0.0, stiff_steps=0, max_steps=20)
    assert run.outcome.name == "COMPLETED"
    np.testing.assert_array_equal(run.outputs[1:], run.outputs[[0, 0]])


def test_a_slow_process_is_not_taken_for_rest():
    """Beside an exchange that is 1e13 times faster a loss of both begins at once, and has taken half at t = 1."""
    rates = {"A": "f*(B - A) - loss*A", "B": "f*(A - B) - loss*B"}
    model = oj.Model(rates, {"y": "A + B"}, initial="steady", before={"A": 1, "B": 1, "loss": 0})
    found = oj.simulate(model, {"f": 1e13, "loss": np.log(2.0)}, {}, [0.0, 1.0])
    np.testing.assert_allclose(found["y"], [2.0, 1.0], rtol=1e-3)


@pytest.mark.parametrize("event", [Event(at=0, set={"x": "x + 1"}), Event(when="x > 1", set={"x": "x + 1"})])
def test_what_happens_at_once_is_not_waited_for(event):
    model = oj.Model({"x": "b - d*x"}, {"y": "x"}, initial="steady", events=[event])
    found = oj.simulate(model, {"b": 0.6, "d": 0.4}, {}, TIMES)
    if event.when is None:
        np.testing.assert_allclose(found["y"], 1.5 + np.where(TIMES > 0, np.exp(-0.4 * TIMES), 0.0), rtol=1e-13)
    assert RestingFlow(model).still(0.0) is None or event.when is None


def test_an_event_ends_the_rest():
    model = oj.Model({"x": "b - d*x"}, {"y": "x"}, initial="steady", events=[Event(at="tau", set={"x": "x + 1"})])
    found = oj.simulate(model, {"b": 0.6, "d": 0.4, "tau": 2.0}, {}, TIMES, sensitivities=True)
    past = np.maximum(TIMES - 2, 0)
    after = (TIMES > 2) * np.exp(-0.4 * past)
    np.testing.assert_allclose(found["y"], 1.5 + after, rtol=1e-14)
    np.testing.assert_allclose(found.sensitivity("y", "tau"), 0.4 * after, rtol=1e-12, atol=1e-15)
