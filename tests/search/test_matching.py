"""Matching: where it applies, and that its start is near the truth of a large model."""

import itertools

import numpy as np
import pytest

import odejet as oj
from odejet.budget import Budget
from odejet.problem import Problem
from odejet.problem.stretches import stretch
from odejet.search.matching import candidates, is_matched, matched
from odejet.smooth import fit_series
from problems import chains

STEPS = 14


def chain(steps=STEPS):
    speed = [f"v{i}*x{i}/(k{i} + x{i})" for i in range(1, steps + 1)]
    rates = [f"-{speed[0]}", *(f"{before} - {after}" for before, after in itertools.pairwise(speed))]
    return {f"x{i + 1}": rate for i, rate in enumerate(rates)}


def truth(steps=STEPS):
    rng = np.random.default_rng(1)
    parameters = {f"{name}{i}": float(rng.uniform(0.2, 0.9)) for name in "vk" for i in range(1, steps + 1)}
    return parameters, {f"x{i}": float(rng.uniform(0.2, 0.9)) for i in range(1, steps + 1)}


def measured(model, noise=0.003):
    times, rng = np.linspace(0, 10, 101), np.random.default_rng(2)
    parameters, initial = truth()
    own = {name: value for name, value in initial.items() if name not in model.initial}
    clean = oj.simulate(model, parameters, own, times)
    return oj.Data(times, {y: v + noise * rng.normal(size=len(v)) for y, v in clean.outputs.items()})


def outputs(count=STEPS):
    return {f"y{i}": f"x{i}" for i in range(1, count + 1)}


@pytest.mark.parametrize("initial", [{}, {"x1": truth()[1]["x1"]}])
def test_starts_of_a_large_model_are_near_its_truth(initial):
    model = oj.Model(chain(), outputs(), initial=initial)
    problem = Problem(model, measured(model))
    assert is_matched(problem)
    (condition,) = problem.conditions
    smoothed = {(condition.experiment.name, y): fit_series(one) for y, one in stretch(condition).items()}
    levels = np.full(STEPS, 0.003)
    parameters, states = truth()
    expected = np.array([(parameters | states)[one.name] for one in problem.layout])
    found = candidates(problem, smoothed, levels, problem.frame(), Budget.within(60))
    assert len(found) == 3
    for one in found:
        assert np.median(np.abs(one.z / expected - 1)) < 0.05
        assert np.isfinite(problem.misfit.score(one.z))


def test_where_it_does_not_apply():
    whole = oj.Model(chain(), outputs())
    data = measured(whole)
    assert is_matched(Problem(whole, data))
    small = oj.Model(chain(3), outputs(3))
    assert not is_matched(
        Problem(
            small,
            oj.Data(
                data.experiments[0].outputs["y1"].times, {y: data.experiments[0].outputs[y].values for y in outputs(3)}
            ),
        )
    )
    hidden = oj.Model(chain(), outputs(STEPS - 1))
    series = {y: data.experiments[0].outputs[y].values for y in outputs(STEPS - 1)}
    assert not is_matched(Problem(hidden, oj.Data(np.linspace(0, 10, 101), series)))
    scaled = oj.Model(chain(), {**outputs(), "y1": "2*x1"})
    assert not is_matched(Problem(scaled, data))


def test_eighty_steps_are_matched_everywhere():
    """Rates are linear in the speeds, which follow from the other unknowns: no step of eighty holds up the others."""
    subject, values = chains.drawn_chain(80, 1)
    problem = subject.problem
    (condition,) = problem.conditions
    smoothed = {(condition.experiment.name, y): fit_series(one) for y, one in stretch(condition).items()}
    levels = np.array([smoothed[condition.experiment.name, y].noise for y in problem.misfit.outputs])
    z = matched(problem, smoothed, levels, problem.frame(), Budget.within(60))
    expected = np.array([values[one.name] for one in problem.layout])
    assert z is not None and np.abs(z / expected - 1).max() < 0.5
