"""Derivatives: expressions without switches by one of their names."""

from __future__ import annotations

from fractions import Fraction

from odejet.model.expressions import (
    ZERO,
    Expression,
    Function,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    names,
)

_ONE, _TWO = Number(Fraction(1)), Number(Fraction(2))


def derivative(expression: Expression, name: str) -> Expression:
    """The partial derivative of an expression; zero where the name does not occur."""
    if name not in names(expression):
        return ZERO
    match expression:
        case Symbol():
            return _ONE
        case Sum(terms):
            parts = [(sign, derivative(term, name)) for sign, term in terms]
            return Sum(tuple((sign, part) for sign, part in parts if part != ZERO))
        case Product(factors):
            return _of_product(factors, name)
        case Power(base, exponent):
            return _of_power(base, exponent, name)
        case Function(function, argument):
            return _times(_slope(function, argument), derivative(argument, name))
    raise AssertionError(expression)


def _times(*factors: Expression) -> Expression:
    kept = [factor for factor in factors if factor != _ONE]
    if ZERO in kept:
        return ZERO
    return kept[0] if len(kept) == 1 else Product(tuple((1, factor) for factor in kept or [_ONE]))


def _of_product(factors: tuple[tuple[int, Expression], ...], name: str) -> Expression:
    terms: list[tuple[int, Expression]] = []
    for i, (exponent, factor) in enumerate(factors):
        slope = derivative(factor, name)
        if slope == ZERO:
            continue
        rest = (*factors[:i], *factors[i + 1 :])
        if exponent < 0:  # (1/a)' = -a'/a^2
            rest = (*rest, (-1, factor), (-1, factor))
        terms.append((exponent, Product(((1, slope), *rest))))
    return Sum(tuple(terms))


def _of_power(base: Expression, exponent: Expression, name: str) -> Expression:
    terms: list[tuple[int, Expression]] = []
    if (slope := derivative(base, name)) != ZERO:
        lower = Sum(((1, exponent), (-1, _ONE)))
        terms.append((1, _times(exponent, Power(base, lower), slope)))
    if (slope := derivative(exponent, name)) != ZERO:
        terms.append((1, _times(Power(base, exponent), Function("log", base), slope)))
    return Sum(tuple(terms))


def _slope(function: str, argument: Expression) -> Expression:
    value = Function(function, argument)
    match function:
        case "exp":
            return value
        case "log":
            return Product(((1, _ONE), (-1, argument)))
        case "sin":
            return Function("cos", argument)
        case "cos":
            return Sum(((-1, Function("sin", argument)),))
        case "tan":
            return Sum(((1, _ONE), (1, Power(value, _TWO))))
        case "sinh":
            return Function("cosh", argument)
        case "cosh":
            return Function("sinh", argument)
        case "tanh":
            return Sum(((1, _ONE), (-1, Power(value, _TWO))))
        case "sqrt":
            return Product(((1, _ONE), (-1, _TWO), (-1, value)))
    raise AssertionError(function)
