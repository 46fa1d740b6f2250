"""Ratios: quotients of real powers, in a form that neither overflows nor cancels.

x^n / (K^n + x^n) lies between zero and one, but where n is 100 both powers soon leave the range of doubles; and where
the quotient saturates its derivatives are differences of numbers that are all but equal.  Divided by x^n above and
below it is

    1 / (1 + (x/K)^-n)

in which the one power that is left may vanish or grow as it likes.  Powers with the same exponent that stand above and
below alike are one power of a quotient.  Whole exponents and roots are left alone: they are small, and bases may be
zero or negative.

A power in a divisor is bounded where the quotient is zero long before: it is one of positive terms, and nothing above
grows as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from odejet.model.expressions import Expression, Function, Number, Power, Product, Sum

Factors = tuple[tuple[int, Expression], ...]
Holds = Callable[[Expression], bool]

_ONE = Number(Fraction(1))
_GROWING = ("exp", "sinh", "cosh")


@dataclass(frozen=True)
class Bounded(Power):
    """A power that may stand still where it is too large for doubles."""


def balanced(factors: Factors, is_real: Holds, is_static: Holds) -> Factors:
    """Rewrite a product so that doubles hold it; `is_real` tells of an exponent that it is no whole or half number."""
    given = tuple(_flat(factors))
    merged = _merged(given, is_real, is_static)
    for form in (_merged(_divided(given, is_real, is_static), is_real, is_static), merged):
        bounded = _bounded(form, is_real, is_static)
        if bounded is not None:
            return factors if bounded == given else bounded
    return factors if merged == given else merged


def _divided(factors: Factors, is_real: Holds, is_static: Holds) -> Factors:
    """The factors without those powers above that are terms of a sum below: both are divided by them."""
    for total in [factor for exponent, factor in factors if exponent < 0]:
        power = _shared(factors, total, is_real) if isinstance(total, Sum) else None
        if isinstance(total, Sum) and power is not None:
            terms = [(sign, _over(term, power, is_real, is_static)) for sign, term in total.terms]
            rest = _without(_without(factors, (1, power)), (-1, total))
            return _divided(((1, _ONE), *rest, (-1, Sum(tuple(terms)))), is_real, is_static)
    return factors


def _bounded(factors: Factors, is_real: Holds, is_static: Holds) -> Factors | None:
    """The factors with bounded powers in their divisors; None where something above may grow as fast, or a divisor is
    no sum of positive terms with a power each at most: two of them may be small where one is large."""
    if any(_grows(factor, is_real) for exponent, factor in factors if exponent > 0):
        return None
    found = []
    for exponent, factor in factors:
        if exponent < 0 and isinstance(factor, Sum):
            terms = [(sign, _with_bounds(term, is_real, is_static)) for sign, term in factor.terms]
            if any(term is None for _, term in terms):
                return None
            if any(sign < 0 for sign, _ in terms) and _grows(factor, is_real):
                return None
            factor = Sum(tuple((sign, term) for sign, term in terms if term is not None))
        found.append((exponent, factor))
    return tuple(found)


def _with_bounds(term: Expression, is_real: Holds, is_static: Holds) -> Expression | None:
    """A term with its real power bounded, if it has no more than one."""
    flat = _merged(tuple(_flat(((1, term),))), is_real, is_static)
    powers = [factor for _, factor in flat if _is_power(factor, is_real)]
    if not powers:
        return term
    parts = [(e, Bounded(f.base, f.exponent) if isinstance(f, Power) and f in powers else f) for e, f in flat]
    return Product(tuple(parts)) if len(powers) == 1 else None


def _grows(expression: Expression, is_real: Holds) -> bool:
    """Whether there are real powers or exponentials in an expression."""
    match expression:
        case Sum(parts) | Product(parts):
            return any(_grows(part, is_real) for _, part in parts)
        case Power(base, exponent):
            return is_real(exponent) or _grows(base, is_real)
        case Function(name, argument):
            return name in _GROWING or _grows(argument, is_real)
    return False


def _flat(factors: Factors) -> Iterator[tuple[int, Expression]]:
    """Factors that are no products themselves."""
    for exponent, factor in factors:
        if isinstance(factor, Product):
            yield from ((exponent * inner, part) for inner, part in _flat(factor.factors))
        else:
            yield exponent, factor


def _is_power(expression: Expression, is_real: Holds) -> bool:
    return isinstance(expression, Power) and is_real(expression.exponent)


def _shared(factors: Factors, total: Sum, is_real: Holds) -> Power | None:
    """A power that is a factor of a product and of a term of a sum."""
    above = {factor for exponent, factor in factors if exponent > 0 and _is_power(factor, is_real)}
    for _, term in total.terms if above else ():
        for exponent, factor in _flat(((1, term),)):
            if exponent > 0 and factor in above and isinstance(factor, Power):
                return factor
    return None


def _over(term: Expression, power: Power, is_real: Holds, is_static: Holds) -> Expression:
    """term / power."""
    return Product(_merged((*_flat(((1, term),)), (-1, power)), is_real, is_static))


def _merged(factors: Factors, is_real: Holds, is_static: Holds) -> Factors:
    """A product without real powers below: they cancel, join one above, or have the negative exponent."""
    given = factors
    for divisor in [factor for exponent, factor in factors if exponent < 0]:
        if isinstance(divisor, Power) and is_real(divisor.exponent):
            factors, partner = _without(factors, (-1, divisor)), _partner(factors, divisor)
            if partner is None:
                factors = (*factors, (1, Power(divisor.base, _negative(divisor.exponent))))
            else:
                factors = _without(factors, (1, partner))
                factors += () if partner == divisor else ((1, _quotient(partner, divisor, is_static)),)
    return given if factors == given else ((1, _ONE), *factors)


def _partner(factors: Factors, divisor: Power) -> Power | None:
    """The power above with the same exponent, at best the same power."""
    above = [factor for exponent, factor in factors if exponent > 0 and isinstance(factor, Power)]
    alike = [power for power in above if power.exponent == divisor.exponent]
    return divisor if divisor in alike else next(iter(alike), None)


def _quotient(power: Power, divisor: Power, is_static: Holds) -> Power:
    """(a/b)^n, by way of a division by what does not move if there is such: that takes no time."""
    if is_static(power.base):
        return Power(Product(((1, divisor.base), (-1, power.base))), _negative(divisor.exponent))
    return Power(Product(((1, power.base), (-1, divisor.base))), power.exponent)


def _negative(exponent: Expression) -> Expression:
    return Sum(((-1, exponent),))


def _without(factors: Factors, one: tuple[int, Expression]) -> Factors:
    place = factors.index(one)
    return factors[:place] + factors[place + 1 :]
