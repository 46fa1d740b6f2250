"""The race: who goes on, how far, and what comes out in the end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model, Problem
from odejet.objective.misfit import ROUGH
from odejet.search import ground
from odejet.search.ground import Ground
from odejet.search.halving import HALVING, PLAIN, Race
from odejet.search.refine import Ending, refine
from odejet.search.workers import Workers

TIMES = np.linspace(0, 5, 12)
DECAY = Problem(
    Model({"x": "-k*x"}, {"y": "x"}),
    Data(TIMES, {"y": 2 * np.exp(-0.7 * TIMES) + 0.01 * np.cos(9 * TIMES)}),
    bounds=(1e-4, 1e4),
)


def race_of(settings, deadline=math.inf) -> Race:
    own = Ground(DECAY.misfit, DECAY.frame(), None, deadline)
    return Race(own, settings, Workers(own))


def runners() -> Race:
    return race_of(HALVING)


@pytest.fixture
def laps(monkeypatch) -> list[tuple[int, np.ndarray]]:
    """Laps as they are run, on a course where all starts come down by as much in each and no lap is the end: the first
    value of a start is its cost after the first."""
    run: list[tuple[int, np.ndarray]] = []

    def lap(misfit, z, *, max_evaluations, frame, **_):
        run.append((max_evaluations, z))
        found = refine(misfit, z, frame=frame, max_evaluations=1)
        down = 1000.0 * HALVING.laps.index(max_evaluations)
        return replace(found, cost=float(np.round(z[0], 9)) - down, ending=Ending.EVALUATION_LIMIT)

    monkeypatch.setattr(ground, "refine", lap)
    return run


def test_the_first_start_goes_all_the_way(laps):
    (end,) = runners().enter(np.array([1.0, 1.0]))
    assert [evaluations for evaluations, _ in laps] == list(HALVING.laps)
    np.testing.assert_array_equal(end.start, [1.0, 1.0])


def test_a_plain_multistart_is_one_lap_for_all():
    own = race_of(PLAIN)
    ends = [end for k in (0.01, 0.3, 3.0) for end in own.enter(np.array([1.0, k]))]
    assert len(ends) == 3 and all(end.ending.settled for end in ends)
    assert max(end.cost for end in ends) == pytest.approx(min(end.cost for end in ends), abs=1e-6)


def test_a_start_goes_on_only_among_the_best_of_those_that_came_as_far(laps):
    own, costs = runners(), np.random.default_rng(1).permutation(np.arange(1.0, 31.0))
    ends = [end for cost in costs for end in own.enter(np.array([cost, 1.0]))]
    for lap, after in zip(own.laps, own.laps[1:], strict=False):
        best = sorted(runner.at.z[0] for runner in lap)[: math.ceil(len(lap) / HALVING.kept)]
        assert set(best) <= {runner.at.z[0] for runner in after}
        assert math.ceil(len(lap) / HALVING.kept) <= len(after) < len(lap)
    assert len(own.laps[0]) == 30 and min(end.z[0] for end in ends) == 1.0
    assert len(laps) == sum(map(len, own.laps))


@pytest.mark.parametrize(("pace", "goes_on"), [(0.1, False), (10.0, True)])
def test_a_start_that_creeps_far_above_the_best_goes_on_no_more(laps, pace, goes_on):
    own = runners()
    list(own.enter(np.array([1.0, 1.0])))
    best = own.laps[-1][0].at
    behind = replace(best, cost=best.cost + 10)
    assert list(own.ended(np.array([2.0, 1.0]), behind, 1, behind.cost + pace)) == []
    own.laps[1].remove(own.laps[1][0])  # so that it is among the best that came as far
    assert (own.next() is not None) == goes_on


def test_a_start_that_cannot_be_simulated_is_no_rival(laps):
    own = runners()
    list(own.enter(np.array([math.inf, 1.0])))
    assert not any(own.laps)


def test_ends_are_optima_of_a_rough_misfit_with_their_starts():
    own = runners()
    assert own.ground.rough.effort == ROUGH and own.ground.rough.points == DECAY.misfit.points
    start = np.array([1.0, 0.3])
    (end,) = own.enter(start)
    assert end.ending.settled
    np.testing.assert_array_equal(end.start, start)
    exact = refine(DECAY.misfit, end.z, frame=DECAY.frame())
    assert exact.cost == pytest.approx(end.cost, abs=1e-6)


def test_nobody_goes_on_when_the_time_is_over(laps):
    late = race_of(HALVING, -math.inf)
    assert list(late.enter(np.array([1.0, 0.3]))) == [] and len(laps) == 1


def test_a_rehearsal_tells_the_laps_that_follow_as_far_as_they_are_known(laps):
    own, costs = runners(), np.random.default_rng(2).permutation(np.arange(1.0, 9.0))
    for cost in costs[:5]:
        list(own.enter(np.array([cost, 1.0])))
    firsts = [own.ground.roughly(np.array([cost, 1.0]), HALVING.laps[0]) for cost in costs[5:]]
    foreseen, ends = own.rehearsed([(one.z, one) for one in firsts])
    assert foreseen and not ends and all(not runner.gone for runner in own.laps[0][5:])
    begun = len(laps)
    for one in firsts:
        list(own.enter(one.z, one))
    run = {(z.tobytes(), evaluations) for evaluations, z in laps[begun:]}
    assert {question.key[1:] for question in foreseen} <= run
