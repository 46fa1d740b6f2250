"""Eliminants: the irreducible polynomial without a variable that follows from two with it.

Resultants have factors too many.  The right one vanishes at the point that the symbols have values for.  Products are
counted before they are formed, since nothing can interrupt them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flint import Ordering, nmod_mpoly, nmod_mpoly_ctx

from odejet.budget import Budget, OutOfBudget
from odejet.identify.symbols import Symbols, bezout
from odejet.jets import modular

SMALL = 3000
"""Terms up to which a polynomial is factored at once; longer ones are first asked whether they are irreducible."""


TERM = 40.0
"""Operations, in nanoseconds, for one product of terms of polynomials."""

FACTOR = 20_000.0
"""Operations, in nanoseconds, for one term of a polynomial that is factored: a rule of thumb, the truth varies."""


@dataclass(frozen=True)
class Eliminants:
    """Elimination among some symbols within a budget."""

    symbols: Symbols
    budget: Budget

    def eliminant(self, f: nmod_mpoly, g: nmod_mpoly, name: str) -> nmod_mpoly:
        """The irreducible polynomial without a variable that follows from two with it."""
        symbols = self.symbols
        if not symbols.degree(f, name):
            return f
        if symbols.degree(f, name) < symbols.degree(g, name):
            f, g = g, f
        a, b = symbols.coefficients(f, name), symbols.coefficients(g, name)
        leads = [b[-1], a[-1]]
        while len(b) > 2 and len(a) > len(b):
            # Multiples of g lower the degree of f, at the price of powers of its leading coefficient, which Bezout's
            # matrix does not have if the degrees are the same.
            common = a[-1].gcd(b[-1])
            left, right = a[-1] // common, b[-1] // common
            shift = len(a) - len(b)
            self.ask(len(right) * sum(map(len, a)) + len(left) * sum(map(len, b)))
            a = [right * c - (left * b[k - shift] if k >= shift else 0) for k, c in enumerate(a[:-1])]
            while len(a) > 1 and a[-1].is_zero():
                a.pop()
        if len(a) < 2 or len(b) < 2:
            return self.vanishing(a[0] if len(a) < 2 else b[0], leads)
        if len(b) == 2 or len(a) == 2:
            linear, other = (b, a) if len(b) == 2 else (a, b)
            return self.vanishing(self.substituted(other, -linear[0], linear[1]), leads)
        self.ask(max(len(a), len(b)) * sum(map(len, a)) * sum(map(len, b)))
        return self.vanishing(self.determinant(bezout(a, b, symbols.number(0))), leads)

    def ask(self, products: float) -> None:
        """Count so many products of terms; `OutOfBudget` if they are too many, since nothing can interrupt them."""
        if not self.budget.affords(TERM * products) or not self.budget.fits(8.0 * products**0.5):
            raise OutOfBudget("the input-output equations are too long")
        self.budget.check(TERM * products)

    def substituted(self, parts: Sequence[nmod_mpoly], above: nmod_mpoly, below: nmod_mpoly) -> nmod_mpoly:
        """sum_k parts[k] above^k below^(n-k)."""
        total, power = parts[-1], below
        for part in reversed(parts[:-1]):
            self.ask(len(total) * len(above) + len(part) * len(power) + len(power) * len(below))
            total = total * above + part * power
            power = power * below
        return total

    def determinant(self, matrix: list[list[nmod_mpoly]]) -> nmod_mpoly:
        """Expansion by minors, each computed once, the largest rows last."""
        rows = sorted(matrix, key=lambda row: sum(len(entry) for entry in row), reverse=True)
        minors: dict[tuple[int, ...], nmod_mpoly] = {}

        def minor(first: int, columns: tuple[int, ...]) -> nmod_mpoly:
            if columns not in minors:
                total = self.symbols.number(0)
                for k, column in enumerate(columns):
                    term = rows[first][column]
                    if not term.is_zero() and len(columns) > 1:
                        rest = minor(first + 1, columns[:k] + columns[k + 1 :])
                        self.ask(len(term) * len(rest))
                        term = term * rest
                    total = total - term if k % 2 else total + term
                minors[columns] = total
            return minors[columns]

        return minor(0, tuple(range(len(matrix))))

    def vanishing(self, polynomial: nmod_mpoly, candidates: Iterable[nmod_mpoly] = ()) -> nmod_mpoly:
        """The irreducible factor that vanishes at the point; `candidates` are made of factors that may be too many."""
        if not self.budget.affords(FACTOR * len(polynomial)):
            raise OutOfBudget("the input-output equations are too long")
        self.budget.check(FACTOR / 10 * len(polynomial))
        if len(polynomial) > SMALL:
            for candidate in candidates:
                for factor, _ in candidate.factor()[1]:
                    polynomial = self.divided(polynomial, factor)
            if self.is_irreducible(polynomial):
                return polynomial
        for factor, _ in polynomial.factor()[1]:
            if self.symbols.at(factor) == 0:
                return factor
        raise modular.Unlucky("an eliminant does not vanish where it must")

    def divided(self, polynomial: nmod_mpoly, factor: nmod_mpoly) -> nmod_mpoly:
        while self.symbols.at(factor):
            quotient, rest = divmod(polynomial, factor)
            if not rest.is_zero():
                break
            polynomial = quotient
        return polynomial

    def is_irreducible(self, polynomial: nmod_mpoly) -> bool:
        """Whether a random plane section is irreducible, which proves it; the converse nearly always holds too."""
        degrees = polynomial.degrees()
        plane = nmod_mpoly_ctx.get(("s", "t"), modulus=self.symbols.prime, ordering=Ordering.degrevlex)
        s, t = plane.gens()
        generator = random.Random(len(polynomial))
        draws = [[generator.randrange(1, self.symbols.prime) for _ in range(2)] for _ in degrees]
        main = min((i for i, d in enumerate(degrees) if d), key=lambda i: degrees[i])
        values = [s if i == main else plane.constant(a) + b * t for i, (a, b) in enumerate(draws)]
        section = polynomial.compose(*values, ctx=plane)
        factors = section.factor()[1]
        return len(factors) == 1 and factors[0][1] == 1 and section.degrees()[0] == degrees[main]
