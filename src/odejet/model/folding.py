"""Folding: expressions without what numbers alone decide, so that equal ones are written alike.

What is multiplied by zero is gone, with all names in it: a dose that is not given leaves nothing of its kinetics.
"""

from __future__ import annotations

from fractions import Fraction

from odejet.model.expressions import (
    ZERO,
    Choice,
    Delay,
    Expression,
    Function,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    constant,
)
from odejet.model.modes import decided

_ONE = Number(Fraction(1))
_VANISHING = ("sqrt", "sin", "tan", "sinh", "tanh")  # functions that are zero at zero


def folded(expression: Expression) -> Expression:
    """Take the switches that numbers decide, and drop what is multiplied by zero."""
    match expression:
        case Sum(terms):
            return _sum([(sign, folded(term)) for sign, term in terms])
        case Product(factors):
            return _product([(exponent, folded(factor)) for exponent, factor in factors])
        case Power(base, exponent):
            base, exponent = folded(base), folded(exponent)
            positive = isinstance(exponent, Number) and exponent.value > 0
            return ZERO if positive and base == ZERO else Power(base, exponent)
        case Function(name, argument):
            argument = folded(argument)
            return ZERO if name in _VANISHING and argument == ZERO else Function(name, argument)
        case Choice() | Piecewise():
            taken = decided(expression)
            return taken if isinstance(taken, Choice | Piecewise) else folded(taken)
        case Delay(argument, by):
            argument = folded(argument)
            return argument if constant(argument) is not None else Delay(argument, folded(by))
    return expression


def _sum(terms: list[tuple[int, Expression]]) -> Expression:
    kept = tuple((sign, term) for sign, term in terms if term != ZERO)
    if len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    whole = Sum(kept)
    return ZERO if constant(whole) == 0 else whole


def _product(factors: list[tuple[int, Expression]]) -> Expression:
    if (1, ZERO) in factors and (-1, ZERO) not in factors:
        return ZERO
    kept = tuple((exponent, factor) for exponent, factor in factors if factor != _ONE)
    if not kept or kept[0][0] < 0:
        kept = ((1, _ONE), *kept)
    return kept[0][1] if len(kept) == 1 else Product(kept)
