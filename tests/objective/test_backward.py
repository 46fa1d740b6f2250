"""Gradients by one way back per experiment, beside those by sensitivities."""

import numpy as np
import pytest

import odejet as oj
from odejet.objective import backward
from problems.chains import chain, drawn_chain

MODEL = oj.Model(
    {"x": "-k*x/(m + x)", "z": "k*x/(m + x) - d*z"},
    {"y": "s*x + o", "w": "z"},
    parameters=["k", "m", "d", "s", "o"],
)
VALUES = {"k": 0.9, "m": 0.6, "d": 0.3, "s": 1.4, "o": 0.2}


def data(seed: int, **options) -> oj.Data:
    rng, times = np.random.default_rng(seed), np.linspace(0, 5, 14)
    found = oj.simulate(MODEL, VALUES, {"x": 1.0 + 0.3 * seed, "z": 0.4}, times).outputs
    noisy = {name: np.abs(value * (1 + 0.05 * rng.standard_normal(len(times)))) for name, value in found.items()}
    noisy["y"][3] = np.nan
    return oj.Data(times, noisy, **options)


def posed(**options) -> oj.Problem:
    return oj.Problem(MODEL, [data(1, name="one"), data(2, name="two")], **options)


PROBLEMS = {
    "levels that follow": {},
    "known": {"noise": 0.1},
    "lognormal": {"noise": {"y": "lognormal(sy)", "w": "normal(sw)"}},
    "priors": {"noise": {"y": 0.1, "w": "2%"}, "priors": {"k": "lognormal(0, 0.5)", "d": "normal(0.3, 0.1)"}},
    "local": {"local": ["k"], "noise": "relative"},
}


@pytest.mark.parametrize("options", PROBLEMS.values(), ids=PROBLEMS)
def test_as_by_sensitivities(options, monkeypatch):
    problem = posed(**options)
    forward = problem.objective
    theta = np.array([VALUES.get(name.split("[")[0], 0.7) for name in forward.names])
    value, gradient = forward.value_and_gradient(theta)
    monkeypatch.setattr(backward, "WORTH", 1)
    back = posed(**options).objective
    assert backward.pays(back.misfit) and back._leads_back
    found, slopes = back.value_and_gradient(theta)
    assert found == pytest.approx(value, rel=1e-12)
    assert slopes == pytest.approx(gradient, rel=1e-9, abs=1e-9 * np.abs(gradient).max())


def test_steps_that_take_too_much_memory_are_taken_twice(monkeypatch):
    monkeypatch.setattr(backward, "WORTH", 1)
    objective = posed().objective
    theta = np.array([VALUES.get(name.split("[")[0], 0.7) for name in objective.names])
    value, gradient = objective.value_and_gradient(theta)
    monkeypatch.setattr(backward, "MEMORY", 1.0)
    again, slopes = objective.value_and_gradient(theta)
    assert again == value and slopes == pytest.approx(gradient, rel=1e-14)


def test_on_the_scale_of_the_search_beside_differences():
    subject, truth = drawn_chain(14, 3)
    objective = subject.problem.objective
    assert backward.pays(objective.misfit)
    theta = np.array([truth[name.removesuffix("(0)")] for name in objective.names])
    scaled = objective.scaled()
    x = scaled.from_natural(theta) + 0.01
    _, gradient = scaled.value_and_gradient(x)
    direction = np.random.default_rng(0).standard_normal(len(x))
    ahead, behind = (scaled.value(x + side * direction) for side in (1e-5, -1e-5))
    assert gradient @ direction == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_few_unknowns_are_not_worth_it():
    assert not backward.pays(chain(5, 1).problem.misfit)


def test_a_way_back_that_is_lost_leaves_sensitivities(monkeypatch):
    objective = posed().objective
    theta = np.array([VALUES.get(name.split("[")[0], 0.7) for name in objective.names])
    value, gradient = objective.value_and_gradient(theta)
    monkeypatch.setattr(backward, "WORTH", 1)
    monkeypatch.setattr(backward, "value_and_gradient", lambda *_: None)
    found, slopes = posed().objective.value_and_gradient(theta)
    assert found == value and slopes == pytest.approx(gradient, rel=1e-14)
