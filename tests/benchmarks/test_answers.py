"""Answers: what is drawn is posed with its true values, and what is wrong is counted."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from benchmarks import answers


@pytest.mark.parametrize(("suite", "name"), [("hostile", "damped sine"), ("beyond", "tracer"), ("networks", "0")])
def test_problems_are_posed_with_their_true_values(suite, name):
    problem, truth = answers.posed(suite, name, 3)
    again, _ = answers.posed(suite, name, 3)
    assert {unknown.name for unknown in problem.misfit.unknowns} <= set(truth)
    assert problem.misfit.values == pytest.approx(again.misfit.values)


def test_wrong_answers_are_counted():
    def line(search: str, behind: float, certified: bool) -> dict[str, object]:
        return {"suite": "beyond", "problem": "a", "search": search, "behind": behind, "certified": certified}

    told = answers.table([line("confirmed", 0.0, True), line("confirmed", 1.0, False), line("open", 2.0, False)])
    assert "| beyond | confirmed | 2 | 1 |" in told and "| all | open | 1 | 1 | 100.0 % |" in told
    assert "| beyond | certified | 1 | 0 |" in told


def test_the_upper_end_leaves_a_fortieth_below():
    assert binom.cdf(2, 50, answers.highest(2, 50)) == pytest.approx(0.025)
