"""Coefficients: what the coefficients of input-output equations tell of the parameters, one after the other.

Let c_j(p) be the coefficients of the input-output equations of `projection`, scaled so that one of them is 1.  Parameters
p and q give the same outputs, for suitable initial states, exactly when c(q) = c(p).  The c_j may have thousands of
terms, but most questions need only the simplest of them, and few of these are ever written down:

1. Doubling one parameter at a time shows which ratios c_j / c_k depend on it, and which are products of powers: a
   lattice of exponents, whose unit vectors are parameters that are known.
2. A ratio that depends on a few parameters only, besides those that are known already, is found by one elimination with
   these few as symbols.  It gives polynomial equations for them.
3. Parameters with one solution become known and are numbers from then on; more ratios come within reach.

In the end all is known, or what is left has several solutions and one last elimination with all of it as symbols gives
all coefficients, hence the exact number of solutions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations as subsets

from flint import Ordering, fmpz_mat, nmod_mat, nmod_mpoly, nmod_mpoly_ctx

from odejet.budget import Budget, OutOfBudget
from odejet.identify.globally import Engine, solve
from odejet.identify.local import Jacobian, Problem
from odejet.identify.polynomials import Polynomial, constant, variable
from odejet.identify.projection import Key, Plan, Projection
from odejet.identify.prolong import Prolonged
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Unlucky

REFERENCES = 40
"""Coefficients that are tried as the one to which others are products of powers."""

MAX_POWER = 40
"""Exponents of parameters in products of powers are smaller than this."""

MOST_SYMBOLS = 3
"""Parameters that are symbols at once, before all that are left are."""

MOST_SETS = 40
"""Sets of parameters of one size that are tried."""

SIMPLEST = 60
"""Equations that are solved; the others test the solutions."""

SOLVE_SHARE = 0.1
"""The part of what is left that solving some equations may take."""


@dataclass
class Coefficients:
    """The parameters of a model, by their numbers, at one point; `unknown` are not known yet.

    `equations` are polynomials in the unknowns of the problem, by their numbers, that every solution satisfies;
    `tests` hold for the solutions alone.
    """

    problem: Problem
    at: Jacobian
    unknown: list[int]
    budget: Budget
    seed: int = 0
    plan: Plan | None = None
    equations: list[Polynomial] = field(default_factory=list)
    tests: list[Polynomial] = field(default_factory=list)

    def __post_init__(self) -> None:
        states = len(self.problem.model.states)
        self.number = {column - states: i for i, column in enumerate(self.problem.columns) if column >= states}
        self.parameters = list(self.at.point.parameters)
        self.cached: dict[tuple[int, ...], dict[Key, nmod_mpoly]] = {}

    @property
    def prime(self) -> int:
        return self.at.prime

    def solve(self) -> None:
        """Find out as much as there is; `equations` and `tests` then say all."""
        self._begin()
        while self.unknown and (self._products() or self._few()):
            pass
        if self.unknown:
            self._all()

    # --- evaluation ---

    def _begin(self) -> None:
        first = Projection(self.problem, self.prime, self.parameters, seed=self.seed)
        first.run()
        if not first.is_prime:
            raise Unlucky("the input-output equations may have several components")
        self.plan, self.first = first.found, first
        base = self._values(self.parameters)
        self.keys = sorted(base)
        self.growth: dict[int, dict[Key, int]] = {}
        for i in self.unknown:
            moved = [2 * value % self.prime if k == i else value for k, value in enumerate(self.parameters)]
            doubled = self._values(moved)
            self.growth[i] = {
                key: doubled.get(key, 0) * pow(base[key], -1, self.prime) % self.prime for key in self.keys
            }

    def _values(self, parameters: Sequence[int]) -> dict[Key, int]:
        """All coefficients, those of the first monomial of each equation scaled to 1."""
        self.budget.check()
        projection = Projection(self.problem, self.prime, parameters, plan=self.plan, seed=self.seed)
        projection.run()
        found = {key: parts[()] for key, parts in projection.coefficients().items()}
        if not hasattr(self, "references"):
            self.references = {output: min(key for key in found if key[0] == output) for output, _ in found}
        scale = {output: pow(found[key], -1, self.prime) for output, key in self.references.items() if key in found}
        if len(scale) < len(self.references):
            raise Unlucky("a coefficient vanishes at this point")
        return {key: value * scale[key[0]] % self.prime for key, value in found.items()}

    def _symbolic(self, chosen: tuple[int, ...]) -> dict[Key, nmod_mpoly]:
        """All coefficients as polynomials in some of the parameters."""
        if chosen not in self.cached:
            self.budget.check()
            projection = Projection(self.problem, self.prime, self.parameters, chosen, self.plan, self.seed)
            projection.run()
            names = tuple(f"p{i}" for i in chosen)
            context = nmod_mpoly_ctx.get(names, modulus=self.prime, ordering=Ordering.degrevlex)
            self.cached[chosen] = {k: context.from_dict(parts) for k, parts in projection.coefficients().items()}
        return self.cached[chosen]

    # --- products of powers ---

    def _products(self) -> bool:
        """Whether some parameter is a product of powers of known ones and of ratios of coefficients."""
        exponents = self._exponents()
        if not exponents:
            return False
        echelon = fmpz_mat(exponents).hnf()
        rows = [[int(x) for x in row] for row in echelon.tolist() if any(row)]
        for row in fmpz_mat(rows).lll().tolist():
            self._add_product([int(x) for x in row])
        places = range(len(self.unknown))
        known = [self.unknown[k] for k in places if _is_in(rows, [int(k == j) for j in places])]
        self._know(known)
        return bool(known)

    def _exponents(self) -> list[list[int]]:
        """Exponents of the ratios that are products of powers, for the reference that has most of them."""
        powers = {pow(2, e, self.prime): e for e in range(-MAX_POWER, MAX_POWER + 1)}
        found: set[tuple[int, ...]] = set()
        for output in self.references:
            keys = [key for key in self.keys if key[0] == output]
            tries = random.Random(output).sample(keys, min(REFERENCES, len(keys)))
            best: set[tuple[int, ...]] = set()
            for reference in tries:
                inverse = [pow(self.growth[i][reference] or 1, -1, self.prime) for i in self.unknown]
                own: set[tuple[int, ...]] = set()
                for key in keys:
                    row = [
                        powers.get(self.growth[i][key] * w % self.prime)
                        for i, w in zip(self.unknown, inverse, strict=True)
                    ]
                    if None not in row and any(row):
                        own.add(tuple(row))  # type: ignore[arg-type]
                best = max(best, own, key=len)
            found |= best
        return [list(row) for row in sorted(found)]

    def _add_product(self, exponents: Sequence[int]) -> None:
        """The equation `product of powers has its value at the point`."""
        sides = [constant(1, self.prime), constant(1, self.prime)]
        for i, e in zip(self.unknown, exponents, strict=True):
            if e:
                monomial = Polynomial({(self.number[i],) * abs(e): 1}, self.prime)
                sides[e < 0] = sides[e < 0] * monomial
        values = [side.at(self._point) for side in sides]
        self.equations.append(sides[0].scaled(values[1]) + sides[1].scaled(-values[0]))

    # --- ratios of few parameters ---

    def _few(self) -> bool:
        """Whether ratios that depend on few parameters decide one."""
        for size in range(1, min(MOST_SYMBOLS, len(self.unknown) - 1) + 1):
            before = len(self.unknown)
            chosen = [s for s in subsets(self.unknown, size) if any(True for _ in self._groups(s))]
            for some in chosen[:MOST_SETS]:
                if set(some) <= set(self.unknown):
                    self._know(self._determined(some, self._ratios(some)))
                    if size > 1 and len(self.unknown) < before:
                        return True
            self._know(self._single(self.equations, self.unknown))
            if len(self.unknown) < before:
                return True
        return False

    def _groups(self, chosen: tuple[int, ...]) -> Iterator[list[Key]]:
        """Coefficients of one equation whose ratios depend on the chosen parameters alone, of those not known."""
        others = [i for i in self.unknown if i not in chosen]
        groups: dict[tuple, list[Key]] = {}
        for key in self.keys:
            groups.setdefault((key[0], *(self.growth[i][key] for i in others)), []).append(key)
        for group in groups.values():
            if all(len({self.growth[i][key] for key in group}) > 1 for i in chosen):
                yield group

    def _ratios(self, chosen: tuple[int, ...]) -> list[nmod_mpoly]:
        """The equations of all ratios that depend on the chosen parameters alone."""
        values = [self.parameters[i] for i in chosen]
        found = self._symbolic(chosen)
        return [e for group in self._groups(chosen) for e in _equations([found[key] for key in group], values)]

    def _determined(self, chosen: tuple[int, ...], equations: Iterable[nmod_mpoly]) -> list[int]:
        """Which of the chosen parameters have one value; the equations are kept."""
        simple = sorted(equations, key=lambda e: (len(e), e.total_degree()))[:SIMPLEST]
        own = [self._polynomial(e, chosen) for e in simple]
        known = self._single(own, chosen)
        if len(known) < len(chosen):
            self.equations += own
        return known

    def _single(self, equations: Sequence[Polynomial], chosen: Sequence[int]) -> list[int]:
        """Which of the chosen parameters have one value by some equations; none where these leave too much open."""
        self.budget.check()
        numbers = [self.number[i] for i in chosen]
        point = self._point
        gradients = [e.gradient(point) for e in equations]
        rows = [gradient.get(n, 0) for gradient in gradients for n in numbers]
        if nmod_mat(len(equations), len(numbers), rows, self.prime).rank() < len(numbers):
            return []
        system = Prolonged(tuple(equations), tuple(point), (), (), {}, {})
        try:
            fibre = solve(system, (), Engine(None, self.budget.share(SOLVE_SHARE)))
        except (Infinite, OutOfBudget):
            return []
        return [i for i in chosen if fibre.values(variable(self.number[i], self.prime)) == 1]

    def _all(self) -> None:
        """All coefficients in all parameters that are left: the simplest as equations, the others as tests."""
        chosen = tuple(self.unknown)
        values = [self.parameters[i] for i in chosen]
        found = self._symbolic(chosen)
        generator = random.Random(self.seed)
        for output in self.references:
            equations = _equations([found[key] for key in self.keys if key[0] == output], values)
            if not equations:
                continue
            simple = sorted(equations, key=lambda e: (len(e), e.total_degree()))[:SIMPLEST]
            self.equations += [self._polynomial(e, chosen) for e in simple]
            if len(equations) > SIMPLEST:
                for _ in range(2):
                    mixed = sum((generator.randrange(1, self.prime) * e for e in equations), 0 * equations[0])
                    self.tests.append(self._polynomial(mixed, chosen))

    # --- bookkeeping ---

    @property
    def _point(self) -> list[int]:
        """The value of every unknown of the problem."""
        everything = (*self.at.point.states, *self.at.point.parameters)
        return [everything[column] for column in self.problem.columns]

    def _polynomial(self, polynomial: nmod_mpoly, chosen: Sequence[int]) -> Polynomial:
        terms = {}
        for exponents, coefficient in polynomial.terms():
            numbers = [n for i, e in zip(chosen, exponents, strict=True) for n in [self.number[i]] * e]
            terms[tuple(sorted(numbers))] = int(coefficient)
        return Polynomial(terms, self.prime)

    def _know(self, parameters: Iterable[int]) -> None:
        """Some parameters have their value at the point and no other."""
        for i in parameters:
            self.unknown.remove(i)
            own = variable(self.number[i], self.prime)
            self.equations.append(own + constant(-self.parameters[i], self.prime))


def _equations(polynomials: Sequence[nmod_mpoly], values: Sequence[int]) -> list[nmod_mpoly]:
    """c_j(q) c_k(p) = c_k(q) c_j(p) for the simplest c_k and all others, without their common factors."""
    reference = min(polynomials, key=lambda c: (c.total_degree(), len(c)))
    found = []
    for polynomial in polynomials:
        common = polynomial.gcd(reference)
        left, right = polynomial // common, reference // common
        equation = left * right(*values) - right * left(*values)
        if not equation.is_zero():
            found.append(equation)
    return found


def _is_in(echelon: Sequence[Sequence[int]], vector: list[int]) -> bool:
    """Whether a vector is in the lattice of the rows of a Hermite normal form."""
    for row in echelon:
        pivot = next(k for k, x in enumerate(row) if x)
        times, rest = divmod(vector[pivot], row[pivot])
        if rest:
            return False
        vector = [a - times * b for a, b in zip(vector, row, strict=True)]
    return not any(vector)
