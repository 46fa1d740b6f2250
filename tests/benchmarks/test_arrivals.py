"""Arrivals: only the likelihood of the problem counts, and its course tells when any cost was reached."""

import math

import numpy as np
import pytest

import odejet as oj
from benchmarks.arrivals import arrival, is_same, last_of, recording
from odejet.objective.misfit import ROUGH
from odejet.problem import Problem
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


def test_only_the_likelihood_of_the_problem_is_recorded():
    misfit = decay(0.01).misfit
    start = np.array([0.5, 2.0])
    loose = misfit.window(1.0, levels=0.05 * misfit.scales)  # has a cost of its own, which may well be lower
    with recording(misfit) as course:
        refine(loose, start)
    assert not course
    with recording(misfit) as course:
        end = refine(misfit, start)
    seconds, costs = zip(*course, strict=True)
    assert list(seconds) == sorted(seconds)
    assert list(costs) == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(end.cost)
    assert arrival(course, end.cost + 0.1) <= seconds[-1]
    assert arrival(course, end.cost - 0.1) == math.inf


def test_what_lies_far_above_the_end_is_not_kept():
    assert last_of([(0.1, 90.0), (0.2, 10.9), (0.3, 10.0)]) == [(0.2, 10.9), (0.3, 10.0)]
    assert last_of([]) == []
