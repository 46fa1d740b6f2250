"""Unknowns that have vanished on a logarithmic scale come back where the data want them."""

import warnings

import numpy as np
import pytest

from odejet import Data, Model, fit
from odejet.problem import Problem
from odejet.search.refine import refine
from odejet.search.vanishing import way_back

TIMES = np.linspace(0, 5, 60)


def supplied(supply: float, seed: int = 0) -> Data:
    """x' = supply - x from x(0) = 1, in closed form with noise."""
    clean = supply + (1 - supply) * np.exp(-TIMES)
    return Data(TIMES, {"y": clean + 0.01 * np.random.default_rng(seed).normal(size=len(TIMES))})


SUPPLIED = Model({"x": "supply - k*x"}, {"y": "x"})


@pytest.mark.parametrize("start", [1e-12, 1e-6])
def test_a_start_where_an_unknown_has_vanished_leads_to_the_optimum(start):
    problem = Problem(SUPPLIED, supplied(2.0), (1e-12, 100.0))
    found = refine(problem.misfit, np.array([1.0, start, 1.0]), frame=problem.frame(np.ones(3)))
    names = [unknown.name for unknown in problem.layout]
    assert names == ["x", "supply", "k"]
    assert found.z == pytest.approx([1.0, 2.0, 1.0], rel=0.05)


def test_what_the_data_do_not_want_stays_at_its_bound():
    problem, start = Problem(SUPPLIED, supplied(0.0, seed=1), (1e-12, 100.0)), np.array([1.0, 0.1, 1.0])
    assert refine(problem.misfit, start).z[1] < 0  # without bounds
    assert refine(problem.misfit, start, frame=problem.frame(np.ones(3))).z[1] < 1e-6


def test_what_its_upper_bound_holds_has_not_vanished():
    problem = Problem(SUPPLIED, supplied(20.0), {"x": (0.1, 10.0), "supply": (1e-3, 1.0), "k": (1e-3, 10.0)})
    misfit, frame, z = problem.misfit, problem.frame(np.ones(3)), np.array([1.0, 1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        way = way_back(frame, frame.to(z), misfit.evaluate(z), misfit.row_groups, misfit.scales, 1.0)
        there = None if way is None else way.up_to(1.0)
    assert there is None or there[1] == frame.to(z)[1]


def test_a_profile_leaves_the_corner_in_which_the_optimum_lies():
    # These data want a negative supply: at the optimum it is zero, but with a larger k held it is not.
    data = supplied(0.0, seed=1)
    within = fit(SUPPLIED, data, bounds={"supply": (1e-9, 10.0), "k": (0.1, 10.0), "x": (0.1, 10.0)})
    assert within.values["supply"] < 1e-6
    linear = fit(SUPPLIED, data, bounds={"supply": (-1e-9, 10.0), "k": (0.1, 10.0), "x": (0.1, 10.0)})
    assert within.profile("k").interval() == pytest.approx(linear.profile("k").interval(), rel=2e-3)
