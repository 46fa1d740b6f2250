"""Every method on a problem that all of them can solve, and their shared objective against differences."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import cells
from benchmarks.cells import Cell, Protocol
from benchmarks.methods import METHODS, Budget, Problem, families, ours, scatter
from benchmarks.methods.problem import Counted, Objective, Over
from odejet.result import Provenance
from odejet.search.refine import refine
from odejet.smooth import fit_output, series
from problems import systems

BUDGET, FEW = Budget(evaluations=2000, seconds=60.0), Budget(evaluations=500, seconds=60.0)
PROTOCOL = Protocol(seed=2, points=100)
SYSTEM = "seir"


def problem(method: str, noise: float = 1e-2, budget: Budget = BUDGET, seed: int = 1) -> tuple[Problem, cells.Draw]:
    truth, chosen = cells.draw(SYSTEM, 0, PROTOCOL), METHODS[method]
    data = cells.measured(truth, Cell(SYSTEM, noise, 0), PROTOCOL)
    known = truth.values if chosen.knows_truth else {}
    given = Problem(truth.system.model, data, systems.protocol().bounds, chosen.weighted, budget, seed, known)
    return given, truth


SEARCHES = [*families()["baselines"], *families()["oracles"]]


@pytest.mark.parametrize("method", SEARCHES)
def test_a_search_finds_the_optimum_within_its_budget(method):
    derivatives = method.startswith(("multistart", "pypesto", "truth"))
    given, truth = problem(method, budget=FEW if derivatives else BUDGET)
    answer = METHODS[method].solve(given)
    misfit = Counted(given)
    best = refine(misfit, np.array([truth.values[u.name] for u in misfit.unknowns]), given.bounds)
    assert answer.evaluations <= given.budget.evaluations
    assert answer.values is not None
    tolerance = 1e-3 if METHODS[method].weighted else 1e-6 * best.cost
    assert answer.cost <= best.cost + tolerance
    assert misfit.score(np.array([answer.values[u.name] for u in misfit.unknowns])) == pytest.approx(answer.cost)


@pytest.mark.parametrize("method", ["shade", "ess", "pypesto-sse", "de", "multistart"])
def test_a_search_repeats_itself(method):
    budget = Budget(evaluations=400, seconds=60.0)
    one, other = (METHODS[method].solve(problem(method, budget=budget)[0]) for _ in range(2))
    assert (one.values, one.cost, one.evaluations) == (other.values, other.cost, other.evaluations)


@pytest.mark.parametrize("method", families()["ours"])
def test_our_own_variants_answer_with_values_for_everything(method):
    given, truth = problem(method, noise=0.0)
    METHODS[method].prepare(given.model)
    answer = METHODS[method].solve(given)
    assert answer.values is not None and set(answer.values) == set(truth.values)
    assert truth.error(answer.values) < 1e-2


def test_without_a_candidate_there_is_no_unrefined_answer(monkeypatch):
    """A fit without a candidate refines from ones: an answer of odejet, but not of the variants without refinement."""
    fallen = SimpleNamespace(
        cost=1.0, message="", provenance=Provenance("none"), initial_state={}, parameters={"a": 1.0}
    )
    monkeypatch.setattr(ours.oj, "fit", lambda *_, **__: fallen)
    given, _ = problem("odejet")
    assert ours.unrefined(given).values is None and ours.unrefined(given).ending == "no candidate"
    assert ours.fitted(given).values == {"a": 1.0}


def test_aaa_alone_is_taken_where_it_would_be_refused():
    times = np.linspace(0, 3, 200)
    values = np.sin(times) + 1e-3 * np.random.default_rng(0).standard_normal(200)
    assert "aaa" in fit_output(times, values).refused
    found = ours.rational_only(series(times, values))
    assert set(found.admitted()) == {"aaa"}
    assert np.max(np.abs(found(times) - np.sin(times))) < 2e-2
    constant = ours.rational_only(series(times, np.ones(200)))
    assert set(constant.smoothers) == {"constant"}


def test_both_losses_of_every_search():
    for name in families()["baselines"]:
        if not name.endswith("-sse"):
            assert METHODS[name].weighted and not METHODS[f"{name}-sse"].weighted


@pytest.mark.parametrize("method", ["multistart", "multistart-sse"])
def test_derivatives_of_the_objective_are_those_of_differences(method):
    objective = Objective(problem(method)[0])
    theta = objective.low + 0.8 * (objective.high - objective.low)
    _, gradient, information = objective.expansion(theta)
    levels = objective.levels(theta)
    jacobian = objective.jacobian(theta, levels)
    for i in range(len(theta)):
        up, down = (theta + sign * 1e-5 * np.eye(len(theta))[i] for sign in (1, -1))
        assert gradient[i] == pytest.approx((objective.cost(up) - objective.cost(down)) / 2e-5, rel=1e-5)
        difference = (objective.residuals(up, levels) - objective.residuals(down, levels)) / 2e-5
        np.testing.assert_allclose(jacobian[:, i], difference, rtol=1e-4, atol=1e-6 * abs(jacobian).max())
    np.testing.assert_allclose(information, jacobian.T @ jacobian, rtol=1e-10)


def test_where_nothing_can_be_simulated_an_objective_is_infinite():
    truth = cells.draw("crauste", 0, PROTOCOL)
    data = cells.measured(truth, Cell("crauste", 0.0, 0), PROTOCOL)
    objective = Objective(Problem(truth.system.model, data, (1e-5, 1e6)))
    cost, gradient, information = objective.expansion(objective.high)
    assert math.isinf(cost) and np.all(np.isnan(gradient)) and np.all(np.isnan(information))
    assert math.isinf(objective.cost(objective.high))
    levels = objective.misfit.scales
    assert np.all(np.isfinite(objective.residuals(objective.high, levels)))
    assert np.all(objective.jacobian(objective.high, levels) == 0)
    answer = objective.misfit.answer("nothing")
    assert answer.values is None and "no simulation" in answer.ending


def test_a_budget_ends_with_something_that_no_library_catches():
    given, truth = problem("multistart", budget=Budget(evaluations=3, seconds=60.0))
    misfit = Counted(given)
    z = np.array([truth.values[unknown.name] for unknown in misfit.unknowns])
    for _ in range(3):
        misfit.evaluate(z)
    with pytest.raises(Over):
        misfit.evaluate(z)
    assert not issubclass(Over, Exception)
    assert misfit.evaluations == 3


def test_processor_seconds_bound_a_search_too():
    given, _ = problem("multistart", budget=Budget(evaluations=10**9, seconds=0.05))
    answer = METHODS["multistart"].solve(given)
    assert 0 < answer.evaluations < 10**5


def test_a_share_of_the_budget_is_followed_by_the_rest():
    given, truth = problem("multistart", budget=Budget(evaluations=10, seconds=60.0))
    misfit = Counted(given)
    z = np.array([truth.values[unknown.name] for unknown in misfit.unknowns])
    for part, expected in ((0.5, 5), (1.0, 10)):
        with misfit.share(part):
            while True:
                misfit.evaluate(z)
        assert misfit.evaluations == expected


def test_the_reference_set_of_scatter_search_grows_with_the_unknowns():
    sizes = [scatter.reference_set(n) for n in (1, 4, 7, 17)]
    assert sizes == [4, 8, 10, 14]
    assert all(d * (d - 1) >= 10 * n for d, n in zip(sizes, (1, 4, 7, 17), strict=True))


def test_searches_do_not_disturb_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        METHODS["ess"].solve(problem("ess", budget=Budget(evaluations=60, seconds=60.0))[0])
