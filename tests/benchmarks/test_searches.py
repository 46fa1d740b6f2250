"""The benchmark of searches: what it counts, and that each of its ways is searched."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import searches
from odejet import Data, Model, Problem
from odejet.search import multistart as module
from odejet.search.projection import projected

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
