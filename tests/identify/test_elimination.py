"""Two ways to the same numbers: elimination and counting."""

import pytest

import odejet as oj
from odejet import Model
from odejet.budget import Budget, OutOfBudget
from odejet.identify import elimination, globally, local, orders, worker
from odejet.identify.projection import NotRational
from problems import systems, zoo

QUICK = [
    *("two_compartments_leak", "bellman_astrom_three", "three_compartments_mixed", "daisy_example_3", "slow_fast"),
    *("bateman", "michaelis_menten_dose", "lotka_volterra_prey_known_predator", "two_term_fraction", "hiv_latent"),
    *("biohydrogenation_two_outputs", "sirt_treatment", "llw1987", "llw1987_known_state", "cascade_input", "rotation"),
    *("nothing_but_the_sum", "known_initial_sum", "reciprocal_pair_known_initial", "riccati_from_zero", "stat5"),
]
"""Models of all kinds that both ways decide in a second."""


def count(way, model: Model, functions=(), seed: int = 0) -> globally.Count:
    ranks = local.analyse(local.problem(model, functions), seed)
    return way.count(ranks, orders.choose(ranks), globally.Engine(None, Budget.within(120)), seed)


@pytest.mark.parametrize("name", systems.names())
def test_both_ways_agree_on_the_benchmark(name):
    model = systems.load(name).model
    assert count(elimination, model) == count(globally, model)


@pytest.mark.parametrize("name", QUICK)
def test_both_ways_agree_on_published_models(name):
    entry = zoo.by_name(name)
    asked = [*entry.functions, *entry.combinations]
    assert count(elimination, entry.model, asked) == count(globally, entry.model, asked)


@pytest.mark.parametrize("name", ["goodwin", "sliqr", "bilirubin", "seir_births"])
def test_another_point_gives_the_same_counts(name):
    entry = zoo.by_name(name)
    assert count(elimination, entry.model, seed=3) == count(elimination, entry.model)


@pytest.mark.parametrize("name", ["goodwin", "cgv1990", "siwr_population", "akt_pathway", "stirred_tank_reactor"])
def test_what_counting_takes_minutes_for(name):
    entry = zoo.by_name(name)
    verdict = oj.identify(entry.model, functions=[*entry.functions, *entry.combinations], engine="elimination")
    expected = {**entry.verdicts, **entry.functions, **dict.fromkeys(entry.combinations, "global")}
    assert {key: verdict[key].kind for key in expected} == expected
    assert verdict.method == "input-output equations"


def test_a_worker_finds_the_same():
    ranks = local.analyse(local.problem(zoo.by_name("goodwin").model, ["beta + delta"]))
    assert worker.count(ranks, 0, Budget.within(120)) == count(elimination, ranks.problem.model, ["beta + delta"])


def test_a_worker_is_ended_with_the_budget():
    ranks = local.analyse(local.problem(zoo.by_name("qwwc").model))
    with pytest.raises(OutOfBudget):
        worker.count(ranks, 0, Budget.within(0.5))


def test_a_worker_says_what_it_refuses():
    ranks = local.analyse(local.problem(Model({"x": "-k*sqrt(x)"}, {"y": "x"})))
    with pytest.raises(NotRational, match="roots"):
        worker.count(ranks, 0, Budget.within(120))


def test_a_long_chain_needs_more_derivatives_than_are_tried_first():
    steps = 10
    rates = {"x1": "-k*x1", **{f"x{i}": f"k*x{i - 1} - {i}*x{i}" for i in range(2, steps + 1)}}
    model = Model(rates, {"y": f"x{steps}"})
    verdict = oj.identify(model, engine="elimination")
    assert verdict.orders == {"y": steps}
    assert {name: quantity.kind for name, quantity in verdict.items()} == dict.fromkeys(model.unknowns, "global")
