"""Experiments that share nothing but their noise: they are told apart, searched one by one, and joined."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.budget import Budget
from odejet.decide import Options, Record, Task
from odejet.decide.apart import UNSEARCHED, _borrowed, _refined, _searched, groups, least
from odejet.decide.optimality import Optimality
from odejet.decide.state import State
from odejet.problem import Problem
from odejet.progress import Progress
from odejet.search.refine import refine

DECAY = oj.Model({"x": "-k*x + b"}, {"y": "a*x"}, initial={"x": 1})
TIMES = np.linspace(0, 6, 12)
RATES = (0.2, 0.5, 1.1, 2.0)


def data(noise: float = 0.01) -> oj.Data:
    rng = np.random.default_rng(5)
    values = [1 + np.exp(-k * TIMES) + noise * rng.standard_normal(12) for k in RATES]
    return oj.Data.join(oj.Data(TIMES, {"y": y}, name=f"e{i}") for i, y in enumerate(values))


def problem(local: list[str], **options: object) -> Problem:
    return Problem(DECAY, data(), local=local, **options)


def test_experiments_that_share_an_unknown_hang_together():
    assert groups(problem(["k", "b"])) == ()
    found = groups(problem(["k", "a", "b"]))
    assert [one.problem.experiments[0].name for one in found] == ["e0", "e1", "e2", "e3"]
    assert sorted(np.concatenate([one.entries for one in found]).tolist()) == list(range(12))
    assert groups(problem(["k", "a", "b"], priors={"k": "lognormal(0, 1)"})) == ()


def test_bounds_and_noise_go_with_the_experiments():
    found = groups(problem(["k", "a", "b"], bounds={"k in e2": (0.5, 3), "a": (0, 10)}, noise=0.02))
    assert found[2].problem.bounds["k"] == (0.5, 3) and found[1].problem.bounds["k"] == (-np.inf, np.inf)
    assert all(one.problem.bounds["a"] == (0, 10) and one.problem.noise == 0.02 for one in found)


def test_a_noise_that_all_share_does_not_tie_them():
    assert len(groups(problem(["k", "a", "b"], noise="normal(s)"))) == 4


def test_all_are_as_sure_as_the_least_sure():
    told = least(
        {"a": Optimality("confirmed", 40, 40, 1, 0.001), "b": Optimality("likely", 20, 15, 2, 0.02, ["since"])}
    )
    assert told == "likely" and (told.starts, told.agreeing, told.optima, told.unseen) == (60, 15, 3, 0.02)
    assert "least sure is b: likely; since" in told.sentence


def test_a_fit_of_all_is_that_of_each():
    """The optimum of each given the common noise is its own, since one level weights all of its squares alike."""
    joint = oj.fit(DECAY, data(), local=["k", "a", "b"])
    assert joint.certified and joint.search == "confirmed" and "apart" in joint.stages
    for number, k in enumerate(RATES):
        own = oj.fit(DECAY, oj.Data.of([data().experiments[number]]))
        assert joint.values[f"k in e{number}"] == pytest.approx(own.values["k"], rel=1e-5)
        assert joint.values[f"k in e{number}"] == pytest.approx(k, rel=0.2)


def test_experiments_without_time_of_their_own_begin_where_others_have_ended():
    """Whatever the clock leaves unsearched, the refinement of all together ends at the optimum of each."""
    whole, searched, budget = problem(["k", "a", "b"]), [], Budget.within(600.0)

    def search(task):
        searched.append(task.problem.experiments[0].name)
        if len(searched) == 2:
            budget.deadline = 0.0  # nothing is left for the others
        fit = oj.fit(DECAY, oj.Data.of(task.problem.experiments))
        values = [fit.values[name] for name in task.problem.unknowns]
        return refine(task.misfit, np.array(values)), Optimality("confirmed", 9, 9, 1, 0.0)

    state = State.of(Task(whole, Options(), Budget.within(600.0), Record(Progress(False))))
    found = groups(whole)
    parts = _searched(state.task, found, budget, search)
    assert searched == ["e0", "e1"] and len(parts) == 2
    others = _borrowed(found[2:], parts)
    assert [part.search for part in others] == ["open", "open"] and UNSEARCHED in others[0].search.sentence
    assert others[0].z == pytest.approx(np.median([part.z for part in parts], axis=0))
    whole_fit = oj.fit(DECAY, data(), local=["k", "a", "b"])
    together = _refined(state, [*parts, *others])
    assert together.z == pytest.approx([whole_fit.values[name] for name in whole.unknowns], rel=1e-4)
