"""Expressions with their gradients: switches entry by entry, and everything against differences."""

import numpy as np
import pytest

from odejet.model.dual import differentiated
from odejet.model.grammar import parse

X, A = np.array([-1.5, 0.5, 2.25]), 1.5


@pytest.mark.parametrize(
    "text",
    [
        "abs(x)*a",
        "min(x, a)",
        "max(x, a, 0.1)",
        "piecewise(x**2, x < 0, a*x, x < 1, 3)",
        "piecewise(a, x > 0 and not x > 1, x)",
        "floor(x) + a*sign(x)",
        "exp(-a*x)/(1 + x**2)",
        "piecewise(2, a > 1, x)",
    ],
)
def test_gradients_are_those_of_differences(text):
    expression, step = parse(text), 1e-6

    def value(x, a):
        return np.broadcast_to(differentiated(expression, {"x": x, "a": a}, {}, 0).value, x.shape)

    found = differentiated(expression, {"x": X, "a": A}, {"x": 0, "a": 1}, 2)
    np.testing.assert_allclose(found.value, value(X, A))
    by_x = (value(X + step, A) - value(X - step, A)) / (2 * step)
    by_a = (value(X, A + step) - value(X, A - step)) / (2 * step)
    np.testing.assert_allclose(found.gradient, [by_x, by_a], atol=1e-8)


def test_known_values_of_switches():
    values = {"x": X, "a": A}
    expected = {
        "piecewise(x**2, x < 0, a*x, x < 1, 3)": [2.25, 0.75, 3.0],
        "max(x, a, 0)": [1.5, 1.5, 2.25],
        "floor(x)": [-2.0, 0.0, 2.0],
        "piecewise(1, x > 0 and not x > 1, 0)": [0.0, 1.0, 0.0],
    }
    for text, numbers in expected.items():
        np.testing.assert_array_equal(differentiated(parse(text), values, {}, 0).value, numbers)
