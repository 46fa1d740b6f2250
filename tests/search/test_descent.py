"""Descents: from a start to the optimum of problems whose optimum is known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import odejet as oj
from odejet.search.descent import Descent
from odejet.search.termination import Ending

TIMES = np.linspace(0, 4, 30)
MODEL = oj.Model({"x": "-k*x"}, {"y": "x"})


def descent(
    problem: oj.Problem, start, *, evaluations: int = 200, deadline: float = math.inf
) -> tuple[Descent, Ending]:
    misfit, start = problem.misfit, np.asarray(start, dtype=float)
    way = Descent(misfit, problem.frame(start), misfit.scales, deadline, evaluations, 1e-9)
    return way, way.run(start)


def line(noise: float = 0.1) -> tuple[oj.Problem, np.ndarray]:
    """y = a + b t, as x' = b: least squares in closed form."""
    values = 2 - 0.5 * TIMES + noise * np.random.default_rng(0).normal(size=len(TIMES))
    problem = oj.Problem(oj.Model({"x": "b + 0*x"}, {"y": "x"}), oj.Data(TIMES, {"y": values}))
    return problem, np.polynomial.polynomial.polyfit(TIMES, values, 1)


@pytest.mark.parametrize("start", [(2.0, -0.5), (-30.0, 4.0), (1e-3, 1e-3)])
def test_a_straight_line_is_that_of_least_squares(start):
    problem, exact = line()
    way, ending = descent(problem, start)
    assert ending.settled
    np.testing.assert_allclose(way.result(ending, 0.0).z, exact, rtol=1e-6)


def decay(values: np.ndarray | None = None, **posed: object) -> oj.Problem:
    exact = 3 * np.exp(-0.7 * TIMES)
    return oj.Problem(MODEL, oj.Data(TIMES, {"y": exact if values is None else values}), **posed)


def test_exact_data_end_at_rounding():
    way, ending = descent(decay(positive=True), (1.0, 2.0))
    assert ending is Ending.EXACT
    np.testing.assert_allclose(way.result(ending, 0.0).z, [3.0, 0.7], rtol=1e-12)


def test_no_step_leads_up_and_every_evaluation_counts():
    """What a descent has after n evaluations is never worse than after fewer."""
    noisy = 3 * np.exp(-0.7 * TIMES) + 0.05 * np.random.default_rng(1).normal(size=len(TIMES))
    costs, used = [], []
    for most in (1, 2, 4, 8, 50):
        way, ending = descent(decay(noisy, positive=True, noise=0.05), (20.0, 5.0), evaluations=most)
        costs.append(way.result(ending, 0.0).cost)
        used.append(way.allowance.evaluations)
        assert way.allowance.evaluations <= most + 1
    assert costs == sorted(costs, reverse=True) and costs[-1] < costs[0] - 100
    assert used == sorted(used)


def test_an_optimum_beyond_a_bound_is_held_there():
    """k may be at most 0.5 where 0.7 is best: it ends at the bound, with x(0) at its best for that."""
    noisy = 3 * np.exp(-0.7 * TIMES) + 0.05 * np.random.default_rng(1).normal(size=len(TIMES))
    way, ending = descent(decay(noisy, bounds={"k": (0.1, 0.5)}, noise=0.05), (1.0, 0.2))
    found = way.result(ending, 0.0)
    shape = np.exp(-0.5 * TIMES)
    assert found.z[1] == pytest.approx(0.5, rel=1e-6) and found.held.tolist() == [False, True]
    assert found.z[0] == pytest.approx(shape @ noisy / (shape @ shape), rel=1e-5)


def test_time_that_is_over_ends_a_descent_where_it_is():
    way, ending = descent(decay(positive=True), (20.0, 5.0), deadline=-math.inf)
    assert not ending.settled and way.allowance.evaluations <= 2


def test_estimated_noise_is_that_of_the_residuals():
    noisy = 3 * np.exp(-0.7 * TIMES) + 0.05 * np.random.default_rng(2).normal(size=len(TIMES))
    way, ending = descent(decay(noisy, positive=True), (1.0, 0.2))
    found = way.result(ending, 0.0)
    residuals = found.z[0] * np.exp(-found.z[1] * TIMES) - noisy
    assert found.levels[0] == pytest.approx(math.sqrt(np.mean(residuals**2)), rel=1e-6)
