"""Noise formulas as lists of operations, beside dual numbers."""

import numpy as np
import pytest

from odejet.model.dual import differentiated
from odejet.model.formula import formula
from odejet.model.grammar import parse
from odejet.objective.likeliest import scales

Y, A, B = np.array([-1.5, 0.5, 2.25]), 1.5, 0.3
TEXTS = [
    "a + b*y",
    "sqrt(a**2 + (b*y)**2)",
    "a*abs(y)**b",
    "y**2 - 3 + 0*a",
    "-a/(1 + b)/y",
    "2**a*exp(-y) + log(b)",
    "sin(y) + cos(a*y) - tan(b) + sinh(y)*cosh(b) + tanh(a - y)",
    "min(y, a) + max(y, b, 1)",
    "piecewise(y**2, y < 0, a*y, y <= 1, 3)",
    "piecewise(a, y > 0 and not y > 1 or y == 2.25, y)",
    "piecewise(a, y >= 0.5 and y != 2.25, b)",
    "floor(y) + a*sign(y) + ceil(b*y)",
    "k*y + a",
    "7",
]


@pytest.mark.parametrize("text", TEXTS)
def test_values_and_gradients_are_those_of_dual_numbers(text):
    expression, known = parse(text), {"k": 0.7}
    made = formula(expression, {"y": 0, "a": 1, "b": 2}, known)
    found = scales(made.code, made.numbers, Y, np.array([A, B]))
    expected = differentiated(expression, {"y": Y, "a": A, "b": B, **known}, {"y": 0, "a": 1, "b": 2}, 3)
    np.testing.assert_allclose(found[0], expected.value, rtol=1e-14)
    np.testing.assert_allclose(found[1:], expected.gradient, rtol=1e-13, atol=1e-15)
