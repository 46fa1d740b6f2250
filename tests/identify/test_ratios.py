"""Coefficients of input-output equations as expressions."""

import pytest

from odejet import Model
from odejet.budget import Budget, OutOfBudget
from odejet.identify import local, ratios
from problems import zoo


def found(model: Model, known=()) -> list[str]:
    return ratios.find(local.problem(model), known, 0, Budget.within(60))


def test_two_compartments():
    """By hand: y'' + (k1 + k2 + k3 + k4) y' + (k1 k3 + k1 k4 + k2 k4) y = u' + (k3 + k4) u."""
    texts = found(zoo.by_name("bellman_astrom_two").model)
    assert texts[:3] == ["k3 + k4", "k1 + k2 + k3 + k4", "k1*k3 + k1*k4 + k2*k4"]
    assert texts == sorted(texts, key=len)


def test_factors_that_are_known_are_left_out():
    model = Model({"x": "-k*m*x + z", "z": "-m*z"}, {"y": "x", "w": "z"})
    assert "k*m" in found(model)
    assert found(model, ["m"]) == ["k"]


def test_powers_fractions_and_fixed_numbers():
    """z = x**2 obeys z' = -2 a b**2 z/(3 (c + 1)); the numbers 2 and 3 tell nothing."""
    model = Model({"x": "-a*b**2*x/(3*(c + 1))"}, {"y": "x**2"})
    assert found(model) == ["a*b**2/(c + 1)"]


def test_what_is_conserved_counts_as_a_parameter():
    model = Model({"x": "-a*x + b*z", "z": "a*x - b*z"}, {"y": "x"})
    assert found(model)[:2] == ["a + b", "b*(z + x)"]


def test_every_ratio_is_identifiable():
    for name in ("three_compartments_closed", "pharmacokinetics_1", "meshkat_four_compartments", "hiv_viral_load"):
        model = zoo.by_name(name).model
        texts = found(model)
        assert texts, name
        told = local.analyse(local.problem(model, texts))
        assert all(told.identifiable[text] for text in texts), name


def test_nothing_is_told_where_an_experiment_does_not_tell_it():
    """x1 is constant, so y' = x1 y + (m1 x1 + m2) tells one number besides it, and not m1 and m2."""
    model = Model({"x1": "0", "x2": "x1*x2 + m1*x1 + m2"}, {"y": "x2"})
    told = local.analyse(local.problem(model, texts := found(model)))
    assert all(told.identifiable[text] for text in texts)
    assert found(Model({"x": "-sqrt(x)*k"}, {"y": "x"})) == []  # not rational
    assert found(Model({"x": "-k*x", "z": "0*x"}, {"y": "x*sin(z)"})) == []


def test_the_budget_holds():
    with pytest.raises(OutOfBudget):
        ratios.find(local.problem(zoo.by_name("tumour_hu").model), (), 0, Budget.within(60, work=1e8))
