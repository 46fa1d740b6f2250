"""The race: who has arrived."""

import numpy as np
import pytest

import odejet as oj
from benchmarks.race import is_same, stopping
from odejet.problem import Problem
from odejet.problem.misfit import ROUGH
from odejet.search.refine import refine

TIMES = np.linspace(0, 5, 20)


def decay(noise):
    values = np.exp(-0.7 * TIMES) + 0.01 * np.random.default_rng(1).normal(size=len(TIMES))
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    return Problem(model, oj.Data(TIMES, {"y": values}), noise=noise, bounds=(1e-3, 1e3))


@pytest.mark.parametrize("noise", [0.01, None, "normal(s)", "normal(s + 0.1*y)"])
def test_noise_of_other_size_is_another_likelihood(noise):
    misfit = decay(noise).misfit
    assert is_same(misfit.window(1.0, effort=ROUGH), misfit)
    assert not is_same(misfit.window(0.5), misfit)
    assert not is_same(misfit.window(1.0, levels=misfit.scales), misfit)


def test_only_the_likelihood_of_the_problem_arrives():
    misfit = decay(0.01).misfit
    start, goal = np.array([0.5, 2.0]), misfit.score(np.array([1.0, 0.7])) + 0.1
    loose = misfit.window(1.0, levels=0.05 * misfit.scales)  # has a cost of its own, which may well be lower
    with stopping(misfit, goal + 1e6) as arrived:
        refine(loose, start)
    assert not arrived
    with stopping(misfit, goal) as arrived, pytest.raises(KeyboardInterrupt):
        refine(misfit, start)
    assert arrived
