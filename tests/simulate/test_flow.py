"""Trajectories and sensitivities against heyoka, closed forms and published values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from odejet.model import Model
from odejet.simulate import initial_value
from odejet.simulate.flow import Flow, Outcome
from problems import systems, yardsticks

DECAY = Model({"x": "-k*x"}, {"y": "2*x"})
BLOW_UP = Model({"x": "a*x**2"}, {"y": "x"})
ROBERTSON = Model(
    {"a": "-k1*a + k3*b*c", "b": "k1*a - k3*b*c - k2*b**2", "c": "k2*b**2"}, {"y": "a"}, parameters=["k1", "k2", "k3"]
)


def run(model, parameters, states, times, **options):
    return Flow(model).run(parameters, states, times, **options)


@pytest.mark.parametrize("name", systems.names())
def test_benchmark_systems_agree_with_heyoka(name):
    system = systems.load(name)
    n, generator = len(system.model.states), np.random.default_rng(17)
    reference, flow = yardsticks.Heyoka(system.model), Flow(system.model)
    times = np.linspace(*system.time, 101)
    compared = 0
    while compared < 2:
        states, parameters = generator.uniform(0.1, 0.9, n), generator.uniform(0.1, 0.9, len(system.model.parameters))
        expected = reference.run(parameters, states, times, max_steps=2000)
        if expected is None:  # blow-up, or too stiff for an explicit method
            continue
        found = flow.run(parameters, states, times)
        assert found.outcome is Outcome.COMPLETED
        scale = np.abs(expected).max(axis=0)
        difference = np.abs(found.states - expected).max(axis=0)
        assert np.all(difference <= 1e-11 * scale)
        compared += 1


def test_values_and_sensitivities_of_a_closed_form():
    times = np.array([3.0, 0.0, 1.5, 1.5, 0.2])
    found = run(DECAY, [0.7], [1.3], times)
    decay = np.exp(-0.7 * times)
    np.testing.assert_allclose(found.outputs[:, 0, 0], 2.6 * decay, rtol=1e-14)
    np.testing.assert_allclose(found.outputs[:, 0, 1], 2 * decay, rtol=1e-14)
    np.testing.assert_allclose(found.outputs[:, 0, 2], -2.6 * times * decay, rtol=1e-14, atol=1e-16)


def test_backward_and_forward_from_an_inner_time():
    times = np.linspace(-4, 4, 23)
    found = run(DECAY, [0.7], [1.3], times, start=1.0)
    np.testing.assert_allclose(found.states[:, 0, 0], 1.3 * np.exp(-0.7 * (times - 1)), rtol=1e-14)


@settings(max_examples=25)
@given(st.lists(st.floats(-5, 5, allow_nan=False), min_size=1, max_size=30), st.floats(-5, 5))
def test_any_times_in_any_order(times, start):
    found = run(DECAY, [0.7], [1.3], times, start=start, sensitivities=False)
    assert np.array_equal(found.reached, np.arange(len(times)))
    np.testing.assert_allclose(found.states[:, 0, 0], 1.3 * np.exp(-0.7 * (np.array(times) - start)), rtol=1e-13)


def test_there_and_back_again():
    model = systems.load("lotka_volterra").model
    there = run(model, [0.4, 0.3, 0.6], [0.5, 0.8], [0.0, 20.0], free_states=True)
    back = run(model, [0.4, 0.3, 0.6], there.states[-1, :, 0], [0.0], start=20.0, free_states=True)
    np.testing.assert_allclose(back.states[0, :, 0], [0.5, 0.8], rtol=1e-12)
    # The Jacobians of a map and of its inverse are inverse to each other.
    product = back.states[0, :, 1:3] @ there.states[-1, :, 1:3]
    np.testing.assert_allclose(product, np.eye(2), atol=1e-11)


def test_known_initial_states_pass_their_sensitivity_to_the_parameters():
    model = Model({"x": "-k*x", "z": "0"}, {"y": "x*z"}, initial={"x": "c*k**2", "z": "3*c"})
    k, c, times = 0.7, 1.1, np.linspace(0, 2, 5)
    flow = Flow(model)
    assert flow.unknowns() == ("k", "c")
    found = flow.run([k, c], [np.nan, np.nan], times)
    y = 3 * c**2 * k**2 * np.exp(-k * times)
    np.testing.assert_allclose(found.outputs[:, 0, 0], y, rtol=1e-14)
    np.testing.assert_allclose(found.outputs[:, 0, 1], y * (2 / k - times), rtol=1e-13)
    np.testing.assert_allclose(found.outputs[:, 0, 2], 2 * y / c, rtol=1e-14)


def test_tangents_move_where_the_state_rests():
    """At an equilibrium the series of the state is zero, but not that of its sensitivity."""
    found = run(Model({"x": "k*x"}, {"y": "x"}), [2.0], [0.0], [0.0, 5.0])
    np.testing.assert_allclose(found.states[-1, 0], [0.0, np.exp(10.0), 0.0], rtol=1e-13)


def test_every_function_along_a_trajectory():
    model = Model(
        {
            "x": "cos(t)*exp(-x) + tanh(x)/4",
            "y": "sqrt(1 + y)*log(2 + x) - y**a + sinh(x)/cosh(y)",
            "z": "tan(x/3)*sin(y)",
        },
        {"o": "x**y + z"},
    )
    reference = yardsticks.Heyoka(model)
    times = np.linspace(0, 2, 9)
    found, expected = run(model, [1.7], [0.3, 0.5, 0.1], times), reference.run([1.7], [0.3, 0.5, 0.1], times)
    assert np.all(np.abs(found.states - expected).max(axis=0) <= 1e-12 * np.abs(expected).max(axis=0))


def test_blow_up_is_an_outcome_with_its_time():
    found = run(BLOW_UP, [2.0], [1.0], np.linspace(0, 1, 11))
    assert found.outcome is Outcome.BLOW_UP
    assert found.time == pytest.approx(0.5, abs=1e-6)
    assert "t = 0.5" in found.message
    assert found.reached.tolist() == [0, 1, 2, 3, 4]
    assert np.all(np.isfinite(found.states))


@pytest.mark.parametrize(
    ("equation", "time"),
    [("1/(1 - t)", 1.0), ("-1/x", 0.5), ("-sqrt(x)", 2.0), ("log(1 - t)/x", 0.81332), ("-x**0.3", 1 / 0.7)],
)
def test_singularities_are_outcomes_with_their_time(equation, time):
    found = run(Model({"x": equation}, {"y": "x"}), [], [1.0], np.linspace(0, 5, 11))
    assert found.outcome is Outcome.SINGULAR
    assert found.time == pytest.approx(time, abs=1e-3)
    assert len(found.states) == int(np.sum(np.linspace(0, 5, 11) < found.time))
    assert np.all(np.isfinite(found.states))


def test_an_equation_that_is_not_finite_at_the_start():
    found = run(Model({"x": "log(-x)"}, {"y": "x"}), [], [1.0], [0.0, 1.0])
    assert found.outcome is Outcome.SINGULAR
    assert len(found.states) == 0


@pytest.mark.parametrize(
    ("output", "state", "defined"),
    [
        ("log(x)", 1.0, [True, True, False]),
        ("1/(x - 0.5)", 1.0, [True, False, True]),
        ("sqrt(x)", -1.0, [False, False, False]),
        ("x*x*1e300", 1e10, [False, False, False]),
    ],
)
def test_outputs_that_are_not_finite_are_nan(output, state, defined):
    found = run(Model({"x": "-1"}, {"y": output}), [], [state], [0.0, 0.5, 2.0])
    assert found.outcome is Outcome.COMPLETED
    assert np.isfinite(found.outputs[:, 0, 0]).tolist() == defined
    assert np.isnan(found.outputs[~np.array(defined)]).all()
    np.testing.assert_allclose(found.states[:, 0, 0], state - np.array([0.0, 0.5, 2.0]))


@pytest.mark.parametrize("power", [2, 7, 11, 20, 33, 40, 99])
def test_series_that_begin_with_zeros(power):
    """At t = 0 the first derivatives of t^n vanish, which is no licence for long steps."""
    found = run(Model({"x": f"t**{power}*k", "z": f"z + t**{power}"}, {"y": "x"}), [2.0], [1.0, 0.0], [0.0, 1.0, 3.0])
    exact = 1 + 2 * 3.0 ** (power + 1) / (power + 1)
    assert found.states[-1, 0, 0] == pytest.approx(exact, rel=1e-12)
    assert found.states[-1, 0, -1] == pytest.approx((exact - 1) / 2, rel=1e-12)
    assert found.states[-1, 1, 0] > 0


def test_a_long_chain_at_zero_is_set_off_in_large_steps():
    """The last state is of order t^17: the first steps know it, and none is cut to where it would be nothing."""
    links = {f"x{i}": f"k*x{i - 1}/(1 + x{i - 1}*s/k) - k*x{i}/(1 + x{i}/(1 + s*a))" for i in range(2, 16)}
    first = {"p": "a*s*s/(1 + s) - b*p/(1 + p/k)", "x1": "k*p*p/((1 + s*k)*(1 + p)) - k*x1/(1 + x1)"}
    flow = Flow(Model({"s": "-a*s/(1 + s + x1*x2/k)"} | first | links, {"y": "x15"}))
    values, states = [0.3, 5.0, 0.2], [1.0] + [0.0] * 16
    begun = flow.run(values, states, [120.0], start=0.0, tolerance=1e-6, max_steps=3, stiff_steps=0)
    assert begun.outcome is Outcome.EXHAUSTED and begun.time > 0.1
    found, true = (flow.run(values, states, [30.0, 120.0], start=0.0, tolerance=goal).states for goal in (1e-6, 1e-16))
    np.testing.assert_allclose(found[:, :, 0], true[:, :, 0], rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e15])
def test_any_unit_of_time(unit):
    model = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y": "r"})
    rates, times = np.array([0.6, 0.9, 0.4]), np.linspace(0, 20, 9)
    found = run(model, rates / unit, [0.5, 0.8], times * unit)
    expected = run(model, rates, [0.5, 0.8], times)
    np.testing.assert_allclose(found.states[:, :, 0], expected.states[:, :, 0], rtol=1e-12)


@pytest.mark.parametrize("end", [1e3, 1e5, 1e9, 1e300])
def test_what_decays_for_long_ends_at_zero(end):
    found = run(DECAY, [1.0], [1.0], [0.0, end])
    assert found.outcome is Outcome.COMPLETED
    assert np.all(np.abs(found.states[-1]) < 1e-190)


@pytest.mark.parametrize("second", [21.0, 300.0, 9000.0])
@pytest.mark.parametrize("rate", [2.0, 2000.0])
def test_a_pulse_after_a_long_decay(second, rate):
    """What is left of the first pulse is nothing beside a time, and no measure of the first step of the second."""
    pulses = f"piecewise(8, t <= 0.125, 8, {second} <= t <= {second + 0.125}, 0)"
    model = Model({"q": f"{pulses} - k*q"}, {"y": "q"}, initial={"q": 0})
    times = second + np.array([0.0, 0.1, 0.125, 0.2])
    found = run(model, [rate], [0.0], times, start=0.0)
    assert found.outcome is Outcome.COMPLETED
    given = np.minimum(times - second, 0.125)
    expected = 8 / rate * -np.expm1(-rate * given) * np.exp(-rate * (times - second - given))
    np.testing.assert_allclose(found.outputs[:, 0, 0], expected, rtol=1e-9, atol=1e-17)


def test_steps_run_out():
    found = run(Model({"p": "w*q", "q": "-w*p"}, {"y": "p"}), [3.0], [0.5, 0.5], [0.0, 1e5], max_steps=100)
    assert found.outcome is Outcome.EXHAUSTED
    assert "100 steps" in found.message


def test_robertson_with_published_values():
    """The stiff kinetics of Robertson; reference values of the Test Set for IVP Solvers (Mazzia and Magherini 2008)."""
    times = [0.0, 0.4, 4.0, 40.0, 1e11]
    found = run(ROBERTSON, [0.04, 3e7, 1e4], [1.0, 0.0, 0.0], times)
    assert found.outcome is Outcome.COMPLETED
    assert "collocation" in found.method
    np.testing.assert_allclose(
        found.states[-1, :, 0], [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050], rtol=5e-8
    )
    np.testing.assert_allclose(found.states[1:4, 0, 0], [0.98517211, 0.90551868, 0.71582707], rtol=1e-7)


def test_sensitivities_of_a_stiff_model_agree_with_differences():
    times, point, step = [0.4, 40.0, 4000.0], np.array([0.04, 3e7, 1e4]), 1e-4
    found = run(ROBERTSON, point, [1.0, 0.0, 0.0], times, start=0.0)
    for i in range(3):
        shift = np.where(np.arange(3) == i, 1 + step, 1), np.where(np.arange(3) == i, 1 - step, 1)
        up, down = (
            run(ROBERTSON, point * s, [1.0, 0.0, 0.0], times, start=0.0, sensitivities=False).states[..., 0]
            for s in shift
        )
        difference = (up - down) / (2 * step * point[i])
        np.testing.assert_allclose(found.states[:, :, 4 + i], difference, rtol=1e-6)


@pytest.mark.parametrize("rate", [1e3, 1e6, 1e10])
def test_a_stiff_relaxation_follows_its_closed_form(rate):
    model = Model({"x": "-k*(x - sin(t)) + cos(t)"}, {"y": "x"})
    times = np.linspace(0, 5, 21)
    found = run(model, [rate], [0.5], times)
    np.testing.assert_allclose(found.states[:, 0, 0], np.sin(times) + 0.5 * np.exp(-rate * times), atol=1e-12)


def test_growth_over_many_decades_with_stiffness():
    """The benchmark's Brusselator: X grows like exp((3b - 0.5)t) while Y = 6b/(16aX) is slaved to it."""
    model = systems.load("brusselator").model
    a, b = 0.5, 0.6
    found = run(model, [a, b], [0.5, 0.5], np.linspace(0, 20, 51))
    assert found.outcome is Outcome.COMPLETED
    x, y = found.states[-1, :, 0]
    assert x > 1e8
    assert x * y == pytest.approx(6 * b / (16 * a), rel=1e-13)
    growth = found.states[-1, 0, 0] / found.states[-2, 0, 0]
    assert growth == pytest.approx(np.exp((3 * b - 0.5) * 0.4), rel=1e-7)


def test_large_stiff_models():
    """s' = -k s drives 59 states x' = -k c (x - s) with c up to 1e6: x = A exp(-k t) + (1 - A) exp(-k c t)."""
    rates = [10 ** (1 + i % 6) for i in range(59)]
    model = Model({"s": "-k*s", **{f"x{i}": f"-k*{c}*(x{i} - s)" for i, c in enumerate(rates)}}, {"y": "s"})
    times = np.linspace(0, 3, 10)
    found = run(model, [2.0], np.ones(60), times)
    assert found.outcome is Outcome.COMPLETED
    assert "collocation" in found.method
    slow, shares = np.exp(-2 * times), [c / (c - 1) for c in rates]
    for i, (c, share) in enumerate(zip(rates, shares, strict=True), start=1):
        expected = share * slow + (1 - share) * np.exp(-2 * c * times)
        np.testing.assert_allclose(found.states[:, i, 0], expected, rtol=1e-7)
        slope = -times * (share * slow + c * (1 - share) * np.exp(-2 * c * times))
        np.testing.assert_allclose(found.states[:, i, -1], slope, atol=1e-6)


def test_the_same_answer_every_time():
    model = systems.load("hiv").model
    first, second = (run(model, [0.3] * 10, [0.4] * 5, np.linspace(0, 25, 50)) for _ in range(2))
    assert np.array_equal(first.states, second.states)


@pytest.mark.parametrize("start", [-68.40261085362921, -67.07279250987513, -69.98509916491165, -62.93034904344377])
def test_sensitivities_pass_where_a_rate_is_nothing_by_nothing(start):
    """Hodgkin and Huxley's rates are 0/0 at -40 and -55 mV, near which some step of a spike happens to begin."""
    model = Model(
        {
            "V": "10 - gna*m**3*h*(V - 50) - 36*n**4*(V + 77) - 0.3*(V + 54.4)",
            "m": "0.1*(V + 40)/(1 - exp(-(V + 40)/10))*(1 - m) - 4*exp(-(V + 65)/18)*m",
            "h": "0.07*exp(-(V + 65)/20)*(1 - h) - h/(1 + exp(-(V + 35)/10))",
            "n": "0.01*(V + 55)/(1 - exp(-(V + 55)/10))*(1 - n) - 0.125*exp(-(V + 65)/80)*n",
        },
        {"y": "V"},
    )
    flow, times, state = Flow(model), np.linspace(0, 25, 50), np.array([start, 0.05, 0.6, 0.32])
    found = flow.run([120.0], state, times, start=0.0, tolerance=1e-16)
    assert found.outcome is Outcome.COMPLETED
    shift = 1e-5
    above, below = (flow.run([120.0 + d], state, times, start=0.0, sensitivities=False) for d in (shift, -shift))
    np.testing.assert_allclose(found.outputs[:, 0, 0], (above.outputs + below.outputs)[:, 0, 0] / 2, rtol=1e-8)
    slopes = (above.outputs - below.outputs)[:, 0, 0] / (2 * shift)
    np.testing.assert_allclose(found.outputs[:, 0, 5], slopes, atol=1e-5 * np.abs(slopes).max())


@settings(max_examples=60, deadline=None)
@given(st.floats(0.1, 3.5), st.floats(-3, 3), st.floats(-3, 3), st.sampled_from([-1.5, -0.3, 0.3, 1.5]))
def test_saturating_powers_of_any_exponent(decades, decade, apart, rate):
    """x = x0 exp(k t) and y' = V x^n/(K^n + x^n): then y = y0 + V/(n k) (log(K^n + x^n) - log(K^n + x0^n))."""
    n, size, start = 10**decades + 0.01, 10**decade, 10 ** (decade + apart)
    flow = Flow(Model({"x": "k*x", "y": "V*x**n/(K**n + x**n)"}, {"z": "y"}, parameters=["k", "V", "K", "n"]))
    times = np.array([0.0, 0.5, 2.0, 6.0])
    levels = n * (np.log(start / size) + rate * times)  # of (x/K)^n
    grown = np.logaddexp(0, levels)
    expected = 1 + 2 / (n * rate) * (grown - grown[0])
    shares = 1 / (1 + np.exp(-np.clip(levels, -700, 700)))
    by_size = -2 / (rate * size) * (shares - shares[0])
    for sensitivities in (False, True):
        found = flow.run([rate, 2.0, size, n], [start, 1.0], times, sensitivities=sensitivities)
        assert found.outcome is Outcome.COMPLETED
        np.testing.assert_allclose(found.outputs[:, 0, 0], expected, rtol=1e-9)
    place = 1 + flow.unknowns().index("K")
    np.testing.assert_allclose(found.outputs[:, 0, place], by_size, rtol=1e-6, atol=1e-8 / size)


@pytest.mark.parametrize("exponent", [0.7, 1.3, 2.5, 60.5])
@pytest.mark.parametrize("sensitivities", [False, True])
def test_powers_of_what_begins_at_zero(exponent, sensitivities):
    """x = t: y = y0 + t^(n + 1)/(n + 1), and the integral of t^n/(1 + t^n) by quadrature."""
    model = Model({"x": "1", "y": "x**n", "z": "x**n/(1 + x**n)"}, {"o": "y"}, initial={"x": 0})
    found = run(model, [exponent], [0.0, 1.0, 1.0], [0.0, 0.5, 1.5], sensitivities=sensitivities)
    assert found.outcome is Outcome.COMPLETED
    times = np.array([0.0, 0.5, 1.5])
    np.testing.assert_allclose(found.states[:, 1, 0], 1 + times ** (exponent + 1) / (exponent + 1), rtol=1e-10)
    integrals = [quad(lambda s: s**exponent / (1 + s**exponent), 0, end, epsabs=1e-12)[0] for end in times]
    np.testing.assert_allclose(found.states[:, 2, 0], 1 + np.array(integrals), rtol=1e-9)


def test_stiffness_is_noticed_however_often_the_clock_is_looked_at(monkeypatch):
    """Large models look after every few steps, which begins all counts anew."""
    model = Model({"x": "-k*(x - cos(t))", "y": "x - y"}, {"z": "y"})
    times = np.linspace(0, 20, 5)
    expected = Flow(model).run([1e5], [1.0, 0.0], times, start=0.0)
    monkeypatch.setattr(initial_value, "_SLICE", 1.0)
    found = Flow(model).run([1e5], [1.0, 0.0], times, start=0.0)
    assert "collocation" in found.method and found.stiff_steps < 2 * expected.stiff_steps + 80
    np.testing.assert_allclose(found.states, expected.states, rtol=1e-9, atol=1e-12)
