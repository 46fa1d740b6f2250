"""Derivatives by parameters that only outputs know, against closed forms."""

import numpy as np
import pytest

from odejet.jets.inputs import sampled
from odejet.model import Event, Model
from odejet.simulate.flow import Flow
from odejet.simulate.steady import RestingFlow

TIMES = np.array([0.0, 0.3, 1.7])


def test_scales_and_offsets_are_not_carried_along():
    """x = e^(-k t) and y = s x + o t, z = log(s x)/q + u(t): four of five parameters move nothing."""
    outputs = {"y": "s*x + o*t", "z": "log(s*x)/q + u"}
    model = Model({"x": "-k*x"}, outputs, inputs={"u": "sin(t)"}, initial={"x": 1}, parameters=["s", "k", "o", "q"])
    flow = Flow(model)
    assert flow.observation.unfelt == ("s", "o", "q") and flow.frame(True, False).used == 2
    s, k, o, q = 1.3, 0.7, -0.4, 2.5
    found = flow.run([s, k, o, q], [0.0], TIMES)
    x = np.exp(-k * TIMES)
    y = np.column_stack([s * x + o * TIMES, x, -s * TIMES * x, TIMES, 0 * x])
    log = np.log(s * x)
    z = np.column_stack([log / q + np.sin(TIMES), 1 / (s * q) + 0 * x, -TIMES / q, 0 * x, -log / q**2])
    np.testing.assert_allclose(found.outputs, np.stack([y, z], axis=1), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.states[:, 0], np.column_stack([x, 0 * x, -TIMES * x, 0 * x, 0 * x]), rtol=1e-13)


def test_samples_in_outputs_are_those_of_the_time():
    samples = sampled(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 3.0]), "u")
    model = Model({"x": "-k*x"}, {"y": "a*u*x"}, inputs={"u": "sampled"}, initial={"x": 1})
    flow = Flow(model, {"u": samples})
    found = flow.run([{"k": 0.5, "a": 2.0}[name] for name in model.parameters], [0.0], TIMES)
    plain = found.outputs[:, 0, 0] / 2.0
    np.testing.assert_allclose(found.outputs[:, 0, 1 + model.parameters.index("a")], plain, rtol=1e-14)


def test_what_events_set_and_what_switches_is_felt():
    event = Event(at=1, set={"s": "2*s"})
    held = Flow(Model({"x": "-k*x"}, {"y": "s*x"}, initial={"x": 1}, events=[event]))
    assert held.observation.unfelt == ()
    found = held.run([{"k": 0.5, "s": 3.0}[name] for name in held.model.parameters], [0.0], TIMES)
    slopes = np.exp(-0.5 * TIMES) * [1, 1, 2]
    np.testing.assert_allclose(found.outputs[:, 0, 1 + held.model.parameters.index("s")], slopes, rtol=1e-13)
    assert Flow(Model({"x": "-k*x"}, {"y": "max(s, x)"}, initial={"x": 1})).observation.unfelt == ()


@pytest.mark.parametrize("when", [0.0, 0.5])
def test_a_rest_has_derivatives_by_what_only_outputs_know(when):
    """x = k/d at rest; y = s x."""
    model = Model({"x": "k - d*x"}, {"y": "s*x"}, initial="steady")
    values = {"k": 2.0, "d": 0.5, "s": 3.0}
    found = RestingFlow(model).run([values[name] for name in model.parameters], [0.0], [when, np.inf], start=0.0)
    for name, slope in (("k", 6.0), ("d", -24.0), ("s", 4.0)):
        lane = 1 + model.parameters.index(name)
        np.testing.assert_allclose(found.outputs[:, 0, lane], slope, rtol=1e-13)
