"""Candidates: those outside the bounds are told apart, alike ones count once, medians join them."""

from __future__ import annotations

import numpy as np

from odejet import Data, Model
from odejet.problem import Problem, coordinates
from odejet.search.candidates import Candidate, Census, originals, ranked, within
from odejet.search.shooting import Shot

TIMES = np.linspace(0, 4, 21)
MISFIT = Problem(Model({"x": "-k*x"}, {"y": "x"}), Data(TIMES, {"y": 2 * np.exp(-0.5 * TIMES)})).misfit
FRAME = coordinates.choose(MISFIT.unknowns, np.ones(2), (0.1, 10.0))


def candidates(*points: tuple[float, float]) -> list[Candidate]:
    return [Candidate(np.array(point), Shot((0.0,), "exact")) for point in points]


def test_bounds_tell_candidates_apart():
    census = Census()
    inside, outside = within(candidates((2.0, 0.5), (12.0, 0.5), (100.0, 0.5)), FRAME, census)
    assert [c.z.tolist() for c in inside] == [[2.0, 0.5], [10.0, 0.5]]
    assert [c.z.tolist() for c in outside] == [[10.0, 0.5]]
    assert census.table() == {"candidates": {"outside the bounds": 1}}


def test_the_best_comes_first_and_twins_count_once():
    census = Census()
    kept = ranked(candidates((1.0, 0.9), (2.0, 0.5), (2.001, 0.5)), MISFIT, FRAME, np.array([0.1]), census)
    assert [c.z.tolist() for c in kept] == [[2.0, 0.5], [1.0, 0.9]]
    assert kept[0].cost < kept[1].cost
    assert census.table()["candidates"]["like a better one"] == 1


def test_one_like_the_best_from_another_time_is_kept_beside_it():
    here, there = Shot((0.0,), "exact"), Shot((1.0,), "exact")
    points = {(2.0, 0.5): here, (2.001, 0.5): here, (2.002, 0.5): there, (2.003, 0.5): there}
    proposed = [Candidate(np.array(point), shot) for point, shot in points.items()]
    kept = ranked(proposed, MISFIT, FRAME, np.array([0.1]), Census())
    assert [c.z.tolist() for c in kept] == [[2.0, 0.5], [2.002, 0.5]]


def test_those_like_the_best_from_parts_of_the_measurements_are_kept_beside_it():
    parts = {(2.0, 0.5): "", (2.001, 0.5): "even", (2.002, 0.5): "odd", (2.003, 0.5): "odd"}
    proposed = [Candidate(np.array(point), Shot((), ""), part=part) for point, part in parts.items()]
    kept = ranked(proposed, MISFIT, FRAME, np.array([0.1]), Census())
    assert [c.part for c in kept] == ["", "even", "odd"]
    assert originals(kept) == kept


def test_the_median_of_the_best_joins():
    points = [(1.6, 0.4), (1.8, 0.5), (2.0, 0.8), (2.2, 0.45), (2.4, 0.6)]
    best = ranked(candidates(*points), MISFIT, FRAME, np.array([0.1]), Census())[0]
    assert best.start == "median"
    np.testing.assert_allclose(best.z, [2.0, 0.5])


def test_roots_with_the_same_trajectory_are_no_independent_starts():
    here, there = Shot((0.0,), "exact"), Shot((1.0,), "exact")
    one, image = Candidate(np.array([1.0, 2.0]), here, cost=7.0), Candidate(np.array([2.0, 1.0]), here, cost=7 + 1e-9)
    elsewhere, worse = Candidate(image.z, there, cost=7.0), Candidate(image.z, here, cost=7.1)
    assert originals([one, image, elsewhere, worse]) == [one, elsewhere, worse]
