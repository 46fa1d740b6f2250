"""Quotients of real powers keep their values, and doubles hold them at any exponent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.model import Model
from odejet.model.expressions import Number, Product, Symbol
from odejet.model.ratios import balanced
from odejet.model.tape import Column, Op, build
from odejet.simulate.flow import Flow, Outcome

QUOTIENTS = [
    "V*x**n/(K**n + x**n)",
    "V*K**n/(K**n + x**n)",
    "x**n*V/((K**n + x**n)*(1 + w**2))",
    "x**n/(K**n + x**n)*K**n/(K**n + w**n)",
    "x**n/(2*x**n + V*K**n - w)",
    "(x/K)**n/(1 + (x/K)**n)",
    "x**n/(K + x**n + w**m)",
    "x**n/(1 + x**n/K**n)",
    "V/x**n",
    "x**n*w**n/(x**n + w**n)/x**m",
    "x**n*x**n/(K**n + x**n)**2",
    "x**1.7/(K**1.7 + x**1.7)",
]
NAMES = "xwVKnm"


def rewritten(text):
    """The product in the form of the tape, where x and w move and n and m are real."""
    expression = Model({"x": text}).states["x"]
    assert isinstance(expression, Product)

    def is_real(exponent):
        return not isinstance(exponent, Number) or exponent.value.denominator > 2

    found = balanced(expression.factors, is_real, lambda base: base == Symbol("K"))
    return expression, found


@pytest.mark.parametrize("text", QUOTIENTS)
@given(st.lists(st.floats(0.2, 5), min_size=len(NAMES), max_size=len(NAMES)))
def test_values_are_the_same(text, numbers):
    values = dict(zip(NAMES, numbers, strict=True))
    expression, found = rewritten(text)
    expected = eval(str(expression), {}, values)
    np.testing.assert_allclose(eval(str(Product(found)), {}, values), expected, rtol=1e-11)


@pytest.mark.parametrize(
    "text",
    [
        "V*x**2/(K**2 + x**2)",
        "x**0.5/(K**0.5 + x**0.5)",
        "2*x**n",
        "x**n/(K**n - x**n)",  # may vanish
        "x**n*w**m/(K**n + x**n)",  # the other power may be as large
        "exp(w)*x**n/(K**n + x**n)",
        "(1 + x**n)/(K**n + x**n)",
        "w**n/(K**n + x**n)",
        "x**n/(K + x**n + w**m*V**n)",
    ],
)
def test_others_are_left_as_they_are(text):
    expression, found = rewritten(text)
    assert found is expression.factors


def test_powers_are_bounded_only_below():
    assert "Bounded" in repr(rewritten("x*V/(K**n + x**n)")[1])
    assert "Bounded" not in repr(rewritten("V/x**n")[1])


def test_a_saturating_quotient_has_one_power():
    tape = build(Model({"x": "-x", "y": "V*x**n/((K**n + x**n)*(1 + y)) - y"}, {"z": "y"}))
    series = tape.code[tape.split[0] :]
    assert np.sum(series[:, Column.OP] == Op.QUADRATURE) == 1
    assert np.sum(series[:, Column.OP] == Op.DIVIDE) == 3  # one is in the slope of the power


@pytest.mark.parametrize("exponent", [3.3, 139.5, 5000.5])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_outputs_are_finite_at_any_size(exponent, size):
    """x^n/(K^n + x^n) with x = 2 K, K and K/2."""
    model = Model({"x": "-x"}, {"y": "x**n/(K**n + x**n)"})
    found = Flow(model).run([exponent, size], [2 * size], np.log([1.0, 2.0, 4.0]), sensitivities=False)
    shares = 1 / (1 + np.exp(np.minimum(-exponent * np.log([2.0, 1.0, 0.5]), 700)))
    np.testing.assert_allclose(found.outputs[:, 0, 0], shares, rtol=1e-14 * exponent, atol=1e-250)


def test_a_power_that_is_no_divisor_may_overflow():
    found = Flow(Model({"x": "x**n"})).run([100.5], [1e4], [0.0, 1.0])
    assert found.outcome is not Outcome.COMPLETED
