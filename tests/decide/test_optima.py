"""Optima: equally good ones elsewhere are solutions, the ends of a flat valley are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model
from odejet.decide.optima import Optima, Optimum, Provenance
from odejet.problem import Problem, coordinates
from odejet.search.refine import Ending, Refined, evaluated, refine

TIMES = np.linspace(0, 6, 61)
SUM = Model({"a": "-k*a", "b": "-m*b"}, {"y": "a + b"})
DATA = Data(TIMES, {"y": 2 * np.exp(-0.3 * TIMES) + np.exp(-2 * TIMES) + 1e-3 * np.sin(50 * TIMES)})
MISFIT = Problem(SUM, DATA).misfit
FRAME = coordinates.choose(MISFIT.unknowns, np.ones(4), (1e-5, 10.0))

NOISE = 1e-3 * np.random.default_rng(3).standard_normal(len(TIMES))
RIVALS = ((1.5, 3.0), (0.6, 1.6), (2.0, 4.0))  # factors of the optimum's values, and how much less likely


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


@pytest.mark.parametrize("rounding", [-1e-9, 0.0, 1e-9])
def test_rounding_does_not_choose_between_solutions(rounding):
    first, second = (refine(MISFIT, np.array(z), frame=FRAME) for z in ([2, 1, 0.3, 2], [1, 2, 2, 0.3]))
    second = replace(second, cost=first.cost + rounding)
    for found in (optima(first, second), optima(second, first)):
        assert found.best is not None and found.best.refined is second
    better = replace(first, cost=first.cost - 1e-3)
    found = optima(better, second)
    assert found.best is not None and found.best.refined is better


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


def test_what_no_data_determine_makes_no_other_solution():
    """Only the product of s and x(0) shows: however far apart the factors are, this is one solution."""
    scaled = Problem(Model({"x": "-k*x"}, {"y": "s*x"}), Data(TIMES, {"y": 2 * np.exp(-0.3 * TIMES) + NOISE})).misfit
    assert [unknown.label for unknown in scaled.unknowns] == ["x(0)", "k", "s"]
    first, second = (refine(scaled, np.array(z)) for z in ([2.0, 0.3, 1.0], [0.1, 0.3, 20.0]))
    assert abs(first.cost - second.cost) < 1e-6 and abs(first.z[0] / second.z[0] - 1) > 0.5
    found = Optima().adding(*(Optimum(scaled, one) for one in (first, second)))
    frame = coordinates.choose(scaled.unknowns, np.ones(3))
    assert len(found.others(frame, None)) == 1
    assert found.others(frame, None, np.array([False, True, False])) == []


def test_rivals_are_nearly_as_likely_and_no_solutions():
    first, second = (refine(MISFIT, np.array(z), frame=FRAME) for z in ([2, 1, 0.3, 2], [1, 2, 2, 0.3]))
    near, nearer, far = (replace(first, z=first.z * factor, cost=first.cost + more) for factor, more in RIVALS)
    found = optima(first, second, near, far, nearer, replace(near, ending=Ending.TIME_LIMIT))
    others = found.others(FRAME, 2)
    assert len(others) == 1
    assert [one.cost for one in found.rivals(others)] == [nearer.cost, near.cost]
    # What the model cannot have as a second solution is a rival, however likely.
    assert found.rivals(found.others(FRAME, 1))[0].cost == pytest.approx(first.cost, abs=1e-3)


def test_starts_at_the_best_are_counted_by_rung():
    first = refine(MISFIT, np.array([2, 1, 0.3, 2]), frame=FRAME)
    ends = [
        Optimum(MISFIT, first, Provenance("box")),
        Optimum(MISFIT, first, Provenance("few")),
        Optimum(MISFIT, replace(first, cost=first.cost + 1), Provenance("box")),
        Optimum(MISFIT, replace(first, ending=Ending.TIME_LIMIT), Provenance("box")),
    ]
    found = Optima().adding(*ends)
    assert (found.at_best(), found.at_best("box"), Optima().at_best()) == (2, 1, 0)


def test_a_sharp_optimum_goes_before_all_others():
    first = refine(MISFIT, np.array([2, 1, 0.3, 2]), frame=FRAME)
    sharp = Optimum(MISFIT, evaluated(MISFIT, first.z * 1.01, FRAME), sharp=True)
    found = replace(optima(first), sharp=sharp)
    assert found.best is sharp and sharp.is_exact and sharp.is_settled
    assert sharp.refined.ending is Ending.EVALUATED and sharp.cost > first.cost
