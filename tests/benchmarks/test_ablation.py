"""The ablation: what it counts and draws, how it compares, and that every variant is searched."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import ablation
from odejet import Data, Model, Problem
from odejet.objective.projection import projected
from odejet.search.portfolio import explore
from odejet.search.refine import refine

TIMES = np.linspace(0, 4, 9)
SCALED = Problem(
    Model({"x": "-k*x"}, {"y": "a*x"}, initial={"x": 1}), Data(TIMES, {"y": 3 * np.exp(-TIMES)}), bounds=(1e-3, 1e3)
)


def test_evaluations_without_what_is_eliminated_count_too():
    part = projected(SCALED.misfit, SCALED.frame())
    assert part is not None
    with ablation.counting() as seen:
        SCALED.misfit.evaluate(np.array([1.0, 1.0]))
        part.evaluate(np.array([1.0]))
    assert seen == [2]
    SCALED.misfit.evaluate(np.array([1.0, 1.0]))
    assert seen == [2]


@pytest.mark.parametrize("variant", ablation.VARIANTS)
def test_every_variant_comes_to_the_optimum_of_a_small_problem(variant):
    optimum = refine(SCALED.misfit, np.array([1.0, 3.0]), frame=SCALED.frame()).cost
    task = ablation.Task(SCALED.misfit, SCALED.given_bounds, False, SCALED.sizes, optimum)
    found = ablation.searched(task, variant, 1, 10.0)
    assert found["short"] <= ablation.SHORT and found["evaluations"] > 0


def line(variant, problem, seed, seconds, short=0.0):
    return {"suite": "beyond", "variant": variant, "problem": problem, "seed": seed, "seconds": seconds, "short": short}


def test_times_are_compared_problem_by_problem_and_runs_that_do_not_arrive_count():
    lines = [line("all", name, seed, 1.0) for name in "ab" for seed in range(4)]
    lines += [line("no windows", "a", seed, 2.0) for seed in range(4)]
    lines += [line("no windows", "b", seed, 2.0, short=5.0 * (seed % 2)) for seed in range(4)]
    times, error = ablation.ratio(lines, "no windows")
    assert times == pytest.approx(np.sqrt(2 * 4)) and 0 < error < 1
    assert ablation.ratio(lines, "all") == (1.0, 0.0)
    assert "| no windows | 6 of 8, 2.7 s | 2.83 |" in ablation.table(lines)


@pytest.mark.parametrize("noise", ["normal(s)", "lognormal(s)", None])
def test_drawn_data_have_the_same_design_and_their_values_near_the_optimum(noise):
    values = 3 * np.exp(-TIMES) * (1 + 0.02 * np.cos(9 * TIMES))
    given = Problem(SCALED.model, Data(TIMES, {"y": values}), bounds=(1e-3, 1e3), noise=noise)
    published = {"k": 1.0, "a": 3.0} | ({"s": 0.02} if noise else {})
    problem = SimpleNamespace(misfit=given.misfit, frame=given.frame, nominal=published)
    (one, cost), (again, _), (other, _) = (ablation.drawn(problem, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, again.values)
    assert np.any(one.values != other.values) and np.any(one.values != given.misfit.values)
    np.testing.assert_array_equal(one.times, given.misfit.times)
    found = explore(one, given.given_bounds, seed=1, starts=64)
    assert found[0].cost == pytest.approx(cost, abs=1e-2)
