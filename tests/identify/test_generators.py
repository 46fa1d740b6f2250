"""Combinations that generate: each identifiable, and all that is identifiable follows from them."""

import pytest

import odejet as oj
from odejet import Model
from odejet.budget import Budget
from odejet.identify import generators, local, msolve
from odejet.identify.globally import PRIME, Engine
from odejet.identify.invariants import invariant
from odejet.identify.quotient import Quotient
from odejet.model.expressions import names
from problems import zoo

DECAYS = Model({"x1": "-a*x1", "x2": "-b*x2"}, {"y": "x1 + x2"})
"""Two decays that may be exchanged."""


def engine() -> Engine:
    return Engine(None, Budget.within(60))


def test_what_is_exchanged_has_symmetric_functions():
    verdict = oj.identify(DECAYS)
    assert verdict.solutions == 2
    assert set(verdict.combinations) >= {"a + b", "a*b", "x1 + x2"}
    assert all(verdict[text].kind == "global" for text in verdict.combinations)
    assert verdict.generate is True
    assert "all else that can be known follows" in str(verdict)


def test_a_square_is_known():
    verdict = oj.identify(Model({"x": "k*x"}, {"y": "x**2"}))
    assert verdict.combinations == ("x**2",)
    assert verdict.generate is True


QUICK = [
    "two_compartments_leak", "bellman_astrom_two", "two_compartments_volume", "cholesterol", "bellman_astrom_three",
    "three_compartments_closed", "three_compartments_mixed", "meshkat_four_compartments", "daisy_example_3",
    "bruno_carotenoids", "slow_fast", "bateman", "michaelis_menten", "lotka_volterra_prey", "lotka_volterra_stocked",
    "lotka_volterra_scaled_prey", "predator_prey_logistic", "quadratic_pair", "square_of_growth", "oral_glucose",
    "sir_prevalence", "sir_births_unknown_population", "seir_known_population", "hiv_latent", "hiv_viral_load",
    "llw1987", "llw1987_known_state", "first_order_gain", "cascade", "cascade_input", "rotation", "drift",
    "nothing_but_the_sum", "known_initial_sum", "reciprocal_pair", "lotka_volterra_symmetric", "sir_reported",
    "seir_births", "seir_prevalence", "generalised_lotka_volterra",
]  # fmt: skip
"""Models that are not identifiable and take less than a second."""

OPEN = "resistant_bacteria", "tumour_hu"
"""Models for which no expressions were found that generate, unless published ones are asked for."""

SLOW = sorted(
    entry.name
    for entry in zoo.ENTRIES
    if entry.name not in (*QUICK, *OPEN)
    and ({*entry.verdicts.values()} & {"none", "local"} or (entry.solutions or 1) > 1)
)


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_what_generates_tells_as_much_as_the_outputs(name, monkeypatch):
    """Membership both ways: each generator is identifiable, and nothing more than they tell can be known."""
    monkeypatch.setenv(msolve.VARIABLE, "")
    model = zoo.by_name(name).model
    verdict = oj.identify(model, time_limit=600)
    assert verdict.generate is True
    assert all(verdict[text].kind == "global" for text in verdict.combinations)
    # Each has one value, by a count that was not told which ones there are.
    asked = oj.identify(model, functions=verdict.combinations, time_limit=600)
    assert {asked[text].kind for text in verdict.combinations} <= {"global"}
    # Measured instead of the outputs, at the initial time, they tell as much of every unknown.
    known = *verdict.names("global"), *verdict.combinations
    fixed = {**model.fixed, **generators.known_states(model)}
    used = {n for f in local.problem(model, known).functions.values() for n in names(f)}
    static = Model(
        dict.fromkeys(model.unknowns, "0"),
        {f"told_{i}": text for i, text in enumerate(known)},
        fixed={name: value for name, value in fixed.items() if name in used},
    )
    told = oj.identify(static, time_limit=600)
    assert {n: told[n].kind for n in model.unknowns} == {n: verdict[n].kind for n in model.unknowns}
    assert {n: told[n].values for n in model.unknowns} == {n: verdict[n].values for n in model.unknowns}


def test_too_few_functions_are_not_complete():
    """a + b alone has too small a rank; with a b and the states by themselves the degree is one, not two."""
    found = generators.find(DECAYS, ["x1 + x2", "a + b"], [], [], 2, engine())
    assert found == generators.Generators((), False)
    found = generators.find(DECAYS, ["x1 + x2", "a + b", "a*b"], ["x1*a + x2*b", "x1*x2"], [], 2, engine())
    assert found == generators.Generators(("x1*a + x2*b",), True)


def test_a_power_leaves_several_solutions():
    model = Model({"x": "-a*b*x"}, {"y": "x"})
    assert generators.find(model, ["x", "(a*b)**2"], [], ["b"], 1, engine()) == generators.Generators((), False)
    found = generators.find(model, ["x", "(a*b)**2"], ["(a*b)**3"], ["b"], 1, engine())
    assert found == generators.Generators(("(a*b)**3",), True)


def test_more_than_is_identifiable_is_seen():
    """The states by themselves leave one solution, where two are indistinguishable."""
    assert generators.find(DECAYS, ["x1", "x2", "a", "b"], [], [], 2, engine()) is None


def test_outputs_and_their_derivatives():
    model = Model({"x": "-k*x*z + u", "z": "m*x"}, {"y": "x + z", "w": "x/z"}, inputs={"u": "sin(t)"})
    found = generators.of_outputs(local.problem(model), [])
    assert found[:2] == ["x + z", "x/z"]
    assert "m*x - k*x*z" in found
    assert "m - k*z" in found  # the factor of the input in the second derivative


def test_what_is_known_of_states_can_be_differentiated():
    """P is known, and so is its rate, of which a term is known by itself."""
    model = Model({"M": "1/(1 + P) - M", "P": "p*E - d*P + 3*M", "E": "M - E"}, {"y": "M"})
    found = generators.of_outputs(local.problem(model), ["M", "P"])
    assert "E*p - P*d" in found


def test_with_known_initial_states_only_outputs_can_be_differentiated():
    """From x(0) = 1 the output x z tells z(0), but not how z goes on."""
    model = Model({"x": "-a*x", "z": "b*x - c"}, {"y": "x*z"}, initial={"x": 1})
    found = generators.of_outputs(local.problem(model), ["z"])
    assert "b*x - c" not in found
    assert "b*x**2 - c*x - a*x*z" not in found
    assert any("a" in text and "b" in text for text in found)


def test_an_input_alone_drives_a_state():
    """The rate without inputs is zero, which is no term."""
    model = Model({"x": "k*z - m*w", "z": "u", "w": "-w"}, {"y": "x"}, inputs={"u": "sin(t)"})
    assert "k*z - m*w" in generators.of_outputs(local.problem(model), [])


def test_elements_of_one_value():
    """The points (1, 2, 3) and (2, 1, 5)."""
    from flint import nmod_mat

    def element(*values: int) -> nmod_mat:
        # In the basis 1, e of functions on two points, where e is 0 and 1: multiplication by v0 + (v1 - v0) e.
        return nmod_mat(2, 2, [values[0], 0, values[1] - values[0], values[1]], PRIME)

    algebra = Quotient(PRIME, 2, {})
    several = {"a": element(1, 2), "b": element(2, 1), "c": element(3, 5)}
    found = invariant(algebra, several, {"two": algebra.number(2)})
    assert {"a + b", "a*b", "c - two*a", "c + two*b"} <= set(found)
    assert "a + c" not in found
    assert "a**2" not in found
    assert "c + 2*b" in found
    # Inverses of what is no name are written with brackets.
    found = invariant(algebra, {"a": element(1, 2), "b*k": element(2, 1)}, {})
    assert "a/(b*k) + (b*k)/a" in found
    assert "1/a + 1/(b*k)" in found


def test_where_everything_is_known_nothing_is_to_be_generated():
    verdict = oj.identify(Model({"x": "-k*x"}, {"y": "x"}))
    assert verdict.generate is None
    assert verdict.combinations == ()


@pytest.mark.slow
def test_what_is_asked_for_may_complete_what_is_found(monkeypatch):
    """By itself the list lacks something; one of the functions that were published helps to find it."""
    monkeypatch.setenv(msolve.VARIABLE, "")
    model = zoo.by_name("resistant_bacteria").model
    verdict = oj.identify(model, functions=["(d*rR - dr*r)/(d - dr)"], time_limit=600)
    assert verdict.generate is True
    asked = oj.identify(model, functions=verdict.combinations, time_limit=600)
    assert {asked[text].kind for text in verdict.combinations} == {"global"}
