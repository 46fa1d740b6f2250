"""Sweeps: data in which signal is easily taken for noise, of which no fit is certified at a wrong optimum."""

from __future__ import annotations

import pytest

import odejet as oj
from odejet.problem import Problem

FOLD = (
    oj.Model({"x": "-k*x"}, {"y": "cos(q*x)"}, initial={"x": 1}),
    [0.0, 0.385, 0.769, 1.154, 1.538, 1.923, 2.308, 2.692, 3.077, 3.462, 3.846, 4.231, 4.615, 5.0],
    [-0.802, -0.278, -0.948, 0.815, -1.164, 0.799, 0.74, -0.916, -1.19, -0.854, -0.198, -0.162, 0.72, 0.436],
    {"k": (0, 3), "q": (0, 60)},
    {"k": 0.707, "q": 28.02},
)
CHIRP = (
    oj.Model({"p": "w*exp(-k*t)"}, {"y": "A*sin(p)"}, initial={"p": 0}),
    [0.144, 0.282, 0.503, 1.318, 1.913, 2.171, 2.219, 2.607, 3.34, 3.806, 3.891, 4.193, 4.575, 4.934, 5.724],
    [0.947, -0.941, 0.679, -0.587, 0.411, -0.884, -0.893, 1.14, 0.3, 0.654, 1.012, -0.466, 0.354, -0.209, 0.775],
    {"k": (0, 2), "w": (0, 40), "A": (0, 5)},
    {"k": 0.1602, "w": 15.663, "A": 1.0},
)


@pytest.mark.parametrize(
    ("model", "times", "values", "bounds", "known"),
    [pytest.param(*FOLD, id="fold"), pytest.param(*CHIRP, id="chirp", marks=pytest.mark.slow)],
)
def test_a_narrow_optimum_is_found_or_nothing_is_certified(model, times, values, bounds, known):
    problem = Problem(model, oj.Data(times, {"y": values}, start=0), bounds=bounds)
    fit = oj.fit(problem, time_limit=300)
    assert fit.log_likelihood >= problem.log_likelihood(known)
    assert fit.certificate.outputs[0].level < 0.6 * problem.misfit.deviations[0]
