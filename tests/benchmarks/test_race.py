"""The race: who has arrived, and how its table tells it."""

import json

import numpy as np
import pytest

import odejet as oj
from benchmarks.race import goal_of, is_same, stopping, table
from odejet.problem import Problem
from odejet.problem.misfit import ROUGH
from odejet.search.refine import refine

TIMES = np.linspace(0, 5, 20)


def decay(noise):
    values = np.exp(-0.7 * TIMES) + 0.01 * np.random.default_rng(1).normal(size=len(TIMES))
    model = oj.Model({"x": "-k*x"}, {"y": "x"})
    return Problem(model, oj.Data(TIMES, {"y": values}), noise=noise, bounds=(1e-3, 1e3))


@pytest.mark.parametrize("noise", [0.01, None, "normal(s)", "normal(s + 0.1*y)"])
def test_noise_of_other_size_is_another_likelihood(noise):
    misfit = decay(noise).misfit
    assert is_same(misfit.window(1.0, effort=ROUGH), misfit)
    assert not is_same(misfit.window(0.5), misfit)
    assert not is_same(misfit.window(1.0, levels=misfit.scales), misfit)


def test_only_the_likelihood_of_the_problem_arrives():
    misfit = decay(0.01).misfit
    start, goal = np.array([0.5, 2.0]), misfit.score(np.array([1.0, 0.7])) + 0.1
    loose = misfit.window(1.0, levels=0.05 * misfit.scales)  # has a cost of its own, which may well be lower
    with stopping(misfit, goal + 1e6) as arrived:
        refine(loose, start)
    assert not arrived
    with stopping(misfit, goal) as arrived, pytest.raises(KeyboardInterrupt):
        refine(misfit, start)
    assert arrived


def test_the_goal_is_the_best_optimum_that_is_known(tmp_path):
    fits = tmp_path / "collection.jsonl"
    found = [("A", "read", 9.0), ("A", "fit", -2.0), ("A", "fit", -3.0), ("B", "fit", 7.0)]
    rows = ({"problem": name, "task": task, "log_posterior": value} for name, task, value in found)
    fits.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert goal_of("A", -5.0, fits) == 2.1
    assert goal_of("A", -1.0, fits) == 1.1
    assert goal_of("C", -1.0, fits) == 1.1


def test_the_table_counts_all_seconds_for_those_who_arrive():
    ours = {"problem": "A", "who": "odejet"}
    theirs = {"problem": "A", "who": "pypesto", "compile_seconds": 18.2}
    lines = [
        ours | {"seed": 0, "arrived": True, "seconds": 2.0},
        ours | {"seed": 1, "arrived": False, "seconds": 8.0},
        theirs | {"seed": 0, "arrived": False, "seconds": 20.0},
        {"problem": "A", "who": "copasi", "seed": 0, "inexpressible": "priors"},
    ]
    assert table(lines).splitlines()[-1] == "| A | 10.0 s (1 of 2) | more than 20 s (0 of 1) | 18 s | - |"
