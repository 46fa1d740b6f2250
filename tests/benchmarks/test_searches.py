"""The benchmark of searches: what it counts, and that each of its ways is searched."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import searches
from odejet import Data, Model, Problem
from odejet.objective.projection import projected
from odejet.search import multistart as module

TIMES = np.linspace(0, 4, 9)
SCALED = Problem(
    Model({"x": "-k*x"}, {"y": "a*x"}, initial={"x": 1}), Data(TIMES, {"y": 3 * np.exp(-TIMES)}), bounds=(1e-3, 1e3)
)


def test_evaluations_without_what_is_eliminated_count_too():
    part = projected(SCALED.misfit, SCALED.frame())
    assert part is not None
    with searches.counting() as seen:
        SCALED.misfit.evaluate(np.array([1.0, 1.0]))
        part.evaluate(np.array([1.0]))
    assert seen == [2]
    SCALED.misfit.evaluate(np.array([1.0, 1.0]))
    assert seen == [2]


@pytest.mark.parametrize("way", searches.WAYS)
def test_every_way_comes_to_the_optimum_of_a_small_problem(way):
    with searches.searching(way), searches.counting() as seen:
        found = module.multistart(SCALED.misfit, SCALED.given_bounds, seed=1, starts=64)
    np.testing.assert_allclose(sorted(found[0].z), [1.0, 3.0], rtol=1e-4)
    assert seen[0] >= sum(one.evaluations for one in found) > 0


@pytest.mark.parametrize("noise", ["normal(s)", "lognormal(s)", None])
def test_drawn_data_have_the_same_design_and_their_values_near_the_optimum(noise):
    values = 3 * np.exp(-TIMES) * (1 + 0.02 * np.cos(9 * TIMES))
    given = Problem(SCALED.model, Data(TIMES, {"y": values}), bounds=(1e-3, 1e3), noise=noise)
    published = {"k": 1.0, "a": 3.0} | ({"s": 0.02} if noise else {})
    problem = SimpleNamespace(misfit=given.misfit, frame=given.frame, nominal=published)
    (one, cost), (again, _), (other, _) = (searches.drawn(problem, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, again.values)
    assert np.any(one.values != other.values) and np.any(one.values != given.misfit.values)
    np.testing.assert_array_equal(one.times, given.misfit.times)
    found = module.multistart(one, given.given_bounds, seed=1, starts=64)
    assert found[0].cost == pytest.approx(cost, abs=1e-2)
