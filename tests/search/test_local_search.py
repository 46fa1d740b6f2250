"""Iterated local search: where hops begin, what they keep, and that they lead on from a poor optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import odejet as oj
from odejet.problem import Problem
from odejet.search.ground import Ground
from odejet.search.local_search import Hops, IteratedLocalSearch
from odejet.search.refine import SAME, Ending, refine
from odejet.search.screen import Screen

SETTINGS = IteratedLocalSearch()
TIMES = np.linspace(0, 30, 60)
WAVE = Problem(
    oj.Model({"x": "w*v", "v": "-w*x"}, {"y": "a*x + b"}, initial={"x": 1, "v": 0}),
    oj.Data(TIMES, {"y": 3 * np.cos(1.1 * TIMES) + 5 + 0.05 * np.sin(37 * TIMES)}),
    bounds={"w": (0.01, 10), "a": (1e-3, 1e3), "b": (1e-3, 1e3)},
    noise="normal(s)",
)


def hops(seed=0, deadline=math.inf) -> Hops:
    frame = WAVE.frame()
    ground = Ground(WAVE.misfit, frame, None, deadline)
    return Hops(ground, SETTINGS, np.random.default_rng(seed), frame.box)


def poor():
    """A local optimum at a wrong frequency."""
    found = refine(WAVE.misfit, np.array([0.3, 1.0, 1.0, 1.0]), frame=WAVE.frame())
    assert found.ending.settled and abs(found.z[WAVE.unknowns.index("w")] - 1.1) > 0.2
    return found


def test_they_lead_on_from_a_poor_optimum():
    own, begin = hops(), poor()
    for _ in range(60):
        own.hop([begin])
    assert own.ends[0].z[WAVE.unknowns.index("w")] == pytest.approx(1.1, rel=1e-3)
    assert own.ends[0].cost < begin.cost - 50
    assert [one.cost for one in own.ends] == sorted(one.cost for one in own.ends)


def test_the_same_seed_does_the_same():
    begin, ends = poor(), []
    for _ in range(2):
        own = hops(seed=5)
        for _ in range(5):
            own.hop([begin])
        ends.append([one.cost for one in own.ends])
    assert ends[0] == ends[1]


def test_coming_back_tells_nothing():
    own, begin = hops(), refine(WAVE.misfit, np.array([1.1, 1.0, 1.0, 1.0]), frame=WAVE.frame())
    for _ in range(10):
        known = [begin.cost, *(one.cost for one in own.ends)]
        end = own.hop([begin])
        assert end is None or min(abs(end.cost - cost) for cost in known) > SAME


def test_what_is_on_its_way_back_is_known_by_the_slope_and_what_lies_behind_a_hill_is_not():
    own, begin = hops(), poor()
    w, free = WAVE.unknowns.index("w"), begin.z.copy()
    free[w] *= 1.05
    near = replace(begin, z=free, cost=own.cost(free))
    assert near.cost > begin.cost + SAME and own.returns(near, [begin])
    best = refine(WAVE.misfit, np.array([1.1, 1.0, 1.0, 1.0]), frame=WAVE.frame())
    assert best.cost < begin.cost - 50 and not own.returns(begin, [best])
    assert not own.returns(begin, [near])  # it is lower than what is known


def test_a_hop_on_its_way_back_ends_after_its_first_evaluations(monkeypatch):
    monkeypatch.setattr(Hops, "returns", lambda *_: True)
    own, begin = hops(), poor()
    assert [own.hop([begin]) for _ in range(5)] == [None] * 5 and not own.ends
    assert 0 < own.spent <= 5 * SETTINGS.first


def test_without_a_place_to_begin_or_time_there_is_no_hop():
    assert hops().hop([]) is None
    assert hops(deadline=-math.inf).hop([poor()]) is None


def test_they_begin_at_the_best_that_differ():
    own, begin = hops(), poor()
    copies = [replace(begin, cost=begin.cost + SAME / 10 * i) for i in range(5)]
    other = replace(begin, cost=begin.cost + 1)
    assert [one.cost for one in own.apart([other, *copies])] == [begin.cost, other.cost]


def test_what_changes_is_drawn_anew_or_comes_from_another_and_is_never_what_follows_from_the_rest():
    begin, seen = poor(), []
    other = replace(begin, z=begin.z * 1.5, cost=begin.cost + 1)
    own = hops()
    own.ground.screen = Watching(WAVE.misfit, WAVE.frame(), own.ground.screen.part, seen)
    for _ in range(9):
        own.drawn(begin, [other])
    w = WAVE.unknowns.index("w")
    assert any(z[w] == pytest.approx(other.z[w]) for z in seen) and any(z[w] != pytest.approx(other.z[w]) for z in seen)
    for name in ("a", "b", "s"):
        place = WAVE.unknowns.index(name)
        np.testing.assert_allclose([z[place] for z in seen], begin.z[place])


def test_they_take_turns_and_ask_not_how_well_one_change_or_a_point_between_fits():
    seen: list[np.ndarray] = []
    problem = Problem(oj.Model({"x": "-k*x*c"}, {"y": "x**d"}), oj.Data(TIMES, {"y": np.exp(-TIMES)}), bounds=(0.1, 10))
    begin = replace(poor(), z=np.full(4, 1.0))
    other = replace(begin, z=np.full(4, 4.0), cost=begin.cost + 1)
    ground = Ground(problem.misfit, problem.frame(), None, math.inf)
    ground.screen = Watching(problem.misfit, problem.frame(), None, seen)
    own = Hops(ground, SETTINGS, np.random.default_rng(0), problem.frame().box)
    drawn = [own.drawn(begin, [other]) for _ in range(12)]
    assert len(seen) == 4 * (1 + 1 + SETTINGS.draws)  # every third is the best of several
    alone = [np.flatnonzero(~np.isclose(z, begin.z)) for z in drawn[::3]]
    assert sorted(i for changed in alone for i in changed) == [0, 1, 2, 3]  # each unknown once
    for z in drawn[1::3]:
        np.testing.assert_allclose(z, z[0])
        assert 1 < z[0] < 4


@dataclass(frozen=True, eq=False)
class Watching(Screen):
    """Remembers the points that it is asked about."""

    seen: list[np.ndarray]

    def best(self, points, deadline=math.inf, but=None):
        self.seen.extend(points)
        return points[0]


def test_a_point_costs_what_it_does_with_its_best_scales_and_noise():
    begin = poor()
    z = begin.z.copy()
    z[[WAVE.unknowns.index(name) for name in ("a", "b", "s")]] = 77.0
    assert begin.ending is not Ending.EVALUATION_LIMIT
    screen = Screen.of(WAVE.misfit, WAVE.frame())
    assert screen.cost(z) == pytest.approx(begin.cost, abs=1e-6)
    assert screen.cost(z, deadline=-math.inf) == math.inf
    assert screen.best([z, begin.z * 1.1], deadline=-math.inf) is None
