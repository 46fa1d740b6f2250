"""A portfolio of strategies, from a box alone: it arrives where fits from the truth do, and does the same again."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from odejet.decide.statistics import is_plausible
from odejet.search.halving import PLAIN
from odejet.search.local_search import Hops, IteratedLocalSearch
from odejet.search.multistart import Multistart
from odejet.search.portfolio import SETTLED, Portfolio, Turns, explore
from odejet.search.refine import MAX_EVALUATIONS, Ending, refine
from odejet.search.strategy import Polish
from odejet.search.windows import GrowingWindows
from odejet.search.workers import Workers
from problems import draws, systems

BOX = (1e-5, 10.0)


def problem(name, points=150, noise=1e-3, seed=2):
    rng = np.random.default_rng([seed, *name.encode()])
    misfit, truth = draws.problem(systems.load(name), points, noise, rng)
    return misfit, refine(misfit, truth, BOX), truth


@pytest.mark.parametrize(
    "name", ["lotka_volterra", "vanderpol", "harmonic_oscillator", "daisy_mamil3", "repressilator"]
)
def test_it_arrives_without_any_start(name):
    misfit, reference, _ = problem(name)
    found = explore(misfit, BOX, seed=0, starts=640, plausible=partial(is_plausible, misfit))
    assert found[0].cost <= reference.cost + 1e-3
    assert [end.cost for end in found] == sorted(end.cost for end in found)


def test_the_same_seed_does_the_same():
    misfit, _, _ = problem("lotka_volterra", points=60)
    first, second, other = (explore(misfit, BOX, seed=seed, starts=128) for seed in (3, 3, 4))
    assert [end.z.tolist() for end in first] == [end.z.tolist() for end in second]
    assert [end.z.tolist() for end in first] != [end.z.tolist() for end in other]


def test_no_bounds_but_a_scale():
    misfit, reference, truth = problem("lotka_volterra")
    scale = np.geomspace(0.3, 3, len(truth)) * np.median(truth)
    plausible = partial(is_plausible, misfit)
    found = explore(misfit, positive=True, scale=scale, seed=1, starts=640, plausible=plausible)
    assert found[0].cost <= reference.cost + 1e-3


def test_it_stops_at_its_goal_and_at_exact_fits():
    misfit, reference, _ = problem("daisy_mamil3")
    assert len(explore(misfit, BOX, goal=reference.cost + 1e-3, starts=640)) == 1
    exact, _, _ = problem("daisy_mamil3", noise=0.0)
    assert explore(exact, BOX, starts=640)[0].ending is Ending.EXACT


def test_no_time_finds_nothing():
    misfit, _, _ = problem("lotka_volterra", points=60)
    assert explore(misfit, BOX, time_limit=0) == []


def test_a_search_of_few_evaluations_is_the_beginning_of_a_race():
    misfit, _, _ = problem("daisy_mamil3", points=60)
    few, more = (explore(misfit, BOX, starts=640, agree=1000, evaluations=most) for most in (50, 1000))
    assert sum(end.evaluations for end in few) < sum(end.evaluations for end in more)
    starts = [end.start.tolist() for end in more]
    assert few and all(end.start.tolist() in starts for end in few)


def test_a_candidate_is_led_round_the_minima_that_trap_a_refinement():
    misfit, reference, truth = problem("harmonic_oscillator")
    rng = np.random.default_rng(0)
    starts = [truth * 3.0 ** rng.uniform(-1, 1, len(truth)) for _ in range(6)]
    trapped = sum(refine(misfit, start, BOX).cost > reference.cost + 1e-3 for start in starts)
    led = sum(explore(misfit, BOX, starts=0, candidates=[s])[0].cost <= reference.cost + 1e-3 for s in starts)
    assert trapped > 0 and led > len(starts) - trapped


def test_agreement_on_what_is_not_plausible_ends_nothing():
    misfit, _, _ = problem("daisy_mamil3", points=60)
    asked = []
    few = explore(misfit, BOX, starts=192, agree=2)
    many = explore(misfit, BOX, starts=192, agree=2, plausible=lambda end: bool(asked.append(end.cost)))
    assert len(many) > len(few) and asked and min(asked) == many[0].cost


# --- which way has its turn ---


def ended(cost):
    return SimpleNamespace(cost=cost, ending=Ending.CONVERGED)


def spent_by(explained, successes, costs=(1, 1), count=60, agreeing=0):
    """The evaluations of each of two ways, of whose starts such parts lead to the best, at such a cost each."""
    ways = [Turns(None), Turns(None)]
    search = SimpleNamespace(
        is_explained=explained, is_settled=agreeing >= SETTLED, evidence=SimpleNamespace(best_cost=0.0)
    )
    for _ in range(count):
        way = Portfolio.next_of(search, ways)
        own = ways.index(way)
        way.spent, starts = way.spent + costs[own], len(way.ends) + 1
        way.ends.append(ended(0.0 if starts * successes[own] % 1 < successes[own] else 5.0))
    return [way.spent for way in ways]


def test_ways_take_turns_as_long_as_the_data_are_not_explained():
    assert spent_by(False, (0.0, 0.9)) == [30, 30]


def test_a_way_whose_starts_take_long_has_fewer():
    dear, cheap = spent_by(False, (0.5, 0.5), costs=(30, 3))
    assert abs(dear - cheap) <= 30


def test_a_way_that_leads_to_what_explains_the_data_has_more_turns_but_not_all():
    rarely, often = spent_by(True, (0.0, 0.5))
    assert rarely >= 3 and often >= 4 * rarely
    one, other = spent_by(True, (0.5, 0.5))
    assert abs(one - other) <= 4


def test_so_has_one_that_leads_where_many_starts_agree():
    rarely, often = spent_by(False, (0.0, 0.5), agreeing=SETTLED)
    assert rarely >= 3 and often >= 4 * rarely


def test_the_cheaper_of_two_ways_to_the_best_has_more_of_what_is_spent():
    dear, cheap = spent_by(False, (1.0, 1.0), costs=(30, 10), agreeing=SETTLED, count=200)
    assert 2 * dear < cheap < 4 * dear


def test_starts_are_taken_as_drawn_once_many_agree(monkeypatch):
    misfit, _, _ = problem("daisy_mamil3", points=60)
    seen, begun = [], Multistart.begun

    def counted(own, ground, group):
        seen.append((own.groups, len(group)))
        return begun(own, ground, group)

    monkeypatch.setattr(Multistart, "begun", counted)
    ends = explore(misfit, BOX, starts=640, agree=40)
    chosen, plain = ([size for groups, size in seen if (groups == (1,)) is alone] for alone in (False, True))
    assert max(chosen) > 1 and set(plain) == {1} and len(plain) > SETTLED
    assert sum(abs(end.cost - ends[0].cost) < 1e-3 for end in ends) >= 40


@pytest.mark.parametrize(("found", "starts"), [([1.0, 2.0], 1), ([0.0, 0.0, 0.0, 0.0, 2.0], 4)])
def test_hops_are_rarer_where_starts_agree(found, starts):
    evidence = SimpleNamespace(optima=[ended(cost) for cost in found], before=(), best_cost=0.0)
    search = SimpleNamespace(agreeing=Portfolio.agreeing.fget(SimpleNamespace(evidence=evidence)))
    assert Portfolio.between_hops.fget(search) == starts


@pytest.mark.parametrize(("best", "gained", "laps"), [(0.0, 0.01, 1), (0.0, 5.0, 2), (20.0, 0.01, 2)])
def test_an_end_that_creeps_above_the_best_is_polished_no_longer(best, gained, laps):
    _, reference, _ = problem("lotka_volterra", points=12)
    asked = []

    def refined(z, evaluations):
        asked.append(evaluations)
        return replace(reference, cost=10.0 - gained * len(asked), ending=Ending.EVALUATION_LIMIT)

    ground = SimpleNamespace(exact=refined, deadline=np.inf)
    evidence = SimpleNamespace(others=0, best_cost=best, least=20.0, polish=Polish(), workers=Workers(ground))
    search = SimpleNamespace(evidence=evidence, ground=ground)
    end = Portfolio.polished(search, replace(reference, cost=10.0, start=np.ones(4)))
    assert len(asked) == laps and end.cost == 10.0 - gained * laps and sum(asked) <= MAX_EVALUATIONS
    np.testing.assert_array_equal(end.start, np.ones(4))


def test_hops_take_no_more_evaluations_than_each_strategy(monkeypatch):
    misfit, _, _ = problem("lotka_volterra", points=12)
    seen, over = [], Portfolio.over
    monkeypatch.setattr(Portfolio, "over", lambda search, *asked: seen.append(search) or over(search, *asked))
    explore(misfit, BOX, starts=256, agree=1000, plausible=lambda _: False)
    evidence = seen[-1].evidence
    (hops,) = (counter for counter in evidence.counters if isinstance(counter, Hops))
    assert evidence.spent > 500 and 0 < hops.spent / evidence.spent < 0.5


@pytest.mark.parametrize(
    "strategies",
    [
        (Multistart(),),
        (Multistart(groups=(1,), halving=PLAIN),),
        (GrowingWindows(),),
        (IteratedLocalSearch(),),
        (IteratedLocalSearch(kinds=("some",), waking=False), Multistart()),
    ],
    ids=["halved", "plain", "windows", "hops", "hops of one kind"],
)
def test_every_strategy_arrives_alone(strategies):
    misfit, reference, _ = problem("daisy_mamil3", points=60)
    found = explore(misfit, BOX, seed=1, starts=512, goal=reference.cost + 1e-3, agree=1000, strategies=strategies)
    assert found[0].cost <= reference.cost + 1e-3
