"""Polynomials: sparse polynomials modulo a prime, and the elimination that needs no Groebner basis.

A monomial is the sorted tuple of its variables, with repetitions; most equations of a prolonged system have a handful
of terms of low degree, and plain dictionaries serve them best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flint import nmod_mat

from odejet.budget import Budget

Monomial = tuple[int, ...]

MAX_CELLS = 4_000_000
"""Echelon forms larger than this are not formed: a Groebner basis is the better tool there."""

TERM = 200.0
"""Operations, in nanoseconds, that a term of a polynomial costs in Python."""

ENTRY = 3.0
"""Operations, in nanoseconds, for one entry of a matrix that is reduced by one row."""

SHARE = 0.1
"""The part of what is left that one echelon form may take."""


@dataclass(frozen=True)
class Polynomial:
    terms: Mapping[Monomial, int]
    prime: int

    @property
    def degree(self) -> int:
        return max(map(len, self.terms), default=0)

    @property
    def is_constant(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and () in self.terms)

    @property
    def variables(self) -> set[int]:
        return {variable for monomial in self.terms for variable in monomial}

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial) -> Polynomial:
        small, large = sorted((self.terms, other.terms), key=len)
        total = dict(large)
        for monomial, coefficient in small.items():
            value = (total.get(monomial, 0) + coefficient) % self.prime
            if value:
                total[monomial] = value
            else:
                total.pop(monomial, None)
        return Polynomial(total, self.prime)

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = tuple(sorted(left + right)) if left and right else left or right
                total[monomial] = (total.get(monomial, 0) + a * b) % self.prime
        return Polynomial({m: c for m, c in total.items() if c}, self.prime)

    def scaled(self, factor: int) -> Polynomial:
        factor %= self.prime
        return Polynomial({m: c * factor % self.prime for m, c in self.terms.items()} if factor else {}, self.prime)

    def at(self, values: Sequence[int]) -> int:
        """The value at a point that gives every variable a residue."""
        total = 0
        for monomial, coefficient in self.terms.items():
            for v in monomial:
                coefficient = coefficient * values[v] % self.prime
            total += coefficient
        return total % self.prime

    def gradient(self, values: Sequence[int]) -> dict[int, int]:
        """Derivatives at a point, by variable."""
        total: dict[int, int] = {}
        for monomial, coefficient in self.terms.items():
            for i, v in enumerate(monomial):
                rest = Polynomial({monomial[:i] + monomial[i + 1 :]: coefficient}, self.prime)
                total[v] = (total.get(v, 0) + rest.at(values)) % self.prime
        return total

    def monic_without(self, variable: int) -> Polynomial:
        """The value of a variable that the equation `self = 0` holds linearly with a constant coefficient."""
        rest = {m: c for m, c in self.terms.items() if m != (variable,)}
        return Polynomial(rest, self.prime).scaled(-pow(self.terms[(variable,)], -1, self.prime))

    def raised(self, weights: Mapping[int, int]) -> Polynomial:
        """Every variable replaced by its power of so many: a degree by weights becomes a plain one."""
        terms = {tuple(v for v in m for _ in range(weights.get(v, 1))): c for m, c in self.terms.items()}
        return Polynomial(terms, self.prime)

    def lowered(self, weights: Mapping[int, int]) -> Polynomial:
        """The inverse of `raised`."""
        terms = {}
        for monomial, coefficient in self.terms.items():
            variables = sorted(set(monomial))
            terms[tuple(v for v in variables for _ in range(monomial.count(v) // weights.get(v, 1)))] = coefficient
        return Polynomial(terms, self.prime)

    def substitute(self, variable: int, value: Polynomial) -> Polynomial:
        if not any(variable in monomial for monomial in self.terms):
            return self
        powers = [constant(1, self.prime)]
        total = Polynomial({m: c for m, c in self.terms.items() if variable not in m}, self.prime)
        for monomial, coefficient in self.terms.items():
            times = monomial.count(variable)
            if times:
                while len(powers) <= times:
                    powers.append(powers[-1] * value)
                rest = tuple(v for v in monomial if v != variable)
                total = total + Polynomial({rest: coefficient}, self.prime) * powers[times]
        return total


def constant(residue: int, prime: int) -> Polynomial:
    residue %= prime
    return Polynomial({(): residue} if residue else {}, prime)


def variable(number: int, prime: int) -> Polynomial:
    return Polynomial({(number,): 1}, prime)


@dataclass
class System:
    """Equations and, in the order in which they were found, variables expressed in those found later or left."""

    equations: list[Polynomial]
    solved: dict[int, Polynomial] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)

    @property
    def variables(self) -> list[int]:
        return sorted({v for equation in self.equations for v in equation.variables})

    def eliminate(self) -> None:
        """Solve whatever is linear: affine equations, affine consequences of all, variables only defined and not used.

        Every step is an equivalence, so the solutions stay the same; the true point solves the system, so it never
        becomes contradictory.
        """
        while self._affine() or self._consequences() or self._definitions():
            pass

    def _affine(self) -> bool:
        """Solve one affine equation; those that give a number come first."""
        self.budget.check(TERM * sum(len(e.terms) for e in self.equations))
        affine = [e for e in self.equations if e.degree == 1]
        if not affine:
            return False
        self._solve(min(affine, key=lambda e: len(e.terms)), max)
        return True

    def _solve(self, equation: Polynomial, choose: Callable[[Iterable[int]], int]) -> None:
        number = choose(m[0] for m in equation.terms if len(m) == 1)
        value = equation.monic_without(number)
        self.equations = [
            reduced for e in self.equations if e is not equation and (reduced := e.substitute(number, value))
        ]
        self.solved[number] = value

    def _consequences(self) -> bool:
        """Affine combinations of the equations, from their echelon form with monomials by falling degree."""
        monomials = sorted({m for e in self.equations for m in e.terms}, key=lambda m: (-len(m), m))
        cells = len(monomials) * len(self.equations)
        work = cells * (TERM / 2 + ENTRY * len(self.equations))
        if not monomials or cells > MAX_CELLS or not self.budget.share(SHARE).affords(work):
            return False
        self.budget.check(work)
        first = next((i for i, m in enumerate(monomials) if len(m) <= 1), len(monomials))
        echelon, rank = matrix(self.equations, monomials).rref()
        found = []
        for row in range(rank - 1, -1, -1):
            entries = {i: int(echelon[row, i]) for i in range(len(monomials)) if int(echelon[row, i])}
            if min(entries) < first:
                break
            found.append(Polynomial({monomials[i]: c for i, c in entries.items()}, echelon.modulus()))
        self.equations += found
        return bool(found)

    def _definitions(self) -> bool:
        """Set aside a variable that stands in one equation only, alone and to the first power."""
        count: dict[int, int] = {}
        for equation in self.equations:
            for v in equation.variables:
                count[v] = count.get(v, 0) + 1
        for equation in self.equations:
            for v in equation.variables:
                if count[v] == 1 and (v,) in equation.terms and sum(v in m for m in equation.terms) == 1:
                    self._solve(equation, lambda _, v=v: v)  # type: ignore[misc]
                    return True
        return False


def matrix(polynomials: Iterable[Polynomial], monomials: list[Monomial]) -> nmod_mat:
    """Coefficients, one polynomial per row."""
    column = {monomial: i for i, monomial in enumerate(monomials)}
    rows = list(polynomials)
    result = nmod_mat(len(rows), len(monomials), rows[0].prime)
    for i, polynomial in enumerate(rows):
        for monomial, coefficient in polynomial.terms.items():
            result[i, column[monomial]] = coefficient
    return result
