"""Trees that code has built, beside what their own texts say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.errors import ExpressionError
from odejet.model.derivatives import derivative
from odejet.model.expressions import Expression, Product, Sum, Symbol, names, number, substituted
from odejet.model.folding import folded
from odejet.model.grammar import parse, parse_condition
from odejet.model.wellformed import MAX_DEPTH, IllFormed, well_formed
from tests.strategies import is_expression, texts

TEXTS = texts(["x", "z", "k"], functions=["exp", "sin", "sqrt", "log"]).filter(is_expression)


def as_text(expression: Expression) -> Expression | None:
    try:
        return parse(str(expression))
    except ExpressionError:
        return None


def as_tree(expression: Expression) -> Expression | None:
    try:
        return well_formed(expression)
    except IllFormed:
        return None


@given(TEXTS, TEXTS, st.sampled_from([0, 1, -2, 0.5]))
def test_a_tree_is_what_its_text_says(text, other, value):
    """As it was read, with others in the place of names, folded and differentiated."""
    first, second = parse(text), parse(other)
    assert well_formed(first) is first
    built = [
        substituted(first, {"x": second, "k": number(value)}),
        folded(substituted(first, {"x": number(value)})),
        Sum(((1, first),)),
        Product(((1, Sum(((-1, first),))), (1, second))),
    ]
    built += [derivative(first, name) for name in names(first)][:2]
    for expression in built:
        assert as_tree(expression) == as_text(expression)


def test_what_a_text_may_not_say_is_refused():
    deep = Symbol("x")
    for _ in range(MAX_DEPTH + 1):
        deep = Sum(((-1, deep),))
    zero = substituted(parse("log(x)"), {"x": number(0)})
    for expression in (
        deep,
        zero,
        substituted(parse("1/x"), {"x": number(0)}),
        substituted(parse("z**x"), {"x": number(101)}),
    ):
        with pytest.raises(IllFormed):
            well_formed(expression)


def test_conditions():
    condition = substituted(parse_condition("x > 1 and not z < k"), {"x": Sum(((1, Symbol("k")),))})
    assert well_formed(condition) == parse_condition(str(condition))
