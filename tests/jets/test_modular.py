"""Jets modulo a prime against exact rational arithmetic."""

import random
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings

from odejet.errors import ModelError
from odejet.jets import modular
from odejet.model import Model, algebraic
from tests import series, strategies

FIELD = modular.Field(modular.PRIMES[0])

MODELS = [
    Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y": "r"}),
    Model({"s": "-vmax*s/(km + s)", "p": "vmax*s/(km + s)"}, {"y1": "p", "y2": "s*p**2 - 3"}),
    Model({"x": "a*x**2/(b + t) - u*x", "n": "0"}, {"y": "x/n"}, inputs={"u": "t"}),
    Model({"x": "0.25*x**-2 + c", "y": "x*y - 1/3"}, {"z": "(x - y)/(x + y)"}, fixed={"c": "0.7"}),
]


def residues(model: Model, point: modular.Point, order: int) -> tuple[list, list]:
    """The reference, over rationals at the residues of the point, reduced modulo the prime at the end."""
    inputs = dict(zip(model.inputs, point.inputs, strict=True))
    whole = [[Fraction(x) for x in part] for part in (point.states, point.parameters)]
    states, outputs = series.jets(model, *whole, Fraction(point.time), inputs, order)
    return tuple(
        [[[FIELD.residue(x) for x in (c.value, *c.tangents)] for c in row] for row in part]
        for part in (states, outputs)
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: next(iter(model.states.values()), None).__str__())
def test_series_and_tangents_equal_rational_arithmetic(model):
    tape = algebraic.build(model)
    point = modular.random_point(tape, FIELD, random.Random(3), order=5)
    small = modular.point(
        tape,
        FIELD,
        [x % 97 + 1 for x in point.states],
        [x % 89 + 2 for x in point.parameters],
        point.time % 53,
        [[x % 31 for x in s] for s in point.inputs],
        random.Random(0),
    )
    found = modular.jets(tape, FIELD, small, 5)
    states, outputs = residues(model, small, 5)
    assert found.states.tolist() == states
    assert found.outputs.tolist() == outputs


@hypothesis_settings(max_examples=60)
@given(strategies.models())
def test_random_rational_models_equal_rational_arithmetic(model):
    assume(model.outputs)
    try:
        model = model.replace(initial={})
        tape = algebraic.build(model)
        point = modular.point(
            tape,
            FIELD,
            range(2, 2 + len(model.states)),
            range(11, 11 + len(model.parameters)),
            5,
            [[7, 3, 2, 1]] * len(model.inputs),
            random.Random(0),
        )
        states, outputs = residues(model, point, 3)
    except (modular.Unlucky, ZeroDivisionError, ModelError):
        assume(False)
    found = modular.jets(tape, FIELD, point, 3)
    assert found.states.tolist() == states
    assert found.outputs.tolist() == outputs


def test_primes_are_safe_primes():
    from flint import fmpz

    for prime in modular.PRIMES:
        assert prime < 2**61
        assert fmpz(prime).is_prime()
        assert fmpz((prime - 1) // 2).is_prime()


def test_encoding_round_trips():
    values = [0, 1, 2, FIELD.prime - 1, 123456789012345678]
    assert FIELD.decode(FIELD.encode(values)).tolist() == values


def test_known_initial_states_replace_drawn_ones_and_carry_tangents():
    model = Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "3*k**2"})
    tape = algebraic.build(model)
    point = modular.random_point(tape, FIELD, random.Random(1), 1, known_initial=True)
    (k,) = point.parameters
    found = modular.jets(tape, FIELD, point, 1, known_initial=True)
    assert found.outputs[0, 0].tolist() == [3 * k * k % FIELD.prime, 0, 6 * k % FIELD.prime]
    assert found.outputs[0, 1].tolist() == [-3 * k**3 % FIELD.prime, 0, -9 * k * k % FIELD.prime]


def test_a_zero_denominator_is_unlucky_not_wrong():
    tape = algebraic.build(Model({"x": "1/(x - 2)"}, {"y": "x"}))
    with pytest.raises(modular.Unlucky):
        modular.point(tape, FIELD, [2], [], 0, [], random.Random(0))
