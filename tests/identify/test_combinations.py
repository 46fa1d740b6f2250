"""Combinations that survive, as a person would write them."""

import pytest

import odejet as oj
from odejet import Model
from odejet.identify import combinations, local

CASES = [
    (Model({"x": "-k1*k2*x"}, {"y": "x"}), {"k1*k2"}),
    (Model({"x": "-(a01 + a12 + a21)*x"}, {"y": "x"}), {"a01 + a12 + a21"}),
    (Model({"x": "-k*x"}, {"y": "c*x"}), {"x*c"}),
    (Model({"x": "-a*x/b"}, {"y": "x"}), {"a/b"}),
    (Model({"x": "w*z", "z": "-w*x"}, {"y": "x**2 + z**2"}, fixed={"w": 1}), {"x**2 + z**2"}),
    (Model({"x": "-(a - b)*x"}, {"y": "x"}), {"a - b"}),
    (Model({"x": "-a**2*b*x"}, {"y": "x"}), {"a**2*b"}),
    (Model({"x": "-(2*a + 3*b)*x"}, {"y": "x"}), {"2*a + 3*b"}),
    (Model({"x": "-(a*k + b)*x", "z": "-k*z"}, {"y": "x", "w": "z"}), {"a*k + b"}),
    (Model({"x": "-(k01 + k21)*x + k12*z + u", "z": "k21*x - (k02 + k12)*z"}, {"y": "x"}, inputs={"u": "t"}), None),
]


@pytest.mark.parametrize(("model", "expected"), CASES, ids=lambda case: str(case)[:30])
def test_what_survives(model, expected):
    verdict = oj.identify(model)
    lost = verdict.names("none")
    assert len(verdict.combinations) == len(lost) - len(verdict.fix)
    assert all(verdict[text].kind == "global" for text in verdict.combinations)
    if expected is not None:
        assert set(verdict.combinations) & expected
    fixed = {**model.fixed, **{name: 0.7 for name in verdict.fix if name not in model.states}}
    initial = {name: 0.7 for name in verdict.fix if name in model.states}
    assert not oj.identify(model.replace(fixed=fixed, initial=initial)).names("none")


def test_sums_of_quotients():
    """Of q and r only q (1 - r)/r is told."""
    model = Model({"x": "-k*x*(q - q/r)"}, {"y": "x", "z": "k"})
    verdict = oj.identify(model)
    assert verdict.combinations == ("q - q/r",)
    assert verdict["q - q/r"].kind == "global"


def test_two_compartments_with_two_leaks():
    model = CASES[-1][0]
    found = oj.identify(model).combinations
    assert set(found) >= {"k01 + k21", "k12 + k02", "k21*k12"}
    verdict = oj.identify(model, functions=["k12*k21", "k12*z", *found])
    assert {verdict[text].kind for text in ("k12*k21", "k12*z", *found)} == {"global"}


def test_nothing_to_find_where_all_is_known_or_nothing_is():
    assert combinations.find(local.analyse(local.problem(Model({"x": "-k*x"}, {"y": "x"})))) == ()
    assert combinations.find(local.analyse(local.problem(Model({"x": "-k*x", "z": "x"}, {"y": "x"})))) == ()


@pytest.mark.parametrize("value", ["0", "5/7", "-3/2", "-1", "999983"])
def test_small_fractions_are_read_back(value):
    from fractions import Fraction

    from odejet.jets import modular

    prime = modular.PRIMES[-1]
    exact = Fraction(value)
    residue = exact.numerator * pow(exact.denominator, -1, prime) % prime
    assert local.small_fraction(residue, prime) == exact
    assert local.small_fraction(123456789123456789, prime) is None
