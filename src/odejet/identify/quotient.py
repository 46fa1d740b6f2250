"""Quotient: the solutions of a polynomial system as one finite-dimensional algebra.

If an ideal I has finitely many zeros, polynomials modulo I form a vector space A of dimension the number of zeros
(with multiplicity), and multiplication by a polynomial q is a matrix M_q whose eigenvalues are the values of q at the
zeros (Cox, Little and O'Shea, Using Algebraic Geometry, chapter 2).  So everything about the zeros is linear algebra:

    the number of distinct values of q       the degree of the minimal polynomial of M_q (zeros are simple)
    the zeros at which g = h = 0 too         the quotient of A by the images of M_g and M_h
    a further derivative at all zeros        the tape of the model, run over these commuting matrices
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.identify.local import pivot_columns
from odejet.identify.polynomials import TERM, Monomial, Polynomial
from odejet.jets.modular import Unlucky

MAX_DIMENSION = 3000
"""Algebras of more solutions are not formed: each of their matrices takes 70 MB, and there is one for each variable."""


class Infinite(ArithmeticError):
    """The system has infinitely many zeros."""


def order_key(position: Mapping[int, int], weights: Mapping[int, int] | None = None) -> Callable[[Monomial], tuple]:
    """Degree reverse lexicographic: the larger key is the larger monomial; the first variable is the largest."""
    degrees = {v: (weights or {}).get(v, 1) for v in position}

    def key(monomial: Monomial) -> tuple:
        exponents = [0] * len(position)
        for v in monomial:
            exponents[position[v]] -= 1
        return (sum(degrees[v] for v in monomial), exponents[::-1])

    return key


@dataclass(frozen=True)
class Quotient:
    """Multiplication matrices of the variables; the first basis vector is 1."""

    prime: int
    dimension: int
    matrices: Mapping[int, nmod_mat]

    def number(self, residue: int) -> nmod_mat:
        size = self.dimension
        matrix = nmod_mat(size, size, self.prime)
        for i in range(size):
            matrix[i, i] = residue % self.prime
        return matrix

    def evaluate(self, polynomial: Polynomial) -> nmod_mat:
        total = self.number(0)
        for monomial, coefficient in polynomial.terms.items():
            product = self.number(coefficient)
            for v in monomial:
                product = product * self.matrices[v]
            total = total + product
        return total

    def values(self, element: nmod_mat) -> int:
        """The number of distinct values at the zeros: the dimension of the span of 1, q, q^2, ..."""
        vector = nmod_mat(self.dimension, 1, [1] + [0] * (self.dimension - 1), self.prime)
        rows: list[int] = []
        for count in range(self.dimension + 1):
            rows += [int(x) for x in vector.entries()]
            if nmod_mat(count + 1, self.dimension, rows, self.prime).rank() <= count:
                return count
            vector = element * vector
        return self.dimension

    def restricted(self, elements: Sequence[nmod_mat]) -> tuple[Quotient, Callable[[nmod_mat], nmod_mat]]:
        """The algebra of the zeros at which the elements vanish too, and the map of elements to it."""
        images = [[int(x) for x in row] for e in elements for row in e.transpose().tolist()]
        flat = [x for row in images for x in row]
        echelon, rank = nmod_mat(len(images), self.dimension, flat, self.prime).rref()
        pivots = pivot_columns(echelon, rank)
        kept = [i for i in range(self.dimension) if i not in pivots]

        def project(element: nmod_mat) -> nmod_mat:
            # Column j of the element, reduced by the echelon rows: pivots are replaced by what they equal.
            size = len(kept)
            result = nmod_mat(size, size, self.prime)
            for new_j, j in enumerate(kept):
                column = [int(element[i, j]) for i in range(self.dimension)]
                for row, pivot in enumerate(pivots):
                    if column[pivot]:
                        factor = column[pivot]
                        column = [(c - factor * int(echelon[row, i])) % self.prime for i, c in enumerate(column)]
                for new_i, i in enumerate(kept):
                    result[new_i, new_j] = column[i]
            return result

        return Quotient(self.prime, len(kept), {v: project(m) for v, m in self.matrices.items()}), project


@dataclass(frozen=True)
class Matrices:
    """Arithmetic of a quotient algebra, for `ring.Run`."""

    algebra: Quotient
    functions: Mapping[int, nmod_mat]

    def number(self, residue: int) -> nmod_mat:
        return self.algebra.number(residue)

    def scale(self, element: nmod_mat, residue: int) -> nmod_mat:
        return element * (residue % self.algebra.prime)

    def quotient(self, above: nmod_mat, below: nmod_mat) -> nmod_mat:
        try:
            return above * below.inv()
        except ZeroDivisionError:
            raise Unlucky("a zero denominator at a solution") from None

    def name(self, element: nmod_mat) -> nmod_mat:
        return element

    def root(self, place: int, element: nmod_mat, exponent: Fraction, value: int) -> nmod_mat:
        return self.functions.get(place, self.number(value))

    def function(self, place: int, kind: int, argument: nmod_mat, value: int) -> nmod_mat:
        return self.functions.get(place, self.number(value))


def from_rules(
    rules: Iterable[Polynomial],
    variables: Sequence[int],
    prime: int,
    budget: Budget | None = None,
    weights: Mapping[int, int] | None = None,
) -> Quotient:
    """The algebra of a reduced Groebner basis in degree reverse lexicographic order, by weights if there are some.

    Products of a variable with a standard monomial are standard, leading monomials of the basis, or products of a
    variable with such a one of lower order (Faugère, Gianni, Lazard and Mora 1993).
    """
    budget = budget or Budget()
    key = order_key({v: i for i, v in enumerate(variables)}, weights)
    tails: dict[Monomial, Polynomial] = {}
    for rule in rules:
        lead = max(rule.terms, key=key)
        scale = -pow(rule.terms[lead], -1, prime)
        tails[lead] = Polynomial({m: c for m, c in rule.terms.items() if m != lead}, prime).scaled(scale)
    if () in tails:
        return Quotient(prime, 0, {v: nmod_mat(0, 0, prime) for v in variables})
    standard = standard_monomials(list(tails), variables, key, budget)
    if not budget.fits(16.0 * len(variables) * len(standard) ** 2):
        raise OutOfBudget(f"the {len(standard)} solutions of the equations would not fit into memory")
    index = {monomial: i for i, monomial in enumerate(standard)}
    columns: dict[Monomial, list[int]] = {}
    border = sorted({tuple(sorted((*m, v))) for m in standard for v in variables}, key=key)
    for monomial in border:
        column = [0] * len(standard)
        if monomial in index:
            column[index[monomial]] = 1
        elif monomial in tails:
            for m, c in tails[monomial].terms.items():
                column[index[m]] = c
        else:
            column = _through_smaller(monomial, columns, standard, index, prime)
            budget.check(0.5 * TERM * len(standard) ** 2)
        columns[monomial] = column
    matrices = {}
    for v in variables:
        flat = [x for m in standard for x in columns[tuple(sorted((*m, v)))]]
        matrices[v] = nmod_mat(len(standard), len(standard), flat, prime).transpose()
    return Quotient(prime, len(standard), matrices)


def _through_smaller(
    monomial: Monomial,
    columns: Mapping[Monomial, list[int]],
    standard: Sequence[Monomial],
    index: Mapping[Monomial, int],
    prime: int,
) -> list[int]:
    """The normal form of v * m from that of m, which is on the border itself, for a suitable variable v."""
    for v in set(monomial):
        rest = list(monomial)
        rest.remove(v)
        smaller = tuple(rest)
        if smaller in index or smaller not in columns:
            continue
        total = [0] * len(standard)
        for i, c in enumerate(columns[smaller]):
            if c:
                for k, x in enumerate(columns[tuple(sorted((*standard[i], v)))]):
                    total[k] = (total[k] + c * x) % prime
        return total
    raise AssertionError("the basis is not a Groebner basis")


def standard_monomials(
    leads: Sequence[Monomial], variables: Sequence[int], key: Callable[[Monomial], tuple], budget: Budget
) -> list[Monomial]:
    """The monomials that no leading monomial divides, smallest first."""
    pure = {m[0] for m in leads if len(set(m)) == 1}
    if set(variables) - pure:
        raise Infinite
    counted = [{v: m.count(v) for v in set(m)} for m in leads]
    found: list[Monomial] = [()]
    seen: set[Monomial] = {()}
    frontier: list[Monomial] = [()]
    while frontier:
        fresh: list[Monomial] = []
        for m in frontier:
            budget.check(2 * TERM * len(variables) * len(leads))
            for v in variables:
                candidate = tuple(sorted((*m, v)))
                if candidate in seen:
                    continue
                seen.add(candidate)
                if not any(all(candidate.count(u) >= n for u, n in lead.items()) for lead in counted):
                    fresh.append(candidate)
        found += fresh
        if len(found) > MAX_DIMENSION:
            raise OutOfBudget(f"the equations have more than {MAX_DIMENSION} solutions")
        frontier = fresh
    return sorted(found, key=key)
