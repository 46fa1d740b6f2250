"""Experiments that are one simulation."""

import numpy as np
import pytest

import odejet as oj
from odejet.objective.courses import ROUGH
from odejet.objective.projection import projected
from odejet.search.refine import refine
from odejet.search.screen import rough_effort


def test_experiments_that_differ_in_what_was_measured_are_one_simulation():
    """Three experiments, two of them with one dose: the same residuals and derivatives as of each alone."""
    model = oj.Model({"x": "-k*x", "w": "k*x - w"}, {"y": "s*x", "z": "w"}, initial={"x": "dose", "w": 0})
    rng = np.random.default_rng(1)
    data = [
        oj.Data([0.0, 1.0, 2.0], {"y": rng.random(3)}, values={"dose": 1.0}, name="a"),
        oj.Data([0.5, 1.0, 3.0], {"y": rng.random(3), "z": rng.random(3)}, start=0, values={"dose": 1.0}, name="b"),
        oj.Data([0.5, 1.0], {"z": rng.random(2)}, start=0, values={"dose": 2.0}, name="c"),
    ]
    problem, z = oj.Problem(model, oj.Data.of(one.experiments[0] for one in data)), np.array([0.7, 1.4])
    assert [len(course.times) for course in problem.misfit.measured] == [5, 2]
    found = problem.misfit.evaluate(z)
    for number in range(3):
        alone = problem.misfit.only(number)
        pairs = zip(problem.measurements.rows, problem.measurements.blocks, strict=True)
        own = np.concatenate([np.arange(r.start, r.stop) for r, block in pairs if block.experiment == number])
        part = alone.evaluate(z)
        np.testing.assert_allclose(found.residuals[own], part.residuals, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found.dense[own], part.dense, rtol=1e-12, atol=1e-14)


def stiff_plant(samples: int) -> oj.Problem:
    """A fast state and a slow one behind a held input of random levels."""
    model = oj.Model(
        {"x": "(u + 0.1*z - x)/eps", "z": "k*(x - z)"},
        {"y": "z"},
        inputs={"u": "sampled, hold"},
        initial={"x": 0, "z": 0},
        fixed={"eps": 1e-5},
    )
    times, levels = 0.1 * np.arange(samples), np.random.default_rng(0).choice([0.0, 1.0], samples)
    return oj.Problem(model, oj.Data(times, {"y": 0 * times}, inputs={"u": (times, levels)}))


def test_steps_follow_from_the_knots_of_an_input():
    """One linear state with many held levels: x goes to each by exp(-k dt), and the misfit of zeros is known."""
    model = oj.Model({"x": "k*(u - x)"}, {"y": "x"}, inputs={"u": "sampled, hold"}, initial={"x": 0})
    times, levels = 10.0 * np.arange(4000), np.random.default_rng(0).uniform(-1, 1, 4000)
    problem = oj.Problem(model, oj.Data(times, {"y": 0 * times}, inputs={"u": (times, levels)}))
    states = [0.0]
    for level in levels[:-1]:
        states.append(level + (states[-1] - level) * np.exp(-10.0))
    spread = np.sqrt(np.mean(np.square(states)))
    expected = -4000 * (np.log(spread) + 0.5 * np.log(2 * np.pi) + 0.5)
    assert problem.log_likelihood({"k": 1.0}) == pytest.approx(expected, rel=1e-10)
    assert problem.misfit.score(np.array([1.0])) == pytest.approx(-expected, rel=1e-10)
    assert problem.why({"k": 1.0}) is None


@pytest.mark.parametrize("samples", [400, 2000])
def test_a_stiff_plant_with_many_samples_has_a_likelihood(samples):
    problem = stiff_plant(samples)
    plain = oj.simulate(problem.model, {"k": 0.5}, {}, problem.times(0), inputs=problem.experiments[0].sampled)
    spread = np.sqrt(np.mean(plain["y"] ** 2))
    expected = -samples * (np.log(spread) + 0.5 * np.log(2 * np.pi) + 0.5)
    assert problem.log_likelihood({"k": 0.5}) == pytest.approx(expected, rel=1e-8)
    found = problem.misfit.evaluate(np.array([0.5]))
    assert found.residuals is not None
    np.testing.assert_allclose(found.residuals, plain["y"], atol=1e-9)


def test_many_periods_of_a_stiff_oscillator_have_a_likelihood():
    """Van der Pol's oscillator with mu = 100 has a period of 162.84, as asymptotic series and SciPy's Radau tell."""
    model = oj.Model({"x": "v", "v": "mu*(1 - x**2)*v - x"}, {"y": "x"}, initial={"x": 2, "v": 0})
    times = np.linspace(0, 10_000, 500)
    problem = oj.Problem(model, oj.Data(times, {"y": 0 * times}))
    assert np.isfinite(problem.log_likelihood({"mu": 100.0}))
    for jacobian in (False, True):
        assert problem.misfit.evaluate(np.array([100.0]), jacobian).residuals is not None
    dense = oj.simulate(model, {"mu": 100.0}, {}, np.linspace(0, 10_000, 200_001), tolerance=1e-10)["y"]
    rising = np.flatnonzero((dense[1:] > 0) & (dense[:-1] <= 0)) * 0.05
    assert np.mean(np.diff(rising)) == pytest.approx(162.84, abs=0.01)


def test_a_likelihood_of_zero_has_a_reason():
    model = oj.Model({"x": "a*x**2"}, {"y": "x"}, initial={"x": 1})
    data = oj.Data.join([oj.Data([0.0, 1.0], {"y": [1.0, 1.0]}, name=name) for name in ("first", "second")])
    problem = oj.Problem(model, data)
    assert problem.log_likelihood({"a": 2.0}) == -np.inf
    assert problem.why({"a": 2.0}) == (
        "first: the solution grows without bound near t = 0.5; other values, or fewer times, are needed"
    )
    assert problem.why({"a": -2.0}) is None


def test_a_single_look_ends_with_its_time():
    problem = stiff_plant(100_000)
    assert problem.log_likelihood({"k": 0.5}, time_limit=0.2) == -np.inf
    assert problem.why({"k": 0.5}, time_limit=0.2) == "the time was over before everything was simulated"


def oscillator() -> oj.Problem:
    """One frequency, unknown, beside data of a slow one."""
    times = np.linspace(0, 10, 41)
    model = oj.Model({"x": "v", "v": "-w**2*x"}, {"y": "x"}, initial={"x": 1, "v": 0})
    return oj.Problem(model, oj.Data(times, {"y": np.cos(times)}))


def test_first_looks_are_long_only_where_brief_ones_come_to_no_end():
    misfit, slow, fast = oscillator().misfit, np.array([1.1]), np.array([1e4])
    assert misfit.evaluate(fast).complete and not misfit.brief.evaluate(fast).complete
    assert misfit.brief.brief is misfit.brief
    both, alone = misfit.screen([slow, fast]), misfit.screen([fast])
    assert np.isfinite(both[0]) and both[1] == np.inf and np.isfinite(alone[0])
    assert rough_effort(misfit, [slow, fast]) == rough_effort(misfit, [fast, slow]) == ROUGH.brief
    assert rough_effort(misfit, [fast]) == ROUGH


def test_a_brief_evaluation_of_what_is_short_is_that_of_any_other():
    misfit = oscillator().misfit
    whole, brief = misfit.evaluate(np.array([1.1])), misfit.brief.evaluate(np.array([1.1]))
    np.testing.assert_array_equal(whole.residuals, brief.residuals)
    np.testing.assert_array_equal(whole.dense, brief.dense)
    eliminated = projected(misfit, oscillator().frame())
    assert eliminated is None or eliminated.brief.whole.effort == misfit.effort.brief


def test_a_descent_begins_where_simulations_are_very_long():
    """Steps are as long as they are at its start."""
    problem = oscillator()
    found = refine(problem.misfit, np.array([3000.0]), max_evaluations=5)
    assert np.isfinite(found.cost)
