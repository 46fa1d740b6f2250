"""Ways back: derivatives from one solution backward, beside those by formula and by forward sensitivities."""

import numpy as np
import pytest

import odejet as oj
from odejet.jets.inputs import Sampled
from odejet.simulate import backward
from odejet.simulate.steady import RestingFlow
from problems.chains import drawn_chain


def compared(flow, parameters, states, times, start=0.0):
    """Gradients of a random sum of outputs: backward and forward, and the trajectories of both."""
    parameters, states, times = (np.asarray(one, dtype=float) for one in (parameters, states, times))
    forward = flow.run(parameters, states, times, start=start)
    assert forward.message == "every requested time was reached"
    seeds = np.random.default_rng(1).standard_normal(forward.outputs.shape[:2])
    kept = backward.keep(flow, parameters, states, times, start)
    assert kept is not None and kept.found.outputs[:, :, 0] == pytest.approx(forward.outputs[:, :, 0], rel=1e-10)
    return kept.gradient(seeds), np.einsum("to,tou->u", seeds, forward.outputs[:, :, 1:])


def test_decay_by_its_formula():
    flow = RestingFlow(oj.Model({"x": "-k*x"}, {"y": "s*x**2"}))
    k, s, x0, t = 0.7, 1.5, 2.0, np.array([0.0, 0.4, 3.0, 11.0])
    kept = backward.keep(flow, np.array([k, s]), np.array([x0]), t, 0.0)
    y, seeds = s * x0**2 * np.exp(-2 * k * t), np.array([0.3, -1.0, 2.0, 5.0])
    exact = {"x": seeds @ (2 * y / x0), "k": seeds @ (-2 * t * y), "s": seeds @ (y / s)}
    assert kept.found.outputs[:, 0, 0] == pytest.approx(y, rel=1e-12)
    expected = [exact[name] for name in flow.unknowns()]
    assert kept.gradient(seeds[:, None]) == pytest.approx(expected, rel=1e-11)


FUNCTIONS = oj.Model(
    {"x": "a*sin(b*t) - x/(c + x) + exp(-d*x)", "y": "x**h - sqrt(1 + y**2)*tanh(b*y)", "z": "log(2 + x*y) - m*z"},
    {"u": "x*y + a**2", "v": "z/(1 + x**2)", "w": "y - m"},
    initial={"y": "a/c", "z": 0.2},
    parameters=["a", "b", "c", "d", "h", "m"],
)


def test_every_operation():
    flow = RestingFlow(FUNCTIONS)
    values = {"a": 1.3, "b": 0.8, "c": 0.5, "d": 0.9, "h": 1.7, "m": 0.4}
    back, forward = compared(flow, [values[k] for k in FUNCTIONS.parameters], [0.6, 0, 0], np.linspace(0.5, 6, 12))
    assert back == pytest.approx(forward, rel=1e-9)


def test_states_at_rest_and_what_they_feed():
    model = oj.Model({"x": "-k*x*e", "e": "0"}, {"y": "x + e"}, initial={"e": "2*q", "x": "k"})
    back, forward = compared(RestingFlow(model), [0.3, 0.7], [0, 0], [0.0, 1.0, 2.0, 2.0])
    assert back == pytest.approx(forward, rel=1e-10)


def test_stiff_reactions_over_a_long_time():
    robertson = oj.Model(
        {"a": "-k1*a + k3*b*c", "b": "k1*a - k2*b**2 - k3*b*c", "c": "k2*b**2"},
        {"y1": "a", "y2": "1e4*b", "y3": "c"},
        initial={"a": 1, "b": 0, "c": 0},
    )
    values = {"k1": 0.04, "k2": 3e7, "k3": 1e4}
    parameters = [values[name] for name in robertson.parameters]
    back, forward = compared(RestingFlow(robertson), parameters, [0, 0, 0], np.geomspace(0.4, 4e6, 15))
    assert back * parameters == pytest.approx(forward * parameters, rel=1e-7)


def test_inputs_that_are_held():
    model = oj.Model({"i": "(V - R*i)/L"}, {"y": "i + 0.1*V"}, inputs={"V": "sampled, hold"}, initial={"i": 0})
    data = oj.Data(np.arange(12.0), {"y": np.ones(12)}, inputs={"V": np.arange(12.0) % 5})
    course = oj.Problem(model, data).misfit.measured[0]
    assert isinstance(next(iter(course.flow.samples.values())), Sampled)
    back, forward = compared(course.flow, [2.0, 0.5], [0], np.linspace(0, 10.7, 30))
    assert back == pytest.approx(forward, rel=1e-10)


def test_a_start_at_rest():
    model = oj.Model({"r": "kr - dr*r - L*r", "c": "L*r - d*c"}, {"y": "c"}, parameters=["kr", "dr", "d", "L"])
    data = oj.Data(np.linspace(0, 5, 9), {"y": np.ones(9)}, initial="steady", before={"L": 0.1}, values={"L": 2.0})
    course = oj.Problem(model, data).misfit.measured[0]
    assert course.flow.model.steady
    back, forward = compared(course.flow, [1.5, 0.4, 0.8], [0, 0], np.linspace(0.1, 5, 9))
    assert back == pytest.approx(forward, rel=1e-9)


def test_what_stays_zero_is_left_out():
    model = oj.Model({"x": "-k*x + z", "z": "-q*z"}, {"y": "x + z"}, initial={"z": 0})
    flow = RestingFlow(model)
    assert flow.lean is not None
    back, forward = compared(flow, [0.5, 0.2], [1.0, 0.0], [0.0, 1.0, 4.0])
    assert back == pytest.approx(forward, rel=1e-10) and back[flow.unknowns().index("q")] == 0


def test_many_steps_come_in_stretches(monkeypatch):
    monkeypatch.setattr(backward, "_MOST", 7)
    monkeypatch.setattr(backward, "_FEWEST", 7)
    model = oj.Model({"x": "y", "y": "m*(1 - x**2)*y - x"}, {"u": "x", "v": "y"})
    back, forward = compared(RestingFlow(model), [3.0], [2.0, 0.0], np.linspace(0, 12, 40))
    assert back == pytest.approx(forward, rel=1e-7)


@pytest.mark.parametrize(
    "model",
    [
        oj.Model({"x": "-k*x"}, {"y": "x"}, events=[oj.Event(at=["1"], set={"x": "x + d"})]),
        oj.Model({"x": "-k*abs(x - 1)"}, {"y": "x"}),
    ],
    ids=["event", "switch"],
)
def test_what_leads_nowhere_is_not_kept(model):
    flow = RestingFlow(model)
    assert not backward.can_be_kept(flow)
    assert backward.keep(flow, np.ones(len(model.parameters)), np.ones(1), np.array([2.0]), 0.0) is None


def test_a_network_whose_rates_depend_on_few_states():
    subject, truth = drawn_chain(20, 1)
    model = subject.model
    parameters, states = ([truth[name] for name in kind] for kind in (model.parameters, model.states))
    back, forward = compared(RestingFlow(model), parameters, states, np.linspace(0, 10, 21))
    assert back == pytest.approx(forward, rel=1e-9, abs=1e-12 * np.abs(forward).max())


def test_a_solution_that_ends_early_says_so():
    flow = RestingFlow(oj.Model({"x": "x**2"}, {"y": "x"}))
    kept = backward.keep(flow, np.zeros(0), np.array([1.0]), np.array([0.5, 2.0]), 0.0)
    assert kept is None or kept.found.message != "every requested time was reached"


def test_equations_that_switch_at_known_times():
    model = oj.Model(
        {"x": "piecewise(-k*x, t < 2, d - k*x)", "z": "piecewise(0, t < 2, x*q - z)"},
        {"y": "x*q", "w": "z"},
        initial={"z": "q**2"},
    )
    flow = RestingFlow(model)
    assert backward.can_be_kept(flow)
    values = {"k": 0.5, "d": 1.3, "q": 0.8}
    back, forward = compared(flow, [values[k] for k in model.parameters], [1.5, 0], [0.0, 1.0, 2.0, 2.5, 7.0])
    assert back == pytest.approx(forward, rel=1e-9)


def test_switches_that_parameters_move_are_not_followed_back():
    assert not backward.can_be_kept(RestingFlow(oj.Model({"x": "piecewise(-k*x, t < T, 0)"}, {"y": "x"})))
