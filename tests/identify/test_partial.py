"""Equations of some outputs alone, and what they tell."""

import pytest

from odejet import Model
from odejet.budget import Budget, OutOfBudget
from odejet.identify import coefficients, elimination, local, orders, partial
from odejet.identify.globally import PRIME, Engine
from odejet.identify.partial import Partial
from odejet.identify.projection import Projection
from problems import zoo

CASCADE = Model(
    states={"x1": "-a*x1*x1 + u", "x2": "b*x1 - c*x2*x3", "x3": "d*x2 - e*x3"},
    outputs={"y1": "x1", "y2": "x2"},
    inputs={"u": "sin(t)"},
)
"""The first state depends on itself alone."""


def search(model: Model, prime: int = PRIME) -> Partial:
    problem = local.problem(model)
    at = problem.at_random(prime, 0, 10)
    found = Partial(problem, prime, list(at.point.parameters), reach=8, budget=Budget.within(60))
    found.run()
    return found


def count(model: Model, way: type[Projection]):
    ranks = local.analyse(local.problem(model))
    return elimination.count(ranks, orders.choose(ranks), Engine(None, Budget.within(60)), 0, way)


def test_where_equations_may_be_left_out():
    assert partial.applies(local.problem(CASCADE))
    assert not partial.applies(local.problem(Model({"x": "-k*x"}, {"y": "x"})))
    assert not partial.applies(local.problem(CASCADE, experiments=2))
    assert not partial.applies(local.problem(Model({"x": "-k*x", "z": "exp(x)"}, {"y": "x", "w": "z"})))


def test_a_way_can_be_repeated():
    found = search(CASCADE)
    again = Partial(found.problem, PRIME, found.parameters, plan=found.found, budget=Budget.within(60))
    again.run()
    assert len(found.equations) >= 2
    assert [len(equation) for equation in again.equations] == [len(equation) for equation in found.equations]
    assert [key[0] for key in again.coefficients()] == [key[0] for key in found.coefficients()]


def test_what_was_not_taken_is_not_taken_again(monkeypatch):
    """Equations that may not be the only relation of their derivatives tell nothing, however often they are found."""
    only = Partial._is_only_relation
    monkeypatch.setattr(Partial, "_is_only_relation", lambda self, equation: len(equation) > 3 and only(self, equation))
    found = search(CASCADE)
    again = Partial(found.problem, PRIME, found.parameters, plan=found.found, budget=Budget.within(60))
    again.run()
    assert len(found.equations) > 0
    assert all(len(equation) > 3 for equation in again.equations)
    assert len(again.equations) == len(found.equations)


def test_equations_hold_on_solutions_and_have_no_states():
    found = search(CASCADE)
    for equation in found.equations:
        assert found.symbols.at(equation) == 0
        used = {name for name, e in zip(found.symbols.names, equation.degrees(), strict=True) if e}
        assert {name[0] for name in used} <= {"y", "u"}


def test_too_many_derivatives_satisfy_more_than_one_relation():
    """y' = -k y and y'' = k^2 y: of three derivatives only one is free."""
    model = Model({"x": "-k*x", "z": "m*x"}, {"y": "x", "w": "z"})
    found = search(model)
    gens = found.symbols.gens
    k = found.parameters[model.parameters.index("k")]
    assert found._is_only_relation(gens["y0_1"] + k * gens["y0_0"])
    assert not found._is_only_relation(gens["y0_2"] + gens["y0_1"] + gens["y0_0"])


SEVERAL_OUTPUTS = [
    "p53", "tumour_targeting", "chemical_reaction_network", "seir_detected", "sir_confined", "akt_pathway",
    "biohydrogenation_two_outputs", "parallel_modes", "bruno_carotenoids",
]  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL_OUTPUTS)
@pytest.mark.parametrize("work", [partial.STEP, 1e6])
def test_what_some_equations_tell_is_what_all_tell(name, work, monkeypatch):
    """However early equations are left out."""
    model = zoo.by_name(name).model
    if not partial.applies(local.problem(model)):
        pytest.skip("one output")
    whole = count(model, Projection)
    monkeypatch.setattr(partial, "STEP", work)
    found = count(model, Partial)
    assert found.values == whole.values
    assert (found.solutions, found.fibre) == (whole.solutions, whole.fibre)


def test_relations_that_were_found_are_kept_where_time_ends(monkeypatch):
    def end(self):
        raise OutOfBudget("the time is over")

    whole = count(CASCADE, Projection)
    monkeypatch.setattr(coefficients, "FEW_TERMS", 0)
    monkeypatch.setattr(coefficients.Coefficients, "_products", end)
    found = count(CASCADE, Partial)
    assert found.values == whole.values
    with pytest.raises(OutOfBudget):
        count(CASCADE, Projection)


def test_no_equation_at_all_is_said(monkeypatch):
    monkeypatch.setattr(partial, "STEP", 0.0)
    with pytest.raises(OutOfBudget):
        count(Model({"x": "-k*x*z", "z": "m*x - z**2"}, {"y": "x + z", "w": "x - z**2"}), Partial)


@pytest.mark.slow
def test_nfkb_is_identifiable():
    """A whole elimination ends in an equation that is too long; four short ones tell everything."""
    found = count_within(zoo.by_name("nfkb").model, 600)
    assert found.solutions == 1
    assert set(found.values.values()) == {1}


def count_within(model: Model, seconds: float):
    ranks = local.analyse(local.problem(model))
    return elimination.count(ranks, orders.choose(ranks), Engine(None, Budget.within(seconds)), 0, Partial)
