"""Optimality: how many starts confirm an optimum, counted by hand, and whatever the model explains."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import odejet as oj
from odejet.decide.optimality import CONFIRMED, LIKELY, OPEN, PATIENCE, Effort, Optimality, Tally, Watch, is_answered
from odejet.problem import Problem
from odejet.search.refine import Ending, Refined, refine

DECAY = oj.Model({"x": "-k*x"}, {"y": "x"})
TIMES = np.linspace(0, 5, 30)


@pytest.fixture(scope="module")
def end() -> Refined:
    misfit = Problem(DECAY, oj.Data(TIMES, {"y": np.exp(-TIMES) + 0.01 * np.sin(40 * TIMES)})).misfit
    return replace(refine(misfit, np.array([1.0, 0.9])), cost=0.0)


def tally(end: Refined, *costs: float, best: float = 0.0) -> Tally:
    return Tally.of([replace(end, cost=cost) for cost in costs], best)


def test_shares_are_those_of_boender_and_rinnooy_kan(end):
    assert tally(end, *[0.0] * 4).unseen == pytest.approx(1 * 2 / (4 * 3))
    assert tally(end, 0, 0, 0, 2, 7).unseen == pytest.approx(3 * 4 / (5 * 4))
    assert tally(end).unseen == tally(end, 0.0).unseen == 1.0


def test_ends_of_one_cost_are_one_optimum(end):
    """Those along a nearly flat valley differ by little, one after the other."""
    found = tally(end, 0.0, 0.03, 0.06, 0.09, 3.0)
    assert (found.starts, found.agreeing, found.optima) == (5, 2, 2)


def test_only_settled_ends_count(end):
    given_up = replace(end, ending=Ending.EVALUATION_LIMIT)
    assert Tally.of([end, given_up, replace(end, cost=np.inf)], 0.0) == Tally(1, 1, 1)


@pytest.mark.parametrize(("here", "elsewhere", "word"), [
    (14, 0, OPEN), (15, 0, LIKELY), (31, 0, LIKELY), (33, 0, CONFIRMED),
    (10, 10, OPEN), (28, 28, CONFIRMED), (2, 90, OPEN), (0, 90, OPEN),
])  # fmt: skip
def test_words(end, here, elsewhere, word):
    assert tally(end, *[0.0] * here, *[2.0] * elsewhere).word == word


def test_very_many_at_the_best_confirm_it_among_many_others(end):
    assert tally(end, *[0.0] * 40, *range(1, 200)).word == CONFIRMED
    assert tally(end, *[0.0] * 15, *range(1, 200)).word == LIKELY


def test_a_search_ends_when_it_is_confirmed_or_after_long_when_it_is_likely(end):
    assert is_answered(CONFIRMED, Effort()) and is_answered(LIKELY, Effort(PATIENCE))
    assert not is_answered(LIKELY, Effort(PATIENCE - 1)) and not is_answered(OPEN, Effort(10 * PATIENCE))
    watch = Watch([end] * 10, Effort(PATIENCE - 5, 10, end.cost))
    assert not watch([end] * 5, 4) and watch([end] * 5, 5) and watch.effort.spent == PATIENCE
    assert not watch([replace(end, cost=-1.0)] * 3, 6) and watch.effort.first == PATIENCE + 1  # a better one


def test_a_search_that_has_met_nothing_better_for_long_is_likely_at_the_best(end):
    for spent, first, word in ((PATIENCE, 0, LIKELY), (PATIENCE - 1, 0, OPEN), (4 * PATIENCE, PATIENCE, OPEN)):
        assert Tally.of([end] * 3, 0.0, Effort(spent, first, 0.0)).word == word
    assert Tally.of([end] * 2, 0.0, Effort(10 * PATIENCE)).word == OPEN


def test_the_answer_is_a_word_with_what_it_rests_on():
    told = Optimality(LIKELY, 20, 15, 2, 0.02, ["a reason"])
    assert told == "likely" and f"{told}" == "likely" and told.sentence == "likely; a reason"
    for again in (copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert again == told and (again.starts, again.unseen, again.reasons) == (20, 0.02, ("a reason",))
    with pytest.raises(ValueError, match="no answer"):
        Optimality("maybe")


def test_the_search_has_its_answer_where_the_model_does_not_explain_the_data():
    """A wave that no decay has: before the time is over it is known that there is no better decay."""
    values = np.exp(-0.7 * TIMES) + 0.2 * np.sin(2 * TIMES)
    fit = oj.fit(DECAY, oj.Data(TIMES, {"y": values}), time_limit=60)
    assert fit.search == "confirmed" and fit.adequacy == "no" and not fit.certified
    assert fit.search.agreeing >= 30 and fit.search.unseen < 0.01 and fit.seconds < 30
    assert "is it the best fit? confirmed" in str(fit) and "does the model explain the data? no" in str(fit)
    again = oj.Fit.from_dict(fit.to_dict())
    assert again.search == fit.search and again.search.agreeing == fit.search.agreeing
    assert again.adequacy.reasons == fit.adequacy.reasons and again.adequacy.advice == fit.adequacy.advice
