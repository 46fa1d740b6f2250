"""Several experiments with the same parameters: what they tell together, and how many are enough."""

import dataclasses

import numpy as np
import pytest

import odejet as oj
from odejet import Model
from odejet.budget import Budget
from odejet.errors import ModelError
from odejet.identify import elimination, globally, local, orders, replicas
from problems import zoo

AFFINE = Model({"x1": "0", "x2": "x1*x2 + m1*x1 + m2"}, {"y": "x2"})
"""Ovchinnikov, Pillay, Pogudin and Scanlon (2022): one experiment tells m1 x1 + m2, two tell both."""

PLANE = Model({"x1": "0", "x2": "0", "z": "a*x1 + b*x2 + c"}, {"y1": "x1", "y2": "x2", "y3": "z"})
"""Every experiment gives one linear equation for a, b and c: three are enough."""

CIRCLE = Model({"x": "w*z", "z": "-w*x", "v": "a*v*x**2 + b*v*z**2 + c*v"}, {"y1": "x", "y2": "v"})
"""On one circle x^2 + z^2 = r^2 the three terms are dependent, on two they are not; (w, z) has two signs for ever."""

SLOW_FAST = zoo.by_name("slow_fast").model
"""Vajda and Rabitz: the rates may be exchanged, with another eB; but then eB differs between experiments."""

GROWTH = Model({"x": "a*x"}, {"y": "x**2"})


def kinds(verdict) -> dict[str, str]:
    return {name: quantity.kind for name, quantity in verdict.items()}


@pytest.mark.parametrize(
    ("model", "one", "enough", "solutions"),
    [
        (AFFINE, {"m1": "none", "m2": "none"}, 2, 1),
        (PLANE, {"a": "none", "b": "none", "c": "none"}, 3, 1),
        (CIRCLE, {"a": "none", "b": "none", "c": "none", "w": "local"}, 2, 2),
        (SLOW_FAST, {"k1": "local", "k2": "local", "eB": "local"}, 2, 1),
        (GROWTH, {"a": "global", "x": "local"}, 1, 2),
    ],
    ids=["affine", "plane", "circle", "slow and fast", "growth"],
)
def test_how_many_are_enough(model, one, enough, solutions):
    single = oj.identify(model)
    assert {name: single[name].kind for name in one} == one
    verdict = oj.identify(model, experiments="any")
    assert verdict.experiments == type(verdict.experiments)(None, enough, enough)
    assert verdict.solutions == solutions
    assert kinds(oj.identify(model, experiments=enough)) == kinds(verdict)
    if enough > 1:
        assert kinds(oj.identify(model, experiments=enough - 1)) != kinds(verdict)


def test_two_planes_leave_one_direction():
    """Two equations for three numbers: nothing is known by itself, and no combination of constants is either."""
    verdict = oj.identify(PLANE, functions=["a*x1 + b*x2 + c", "a*x1 + b*x2"], experiments=2)
    expected = {"a": "none", "b": "none", "c": "none", "a*x1 + b*x2 + c": "global", "a*x1 + b*x2": "none"}
    assert {name: verdict[name].kind for name in expected} == expected


@pytest.mark.parametrize("model", [AFFINE, PLANE, CIRCLE, SLOW_FAST], ids=["affine", "plane", "circle", "slow fast"])
@pytest.mark.parametrize("experiments", [1, 2, 3])
def test_ranks_are_those_of_the_model_of_all_experiments(model, experiments):
    ranks = local.analyse(local.problem(model, experiments=experiments))
    together = local.analyse(local.problem(replicas.replicated(model, experiments)))
    assert ranks.identifiable == {name: together.identifiable[name] for name in model.unknowns}


TWO_WAYS = ["slow_fast", "daisy_example_3", "lotka_volterra_prey", "bateman", "two_compartments_leak", "sir_reported"]


@pytest.mark.parametrize("name", TWO_WAYS)
def test_both_ways_agree_on_two_experiments(name):
    ranks = local.analyse(local.problem(zoo.by_name(name).model, experiments=2))
    engine = globally.Engine(None, Budget.within(120))
    found = elimination.count(ranks, orders.choose(ranks), engine)
    assert dataclasses.replace(found, experiments=2) == replicas.count(ranks, engine)


def test_a_problem_with_two_experiments_says_the_same():
    times = np.linspace(0.0, 1.0, 5)
    parts = [oj.Data(times, {"y": np.exp(times)}, name=name) for name in ("cold", "hot")]
    verdict = oj.identify(oj.Problem(AFFINE, oj.Data.join(parts)))
    assert {verdict[name].kind for name in ("m1", "m2")} == {"global"}


def test_known_initial_states_are_those_of_every_experiment():
    """Without inputs all experiments are the same one."""
    model = AFFINE.replace(initial={"x1": 2, "x2": 1})
    verdict = oj.identify(model, experiments="any")
    assert kinds(verdict)["m1"] == kinds(verdict)["m2"] == "none"
    assert verdict.experiments.least == 1


def test_experiments_are_told():
    assert "2 experiments tell all" in str(oj.identify(AFFINE, experiments="any"))
    assert "from 2 experiments" in str(oj.identify(AFFINE, experiments=2))
    assert "experiment" not in str(oj.identify(GROWTH))


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "many", None])
def test_a_number_that_is_none_is_refused(wrong):
    with pytest.raises(ModelError, match="experiments: expected a whole number"):
        oj.identify(AFFINE, experiments=wrong)


def test_functions_of_parameters_are_left_undecided():
    verdict = oj.identify(Model({"x": "-exp(k)*x"}, {"y": "x"}), experiments=2)
    assert verdict["k"].kind == "undecided"
    assert "functions of parameters" in verdict.reason
