"""Terms: what is added in an equation is of one kind, and what follows from that for the factors of each term.

x' = k1*x - k2*x*w says that k1 and k2*w are alike, as x'/x is.  Whatever is multiplied when quantities are, a unit or a
size, has a logarithm that is a linear function of those of single quantities; an equation says that the logarithms of
its terms are equal.  What a number or a name stands for is for each reader to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from odejet.model.expressions import (
    TIME,
    Choice,
    Delay,
    Expression,
    Function,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    constant,
)

Kind = tuple[dict[int, float], float]
"""The logarithm of what a term is: a linear function of the variables, and a constant."""

NO_KIND: Kind = ({}, 0.0)


@dataclass
class Reader:
    """Expressions as kinds; what an expression says about its own parts goes into the equations."""

    rows: list[Kind] = field(default_factory=list)  # each to be zero

    # --- what each reader knows ---

    def number(self, value: float) -> Kind | None:
        """What a number is; None if it tells nothing, nor what it is a factor of."""
        raise NotImplementedError

    def name(self, name: str) -> Kind:
        raise NotImplementedError

    def is_equated(self, term: Expression) -> bool:
        """Whether a term of an equation is of its kind."""
        return True

    def is_added(self, term: Expression) -> bool:
        """Whether a term is of the kind of what it is added to."""
        return True

    # --- reading ---

    def equate(self, expression: Expression, kind: Kind) -> None:
        """Every term of an expression is of one kind."""
        for term in terms_of(expression):
            if self.is_equated(term) and (found := self.kind(term)) is not None:
                self.rows.append(combined(found, kind, -1.0))

    def kind(self, expression: Expression) -> Kind | None:
        """The kind of an expression; None for what tells nothing."""
        match expression:
            case Number(value):
                return self.number(float(value))
            case Symbol(name):
                return self.name(name)
            case Product(factors):
                return self.product(factors)
            case Power(base, exponent):
                number = constant(exponent)  # an unknown one is the same for all that it stands above
                return self.power(base, 1.0 if number is None else float(number))
            case Function("sqrt", argument):
                return self.power(argument, 0.5)
            case Function(_, argument):
                self.equate(argument, NO_KIND)
                return NO_KIND
            case Choice("floor" | "ceil" | "sign"):
                return NO_KIND
            case Sum() | Choice() | Piecewise():
                return self.alike(expression)
            case Delay(argument, by):
                self.equate(by, self.name(TIME))
                return self.kind(argument)
        raise AssertionError(expression)

    def product(self, factors: tuple[tuple[int, Expression], ...]) -> Kind | None:
        total = NO_KIND
        for exponent, factor in factors:
            if (part := self.kind(factor)) is None:
                return None
            total = combined(total, part, float(exponent))
        return total

    def power(self, base: Expression, exponent: float) -> Kind | None:
        part = self.kind(base)
        return None if part is None else combined(NO_KIND, part, exponent)

    def alike(self, expression: Sum | Choice | Piecewise) -> Kind | None:
        """The kind of what is added or chosen from."""
        terms = expression.values if isinstance(expression, Piecewise) else terms_of(expression)
        parts = [part for term in terms if self.is_added(term) and (part := self.kind(term)) is not None]
        self.rows.extend(combined(other, parts[0], -1.0) for other in parts[1:])
        return parts[0] if parts else None


def terms_of(expression: Expression) -> Iterator[Expression]:
    """What an expression adds, or chooses from."""
    match expression:
        case Sum(terms):
            for _, term in terms:
                yield from terms_of(term)
        case Choice("abs" | "min" | "max", arguments):
            for argument in arguments:
                yield from terms_of(argument)
        case _:
            yield expression


def combined(one: Kind, other: Kind, factor: float) -> Kind:
    """The kind of a product, the other with an exponent."""
    coefficients = dict(one[0])
    for variable, coefficient in other[0].items():
        coefficients[variable] = coefficients.get(variable, 0.0) + factor * coefficient
    return coefficients, one[1] + factor * other[1]
