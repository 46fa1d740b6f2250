"""The tape computes every value once, and its structure is what the kernels rely on."""

import numpy as np
import pytest

from odejet.errors import ModelError
from odejet.model import Model
from odejet.model.tape import Column, Op, build


def count(tape, op: Op) -> int:
    return int(np.sum(tape.code[tape.split[0] :, Column.OP] == op))


def test_equal_products_are_computed_once():
    tape = build(Model({"r": "2*k1*r - 2*k2*w*r", "w": "-0.6*k3*w + 4*k2*r*w"}, {"y": "4*r"}))
    assert count(tape, Op.MULTIPLY) == 1
    assert count(tape, Op.ADVANCE) == 2
    assert tape.products == 1


def test_products_with_parameters_and_constant_states_cost_no_convolution():
    tape = build(Model({"S": "-b*I*S/N", "I": "b*I*S/N - a*I", "N": "0"}, {"y": "I/N"}))
    assert tape.products == 1
    assert tape.states[2] < tape.statics


def test_a_rate_that_is_used_elsewhere_is_computed_once():
    tape = build(Model({"x": "a - b*x*y", "y": "y*(a - b*x*y)"}, {"z": "x"}))
    assert count(tape, Op.MULTIPLY) == 2
    assert count(tape, Op.LINEAR) == 1


@pytest.mark.parametrize(
    ("expression", "products"),
    [
        ("x + x", 0),
        ("2*x - x - x", 0),
        ("x**2", 1),
        ("x**8", 3),
        ("x*x*x", 2),
        ("(x + 1)*(x + 1)", 1),
        ("x/x**2", 2),
        ("exp(x)*exp(x)", 2),
        ("sin(x) + cos(x)", 2),
        ("sin(t) + t**2*x", 1),
        ("1/(k + x)", 1),
        ("k**2*x/(1 + k)", 0),
    ],
)
def test_number_of_convolutions(expression, products):
    assert build(Model({"x": expression, "s": "0"}, {"y": "x*s*k"})).products == products


def test_numbers_are_folded_exactly():
    tape = build(Model({"x": "x*0.1*3/0.3 - x"}, {"y": "x"}))
    (row,) = tape.code[tape.code[:, Column.OP] == Op.ADVANCE]
    assert row[Column.BEGIN] == row[Column.END]
    assert row[Column.C] == -1


def test_static_registers_come_first_and_code_is_in_order():
    tape = build(Model({"x": "k*x*u + exp(k)", "y": "tan(x*y)"}, {"z": "x + y"}, inputs={"u": "sin(t)"}))
    static, series = tape.code[: tape.split[0]], tape.code[tape.split[0] :]
    assert np.all(static[:, Column.OUT] < tape.statics)
    assert np.all(series[:, Column.OUT] >= tape.statics)
    known = {*tape.parameters, *tape.states, tape.time, *(register for register, _ in tape.constants)}
    for row in tape.code:
        reads = [row[Column.A]] if row[Column.OP] == Op.QUADRATURE else [row[Column.A], row[Column.B]]
        assert all(register in known for register in reads if register >= 0)
        assert all(source in known for source in tape.terms[row[Column.BEGIN] : row[Column.END], 1])
        known.add(row[Column.OUT])


def test_what_nobody_reads_is_dropped():
    tape = build(Model({"x": "-k*x"}, {"y": "x"}, inputs={"u": "sin(t)"}))
    assert not np.any(tape.code[:, Column.OP] == Op.QUADRATURE)


def test_guards_are_the_arguments_and_values_of_branched_functions():
    tape = build(Model({"x": "sqrt(x) + log(1 + x) - exp(x)"}, {"y": "x"}))
    assert len(tape.guards) == 3


def test_a_division_by_zero_that_only_folding_finds_is_refused():
    with pytest.raises(ModelError, match="'x': a division by zero"):
        build(Model({"x": "x/(k - k)"}, {"y": "x"}))
