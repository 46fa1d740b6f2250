"""Inputs: polynomials through their samples, exact as jets, and the same trajectories as independent programs give."""

from __future__ import annotations

from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import odejet as oj
from odejet.jets.inputs import Pieces, Sampled, input_jets, merged, sampled
from odejet.jets.numeric import jets
from odejet.model.tape import build
from odejet.simulate.flow import Flow

GRID = np.linspace(0.0, 10.0, 81)
STEPS = (np.array([0, 3, 3, 5, 5, 10.0]), np.array([1, 1, 4, 4, 0, 0.0]))
"""A dose of 4 from t = 3 to t = 5 on a background of 1, and nothing afterwards."""


# --- the rule by which samples are joined -----------------------------------------------------------------------------


def test_smooth_samples_are_joined_smoothly():
    """A cubic spline has an error of order 4 and its first derivative of order 3."""
    errors = []
    for count in (41, 81):
        times = np.linspace(0, 10, count)
        series = sampled(times, np.sin(times)).pieces.series(np.linspace(0, 10, 1001), 1)[:, 0]
        truth = np.stack([np.sin(np.linspace(0, 10, 1001)), np.cos(np.linspace(0, 10, 1001))], axis=1)
        errors.append(np.abs(series - truth).max(axis=0))
    assert np.all(errors[1] < [1e-5, 1e-3])
    assert np.all(errors[0] / errors[1] > [8, 4])


@pytest.mark.parametrize(
    "values",
    [
        np.where((GRID > 3) & (GRID < 5), 4.0, 1.0),
        np.random.default_rng(0).standard_normal(len(GRID)),
        np.abs(GRID - 5.01),
        np.full(len(GRID), 2.0),
    ],
    ids=["square wave", "noise", "kink", "constant"],
)
def test_rough_samples_are_joined_by_straight_lines(values):
    middles = 0.5 * (GRID[1:] + GRID[:-1])
    np.testing.assert_allclose(sampled(GRID, values)(middles), 0.5 * (values[1:] + values[:-1]), atol=1e-14)


def test_a_time_that_stands_twice_is_a_jump():
    dose = sampled(*STEPS)
    assert dose(np.array([0, 2.999, 3, 4, 4.999, 5, 10])).tolist() == [1, 1, 4, 4, 4, 0, 0]
    assert dose(3.0) == 4.0


def test_between_jumps_smooth_samples_stay_smooth():
    left, right = np.linspace(0, 4, 41), np.linspace(4, 10, 61)
    wave = sampled(np.r_[left, right], np.r_[np.sin(left), 5 + np.cos(right)])
    times = np.linspace(0, 10, 997)
    np.testing.assert_allclose(wave(times), np.where(times < 4, np.sin(times), 5 + np.cos(times)), atol=1e-5)


def test_samples_that_no_polynomial_can_join():
    with pytest.raises(oj.DataError, match="change too fast"):
        sampled([0, 1e-320, 1], [0, 1, 2])(0.5)


def test_repeated_rows_are_one_sample():
    held = sampled([2, 0, 0, 1, 1, 1, 2], [5, 3, 3, 4, 4, 4, 5])
    assert (held.times.tolist(), held.values.tolist()) == ([0, 1, 2], [3, 4, 5])


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(-5, 5)), min_size=2, max_size=20, unique_by=lambda pair: pair[0])
)
def test_an_input_goes_through_its_samples(pairs):
    times, values = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    np.testing.assert_allclose(sampled(times, values)(times), values, atol=1e-10)


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_series_move_the_centre_of_a_polynomial():
    pieces = Pieces(np.array([1.0, 4.0]), np.array([[[2.0, -1.0, 0.5, 3.0]]]))
    polynomial = np.polynomial.Polynomial([2.0, -1.0, 0.5, 3.0])
    at = np.array([1.0, 2.5, 4.0])
    series = pieces.series(at, 5)[:, 0]
    for k in range(4):
        derivative = polynomial.deriv(k) if k else polynomial
        np.testing.assert_allclose(series[:, k] * factorial(k), derivative(at - 1.0), rtol=1e-14)
    assert np.all(series[:, 4:] == 0)


def test_several_inputs_share_their_knots():
    one, two = sampled(*STEPS), sampled([-1, 2, 4 + 1e-15, 11], [0, 3, 5, 5])
    both = merged([one, two])
    assert both.knots.tolist() == [0, 2, 3, 4 + 1e-15, 5, 10]
    times = np.linspace(0, 10, 333)
    values = both.series(times, 0)[:, :, 0]
    np.testing.assert_allclose(values[:, 0], one(times), atol=1e-14)
    np.testing.assert_allclose(values[:, 1], two(times), atol=1e-14)


def test_knots_apart_by_rounding_are_one_and_constant_stretches_have_none():
    times = np.arange(11) * 0.1
    almost = times * (1 + 2e-16)
    assert len(merged([sampled(times, times), sampled(almost, -times)]).knots) == 11
    assert merged([sampled(GRID, np.full(len(GRID), 2.0))]).knots.tolist() == [0, 10]
    with pytest.raises(oj.DataError, match="no time in common"):
        merged([sampled([0, 1], [0, 1]), sampled([2, 3], [0, 1])])


def test_jets_of_inputs_of_every_kind():
    model = oj.Model(
        {"x": "u + v + w"}, {"y": "x"}, inputs={"u": "exp(2*t)", "v": None, "w": "t**2"}, name="three inputs"
    )
    ramp = Sampled(np.array([0.0, 4.0]), np.array([1.0, 9.0]))
    result = input_jets(model, {"v": ramp, "w": "7"}, 1.5, 6)
    assert result.shape == (3, 7)
    np.testing.assert_allclose(result[0], [np.exp(3.0) * 2.0**k / factorial(k) for k in range(7)], rtol=1e-14)
    assert result[1].tolist() == [4, 2, 0, 0, 0, 0, 0]
    assert result[2].tolist() == [7, 0, 0, 0, 0, 0, 0]
    many = input_jets(model, {"v": ramp}, np.array([0.5, 1.5]), 2)
    np.testing.assert_allclose(many[1, [0, 1]], result[:2, :3])
    assert many[:, 2].tolist() == [[0.25, 1, 1], [2.25, 3, 1]]
    with pytest.raises(oj.DataError, match="the input 'v' is sampled"):
        input_jets(model, {}, 0.0, 1)
    # What a tape with free inputs makes of them: x' = u + v + w.
    series = jets(
        build(model, free_inputs=True), np.zeros((1, 1)), np.zeros((1, 0)), 1.5, order=3, inputs=result[None, :, :4]
    )
    np.testing.assert_allclose(series.states[0, 0, 1:, 0], result[:, :3].sum(axis=0) / [1, 2, 3], rtol=1e-14)


# --- trajectories -----------------------------------------------------------------------------------------------------

MODEL = oj.Model(
    {"x": "-k*x + u*v", "z": "x*u - c*sin(z)"}, {"y": "x + u", "w": "z"}, inputs={"u": None, "v": None}, name="driven"
)


def by_scipy(inputs: dict[str, Sampled], times: np.ndarray, start: float) -> np.ndarray:
    """States (times, 2) for k = 0.7, c = 0.3 from (1, 0.5), integrated from sample to sample and time to time."""
    stops = np.unique(np.concatenate([times, *(item.times for item in inputs.values())]))
    stops = stops[(stops >= min(start, times.min())) & (stops <= max(start, times.max()))]

    def along(path: np.ndarray) -> dict[float, np.ndarray]:
        state, found = np.array([1.0, 0.5]), {float(path[0]): np.array([1.0, 0.5])}
        for left, right in pairwise(path):
            middle = 0.5 * (left + right)
            # On the piece around the middle, by its values at four points: what is a cubic is found exactly.
            nodes = middle + 0.9 * (right - left) * np.array([-0.5, -0.2, 0.2, 0.5])
            u, v = (np.polynomial.Polynomial.fit(nodes, item(nodes), 3) for item in inputs.values())
            rates = lambda t, s, u=u, v=v: [-0.7 * s[0] + u(t) * v(t), s[0] * u(t) - 0.3 * np.sin(s[1])]  # noqa: E731
            solution = solve_ivp(rates, (left, right), state, method="DOP853", rtol=1e-13, atol=1e-15)
            state = found[float(right)] = solution.y[:, -1]
        return found

    found = along(stops[stops >= start]) | along(stops[stops <= start][::-1])
    return np.array([found[float(t)] for t in times])


WAVE = sampled(np.linspace(-1, 11, 31), 1 + np.sin(np.linspace(-1, 11, 31)))
ROUGH = sampled(np.linspace(-1, 11, 25), np.random.default_rng(3).uniform(0, 2, 25))


@pytest.mark.parametrize(
    ("u", "v"), [(sampled(*STEPS), WAVE), (WAVE, sampled(*STEPS)), (ROUGH, WAVE), (ROUGH, sampled(*STEPS))]
)
@pytest.mark.parametrize("start", [0.0, 5.0, 10.0])
def test_trajectories_agree_with_scipy(u, v, start):
    times = np.array([0.0, 0.1, 3.0, 3.7, 5.0, 5.0, 8.0, 10.0])
    inputs = {"u": u, "v": v}
    run = Flow(MODEL, inputs).run([0.7, 0.3], [1.0, 0.5], times, start=start, sensitivities=False)
    expected = by_scipy(inputs, times, start)
    size = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(run.states[:, :, 0] / size, expected / size, atol=1e-11)
    # What is measured at a step is before it.
    shown = np.where(np.isin(times, STEPS[0]), u(times - 1e-12), u(times))
    np.testing.assert_allclose(run.outputs[:, 0, 0], run.states[:, 0, 0] + shown, rtol=1e-11)


def test_sensitivities_are_those_of_the_trajectory():
    flow = Flow(MODEL, {"u": sampled(*STEPS), "v": WAVE})
    at = np.array([0.7, 0.3, 1.0, 0.5])
    run = flow.run(at[:2], at[2:], GRID)
    assert flow.unknowns() == ("x", "z", "k", "c")
    for lane, i in enumerate((2, 3, 0, 1)):
        moved = []
        for sign in (1, -1):
            shifted = at.copy()
            shifted[i] += sign * 1e-5
            moved.append(flow.run(shifted[:2], shifted[2:], GRID, sensitivities=False).outputs[:, :, 0])
        np.testing.assert_allclose(run.outputs[:, :, 1 + lane], (moved[0] - moved[1]) / 2e-5, rtol=1e-7, atol=1e-7)


def test_a_function_and_its_samples_give_the_same():
    """A cubic through its samples is that cubic; a sine is met to the order of the spline."""
    cubic, sine = (
        oj.simulate(MODEL, {"k": 0.7, "c": 0.3}, {"x": 1.0, "z": 0.5}, GRID, inputs=inputs)
        for inputs in (
            {"u": (GRID, 0.01 * GRID**3 - 0.1 * GRID**2), "v": (GRID, np.full(len(GRID), 2.0))},
            {"u": (np.linspace(0, 10, 2001), np.sin(np.linspace(0, 10, 2001))), "v": 2},
        )
    )
    for sampled_run, u, tolerance in ((cubic, "0.01*t**3 - 0.1*t**2", 1e-12), (sine, "sin(t)", 1e-11)):
        exact = oj.simulate(MODEL, {"k": 0.7, "c": 0.3}, {"x": 1.0, "z": 0.5}, GRID, inputs={"u": u, "v": 2})
        assert sampled_run.success
        for name in exact:
            np.testing.assert_allclose(sampled_run[name], exact[name], rtol=tolerance, atol=tolerance)


def test_doses_have_a_closed_solution():
    """x' = -k x + u with u = 1, then 4 from t = 3, then 0 from t = 5."""
    model = oj.Model({"x": "-k*x + u"}, {"y": "x"}, inputs={"u": "sampled"})
    x = oj.simulate(model, {"k": 0.5}, {"x": 0.0}, [3.0, 5.0, 10.0], start=0.0, inputs={"u": STEPS})["y"]
    at_three = 2 * (1 - np.exp(-1.5))
    at_five = 8 + (at_three - 8) * np.exp(-1.0)
    np.testing.assert_allclose(x, [at_three, at_five, at_five * np.exp(-2.5)], rtol=1e-14)


@pytest.mark.parametrize("states", [1, 45])
def test_stiff_models_stop_at_knots_too(states):
    """x' = -r (x - u): x is u - u'/r between knots, once the layer behind each knot has gone."""
    rate = 1e6
    equations = {"x": "-r*(x - u)"} | {f"z{i}": f"x - z{i}" for i in range(states - 1)}
    model = oj.Model(equations, {"y": "x"}, inputs={"u": None})
    times = np.array([1.0, 1.9, 2.5, 4.0, 6.0])
    samples = (np.array([0, 2, 2, 4, 4, 7.0]), np.array([1, 3, 5, 5, 2, 8.0]))
    sim = oj.simulate(model, {"r": rate}, dict.fromkeys(equations, 1.0), times, start=0.0, inputs={"u": samples})
    assert sim.success
    assert "collocation" in sim.method
    u = sampled(*samples)
    slope = np.array([1, 1, 0, 0, 2.0])
    before = np.where(times == 4, 5.0, u(times))  # the state is continuous: at a jump it is where it was
    np.testing.assert_allclose(sim["y"], before - slope / rate, rtol=1e-8)


def test_many_samples_are_no_sign_of_stiffness():
    times = np.linspace(0, 10, 30_001)
    rough = np.random.default_rng(1).uniform(0, 1, len(times))
    model = oj.Model({"x": "u"}, {"y": "x"}, inputs={"u": None})
    sim = oj.simulate(model, {}, {"x": 0.0}, [0.0, 10.0], inputs={"u": (times, rough)})
    assert (sim.success, sim.method) == (True, "taylor")
    np.testing.assert_allclose(sim["y"][-1], np.trapezoid(rough, times), rtol=1e-12)


def test_what_is_wrong_with_inputs_is_told():
    values = {"parameters": {"k": 0.7, "c": 0.3}, "initial_state": {"x": 1.0, "z": 0.5}, "times": GRID}
    with pytest.raises(oj.ModelError, match=r"the input 'u' is sampled; give inputs="):
        oj.simulate(MODEL, **values)
    with pytest.raises(oj.DataError, match="sampled from t = 0 to 1, but the simulation goes beyond"):
        oj.simulate(MODEL, **values, inputs={"u": ([0, 1], [1, 2]), "v": 1})
    with pytest.raises(oj.DataError, match="input 'u': expected as many values as times"):
        oj.simulate(MODEL, **values, inputs={"u": ([0, 1], [1, 2, 3]), "v": 1})
    with pytest.raises(oj.ModelError, match="no sampled input 'w'"):
        Flow(MODEL, {"u": WAVE, "v": WAVE, "w": WAVE})


def test_sampled_inputs_are_generic_to_identifiability():
    model = oj.Model({"x": "-k*x + b*u"}, {"y": "x"}, inputs={"u": None})
    for kind in ("generic", "actual"):
        verdict = oj.identify(model, inputs=kind)
        assert (verdict["k"].kind, verdict["b"].kind, verdict["x"].kind) == ("global",) * 3


# --- samples that are joined as the model says ---


def test_held_samples_are_steps_that_last():
    model = oj.Model({"x": "u - k*x"}, {"y": "x", "z": "u"}, inputs={"u": "sampled, hold"})
    assert oj.Model.from_toml_text(model.to_toml()) == model and "sampled, hold" in repr(model)
    samples = (np.array([0.0, 1.0, 2.5]), np.array([1.0, 3.0, -2.0]))
    times = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 9.0])
    found = oj.simulate(model, {"k": 0.7}, {"x": 0.2}, times, inputs={"u": samples}, sensitivities=True)
    x, expected, at = 0.2, [], 0.0
    for time in times:
        for edge, level in ((1.0, 1.0), (2.5, 3.0), (np.inf, -2.0)):
            if at < edge:
                until = min(time, edge)
                x = level / 0.7 + (x - level / 0.7) * np.exp(-0.7 * (until - at))
                at = until
        expected.append(x)
    np.testing.assert_allclose(found["y"], expected, rtol=1e-14)
    assert found["z"].tolist() == [1, 1, 3, 3, -2, -2]


def test_straight_lines_and_splines_where_the_model_wants_them():
    times = np.linspace(0, 3, 13)
    middles = 0.5 * (times[1:] + times[:-1])
    for how, exact, error in (("linear", False, 1e-3), ("spline", True, 1e-3)):
        model = oj.Model({"x": "0"}, {"y": "u"}, inputs={"u": f"sampled, {how}"})
        values = oj.simulate(model, {}, {"x": 0.0}, middles, inputs={"u": (times, np.sin(times))})["y"]
        assert bool(np.abs(values - np.sin(middles)).max() < error) is exact


def test_a_jump_at_the_last_sample_holds_from_there_on():
    last = sampled([0, 1, 2, 2], [0, 1, 2, 7])
    assert last(np.array([1.5, 2.0])).tolist() == [1.5, 7.0]
    assert last.cover(0, 2) and not last.cover(0, 3)


def test_joining_that_nobody_knows():
    with pytest.raises(oj.ModelError, match=r"\[inputs\] u: samples are joined by hold, linear, spline, not 'cubic'"):
        oj.Model({"x": "u"}, inputs={"u": "sampled, cubic"})
