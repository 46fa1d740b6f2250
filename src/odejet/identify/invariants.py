"""Invariants: short expressions in quantities of several values that have one value themselves.

Two rates that may be exchanged have one sum and one product; a state that is seen by its square has one square.  Such
expressions are tried one by one in the algebra of all solutions, where an element with one value is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from math import gcd

from flint import nmod_mat

from odejet.identify.quotient import Quotient

MOST = 12
"""Quantities of several values among which triples are tried; pairs of products among two thirds of that."""

HIGHEST = 6
"""Powers of one quantity that are tried."""

SMALL = [Fraction(sign * k, m) for k in range(1, 31) for m in (1, 2, 3, 5) for sign in (1, -1) if gcd(k, m) == 1]
SMALL += [1 / c for c in SMALL if c.numerator not in (1, -1)]
"""Constants that are tried: few, so that none fits by accident."""

LARGEST = 60
"""Algebras of more solutions are not asked: no short expression has one value in them, and each costs its cube."""

Term = tuple[str, ...]
"""A product of quantities; one that is subtracted has `MINUS` in front, and what stands below a fraction `BELOW`."""

MINUS, BELOW = "-", "÷"

Terms = tuple[Term, ...]


def invariant(algebra: Quotient, several: Mapping[str, nmod_mat], single: Mapping[str, nmod_mat]) -> tuple[str, ...]:
    """Sums of products that have one value, of quantities that have several (and one), the shortest first."""
    if not several or not 1 < algebra.dimension <= LARGEST:
        return ()
    tried = _Tried(algebra, {**several, **single})
    found = [terms for terms in _candidates(list(several), ["2", *single]) if tried.is_number(terms)]
    found += [terms for terms in _matched(found) if terms not in found and tried.is_number(terms)]
    found += [terms for terms in tried.lines(list(several)) if terms not in found] if len(several) <= MOST else []
    return tuple(map(_text, sorted(found, key=_length)))


class _Tried:
    """Products of elements, each computed once."""

    def __init__(self, algebra: Quotient, elements: Mapping[str, nmod_mat]) -> None:
        self.algebra, self.elements = algebra, elements
        self.products: dict[Term, nmod_mat] = {}

    def element(self, term: Term) -> nmod_mat:
        if term not in self.products:
            if term[0] == MINUS:
                self.products[term] = self.element(term[1:]) * (self.algebra.prime - 1)
            elif len(term) > 1:
                self.products[term] = self.element(term[:-1]) * self.element(term[-1:])
            elif term[0].startswith(BELOW):
                self.products[term] = self.element((term[0].removeprefix(BELOW),)).inv()
            elif term[0].isdecimal():
                self.products[term] = self.algebra.number(int(term[0]))
            else:
                self.products[term] = self.elements[term[0]]
        return self.products[term]

    def is_number(self, terms: Terms) -> bool:
        try:
            total = self.element(terms[0])
            for term in terms[1:]:
                total = total + self.element(term)
        except ZeroDivisionError:
            return False
        return bool(total == self.algebra.number(int(total[0, 0])))

    def lines(self, several: Sequence[str]) -> Iterator[Terms]:
        """Sums a + c b of one value, of products or quotients of two, with a constant c that is a small fraction.

        Both must differ from solution to solution in the same way, up to the factor c.
        """
        pool: list[Term] = [*((a,) for a in several), *((BELOW + a,) for a in several)]
        pool += [*combinations(several, 2), *((a, BELOW + b) for a, b in permutations(several, 2))]
        places: dict[tuple[int, ...], Term] = {}
        prime = self.algebra.prime
        for term in pool:
            try:
                element = self.element(term)
            except ZeroDivisionError:
                continue
            own = [int(element[i, 0]) for i in range(1, self.algebra.dimension)]
            if not any(own):
                continue
            for c in SMALL:
                factor = -c.numerator * pow(c.denominator, -1, prime)
                other = places.get(tuple(x * factor % prime for x in own))
                if other is not None and self.is_number(terms := (other, _scaled(c, term))):
                    yield terms
            places.setdefault(tuple(own), term)


def _scaled(c: Fraction, term: Term) -> Term:
    """c times a product; numbers are quantities too."""
    sign = (MINUS,) if c < 0 else ()
    above = (str(abs(c.numerator)),) if abs(c.numerator) != 1 else ()
    below = (BELOW + str(c.denominator),) if c.denominator != 1 else ()
    return (*sign, *above, *term, *below)


def _candidates(several: Sequence[str], single: Sequence[str]) -> Iterator[Terms]:
    """Powers, sums, products, quotients, symmetric functions of three; sums with a factor and of two products."""
    for a in several:
        for power in range(2, HIGHEST + 1):
            yield ((a,) * power,)
    for a, b in combinations(several, 2):
        yield ((a,), (b,))
        yield ((a,), (MINUS, b))
        yield ((a, b),)
        yield ((a, BELOW + b),)
        for signs in product(("", MINUS), repeat=2):
            yield ((a, b), _signed(signs[0], a), _signed(signs[1], b))
    for a, b in permutations(several, 2):
        for factor in single:
            yield ((a, b), (factor, a))
            yield ((a, b), (MINUS, factor, a))
            yield ((a,), (factor, b))
            yield ((a,), (MINUS, factor, b))
    if len(several) <= MOST:
        for a, b, c in combinations(several, 3):
            yield ((a,), (b,), (c,))
            yield ((a, b, c),)
            yield ((a, b), (a, c), (b, c))
    if 3 * len(several) <= 2 * MOST:
        for one, other in combinations(combinations(several, 2), 2):
            if not set(one) & set(other):
                yield one, other


def _signed(sign: str, name: str) -> Term:
    return (sign, name) if sign else (name,)


def _matched(found: Sequence[Terms]) -> Iterator[Terms]:
    """Sums of products of quantities that are exchanged together: a1 b1 + a2 b2 + ... for two sums of one value."""
    sums = [tuple(term[0] for term in terms) for terms in found if len(terms) > 1 and _length(terms) == len(terms)]
    for one, other in combinations(sums, 2):
        if len(one) == len(other) and not set(one) & set(other):
            for order in permutations(other):
                yield tuple(zip(one, order, strict=True))


def _length(terms: Terms) -> int:
    return sum(map(len, terms))


def _text(terms: Terms) -> str:
    text = ""
    for term in terms:
        minus, factors = term[0] == MINUS, term[1:] if term[0] == MINUS else term
        product = _product(factors)
        product = f"({product})" if minus and len(factors) == 1 and not _is_plain(product) else product
        text += (" - " if minus else " + " if text else "") + product
    return text


def _product(factors: Term) -> str:
    powers = {name: factors.count(name) for name in factors}
    above = [_power(name, power) for name, power in powers.items() if not name.startswith(BELOW)]
    below = [_power(name.removeprefix(BELOW), power) for name, power in powers.items() if name.startswith(BELOW)]
    return "/".join(["*".join(above) or "1", *below])


def _power(name: str, power: int) -> str:
    safe = name if _is_plain(name) else f"({name})"
    return safe if power == 1 else f"{safe}**{power}"


def _is_plain(text: str) -> bool:
    """A name or a number, which needs no brackets."""
    return text.replace("_", "").isalnum()
