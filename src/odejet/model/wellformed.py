"""Well-formed: trees that code has built, held to the rules that texts obey.

A tree that a text could have written has no sums and products of a single part, and none of its parts that numbers
alone make up is infinite or undefined.  So models are the same whether they are made of texts or of parts of others,
without a text in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from odejet.model.expressions import (
    Choice,
    Comparison,
    Condition,
    Delay,
    Expression,
    Function,
    Logic,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    children,
)

MAX_DEPTH = 60
MAX_EXPONENT = 100
MAX_NODES = 20_000


_VARYING = (Symbol, Choice, Piecewise, Comparison, Logic, Delay)  # have no value of their own, even without names


class IllFormed(ValueError):
    """A tree that no text could have written."""


@dataclass(frozen=True)
class Measure:
    """The value of an expression without names, the largest product of nested exponents, depth and size."""

    value: float | None
    exponent: float
    depth: int
    nodes: int


def measure(expression: Expression | Condition) -> Measure:
    """Return the measure of a tree, which it remembers; a constant that is no finite number raises."""
    found: Measure | None = expression.__dict__.get("_measure")
    if found is None:
        parts = [measure(child) for child in children(expression)]
        values = [part.value for part in parts if part.value is not None]
        if isinstance(expression, Product) and any(
            sign < 0 and part.value == 0 for (sign, _), part in zip(expression.factors, parts, strict=True)
        ):
            raise ZeroDivisionError
        value = None
        if len(values) == len(parts) and not isinstance(expression, _VARYING):
            value = _evaluate(expression, values)
        exponent = max((part.exponent for part in parts), default=1.0)
        if isinstance(expression, Power) and parts[1].value is not None:
            exponent *= max(1.0, abs(parts[1].value))
        depth = 1 + max((part.depth for part in parts), default=0)
        found = Measure(value, exponent, depth, 1 + sum(part.nodes for part in parts))
        expression.__dict__["_measure"] = found
    return found


def well_formed(expression: Any) -> Any:
    """Return an expression or condition as its own text would be read; `IllFormed` where that is refused."""
    if "_well_formed" in expression.__dict__:
        return expression
    try:
        found = measure(expression)
        if found.exponent > MAX_EXPONENT or found.depth > MAX_DEPTH or found.nodes > MAX_NODES:
            raise IllFormed
        written = _written(expression)
        written.__dict__["_well_formed"] = True  # remembered, since models are made of the trees of others
        return written
    except (ArithmeticError, ValueError, RecursionError):
        raise IllFormed from None


def _written(expression: Any) -> Any:
    """The tree without sums and products of a single part; itself where it has none."""
    parts = children(expression)
    new = tuple(map(_written, parts))
    same = all(one is other for one, other in zip(parts, new, strict=True))
    if isinstance(expression, Sum | Product) and len(parts) == 1 and parts_of(expression)[0][0] == 1:
        return new[0]
    return expression if same else rebuilt(expression, new)


def parts_of(expression: Sum | Product) -> tuple[tuple[int, Expression], ...]:
    return expression.terms if isinstance(expression, Sum) else expression.factors


def rebuilt(expression: Any, new: tuple[Any, ...]) -> Any:
    """Return an expression or condition with other children."""
    match expression:
        case Sum(terms):
            return Sum(tuple((sign, part) for (sign, _), part in zip(terms, new, strict=True)))
        case Product(factors):
            return Product(tuple((sign, part) for (sign, _), part in zip(factors, new, strict=True)))
        case Power():
            return Power(*new)
        case Function(name):
            return Function(name, *new)
        case Choice(name):
            return Choice(name, new)
        case Comparison(relation):
            return Comparison(relation, *new)
        case Logic(word):
            return Logic(word, new)
        case Piecewise(values):
            return Piecewise(new[: len(values)], new[len(values) :])
        case Delay():
            return Delay(*new)
    raise AssertionError(expression)


def _evaluate(expression: Expression, parts: list[float]) -> float:
    """The finite value of a node from the values of its children; undefined or infinite ones raise."""
    match expression:
        case Number(exact):
            value = float(exact)
        case Sum(terms):
            value = math.fsum(sign * part for (sign, _), part in zip(terms, parts, strict=True))
        case Product(factors):
            value = 1.0
            for (exponent, _), part in zip(factors, parts, strict=True):
                value = value * part if exponent > 0 else value / part
        case Power():
            value = math.pow(*parts)
            # Exact arithmetic would have to carry what a double loses.
            if value == 0 and parts[0] != 0:
                raise OverflowError
        case Function(name, _):
            value = getattr(math, name)(*parts)
        case _:
            raise AssertionError(expression)
    if not math.isfinite(value):
        raise OverflowError
    return value
