"""Optima: equally good ones elsewhere are solutions, the ends of a flat valley are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odejet import Data, Model
from odejet.decide.optima import Optima, Optimum
from odejet.problem import Problem, coordinates
from odejet.search.refine import Refined, refine

TIMES = np.linspace(0, 6, 61)
SUM = Model({"a": "-k*a", "b": "-m*b"}, {"y": "a + b"})
DATA = Data(TIMES, {"y": 2 * np.exp(-0.3 * TIMES) + np.exp(-2 * TIMES) + 1e-3 * np.sin(50 * TIMES)})
MISFIT = Problem(SUM, DATA).misfit
FRAME = coordinates.choose(MISFIT.unknowns, np.ones(4), (1e-5, 10.0))


def optima(*refined: Refined) -> Optima:
    return Optima().adding(*(Optimum(MISFIT, one) for one in refined))


def test_exchanged_parts_are_another_solution():
    first, second = (refine(MISFIT, np.array(z), frame=FRAME) for z in ([2, 1, 0.3, 2], [1, 2, 2, 0.3]))
    found = optima(first, second)
    best = found.best
    assert best is not None
    (other,) = found.others(FRAME, 2)
    np.testing.assert_allclose(other.z, best.refined.z[[1, 0, 3, 2]], rtol=1e-3)
    assert found.others(FRAME, 1) == []


def test_the_other_end_of_a_flat_valley_is_not():
    first = refine(MISFIT, np.array([2, 1, 0.3, 2]), frame=FRAME)
    moved = replace(first, z=first.z * 1.5)
    assert len(optima(first, moved).others(FRAME, None)) == 1
    flat = [replace(one, jacobian=1e-9 * one.jacobian) for one in (first, moved)]
    assert optima(*flat).others(FRAME, None) == []


def test_a_worse_optimum_is_no_solution():
    first = refine(MISFIT, np.array([2, 1, 0.3, 2]), frame=FRAME)
    worse = replace(first, z=first.z[[1, 0, 3, 2]], cost=first.cost + 1)
    assert optima(worse, first).others(FRAME, None) == []
