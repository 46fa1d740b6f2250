"""Stages: shares of the time, other solutions by roots and by signs, and what is still missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odejet import Data, Model, Problem
from odejet.budget import Budget
from odejet.decide import Options, Record, Task, search, stages
from odejet.decide.optima import Optimum
from odejet.decide.state import State
from odejet.decide.task import SHARES
from odejet.progress import Progress
from odejet.search.alternatives import Alternatives
from odejet.search.refine import Ending, evaluated, refine

TIMES = np.linspace(0, 6, 121)
WAVE = Model({"u": "w*v", "v": "-w*u"}, {"y": "a*u"}, initial={"u": 0, "v": 1}, name="wave")
SINE = Data(TIMES, {"y": 2 * np.sin(1.3 * TIMES) + 0.01 * np.random.default_rng(0).standard_normal(len(TIMES))})


def task(model: Model, data: Data, **given: object) -> Task:
    return Task(Problem(model, data, **given), Options(time_limit=60.0), Budget.within(60.0), Record(Progress(False)))


def found(model: Model, data: Data, start: list[float], **given: object) -> State:
    """A state that knows the verdict and one optimum."""
    state = stages.identify(State.of(task(model, data, **given)))
    misfit = state.task.misfit
    return replace(state, optima=state.optima.adding(Optimum(misfit, refine(misfit, np.array(start)))))


def test_stages_have_shares_of_the_time():
    asked = task(WAVE, SINE)
    for name, share in SHARES.items():
        with asked.stage(name) as budget:
            assert share * 60 - 1 < budget.seconds <= share * 60
    for name, last in (("multistart", False), ("alternatives", True)):
        with asked.stage(name, last) as budget:
            assert budget.seconds > 59
    assert set(asked.record.stages) >= {*SHARES, "multistart"}


def test_signs_that_change_nothing_are_found():
    """Amplitude and frequency both negated give the same wave; one alone does not."""
    state = found(WAVE, SINE, [1.3, 2.0])
    assert state.best is not None
    z = state.best.refined.z
    (twin,) = stages.sign_twins(state.best, state.frame, Budget())
    np.testing.assert_array_equal(twin, -z)
    assert stages.sign_twins(state.best, state.frame, Budget.within(0.0)) == []
    positive = found(WAVE, SINE, [1.3, 2.0], positive=["a"])
    assert positive.best is not None and stages.sign_twins(positive.best, positive.frame, Budget()) == []


def test_solutions_that_roots_do_not_tell_are_found_by_their_signs(monkeypatch):
    monkeypatch.setattr(stages, "other_roots", lambda *_, **__: Alternatives([], []))
    state = found(WAVE, SINE, [1.3, 2.0])
    assert (state.counted, state.missing) == (2, 1)
    *_, last = stages.find_others(state)
    assert last.missing == 0
    np.testing.assert_allclose(last.others[0].z, -state.best.refined.z)


def test_roots_are_looked_for_again_while_solutions_are_missing(monkeypatch):
    attempts = []
    monkeypatch.setattr(stages, "other_roots", lambda *_, attempt: attempts.append(attempt) or Alternatives([], []))
    monkeypatch.setattr(stages, "sign_twins", lambda *_: [])
    state = found(WAVE, SINE, [1.3, 2.0])
    assert list(stages.find_others(state)) == []
    assert attempts == list(range(stages.ATTEMPTS))


def test_what_is_missing_is_told(monkeypatch):
    assert not any("solutions" in reason for reason in search(task(WAVE, SINE)).certificate.reasons)
    monkeypatch.setattr(stages, "find_others", keep)
    monkeypatch.setattr(stages, "challenge", keep)
    answer = search(task(WAVE, SINE, bounds=(0.1, 10.0)))
    assert answer.certificate.granted and len(answer.others) == 0
    assert "1 of 2 solutions of the model were found" in answer.message


def keep(state: State) -> stages.Steps:
    yield state
    return state


def test_rivals_stand_in_the_answer(monkeypatch):
    """A worse optimum elsewhere that the data hardly rule out."""
    search_box = stages.search_box

    def with_rival(state: State) -> stages.Steps:
        state = yield from search_box(state)
        best = state.best
        assert best is not None
        rival = replace(best.refined, z=best.refined.z * 1.2, cost=best.cost + 1.6)
        return replace(state, optima=state.optima.adding(replace(best, refined=rival)))

    monkeypatch.setattr(stages, "search_box", with_rival)
    few = Data(TIMES[::4], {"y": SINE.experiments[0].outputs["y"].values[::4]})
    answer = search(task(WAVE, few, bounds=(0.1, 10.0)))
    (rival,) = answer.rivals
    assert rival.cost == pytest.approx(answer.best.cost + 1.6)
    assert "another optimum is nearly as likely" in answer.message


def test_an_evaluation_says_what_it_is():
    misfit = Problem(WAVE, SINE).misfit
    frame = Problem(WAVE, SINE).frame(np.ones(2))
    optimum = refine(misfit, np.array([1.3, 2.0]))
    there = evaluated(misfit, optimum.z, frame)
    assert there.ending is Ending.EVALUATED and not there.ending.settled and there.evaluations == 1
    assert there.cost == pytest.approx(optimum.cost, abs=1e-9)
    exact = Problem(WAVE, Data(TIMES, {"y": 2 * np.sin(1.3 * TIMES)})).misfit
    assert evaluated(exact, np.array([1.3, 2.0]), frame).ending is Ending.EXACT
