"""Explicit equations: their size is known before they are formed."""

import pytest

from odejet import Model
from odejet.budget import Budget, OutOfBudget
from odejet.identify import local, orders, prolong

MODELS = {
    "product": Model(states={"x": "-a*x*z*x", "z": "b*x*z - c*z"}, outputs={"y": "x"}),
    "quotient": Model(states={"x": "-v*x/(k + x)", "z": "v*x/(k + x) - w*z/(m + z)"}, outputs={"y": "z"}),
    "function": Model(states={"x": "-a*exp(-b*x)*x"}, outputs={"y": "x"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_there_are_no_more_terms_than_estimated(name):
    problem = local.problem(MODELS[name])
    rows = orders.choose(local.analyse(problem)).rows
    at = problem.at_random(2**31 - 69, 0, max(j for _, j in rows))
    formed = prolong.prolong(problem, at, rows)
    terms = sum(len(equation.terms) for equation in formed.equations)
    # The products of terms that the estimate counts, and one term for each name.
    enough = Budget(work=1e12)
    prolong.prolong(problem, at, rows, budget=enough)
    assert terms <= (1e12 - enough.work) / prolong.PRODUCT + len(formed.values) + 2 * len(rows)


def test_equations_that_are_too_large_are_refused_before_they_are_formed():
    problem = local.problem(MODELS["product"])
    at = problem.at_random(2**31 - 69, 0, 40)
    with pytest.raises(OutOfBudget, match=r"equations up to order .* terms"):
        prolong.prolong(problem, at, [(0, j) for j in range(41)], budget=Budget(memory=1e6))
    with pytest.raises(OutOfBudget, match="terms"):
        prolong.prolong(problem, at, [(0, j) for j in range(41)], budget=Budget(work=1e6))
