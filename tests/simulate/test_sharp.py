"""Sharp features are noticed: no trajectory that says it succeeded is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from odejet.model import Model
from odejet.simulate.flow import Flow, Outcome
from problems.sharp import measured

TIMES = np.array([0.0, 10.0, 20.0])


def by_quadrature(forcing, place, width, rate=0.3):
    """x' = -rate x + forcing(t) from x(0) = 1, at the later times, by quadrature of the closed solution."""
    result = []
    for end in TIMES[1:]:
        points = [p for p in place + width * np.array([-8, -3, 0, 3, 8]) if 0 < p < end]
        integral = quad(lambda s, e=end: np.exp(-rate * (e - s)) * forcing(s), 0, end, points=points, limit=500)[0]
        result.append(np.exp(-rate * end) + integral)
    return np.array(result)


@pytest.mark.parametrize("width", [1.0, 0.2, 0.1, 1e-2, 1e-3])
def test_a_switch_ahead_is_noticed(width):
    found = Flow(Model({"x": f"-0.3*x + (1 + tanh((t - 6)/{width}))/2"})).run([], [1.0], TIMES)
    assert found.outcome is Outcome.COMPLETED
    expected = by_quadrature(lambda s: (1 + np.tanh((s - 6) / width)) / 2, 6.0, width)
    np.testing.assert_allclose(found.states[1:, 0, 0], expected, rtol=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.5, 19.5), st.floats(-3, 0))
def test_pulses_anywhere_are_noticed(place, decade):
    width = 10**decade
    found = Flow(Model({"x": f"-0.3*x + exp(-((t - {place!r})/{width!r})**2/2)"})).run([], [1.0], TIMES)
    assert found.outcome is Outcome.COMPLETED
    expected = by_quadrature(lambda s: np.exp(-(((s - place) / width) ** 2) / 2), place, width)
    np.testing.assert_allclose(found.states[1:, 0, 0], expected, rtol=1e-7)


def test_a_switch_in_a_state_is_noticed():
    """x grows like t/5 and switches its own rate from 1/5 to 6/5 where it is one: t(x) is a quadrature."""
    found = Flow(Model({"x": "1/5 + (1 + tanh((x - 1)/w))/2"}, parameters=["w"])).run([1e-3], [0.0], [0.0, 4.9, 8.0])
    assert found.outcome is Outcome.COMPLETED
    np.testing.assert_allclose(found.states[1, 0, 0], 0.98, rtol=1e-12)
    passed = quad(
        lambda x: 1 / (0.2 + (1 + np.tanh((x - 1) / 1e-3)) / 2), 0, found.states[2, 0, 0], points=[0.99, 1, 1.01]
    )
    assert passed[0] == pytest.approx(8.0, rel=1e-8)


def test_what_overflows_far_from_where_it_matters_does_no_harm():
    model = Model({"x": "-0.3*x + 1/(1 + exp(-(t - 6)/0.001))"})
    expected = by_quadrature(lambda s: 1 / (1 + np.exp(min(-(s - 6) / 0.001, 700))), 6.0, 0.001)
    np.testing.assert_allclose(Flow(model).run([], [1.0], TIMES).states[1:, 0, 0], expected, rtol=1e-8)


def test_random_models_agree_with_cvodes():
    """A solution may end early, and then says so; what is returned as complete is right."""
    rows = [measured(2024, draw) for draw in range(12)]
    assert [row.draw for row in rows if row.wrong] == []
    assert sum(row.outcome == "COMPLETED" and row.difference is not None for row in rows) >= 10


def test_values_and_outcomes_do_not_depend_on_sensitivities():
    """Random values of a model of immune response: stiff, blowing up, or neither."""
    model = Model(
        {
            "n": "-a*n - b*n*p",
            "e": "b*n*p + c*e*p - d*e**2 - f*e",
            "l": "f*e - g*l**2 - h*e*l - k*l",
            "p": "r*p**2 - q*e*p - s*l*p - u*p",
        },
        parameters=list("abcdfghkrqsu"),
    )
    flow, rng, times = Flow(model), np.random.default_rng(5), np.array([0.0, 4, 8, 15, 28])
    for _ in range(40):
        values = np.exp(rng.uniform(np.log(1e-5), np.log(1e3), 12))
        runs = [flow.run(values, [8090.0, 0, 0, 1], times, sensitivities=s, max_steps=5000) for s in (True, False)]
        assert runs[0].outcome is runs[1].outcome
        first, second = (run.states[:, :, 0] for run in runs)
        shared = min(len(first), len(second))
        size = np.maximum(np.abs(first).max(axis=0), 1e-16)  # what has decayed so far is rounding of 8090
        assert np.all(np.abs(first[:shared] - second[:shared]) <= 1e-9 * size)


def share(ratio, exponent):
    """r^n / (1 + r^n) in numbers that do not overflow."""
    return 1 / (1 + np.exp(np.clip(-exponent * np.log(ratio), -700, 700)))


@pytest.mark.parametrize("exponent", [30.5, 400.5, 3000.5])
@pytest.mark.parametrize("form", ["z**n/(K**n + z**n)*L**n/(L**n + z**n)", "z**n/(K**n + z**n) - z**n/(L**n + z**n)"])
def test_windows_of_high_powers_are_noticed(form, exponent):
    """z = exp(t/10) is between K and L for two tenths of a unit of time."""
    low, high = np.exp([0.59, 0.61])
    model = Model({"x": f"-0.3*x + {form}", "z": "z/10"}, parameters=["K", "L", "n"])

    def forcing(s):
        z = np.exp(s / 10)
        if "*L" in form:
            return share(z / low, exponent) * share(high / z, exponent)
        return share(z / low, exponent) - share(z / high, exponent)

    expected = by_quadrature(forcing, 6.0, 0.1)
    for sensitivities in (False, True):
        found = Flow(model).run([low, high, exponent], [1.0, 1.0], TIMES, sensitivities=sensitivities)
        assert found.outcome is Outcome.COMPLETED
        np.testing.assert_allclose(found.states[1:, 0, 0], expected, rtol=1e-8)
