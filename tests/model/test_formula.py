"""Expressions as lists of operations; what these give is looked at where a kernel runs them."""

import numpy as np

from odejet.model.formula import OPERATIONS, formula
from odejet.model.grammar import parse


def names(made):
    return [OPERATIONS[which] for which in made.code[:, 0]]


def test_what_is_computed_twice_is_there_once_and_what_is_not_used_is_not():
    made = formula(parse("a*y + sqrt(a*y)"), {"y": 0, "a": 1, "unused": 2}, {"known": 3.0})
    assert sorted(names(made)) == ["add", "multiply", "sqrt", "symbol", "symbol"]
    assert names(made)[-1] == "add"


def test_operands_come_first():
    made = formula(parse("piecewise(1, y > 2 and not a < 0.5, min(y, a, 3))"), {"y": 0, "a": 1}, {})
    for place, (which, *operands) in enumerate(made.code.tolist()):
        if OPERATIONS[which] not in ("number", "symbol"):
            assert max(operands) < place
    np.testing.assert_array_equal(np.sort(made.numbers), [0.5, 1, 2, 3])
