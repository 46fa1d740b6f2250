"""Functions as unknowns: identities between functions must hold exactly in every order and tangent."""

import random

import pytest

from odejet.jets import modular
from odejet.model import Model, algebraic

FIELD = modular.Field(modular.PRIMES[1])

IDENTITIES = [
    ("exp(x)*exp(-x)", "1"),
    ("exp(2*x + y)", "exp(x)**2*exp(y)"),
    ("exp(x/2)*exp(x/3)", "exp(5*x/6)"),
    ("exp(k*x - x)", "exp(k*x)/exp(x)"),
    ("x**(n - 1)*x", "x**n"),
    ("(x*y)**n", "x**n*y**n"),
    ("x**(2*n)", "(x**n)**2"),
    ("log(x**2*y/k)", "2*log(x) + log(y) - log(k)"),
    ("exp(log(x + y))", "x + y"),
    ("log(exp(x*y))", "x*y"),
    ("sin(x)**2 + cos(x)**2", "1"),
    ("sin(2*x)", "2*sin(x)*cos(x)"),
    ("cos(x - y)", "cos(x)*cos(y) + sin(x)*sin(y)"),
    ("tan(x)", "sin(x)/cos(x)"),
    ("sin(x/2)**2", "(1 - cos(x))/2"),
    ("cosh(x)**2 - sinh(x)**2", "1"),
    ("tanh(x)", "(exp(2*x) - 1)/(exp(2*x) + 1)"),
    ("sqrt(x)**2", "x"),
    ("sqrt(x*y)", "sqrt(x)*sqrt(y)"),
    ("x**1.5/x", "sqrt(x)"),
    ("x**(1/3)*x**(2/3)", "x"),
    ("sinh(log(x))", "(x - 1/x)/2"),
]


@pytest.mark.parametrize(("left", "right"), IDENTITIES)
def test_identities_hold_in_all_orders_and_tangents(left, right):
    model = Model({"x": "k*y + 1", "y": "x*y - n*y"}, {"left": left, "right": right})
    tape = algebraic.build(model)
    point = modular.random_point(tape, FIELD, random.Random(5), order=4)
    jets = modular.jets(tape, FIELD, point, 4)
    assert jets.outputs[0].tolist() == jets.outputs[1].tolist()


@pytest.mark.parametrize(
    ("left", "right"), [("exp(x)", "exp(y)"), ("sin(x)", "cos(x)"), ("exp(x)", "1 + x"), ("x**n", "x")]
)
def test_different_functions_stay_different(left, right):
    tape = algebraic.build(Model({"x": "k*y + 1", "y": "x*y - n*y"}, {"left": left, "right": right}))
    jets = modular.jets(tape, FIELD, modular.random_point(tape, FIELD, random.Random(5), order=2), 2)
    assert jets.outputs[0].tolist() != jets.outputs[1].tolist()


def test_actual_inputs_can_be_used_instead_of_free_ones():
    model = Model({"x": "-k*x + u"}, {"y": "x"}, inputs={"u": "sin(2*t) + t"})
    free, actual = algebraic.build(model), algebraic.build(model, free_inputs=False)
    assert len(free.inputs) == 1
    assert len(actual.inputs) == 0
    point = modular.random_point(actual, FIELD, random.Random(2), order=3)
    jets = modular.jets(actual, FIELD, point, 3)
    # u''' + 4 u' = 4 for this input, and u = x' + k x.
    (k,), x = point.parameters, [jets.states[0, j, 0] * f for j, f in enumerate((1, 1, 2, 6))]
    assert jets.outputs[0, 0, 0] == x[0]
    u = [(x[j + 1] + k * x[j]) % FIELD.prime for j in range(3)]
    assert len(set(u)) == 3


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        ("exp(a)", "exp(a)"),
        ("log(a)", "1/a"),
        ("sin(a)", "cos(a)"),
        ("cos(a)", "-sin(a)"),
        ("tanh(a)", "1 - tanh(a)**2"),
        ("sqrt(a)", "1/(2*sqrt(a))"),
        ("a**(2/3)", "2*a**(2/3)/(3*a)"),
        ("a**b", "b*a**b/a"),
        ("exp(a + b)", "exp(a)*exp(b)"),
    ],
)
def test_functions_of_parameters_have_their_tangents(function, slope):
    model = Model({"x": "-b*x + a"}, {"y1": function, "y2": slope})
    tape = algebraic.build(model)
    point = modular.random_point(tape, FIELD, random.Random(5), 1)
    found = modular.jets(tape, FIELD, point, 1)
    lane = 1 + len(model.states) + model.parameters.index("a")
    assert found.outputs[0, 0, lane] == found.outputs[1, 0, 0]
