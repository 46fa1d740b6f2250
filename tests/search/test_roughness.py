"""Roughness: how often outputs swing, by counting, and the sweep of a box with many valleys."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.problem import Problem
from odejet.search.box import sampled_box
from odejet.search.roughness import curves, swings
from odejet.search.sweep import sweep

TIMES = np.linspace(0, 5, 21)


def posed(model: oj.Model, values: np.ndarray, **options: object) -> tuple[Problem, tuple[np.ndarray, np.ndarray]]:
    problem = Problem(model, oj.Data(TIMES, {"y": values}), **options)
    return problem, sampled_box(problem.frame(), problem.sizes)


def test_a_frequency_swings_as_often_as_it_has_half_periods():
    """cos(w t) up to w = 40 at times up to 5: at a time t it crosses its range 40 t / pi times."""
    model = oj.Model({"x": "0"}, {"y": "cos(w*t)"}, initial={"x": 0})
    problem, box = posed(model, np.cos(3 * TIMES), bounds={"w": (0, 40)})
    (found,) = swings(problem.misfit, problem.frame(), box).along
    crossings = np.sqrt(np.mean((40 * TIMES / np.pi) ** 2)) / 1.5  # beyond the range there is a margin
    assert found == pytest.approx(crossings, rel=0.25)


@pytest.mark.parametrize("output", ["x", "a*x", "a*x + b"])
def test_a_decay_is_one_curve(output):
    model = oj.Model({"x": "-k*x"}, {"y": output}, initial=None if output == "x" else {"x": 1})
    problem, box = posed(model, np.exp(-0.7 * TIMES) + 0.1 * np.sin(4 * TIMES))
    assert curves(problem.misfit, problem.frame(), box) == 1.0


def test_a_scale_makes_no_other_curves():
    model = oj.Model({"x": "0"}, {"y": "A*cos(w*t)"}, initial={"x": 0})
    problem, box = posed(model, np.cos(3 * TIMES), bounds={"w": (0, 40), "A": (0, 100)})
    found = dict(zip(problem.unknowns, swings(problem.misfit, problem.frame(), box).along, strict=True))
    assert found["A"] < 1 and found["w"] > 10


def test_a_sweep_finds_a_narrow_valley():
    """A chirp with a true frequency at the far end of its bounds."""
    model = oj.Model({"p": "w*exp(-k*t)"}, {"y": "sin(p)"}, initial={"p": 0})
    values = np.sin(31.7 / 0.4 * (1 - np.exp(-0.4 * TIMES))) + 0.05 * np.random.default_rng(0).standard_normal(21)
    problem, _ = posed(model, values, bounds={"k": (0, 2), "w": (0, 40)})
    found = sweep(problem.misfit, problem.frame(), problem.sizes, 4096, 1)
    assert dict(zip(problem.unknowns, found[0].z, strict=True)) == pytest.approx({"w": 31.7, "k": 0.4}, rel=0.02)
    again = sweep(problem.misfit, problem.frame(), problem.sizes, 4096, 1)
    assert [one.cost for one in again] == [one.cost for one in found]


def test_curves_that_crowd_count_as_often_as_where_they_crowd():
    """sin(q e^(-k t)) with every k evenly: half of the box has hardly a curve, and the rest has them all."""
    model = oj.Model({"x": "-k*x"}, {"y": "cos(q*x)"}, initial={"x": 1})
    problem, box = posed(model, np.cos(20 * np.exp(-0.1 * TIMES)), bounds={"k": (0, 3), "q": (0, 60)})
    found = swings(problem.misfit, problem.frame(), box)
    assert found.curves > 2 * np.mean(found.volumes)


def test_unknowns_that_do_the_same_make_no_further_curves():
    times = {"w": (0.0, 40.0), "v": (0.0, 40.0)}
    one = oj.Model({"x": "0"}, {"y": "cos(w*t)"}, initial={"x": 0})
    two = oj.Model({"x": "0"}, {"y": "cos((w + v)*t/2)"}, initial={"x": 0})
    found = [
        curves(problem.misfit, problem.frame(), box)
        for problem, box in (
            posed(one, np.cos(3 * TIMES), bounds={"w": times["w"]}),
            posed(two, np.cos(3 * TIMES), bounds=times),
        )
    ]
    assert found[1] < 1.5 * found[0]
