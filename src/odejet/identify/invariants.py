"""Invariants: short expressions in quantities of several values that have one value themselves.

Two rates that may be exchanged have one sum and one product; a state that is seen by its square has one square.  Such
expressions are tried one by one in the algebra of all solutions, where an element with one value is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

from flint import nmod_mat

from odejet.identify.quotient import Quotient

MOST = 12
"""Quantities of several values among which triples are tried; pairs of products among two thirds of that."""

LARGEST = 60
"""Algebras of more solutions are not asked: no short expression has one value in them, and each costs its cube."""

Term = tuple[str, ...]
"""A product of quantities; one that is subtracted has `MINUS` in front."""

MINUS = "-"

Terms = tuple[Term, ...]


def invariant(algebra: Quotient, several: Mapping[str, nmod_mat], single: Mapping[str, nmod_mat]) -> tuple[str, ...]:
    """Sums of products that have one value, of quantities that have several (and one), the shortest first."""
    if not several or not 1 < algebra.dimension <= LARGEST:
        return ()
    factors = {"2": algebra.number(2), **single}
    tried = _Tried(algebra, {**several, **factors})
    found = [terms for terms in _candidates(list(several), list(factors)) if tried.is_number(terms)]
    found += [terms for terms in _matched(found) if terms not in found and tried.is_number(terms)]
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
            elif len(term) == 1:
                self.products[term] = self.elements[term[0]]
            else:
                self.products[term] = self.element(term[:-1]) * self.elements[term[-1]]
        return self.products[term]

    def is_number(self, terms: Terms) -> bool:
        total = self.element(terms[0])
        for term in terms[1:]:
            total = total + self.element(term)
        return bool(total == self.algebra.number(int(total[0, 0])))


def _candidates(several: Sequence[str], single: Sequence[str]) -> Iterator[Terms]:
    """Powers, sums, products and elementary symmetric functions of three; sums with a factor and of two products."""
    for a in several:
        yield ((a, a),)
        yield ((a, a, a),)
    for a, b in combinations(several, 2):
        yield ((a,), (b,))
        yield ((a,), (MINUS, b))
        yield ((a, b),)
    for a, b in permutations(several, 2):
        for factor in single:
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
    if len(factors) == 1:
        return factors[0]
    powers = {name: factors.count(name) for name in factors}
    safe = {name: name if _is_plain(name) else f"({name})" for name in powers}
    return "*".join(safe[name] if power == 1 else f"{safe[name]}**{power}" for name, power in powers.items())


def _is_plain(text: str) -> bool:
    """A name or a number, which needs no brackets."""
    return text.replace("_", "").isalnum()
