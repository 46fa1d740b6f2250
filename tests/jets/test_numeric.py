"""Jets over real and complex numbers against mpmath and against exact arithmetic."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from odejet.jets.numeric import jets
from odejet.model import Model
from odejet.model.grammar import parse
from odejet.model.tape import build
from tests import series, strategies

ORDER = 10

FUNCTIONS = [
    "exp(-x)",
    "log(x)",
    "sin(3*x)",
    "cos(x**2)",
    "tan(x)",
    "sinh(x)",
    "cosh(2*x)",
    "tanh(x)",
    "sqrt(x)",
    "x**2.5",
    "x**-1.3",
    "x**k",
    "k**x",
    "x**x",
    "x**5",
    "1/(1 + x**2)",
    "exp(sin(x))/sqrt(1 + x)",
    "log(cosh(x))*tanh(k*x)",
    "x**3/(x + k) - 2*x",
]


def derivatives(expression: str, x: mpmath.mpf, k: mpmath.mpf) -> list[mpmath.mpf]:
    parsed = parse(expression)
    return mpmath.taylor(lambda z: strategies.evaluate(parsed, {"x": z, "k": k}), x, ORDER)


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_functions_of_a_moving_state_agree_with_mpmath(expression):
    tape = build(Model({"x": "1"}, {"y": expression + " + 0*k"}, parameters=["k"]))
    with mpmath.workdps(60):
        for x, k in ((0.7, 1.9), (1.31, 0.4)):
            found = jets(tape, np.array([x]), np.array([k]), order=ORDER, tangents=True).outputs[0, 0]
            expected = derivatives(expression, mpmath.mpf(x), mpmath.mpf(k))
            assert_close(found[:, 0], expected)
            # x(t) = x + t, so the tangent with respect to x is the next derivative.
            assert_close(found[:-1, 1], [(j + 1) * expected[j + 1] for j in range(ORDER)])
            slope = mpmath.diff(lambda z, x=x: derivatives(expression, mpmath.mpf(x), z)[3], mpmath.mpf(k))
            assert_close(found[3:4, 2], [slope])


def assert_close(found: np.ndarray, expected: list[mpmath.mpf], tolerance: float = 1e-12) -> None:
    # Orders near a zero of the derivative are compared on the scale of their neighbours.
    scale = [max(abs(e) for e in expected[max(0, j - 1) : j + 2]) for j in range(len(expected))]
    for value, exact, size in zip(found, expected, scale, strict=True):
        assert abs(value - exact) <= tolerance * max(size, mpmath.mpf(10) ** -30)


def test_logistic_growth_agrees_with_its_solution():
    tape = build(Model({"x": "r*x*(1 - x/K)"}, {"y": "x"}))
    x0, r, limit = 0.3, 1.7, 2.5
    found = jets(tape, np.array([x0]), np.array([r, limit]), order=ORDER).output_derivatives[0, 0, :, 0]
    with mpmath.workdps(60):
        x, rate, top = mpmath.mpf(x0), mpmath.mpf(r), mpmath.mpf(limit)
        expected = mpmath.diffs(lambda t: top / (1 + (top / x - 1) * mpmath.exp(-rate * t)), 0, ORDER)
        assert_close(found, list(expected))


RATIONAL = Model(
    {"a": "k*a*b/(1 + b) - u*a", "b": "a**2 - b/(a + k)", "c": "0"}, {"y": "a/b + t", "z": "c*a"}, inputs={"u": "t/3"}
)


@pytest.mark.parametrize("kind", [float, complex])
def test_rational_models_agree_with_exact_arithmetic(kind):
    states, parameters, time = [Fraction(3, 4), Fraction(1, 2), Fraction(5)], [Fraction(9, 8)], Fraction(1, 4)
    exact = series.jets(RATIONAL, states, parameters, time, {"u": [time / 3, Fraction(1, 3)]}, 6)
    arguments = np.array(states, dtype=kind), np.array(parameters, dtype=kind), kind(time)
    found = jets(build(RATIONAL), *arguments, order=6, tangents=True)
    for rows, expected in ((found.states[0], exact[0]), (found.outputs[0], exact[1])):
        reference = np.array([[[float(x) for x in (c.value, *c.tangents)] for c in row] for row in expected])
        np.testing.assert_allclose(rows, reference, rtol=1e-13, atol=1e-13)


def test_complex_jets_are_analytic_in_all_arguments():
    tape, step = build(RATIONAL), 1e-30
    states, parameters = np.array([0.7, 0.4, 2.0]), np.array([1.3])
    real = jets(tape, states, parameters, 0.2, order=8, tangents=True).outputs[0]
    for lane in range(4):
        shifted = np.r_[states, parameters].astype(complex)
        shifted[lane] += 1j * step
        found = jets(tape, shifted[:3], shifted[3:], 0.2, order=8).outputs[0]
        np.testing.assert_allclose(found[..., 0].imag / step, real[..., 1 + lane], rtol=1e-11, atol=1e-12)


def test_many_points_at_once_equal_single_points():
    tape, generator = build(RATIONAL), np.random.default_rng(0)
    states, parameters = generator.uniform(0.2, 1, (5, 3)), generator.uniform(0.2, 1, (5, 1))
    times = generator.uniform(0, 1, 5)
    together = jets(tape, states, parameters, times, order=5, tangents=True)
    for i in range(5):
        alone = jets(tape, states[i], parameters[i], times[i], order=5, tangents=True)
        assert np.array_equal(together.outputs[i], alone.outputs[0])


def test_free_inputs_are_filled_with_given_series():
    given, inlined = build(RATIONAL, free_inputs=True), build(RATIONAL)
    states, parameters = np.array([0.7, 0.4, 2.0]), np.array([1.3])
    coefficients = np.array([[[0.3 / 3, 1 / 3, 0, 0, 0, 0]]])
    found = jets(given, states, parameters, 0.3, order=5, inputs=coefficients)
    expected = jets(inlined, states, parameters, 0.3, order=5)
    np.testing.assert_allclose(found.outputs, expected.outputs, rtol=1e-14)


def test_the_order_is_limited():
    with pytest.raises(ValueError, match="between 0 and"):
        jets(build(RATIONAL), np.ones(3), np.ones(1), order=99)
