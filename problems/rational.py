"""Rational: the expressions of a model as quotients of polynomials without common factors, over the rational numbers.

What is known at all times may be any function of time: such a part, sin(0.5*t) say, is one symbol, a *signal*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, lcm

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from odejet.errors import ModelError, clipped
from odejet.model import Model
from odejet.model.expressions import (
    TIME,
    Expression,
    Function,
    Number,
    Power,
    Product,
    Sum,
    Symbol,
    children,
    constant,
    names,
    number,
)

MAX_TERMS = 20_000
"""A polynomial with more terms than this is not written out."""

Factors = tuple[str, ...]
"""A product of symbols, each as often as its power says."""


@dataclass(frozen=True)
class Quotient:
    """above / below, each a sum of products with their coefficients; `below` has whole coefficients."""

    above: Mapping[Factors, Fraction]
    below: Mapping[Factors, Fraction]

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for part in (self.above, self.below) for factors in part for symbol in factors)


@dataclass(frozen=True)
class Equations:
    """Right-hand sides and outputs as quotients; `signals` are their known functions of time, by name."""

    states: Mapping[str, Quotient]
    outputs: Mapping[str, Quotient]
    signals: Mapping[str, Expression]


def clear(model: Model, held: Iterable[str] = ()) -> Equations:
    """The equations of a model as quotients; `held` names parameters whose values are known."""
    known = {TIME, *model.inputs, *held} - {*model.states}
    tables = {
        table: {name: _inserted(value, model.fixed) for name, value in getattr(model, table).items()}
        for table in ("states", "outputs")
    }
    signals = {name: Symbol(name) for name in (*model.inputs, TIME)} | {
        str(signal): signal
        for table, entries in tables.items()
        for name, value in entries.items()
        for signal in _signals(value, known, f"{model.name}: [{table}] {name}")
    }
    ring = _Ring(list(dict.fromkeys([*model.states, *model.parameters, *signals])))
    read = {
        table: {name: ring.quotient(value, f"{model.name}: [{table}] {name}") for name, value in entries.items()}
        for table, entries in tables.items()
    }
    used = frozenset().union(*(quotient.symbols for entries in read.values() for quotient in entries.values()))
    return Equations(read["states"], read["outputs"], {name: s for name, s in signals.items() if name in used})


def _inserted(expression: Expression, values: Mapping[str, Fraction]) -> Expression:
    """The expression with numbers in place of names."""

    def inside(child: Expression) -> Expression:
        return _inserted(child, values)

    match expression:
        case Symbol(name) if name in values:
            return number(values[name])
        case Sum(terms):
            return Sum(tuple((sign, inside(term)) for sign, term in terms))
        case Product(factors):
            return Product(tuple((exponent, inside(factor)) for exponent, factor in factors))
        case Power(base, exponent):
            return Power(inside(base), inside(exponent))
        case Function(name, argument):
            return Function(name, inside(argument))
    return expression


def _whole(exponent: Expression) -> int | None:
    value = constant(exponent)
    return None if value is None or value.denominator != 1 else int(value)


def _signals(expression: Expression, known: set[str], where: str) -> Iterator[Expression]:
    """The largest parts that are not rational; all of them must be known."""
    if isinstance(expression, Function) or (isinstance(expression, Power) and _whole(expression.exponent) is None):
        unknown = [name for name in names(expression) if name not in known]
        if unknown:
            reason = f"{clipped(str(expression))} depends on '{unknown[0]}' and is not rational"
            raise ModelError(f"{where}: {reason}; make it a state with its own differential equation")
        yield expression
        return
    for child in children(expression):
        yield from _signals(child, known, where)


class _Ring:
    """Polynomials in some symbols, and their quotients."""

    def __init__(self, symbols: list[str]) -> None:
        # The ring has names of its own: those of a model may be anything.
        self.context = fmpq_mpoly_ctx.get([f"s{i}" for i in range(len(symbols))], Ordering.lex)
        self.symbols = symbols
        self.generators = dict(zip(symbols, self.context.gens(), strict=True))

    def number(self, value: Fraction) -> fmpq_mpoly:
        return self.context.constant(fmpq(value.numerator, value.denominator))

    def quotient(self, expression: Expression, where: str) -> Quotient:
        try:
            above, below = self.read(expression)
        except ZeroDivisionError:
            raise ModelError(f"{where}: there is a division by zero") from None
        except OverflowError:
            raise ModelError(f"{where}: multiplied out it has too many terms; split it over several states") from None
        divisor = above.gcd(below)
        parts = [self.terms(above / divisor), self.terms(below / divisor)]
        coefficients = parts[1].values()
        scale = Fraction(lcm(*(c.denominator for c in coefficients)), gcd(*(c.numerator for c in coefficients)))
        return Quotient(*({factors: scale * c for factors, c in part.items()} for part in parts))

    def terms(self, polynomial: fmpq_mpoly) -> dict[Factors, Fraction]:
        found = {}
        for powers, coefficient in polynomial.to_dict().items():
            factors = tuple(s for s, power in zip(self.symbols, powers, strict=True) for _ in range(int(power)))
            found[factors] = Fraction(int(coefficient.p), int(coefficient.q))
        return found

    def read(self, expression: Expression) -> tuple[fmpq_mpoly, fmpq_mpoly]:
        """The expression as a fraction, not yet in lowest terms."""
        one = self.number(Fraction(1))
        match expression:
            case Number(value):
                return self.number(value), one
            case Symbol(name):
                return self.generators[name], one
            case Sum(terms):
                return self._sum([(sign, self.read(term)) for sign, term in terms])
            case Product(factors):
                above, below = one, one
                for exponent, factor in factors:
                    top, bottom = self.read(factor)[::exponent]
                    above, below = _times(above, top), _times(below, bottom)
                return above, _nonzero(below)
            case Power(base, power) if (times := _whole(power)) is not None:
                top, bottom = self.read(base)[:: 1 if times >= 0 else -1]
                return _power(top, abs(times)), _nonzero(_power(bottom, abs(times)))
        return self.generators[str(expression)], one

    def _sum(self, terms: list[tuple[int, tuple[fmpq_mpoly, fmpq_mpoly]]]) -> tuple[fmpq_mpoly, fmpq_mpoly]:
        """Over the least common denominator: common factors would multiply with every term."""
        above, below = self.number(Fraction(0)), self.number(Fraction(1))
        for sign, (top, bottom) in terms:
            common = below.gcd(bottom)
            above = _times(above, bottom / common) + sign * _times(top, below / common)
            below = _times(below, bottom / common)
        return above, below


def _nonzero(below: fmpq_mpoly) -> fmpq_mpoly:
    if not below:
        raise ZeroDivisionError
    return below


def _times(a: fmpq_mpoly, b: fmpq_mpoly) -> fmpq_mpoly:
    if len(a) * len(b) > MAX_TERMS:
        raise OverflowError
    return a * b


def _power(base: fmpq_mpoly, times: int) -> fmpq_mpoly:
    if comb(max(len(base), 1) + times - 1, times) > MAX_TERMS:
        raise OverflowError
    return base**times
