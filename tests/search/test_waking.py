"""Waking: what sleeps is found and moved by itself to where it is felt, and what it leads to is followed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import odejet as oj
from odejet.objective.misfit import ROUGH
from odejet.problem import Problem
from odejet.search.ground import Ground
from odejet.search.local_search import Hops, IteratedLocalSearch
from odejet.search.refine import refine
from odejet.search.screen import Screen
from odejet.search.waking import woken

TIMES = np.linspace(0, 40, 25)
TRUE = {"q": 0.05, "k": 0.3, "d": 0.8, "s": 0.01, "r0": 5000.0}
# Receptors that are there in plenty at first, and of which few are made.
RECEPTORS = oj.Model(
    {"r": "q*(100 - r) - k*r", "b": "k*r - d*b"}, {"y": "s*b"}, initial={"r": "r0", "b": 0}, name="receptors"
)


def problem() -> Problem:
    exact = oj.simulate(RECEPTORS, TRUE, {}, TIMES).outputs["y"]
    return Problem(RECEPTORS, oj.Data(TIMES, {"y": exact + 0.05 * np.sin(37 * TIMES)}, noise=0.05), bounds=(1e-6, 1e6))


POSED = problem()
FRAME = POSED.frame()
SCREEN = Screen.of(POSED.misfit.window(1.0, effort=ROUGH), FRAME)
SETTINGS = IteratedLocalSearch()
LABELS = POSED.misfit.labels


def hops(seed: int = 0) -> Hops:
    return Hops(Ground(POSED.misfit, FRAME, None, math.inf), SETTINGS, np.random.default_rng(seed), FRAME.box)


def point(**values: float) -> np.ndarray:
    return np.array([{**TRUE, **values}[label] for label in LABELS])


def constant():
    """An optimum at which all is over before the second measurement."""
    end = refine(POSED.misfit, point(q=35.0, k=1e5, d=16.0, r0=1e-3), frame=FRAME)
    assert end.ending.settled and end.cost > 1e4
    return end


def test_effects_are_those_of_a_factor_e_beside_the_best_scale():
    step, z = 1e-5, point()
    found = SCREEN.effects(z)
    part = SCREEN.part
    assert found is not None and part is not None and found.unit == pytest.approx(1.0)
    for i, entry in enumerate(SCREEN.free):
        moved = z.copy()
        moved[entry] *= math.exp(step)
        one, other = (part.evaluate(at[part.kept], jacobian=False).residuals for at in (moved, z))
        difference = (one - other) / part.row_levels(part.levels(other)) / step
        # Kaufman's derivative leaves out what the best scale does to the residuals themselves, which is little here.
        assert found.sizes[i] == pytest.approx(np.linalg.norm(difference), rel=0.05, abs=0.05)


def test_what_sleeps_is_moved_by_itself_to_where_it_is_felt():
    end = constant()
    theta = FRAME.to(FRAME.inside(end.z))
    effects = SCREEN.effects(end.z)
    assert effects is not None and effects.sizes.max() < 1e-3 and effects.unit > 100
    found = list(woken(SCREEN, theta, FRAME.box, np.random.default_rng(0)))
    changed = [np.flatnonzero(np.abs(FRAME.to(z) - theta) > 1e-9) for z in found]
    assert found and all(len(one) == 1 for one in changed)
    assert len({int(one[0]) for one in changed}) == len(changed)
    assert all(abs(SCREEN.cost(z) - SCREEN.cost(end.z)) > effects.unit for z in found)


def test_what_matters_already_is_left_as_it_is():
    theta = FRAME.to(point())
    effects = SCREEN.effects(point())
    assert effects is not None
    asleep = {int(entry) for entry in SCREEN.free[effects.sizes < 1]}
    for z in woken(SCREEN, theta, FRAME.box, np.random.default_rng(0)):
        assert set(np.flatnonzero(np.abs(FRAME.to(z) - theta) > 1e-9).tolist()) <= asleep
    assert not list(woken(SCREEN, theta, FRAME.box, np.random.default_rng(0), deadline=-math.inf))


def decaying():
    """An optimum at which all receptors are bound at once: the rate of that makes no difference."""
    end = refine(POSED.misfit, point(q=1e-6, k=1e4, d=0.236, r0=1e6), frame=FRAME)
    assert end.ending.settled and end.cost > 400
    return end


@pytest.mark.parametrize("seed", range(3))
def test_hops_wake_what_sleeps_and_come_to_the_optimum(seed, monkeypatch):
    monkeypatch.setattr(Hops, "drawn", lambda *_: None)
    own, end = hops(seed), decaying()
    for _ in range(20):
        own.waking = 0  # what is drawn has had its share
        own.hop([end])
    assert own.ends[0].cost < POSED.misfit.score(point()) + SETTINGS.alike


def test_a_hop_that_wakes_is_brief_where_nothing_leads_lower():
    best = refine(POSED.misfit, point(), frame=FRAME)
    own = hops()
    assert own.hop([best]) is None and own.spent <= SETTINGS.woken * SETTINGS.brief


def test_unknowns_are_woken_at_all_places_and_more_often_at_better_ones():
    own, best = hops(), constant()
    places = [replace(best, cost=10.0 * rank) for rank in range(1, 17)]
    seen = []
    for _ in range(30):
        seen.append(own.next_woken(places).cost)
        own.awakened[seen[-1]] += 1
    assert seen[:7] == [10, 20, 30, 40, 50, 60, 70] and set(seen) == {one.cost for one in places}
    counts = [seen.count(one.cost) for one in places]
    assert counts == sorted(counts, reverse=True) and counts[0] == 4
