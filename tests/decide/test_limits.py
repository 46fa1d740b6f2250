"""Limits: what runs off is named with where it goes and what it takes along; what has a value of its own is not."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.budget import Budget
from odejet.decide.limits import Ends, Limit
from odejet.problem import Problem
from odejet.search.refine import refine

TIMES = np.linspace(0, 6, 25)
NOISE = np.random.default_rng(3).standard_normal(len(TIMES))
SWAY = (-1.0) ** np.arange(len(TIMES))
"""Errors that no curve of these models follows, so that the best is where the curve itself is."""
GROWTH = oj.Model({"N": "r*N*(1 - N/K)"}, {"y": "N"}, initial={"N": 2})
DECAY = oj.Model({"S": "-V*S/(K + S)"}, {"y": "S"}, initial={"S": 5})
HALF = oj.Data(TIMES, {"y": 2 / (1 + (2 / 9 - 1) * (1 - np.exp(-1.5 * TIMES))) + 0.05 * NOISE})
EXPONENTIAL = oj.Data(TIMES, {"y": 2 * np.exp(0.5 * TIMES) + 0.3 * SWAY})
FIRST_ORDER = oj.Data(TIMES, {"y": 5 * np.exp(-0.4 * TIMES) + 0.1 * NOISE})
ZERO_ORDER = oj.Data(TIMES, {"y": 5 - 0.7 * TIMES - 0.02 * TIMES**2 + 0.1 * SWAY})


def limits(model: oj.Model, data: oj.Data, start: dict[str, float], **known: object) -> list[Limit]:
    problem = Problem(model, data, **known)
    z = np.array([start[name] for name in problem.unknowns])
    frame = problem.frame(z)
    best = refine(problem.misfit, z, frame=frame)
    ends = Ends(problem.misfit, frame, best)
    return list(ends.limits(np.ones(len(z), dtype=bool), Budget()))


def test_growth_that_shows_no_end_has_an_infinite_capacity():
    assert limits(GROWTH, EXPONENTIAL, {"r": 0.5, "K": 1e3}, positive=True) == [Limit("K", "infinity")]


def test_the_same_within_bounds_runs_to_its_bound():
    found = limits(GROWTH, EXPONENTIAL, {"r": 0.5, "K": 1e3}, bounds={"r": (0.01, 10), "K": (1, 1e6)})
    assert found == [Limit("K", "its bound 1e+06")]
    assert "runs off to its bound 1e+06: no value of it does better" in found[0].sentence


def test_a_reciprocal_of_zero_has_no_sign():
    assert limits(GROWTH, EXPONENTIAL, {"r": 0.5, "K": 1e3}) == [Limit("K", "infinity, of either sign")]


@pytest.mark.parametrize("bounds", [None, {"V": (1e-3, 1e5), "K": (1e-3, 1e5)}], ids=["free", "bounded"])
def test_a_decay_of_first_order_takes_rate_and_constant_along(bounds):
    """Only V/K is known, and both of them grow together."""
    (found,) = limits(DECAY, FIRST_ORDER, {"V": 40.0, "K": 100.0}, bounds=bounds, positive=True)
    assert {found.label, *found.along} == {"V", "K"}
    assert found.where in ("infinity", "its bound 100000")


def test_a_decay_of_zeroth_order_has_no_constant():
    (found,) = limits(DECAY, ZERO_ORDER, {"V": 0.7, "K": 0.01}, positive=True)
    assert found == Limit("K", "zero")


def test_a_capacity_that_the_data_show_is_none():
    assert limits(GROWTH, HALF, {"r": 1.5, "K": 9.0}, positive=True) == []


def test_what_makes_no_difference_anywhere_runs_nowhere():
    model = oj.Model({"x": "-a*x"}, {"y": "x + 0*b"}, initial={"x": 5}, bounds={"b": (0.1, 10)})
    assert limits(model, FIRST_ORDER, {"a": 0.4, "b": 1.0}, positive=True) == []


def test_a_fit_names_it():
    data = oj.Data(TIMES, {"y": 2 * np.exp(0.5 * TIMES + 0.002 * TIMES**2) + 0.3 * NOISE})
    fit = oj.fit(GROWTH, data, bounds={"r": (0.01, 10), "K": (1, 1e6)}, time_limit=20.0)
    assert fit.certified and "K runs off to its bound 1e+06" in fit.message
    assert "K runs off" in fit.summary()
