"""Symbols: polynomials and rational functions modulo a prime in named variables, with FLINT's arithmetic.

Every variable has a value too, so that polynomials can be told apart by whether they vanish there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from flint import Ordering, nmod_mpoly, nmod_mpoly_ctx

from odejet.identify.polynomials import Polynomial
from odejet.jets import modular


class NotRational(Exception):
    """The model has functions that elimination cannot treat, for the reason given."""


class Ratio:
    """A rational function, as numerator and denominator."""

    __slots__ = ("above", "below")

    def __init__(self, above: nmod_mpoly, below: nmod_mpoly) -> None:
        self.above, self.below = above, below

    def __add__(self, other: Ratio) -> Ratio:
        if self.below == other.below:
            return Ratio(self.above + other.above, self.below).reduced()
        common = self.below.gcd(other.below)
        left, right = self.below // common, other.below // common
        return Ratio(self.above * right + other.above * left, self.below * right).reduced()

    def __mul__(self, other: Ratio) -> Ratio:
        return Ratio(self.above * other.above, self.below * other.below).reduced()

    def reduced(self) -> Ratio:
        common = self.above.gcd(self.below)
        return self if common.is_constant() else Ratio(self.above // common, self.below // common)


@dataclass
class Symbols:
    """The variables of a projection, by name, and their values at a point of the curve."""

    names: tuple[str, ...]
    prime: int
    context: nmod_mpoly_ctx = field(init=False, repr=False)
    index: dict[str, int] = field(init=False, repr=False)
    gens: dict[str, nmod_mpoly] = field(init=False, repr=False)
    values: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.context = nmod_mpoly_ctx.get(self.names, modulus=self.prime, ordering=Ordering.degrevlex)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.gens = dict(zip(self.names, self.context.gens(), strict=True))
        self.values = dict.fromkeys(self.names, 0)

    def number(self, residue: int) -> nmod_mpoly:
        return self.context.constant(residue % self.prime)

    def at(self, polynomial: nmod_mpoly) -> int:
        return int(polynomial(*(self.values[name] for name in self.names)))

    def degree(self, polynomial: nmod_mpoly, name: str) -> int:
        return polynomial.degrees()[self.index[name]]

    def coefficients(self, polynomial: nmod_mpoly, name: str) -> list[nmod_mpoly]:
        """By powers of one variable, from the lowest."""
        own, found = self.gens[name], [polynomial.subs({name: 0})]
        while not (polynomial := polynomial - found[-1]).is_zero():
            polynomial = polynomial // own
            found.append(polynomial.subs({name: 0}))
        return found

    def replaced(self, polynomial: nmod_mpoly, name: str, by: Ratio) -> nmod_mpoly:
        """The numerator after a variable is replaced by a rational function."""
        parts = self.coefficients(polynomial, name)
        if len(parts) == 1:
            return polynomial
        total, power = parts[-1], self.number(1)
        for part in reversed(parts[:-1]):
            power = power * by.below
            total = total * by.above + part * power
        return total


class Arithmetic:
    """Rational functions for `ring.Run`; exponentials and logarithms become states of their own."""

    def __init__(self, symbols: Symbols, field: modular.Field) -> None:
        self.symbols, self.field = symbols, field

    def number(self, residue: int) -> Ratio:
        return Ratio(self.symbols.number(residue), self.symbols.number(1))

    def scale(self, element: Ratio, residue: int) -> Ratio:
        return Ratio(element.above * (residue % self.field.prime), element.below)

    def quotient(self, above: Ratio, below: Ratio) -> Ratio:
        if below.above.is_zero():
            raise modular.Unlucky("a zero denominator")
        return Ratio(above.above * below.below, above.below * below.above).reduced()

    def name(self, element: Ratio) -> Ratio:
        return element

    def root(self, place: int, element: Ratio, exponent: Fraction, value: int) -> Ratio:
        raise NotRational("the model has roots")

    def function(self, place: int, kind: int, argument: Ratio, value: int) -> Ratio:
        return Ratio(self.symbols.gens[f"f{place}"], self.symbols.number(1))


def evaluated(polynomial: Polynomial, values: Sequence[Ratio], ring: Arithmetic) -> Ratio:
    total = ring.number(0)
    for monomial, coefficient in polynomial.terms.items():
        product = ring.number(coefficient)
        for i in monomial:
            product = product * values[i]
        total = total + product
    return total


def bezout(a: Sequence[nmod_mpoly], b: Sequence[nmod_mpoly], zero: nmod_mpoly) -> list[list[nmod_mpoly]]:
    """Bezout's matrix of two polynomials, by their coefficients from the lowest; its determinant is a resultant, up to
    powers of a leading coefficient."""
    size = max(len(a), len(b)) - 1
    a, b = ([*c, *[zero] * (size + 1 - len(c))] for c in (a, b))
    matrix = [[zero] * size for _ in range(size)]
    for i in range(size):
        for j in range(i, size):
            total = zero
            for k in range(min(i, size - 1 - j) + 1):
                total = total + (a[j + k + 1] * b[i - k] - a[i - k] * b[j + k + 1])
            matrix[i][j] = matrix[j][i] = total
    return matrix
