"""Quantities against SymPy's derivatives, and what may not be asked."""

import math

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet import Model, ModelError
from odejet.problem.unknowns import Unknown
from odejet.uncertainty.derived import derived

MODEL = Model(
    {"x": "-k*x + m*z + u", "z": "x - c*z"},
    {"y": "x"},
    {"u": "sin(t)"},
    initial={"z": 1},
    fixed={"c": 0.25},
)
UNKNOWNS = (Unknown("x", "x(0)", "one"), Unknown("k", "k"), Unknown("m", "m"))
TEXTS = [
    "k*m/x",
    "k**2 - 3*x*m",
    "k**m",
    "2**k + k**2.5",
    "exp(-k/x) + log(m)*sqrt(x)",
    "sin(k)*cos(m) + tan(x/3)",
    "sinh(k) - cosh(m)/tanh(x)",
    "1/(k + c) - (m - 1)",
    "-(k - x)/-2",
]


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=15)
@given(z=st.lists(st.floats(0.2, 1.4), min_size=3, max_size=3))
def test_values_and_gradients(text, z):
    value, gradient = derived(text, MODEL, UNKNOWNS).at(np.array(z))
    symbols = sympy.symbols("x k m")
    expected = sympy.sympify(text.replace("c", "0.25").replace("0.25os", "cos"))
    at = dict(zip(symbols, z, strict=True))
    assert value == pytest.approx(float(expected.subs(at)), rel=1e-12, abs=1e-12)
    exact = [float(expected.diff(symbol).subs(at)) for symbol in symbols]
    np.testing.assert_allclose(gradient, exact, rtol=1e-10, atol=1e-10)


def test_an_unknown_by_its_name_or_label():
    for text in ("x", "x(0)"):
        asked = derived(text, MODEL, UNKNOWNS)
        assert asked.label == "x(0)" and asked.place == 0
    assert derived("k", MODEL, UNKNOWNS).place == 1
    assert derived("k*m", MODEL, UNKNOWNS).place is None


def test_what_has_no_value():
    value, gradient = derived("log(k - 5)", MODEL, UNKNOWNS).at(np.ones(3))
    assert math.isnan(value) and np.isnan(gradient).all()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("y", "is an output"),
        ("k*u", "is an input"),
        ("z", "is known"),
        ("k*t", "does not depend on the time"),
        ("q", "unknown name"),
        ("k*", "ends early"),
        ("__import__('os')", "not allowed"),
    ],
)
def test_what_cannot_be_asked(text, why):
    with pytest.raises(ModelError, match=why):
        derived(text, MODEL, UNKNOWNS)


def test_initial_states_of_several_experiments():
    several = (Unknown("x", "x(0) in one", "one"), Unknown("x", "x(0) in two", "two"), Unknown("k", "k"))
    assert derived("x(0) in two", MODEL, several).place == 1
    with pytest.raises(ModelError, match="x\\(0\\) in one, x\\(0\\) in two"):
        derived("x*k", MODEL, several)


def test_what_keeps_its_sign():
    signs = np.array([1.0, 1.0, 0.0])
    for text, keeps in [("x*k", True), ("x*m", False), ("x + k", False), ("-2*x/k**3", True), ("exp(m)", True)]:
        assert derived(text, MODEL, UNKNOWNS).keeps_sign(signs) is keeps


def test_switches_follow_their_branch():
    z = np.array([0.5, 2.0, 1.2])
    for text, same in (
        ("max(k, m)*abs(-x) + floor(k/3)", "k*x"),
        ("piecewise(k*m, k > m and not x > 1, x)", "k*m"),
    ):
        found, expected = (derived(one, MODEL, UNKNOWNS).at(z) for one in (text, same))
        for ours, theirs in zip(found, expected, strict=True):
            assert np.allclose(ours, theirs, rtol=1e-14)
