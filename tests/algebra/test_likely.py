"""Likely verdicts: what monodromy finds is what exact counts say, and is never taken for exact."""

import pytest

import odejet as oj
from odejet import Model
from problems import zoo

FEW_ROOTS = ["two_compartments_leak", "slow_fast", "daisy_example_3", "square_of_growth", "lotka_volterra_prey"]


@pytest.mark.parametrize("name", FEW_ROOTS)
def test_published_verdicts_are_likely(name):
    entry = zoo.by_name(name)
    verdict = oj.identify(entry.model, [*entry.functions, *entry.combinations], engine="monodromy")
    expected = {**entry.verdicts, **entry.functions, **dict.fromkeys(entry.combinations, "global")}
    measured = {str(output) for output in entry.model.outputs.values()}  # known without any counting
    likely = {k: kind if kind == "none" or k in measured else f"likely {kind}" for k, kind in expected.items()}
    assert {key: verdict[key].kind for key in expected} == likely
    assert verdict.solutions is None
    assert "monodromy" in verdict.evidence
    assert "likely, not proven" in str(verdict)


def test_the_number_of_values_is_a_lower_bound_that_is_reached():
    """x1 and x2 decay at rates that may be exchanged, and x3 is seen by its square."""
    model = Model({"x1": "-a*x1", "x2": "-b*x2", "x3": "c*x3"}, {"y": "x1 + x2", "z": "x3**2"})
    exact = oj.identify(model, engine="exact")
    likely = oj.identify(model, engine="monodromy")
    assert {q.name: q.values for q in likely.values()} == {name: exact[name].values for name in model.unknowns}
    assert likely["x3"].sentence == "one of at least 2 values"


def test_exact_verdicts_stay_as_they_are():
    verdict = oj.identify(zoo.by_name("slow_fast").model)
    assert verdict.likely() is verdict
    assert verdict.evidence == ""


@pytest.mark.parametrize(
    "model",
    [
        Model({"x": "-k*x"}, {"y": "x**2"}, initial={"x": 1}),
        Model({"x": "-k*sin(x)"}, {"y": "x**2"}),
        Model({"x": "-k*x + m"}, {"y": "x**2"}, initial="steady"),
    ],
    ids=["known start", "functions", "rest"],
)
def test_where_monodromy_says_nothing_the_verdict_is_undecided(model):
    verdict = oj.identify(model, engine="monodromy")
    assert {q.kind for q in verdict.values()} == {"undecided"}
    assert verdict.evidence == ""


def test_without_time_nothing_is_likely():
    verdict = oj.identify(zoo.by_name("qwwc").model, time_limit=0)
    assert verdict.evidence == ""
    assert not any(q.kind.startswith("likely") for q in verdict.values())
