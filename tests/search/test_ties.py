"""Ties: stretches with starts of their own become one solution."""

import numpy as np
import pytest

import odejet as oj
from odejet.budget import Budget
from odejet.problem import Problem
from odejet.search.pieces import pieces, start
from odejet.search.ties import tied

TIMES = 0.5 * np.arange(200)
CELL = oj.Model(
    {"v": "(drive - v)/tau - w*(v + 80)", "w": "-w/slow"},
    {"V": "v"},
    events=[oj.Event(when="v > top", set={"v": "bottom", "w": "w + kick"})],
)
TRUTH = {"drive": -40.0, "tau": 10.0, "slow": 30.0, "top": -50.0, "bottom": -70.0, "kick": 0.02}


def recorded(v, w, seed, **values):
    """A leaky cell that fires less and less often."""
    clean = oj.simulate(CELL, {**TRUTH, **values}, {"v": v, "w": w}, TIMES)["V"]
    return clean + 0.05 * np.random.default_rng(seed).standard_normal(len(TIMES))


def of_truth(problem, parts, slips=None):
    """The unknowns of stretches on the true solution, but for factors of some."""
    told = []
    for owner, experiment in zip(parts.owners, parts.problem.experiments, strict=True):
        parameters = {**TRUTH, **LOCAL[owner]}
        states = oj.simulate(CELL, parameters, STARTS[owner], [experiment.start], start=0.0).states
        told.append({**parameters, **{name: float(values[0]) for name, values in states.items()}})
    told = [{name: value * (slips or {}).get(name, 1.0) for name, value in one.items()} for one in told]
    return parts.problem.layout.scatter(told)


STARTS = [{"v": -65.0, "w": 0.01}, {"v": -60.0, "w": 0.03}]
LOCAL = [{}, {"drive": -42.0}]


def test_a_solution_goes_through_all_stretches():
    problem = Problem(CELL, oj.Data(TIMES, {"V": recorded(-65.0, 0.01, 1)}))
    parts = pieces(problem)
    assert len(parts.owners) > 4
    z = of_truth(problem, parts, {"tau": 1.03, "slow": 0.9})
    begin = start(problem, parts, z)
    found = tied(problem, parts, z, begin, np.array([0.05]), problem.frame(), Budget())
    before, after = (
        np.sqrt(np.mean(problem.misfit.evaluate(x, jacobian=False).residuals ** 2)) for x in (begin, found)
    )
    assert before > 2  # it fires at other times
    assert after < 0.1
    told = problem.layout.table(found)
    for name, value in TRUTH.items():
        assert told[name] == pytest.approx(value, rel=0.05)


def test_experiments_with_values_of_their_own():
    data = oj.Data.of(
        oj.Data(TIMES, {"V": recorded(*STARTS[i].values(), i, **LOCAL[i])}, name=name).experiments[0]
        for i, name in enumerate(("one", "two"))
    )
    problem = Problem(CELL, data, local=["drive"], bounds={"tau": (1, 100), "v": (-100, 0)})
    parts = pieces(problem)
    assert set(parts.owners) == {0, 1}
    z = of_truth(problem, parts)
    found = problem.layout.table(
        tied(problem, parts, z, start(problem, parts, z), np.array([0.05]), problem.frame(), Budget())
    )
    assert found["drive in one"] == pytest.approx(-40, abs=0.5) and found["drive in two"] == pytest.approx(-42, abs=0.5)
    assert found["top"] == pytest.approx(-50, abs=0.1) and found["kick"] == pytest.approx(0.02, abs=0.002)
    assert found["w(0) in two"] == pytest.approx(0.03, abs=0.003)
