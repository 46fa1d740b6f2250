"""Valleys: ends along one are one optimum, ends with a ridge between them are two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import odejet as oj
from odejet.budget import Budget
from odejet.decide.optima import Optima, Optimum, Provenance
from odejet.decide.valleys import Valley
from odejet.problem import Problem
from odejet.search.refine import refine

TIMES = np.linspace(0, 2, 21)
NOISE = np.random.default_rng(4).standard_normal(len(TIMES))


def ground(problem: Problem) -> Valley:
    return Valley(problem.misfit, problem.frame(), np.ones(len(problem.unknowns), dtype=bool))


def test_a_bent_valley_is_one_optimum():
    """Saturation is hardly reached, so that V/K alone is known: ends a factor of ten apart are one."""
    model = oj.Model({"x": "-V*x/(K + x)"}, {"y": "x"}, initial={"x": 1})
    problem = Problem(
        model, oj.Data(TIMES, {"y": np.exp(-0.5 * TIMES) + 0.02 * NOISE}), bounds={"V": (0.1, 1e4), "K": (0.1, 1e4)}
    )
    starts = np.array([30.0, 60.0]), np.array([300.0, 600.0])
    near, far = (refine(problem.misfit, z, frame=problem.frame(), max_evaluations=4) for z in starts)
    assert far.z[0] > 3 * near.z[0]
    assert ground(problem).holds(near, far, Budget())


def test_exchanged_rates_are_two():
    model = oj.Model({"a": "-k*a", "b": "-m*b"}, {"y": "a + b"}, initial={"a": 2, "b": 1})
    values = 2 * np.exp(-0.3 * TIMES) + np.exp(-3 * TIMES) + 0.01 * NOISE
    problem = Problem(model, oj.Data(TIMES, {"y": values}), bounds={"k": (0.01, 20), "m": (0.01, 20)})
    first, second = (refine(problem.misfit, np.array(z), frame=problem.frame()) for z in ([0.3, 3.0], [2.0, 0.1]))
    assert abs(first.z[0] / second.z[0] - 1) > 0.5
    assert not ground(problem).holds(first, second, Budget())


@pytest.mark.parametrize("draw", [0, 1])
def test_aliases_are_two(draw):
    """A frequency and its alias at equidistant times explain the data alike, and nothing between them does."""
    times = np.linspace(0, 5, 16)
    model = oj.Model({"s": "0"}, {"y": "cos(w*t)"}, initial={"s": 0})
    noise = 0.1 * np.random.default_rng(draw).standard_normal(16)
    problem = Problem(model, oj.Data(times, {"y": np.cos(3 * times) + noise}), bounds={"w": (0, 40)})
    alias = 2 * np.pi / times[1] - 3
    first, second = (refine(problem.misfit, np.array([w]), frame=problem.frame()) for w in (3.0, alias))
    assert second.cost == pytest.approx(first.cost, abs=1e-3)
    assert not ground(problem).holds(first, second, Budget())


def test_ends_along_the_valley_are_no_rivals():
    model = oj.Model({"a": "-k*a", "b": "-m*b"}, {"y": "a + b"}, initial={"a": 2, "b": 1})
    values = 2 * np.exp(-0.3 * TIMES) + np.exp(-3 * TIMES) + 0.01 * NOISE
    problem = Problem(model, oj.Data(TIMES, {"y": values}), bounds={"k": (0.01, 20), "m": (0.01, 20)})
    first = refine(problem.misfit, np.array([0.3, 3.0]), frame=problem.frame())
    second = replace(first, z=1.5 * first.z, cost=first.cost + 1)
    found = Optima().adding(*(Optimum(problem.misfit, one, Provenance()) for one in (first, second)))
    assert found.rivals([]) == [second]
    assert replace(found, joined=(second,)).rivals([]) == []
