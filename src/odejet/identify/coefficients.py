"""Coefficients: what the coefficients of input-output equations tell of the parameters, one relation after the other.

Let c_j(p) be the coefficients of the input-output equations of `projection`, of which ratios within one equation are
meant.  Parameters p and q give the same outputs, for suitable initial states, exactly when c(q) = c(p).  The c_j may
have thousands of terms, but most questions need only the simplest of them, and few of these are ever written down:

1. Doubling one parameter at a time shows which ratios depend on it, and which are products of powers.
2. A ratio that depends on a few parameters only is found by one elimination with these few as symbols; that it has its
   value at p is a polynomial equation for q.
3. An equation that is linear in some parameter gives it as a function of others, and one that is free less.  With all
   known relations in force more ratios depend on few parameters only, and so on.
4. A parameter that has several values by itself stays a symbol from then on.

In the end everything is known, or what is left is a symbol and the last elimination gives all coefficients.

Dividing is safe: all solutions q are conjugates of the generic p over the field of the c_j, because that field's
extension by p is a field; so a polynomial over it that does not vanish at p vanishes at none of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations as subsets

import numpy as np
from flint import Ordering, fmpz_mat, nmod_mat, nmod_mpoly, nmod_mpoly_ctx

from odejet.budget import Budget, OutOfBudget
from odejet.identify.globally import Engine, solve
from odejet.identify.local import Jacobian, Problem
from odejet.identify.polynomials import Polynomial, constant, variable
from odejet.identify.projection import Beyond, Key, Plan, Projection, Relation
from odejet.identify.prolong import Prolonged
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Field, Unlucky

REFERENCES = 40
"""Coefficients that are tried as the one to which others are products of powers."""

MAX_POWER = 40
"""Exponents of parameters in products of powers are smaller than this."""

MOST_SYMBOLS = 3
"""Parameters that are symbols at once, besides those with several values, before all that are left are."""

FEW_DERIVATIVES = 8
"""Of every output, with which elimination is tried first."""

FIRST_SHARE = 0.15
"""The part of the budget that the first elimination may take where there are other ways: it is repeated many times."""

FEW_TERMS = 100
"""Input-output equations of so many monomials are found at once with all parameters as symbols."""

SIMPLEST = 60
"""Equations that are solved; the others test the solutions."""

SOLVE_SHARE = 0.1
"""The part of what is left that solving some equations may take."""


@dataclass
class Coefficients:
    """The parameters of a model, by their numbers, at one point.

    `lost` are the unknowns of the problem that are held fixed; `free` are not known as functions of others, `several`
    of these are known to have several values, and `relations` tell the others, the last found first to be evaluated.
    `equations` hold for what is left in the end, the simplest of all, `tests` are mixtures of all, and `nonzero` vanish
    at no solution.
    """

    problem: Problem
    at: Jacobian
    free: list[int]
    lost: frozenset[int]
    budget: Budget
    seed: int = 0
    way: type[Projection] = Projection
    plan: Plan | None = None
    several: list[int] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    equations: list[Polynomial] = field(default_factory=list)
    tests: list[Polynomial] = field(default_factory=list)
    nonzero: list[Polynomial] = field(default_factory=list)
    parameters: list[int] = field(init=False, repr=False)  # their values, then those of what counts as one
    first: Projection = field(init=False, repr=False)  # the elimination that made the plan
    meaning: list[Polynomial] = field(default_factory=list, init=False, repr=False)  # of each, in terms of unknowns
    references: dict[int, Key] = field(default_factory=dict, init=False, repr=False)  # coefficients scaled to 1
    # Of the last look: the coefficients, by how much each grows with every parameter, and marks of that.
    keys: list[Key] = field(default_factory=list, init=False, repr=False)
    growth: dict[int, dict[Key, int]] = field(default_factory=dict, init=False, repr=False)
    marks: dict[int | str, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    tried: set[tuple[int, ...]] = field(default_factory=set, init=False, repr=False)  # ratios that were looked at

    def __post_init__(self) -> None:
        self.parameters = list(self.at.point.parameters)

    @property
    def prime(self) -> int:
        return self.at.prime

    def solve(self) -> None:
        """Find relations until nothing is free, or no ratio of few parameters is left."""
        states = self.at.point.states
        self.parameters += [states[i] for i in self.problem.still]
        first = self._first()
        if not first.is_prime:
            raise Unlucky("the input-output equations may have several components")
        if not first.coefficients():
            raise OutOfBudget("the input-output equations are too long")
        self.plan, self.first = first.found, first
        self._extend()
        try:
            self._find()
        except OutOfBudget:
            # Relations between some parameters are of use where the equations are not all that there are.
            if first.is_whole:
                raise

    def _find(self) -> None:
        if len(self.first.coefficients()) <= FEW_TERMS:
            self._values(self.parameters)
            self._all()
            return
        while self.free:
            self._look()
            if not self._products() and not self._few():
                break
        if self.free:
            self._all()

    def _first(self) -> Projection:
        """The elimination that makes the plan; every derivative that may be needed is a variable, so few come first."""
        told = self.problem, self.prime, self.parameters
        budget = self.budget.share(FIRST_SHARE) if len(self.problem.model.outputs) > 1 else self.budget
        projection = self.way(*told, reach=FEW_DERIVATIVES, seed=self.seed, budget=budget)
        try:
            projection.run()
        except Beyond:
            projection = self.way(*told, seed=self.seed, budget=budget)
            projection.run()
        return projection

    def _extend(self) -> None:
        """Count states without a rate and conserved sums as parameters; `meaning` is each one in terms of unknowns."""
        problem, states, still = self.problem, self.at.point.states, self.problem.still
        arithmetic = Field(self.prime)
        own = len(problem.model.parameters)
        number = {column: i for i, column in enumerate(problem.columns)}

        def unknown(column: int) -> Polynomial:
            values = (*states, *self.at.point.parameters)
            return variable(number[column], self.prime) if column in number else constant(values[column], self.prime)

        self.meaning = [unknown(len(states) + i) for i in range(own)] + [unknown(i) for i in still]
        self.free += [own + k for k, i in enumerate(still) if i in number and number[i] not in self.lost]
        assert self.plan is not None
        for law in self.plan.laws:
            total = unknown(law.state)
            for i, a in law.others:
                total = total + unknown(i).scaled(arithmetic.residue(a))
            self.free.append(len(self.meaning))
            self.meaning.append(total)
            self.parameters.append(law.value(states, arithmetic))

    # --- evaluation ---

    def _look(self) -> None:
        """How all coefficients change when a parameter that is free is doubled."""
        base = self._values(self.parameters)
        self.keys = sorted(base)
        self.growth = {}
        for i in self.free:
            if i not in self.several:
                doubled = self._values(self._moved(i))
                self.growth[i] = {
                    key: doubled.get(key, 0) * pow(base[key], -1, self.prime) % self.prime for key in self.keys
                }
        # Sums of random marks of all changes tell coefficients that change alike, much faster than the changes do.
        own = [hash((-1, key[0])) for key in self.keys]
        self.marks = {
            i: np.array([hash((i, growth[key])) for key in self.keys], dtype=np.int64)
            for i, growth in self.growth.items()
        }
        self.marks["all"] = sum(self.marks.values(), np.array(own, dtype=np.int64))

    def _moved(self, i: int) -> list[int]:
        """The parameters with one doubled, and those that depend on it following."""
        values = [2 * value % self.prime if k == i else value for k, value in enumerate(self.parameters)]
        for relation in reversed(self.relations):
            below = relation.below.at(values)
            if not below:
                raise Unlucky("a zero denominator")
            values[relation.parameter] = relation.above.at(values) * pow(below, -1, self.prime) % self.prime
        return values

    def _values(self, parameters: Sequence[int]) -> dict[Key, int]:
        """All coefficients, those of the first monomial of each equation scaled to 1."""
        self.budget.check()
        projection = self.way(self.problem, self.prime, parameters, plan=self.plan, seed=self.seed, budget=self.budget)
        projection.run()
        found = {key: parts[()] for key, parts in projection.coefficients().items()}
        if not self.references:
            for key in found:
                self.references[key[0]] = min(key, self.references.get(key[0], key))
        scale = {output: pow(found[key], -1, self.prime) for output, key in self.references.items() if key in found}
        if len(scale) < len(self.references):
            raise Unlucky("a coefficient vanishes at this point")
        return {key: value * scale[key[0]] % self.prime for key, value in found.items()}

    def _symbolic(self, chosen: tuple[int, ...]) -> dict[Key, nmod_mpoly]:
        """All coefficients as polynomials in some of the parameters that are free."""
        self.budget.check()
        relations = tuple(reversed(self.relations))
        projection = self.way(
            self.problem, self.prime, self.parameters, chosen, relations, self.plan, None, self.seed, self.budget
        )
        projection.run()
        names = tuple(f"p{i}" for i in chosen)
        context = nmod_mpoly_ctx.get(names, modulus=self.prime, ordering=Ordering.degrevlex)
        return {key: context.from_dict(parts) for key, parts in projection.coefficients().items()}

    def started(self) -> Projection:
        """The equations of the model before any elimination, with all parameters as symbols."""
        told = self.problem, self.prime, self.parameters
        projection = Projection(*told, range(len(self.parameters)), plan=self.plan, seed=self.seed, budget=self.budget)
        projection.start()
        return projection

    # --- products of powers ---

    def _products(self) -> bool:
        """Whether ratios that are products of powers give parameters: by themselves, or one by others."""
        numbers = [i for i in self.free if i not in self.several]
        exponents = self._exponents(numbers)
        if not exponents or self.several:
            return False
        echelon = [[int(x) for x in row] for row in fmpz_mat(exponents).hnf().tolist() if any(row)]
        units = [[int(k == j) for j in range(len(numbers))] for k in range(len(numbers))]
        known = [i for i, unit in zip(numbers, units, strict=True) if _is_in(echelon, unit)]
        for i in known:
            self._know(i)
        if known:
            return True
        short = [[int(x) for x in row] for row in fmpz_mat(echelon).lll().tolist()]
        touched: set[int] = set()
        for row in sorted(short, key=lambda row: sum(map(abs, row))):
            place = next((k for k, e in enumerate(row) if abs(e) == 1), None)
            inside = {i for i, e in zip(numbers, row, strict=True) if e}
            if place is not None and not inside & touched:
                self._relate_product(numbers, row, place)
                touched |= inside
        return bool(touched)

    def _exponents(self, numbers: Sequence[int]) -> list[list[int]]:
        """Exponents of the ratios that are products of powers, for the reference that has most of them."""
        powers = {pow(2, e, self.prime): e for e in range(-MAX_POWER, MAX_POWER + 1)}
        found: set[tuple[int, ...]] = set()
        for output in self.references:
            keys = [key for key in self.keys if key[0] == output]
            best: set[tuple[int, ...]] = set()
            for reference in random.Random(output).sample(keys, min(REFERENCES, len(keys))):
                inverse = [(i, pow(self.growth[i][reference] or 1, -1, self.prime)) for i in numbers]
                own: set[tuple[int, ...]] = set()
                for key in keys:
                    row = [powers.get(self.growth[i][key] * w % self.prime) for i, w in inverse]
                    if None not in row and any(row):
                        own.add(tuple(row))  # type: ignore[arg-type]
                best = max(best, own, key=len)
            found |= best
        return [list(row) for row in sorted(found)]

    def _relate_product(self, numbers: Sequence[int], exponents: Sequence[int], place: int) -> None:
        """The parameter at a place, whose exponent is 1 or -1, by the value of a product of powers."""
        sides = [constant(1, self.prime), constant(1, self.prime)]
        sign = exponents[place]
        for k, (i, e) in enumerate(zip(numbers, exponents, strict=True)):
            if e and k != place:
                side = e * sign > 0
                sides[side] = sides[side] * Polynomial({(i,) * abs(e): 1}, self.prime)
        above, below = sides
        value = self.parameters[numbers[place]] * below.at(self.parameters) % self.prime
        value = value * pow(above.at(self.parameters), -1, self.prime)
        self._relate(Relation(numbers[place], above.scaled(value), below))

    # --- ratios of few parameters ---

    def _few(self) -> bool:
        """Whether ratios that depend on few parameters give relations, or show that a parameter has several values.

        A ratio that depends on none of some parameters does not do so either once these are related to each other: so
        sets of parameters without a common one can be treated at once.
        """
        numbers = [i for i in self.free if i not in self.several]
        touched: set[int] = set()
        # With all of them as symbols, what `_all` does is the same and more.
        for size in range(1, min(MOST_SYMBOLS, len(numbers) - 1) + 1):
            for some in subsets(numbers, size):
                if touched & set(some) or not any(True for _ in self._groups(some)):
                    continue
                if self._related(some):
                    touched |= set(some)
                if touched and self.several:
                    return True
            if touched:
                return True
        return False

    def _groups(self, chosen: tuple[int, ...]) -> Iterator[list[Key]]:
        """Coefficients of one equation whose ratios depend on the chosen parameters alone, of those that are free."""
        rest = self.marks["all"] - sum(self.marks[i] for i in chosen)
        order = np.argsort(rest, kind="stable")
        ends = np.flatnonzero(np.diff(rest[order])) + 1
        for group in np.split(order, ends):
            if len(group) > 1 and all(len({self.growth[i][self.keys[k]] for k in group}) > 1 for i in chosen):
                yield [self.keys[k] for k in group]

    def _related(self, chosen: tuple[int, ...]) -> bool:
        """Look at the ratios of some parameters; true if something came of it."""
        symbols = (*chosen, *self.several)
        signature = (len(self.relations), *symbols)
        if signature in self.tried:
            return False
        self.tried.add(signature)
        values = [self.parameters[i] for i in symbols]
        found = self._symbolic(symbols)
        equations = [e for group in self._groups(chosen) for e in _equations([found[key] for key in group], values)]
        equations.sort(key=lambda e: (len(e), e.total_degree()))
        if len(symbols) == 1:
            return self._relate_root(chosen[0], equations)
        if any(self._relate_linear(equation, chosen, symbols) for equation in equations[:SIMPLEST]):
            return True
        return not self.several and self._relate_single(equations[:SIMPLEST], chosen)

    def _relate_root(self, parameter: int, equations: Sequence[nmod_mpoly]) -> bool:
        """A parameter by the equations in it alone: it is known, or has several values."""
        common = equations[0]
        for equation in equations[1:]:
            common = common.gcd(equation)
        if common.total_degree() == 1:
            self._know(parameter)
        else:
            self.several.append(parameter)
        return True

    def _relate_linear(self, equation: nmod_mpoly, chosen: Sequence[int], symbols: Sequence[int]) -> bool:
        """A parameter that an equation holds linearly, by the others."""
        degrees = equation.degrees()
        for place, i in enumerate(symbols):
            if degrees[place] == 1 and i in chosen:
                own = _polynomial(equation, symbols, self.prime)
                below = Polynomial({_without(m, i): c for m, c in own.terms.items() if i in m}, self.prime)
                above = Polynomial({m: c for m, c in own.terms.items() if i not in m}, self.prime).scaled(-1)
                if below.at(self.parameters):
                    self._relate(Relation(i, above, below))
                    return True
        return False

    def _relate_single(self, equations: Sequence[nmod_mpoly], chosen: Sequence[int]) -> bool:
        """Parameters that have one value by several equations together."""
        own = [_polynomial(e, chosen, self.prime) for e in equations]
        gradients = [e.gradient(self.parameters) for e in own]
        rows = [gradient.get(i, 0) for gradient in gradients for i in chosen]
        if nmod_mat(len(own), len(chosen), rows, self.prime).rank() < len(chosen):
            return False
        try:
            system = Prolonged(tuple(own), tuple(self.parameters), (), (), {}, {})
            fibre = solve(system, (), Engine(None, self.budget.share(SOLVE_SHARE)))
        except (Infinite, OutOfBudget):
            return False
        known = [i for i in chosen if fibre.values(variable(i, self.prime)) == 1]
        for i in known:
            self._know(i)
        return bool(known)

    def _know(self, parameter: int) -> None:
        self._relate(Relation(parameter, constant(self.parameters[parameter], self.prime), constant(1, self.prime)))

    def _relate(self, relation: Relation) -> None:
        self.free.remove(relation.parameter)
        self.relations.append(relation)

    # --- the end ---

    def _all(self) -> None:
        """All coefficients in all parameters that are left: the simplest as equations, mixtures of all as tests."""
        chosen = tuple(self.free)
        values = [self.parameters[i] for i in chosen]
        found = self._symbolic(chosen)
        if len(chosen) == 1:
            self._last(chosen[0], found)
            return
        generator = random.Random(self.seed)
        factors = [variable(i, self.prime) for i in chosen]
        for output in self.references:
            own = [polynomial for key, polynomial in found.items() if key[0] == output]
            factors += [_polynomial(f, chosen, self.prime) for f, _ in _reference(own).factor()[1]]
            equations = sorted(_equations(own, values), key=lambda e: (len(e), e.total_degree()))
            self.equations += [_polynomial(e, chosen, self.prime) for e in equations[:SIMPLEST]]
            if len(equations) > SIMPLEST:
                for _ in range(2):
                    mixed = sum((generator.randrange(1, self.prime) * e for e in equations), 0 * equations[0])
                    self.tests.append(_polynomial(mixed, chosen, self.prime))
        self.nonzero = [factor for i, factor in enumerate(factors) if factor not in factors[:i]]

    def _last(self, parameter: int, found: Mapping[Key, nmod_mpoly]) -> None:
        """The one equation that all coefficients together are for the last parameter."""
        common = 0 * next(iter(found.values()))
        for output in self.references:
            own = [polynomial for key, polynomial in found.items() if key[0] == output]
            for equation in _equations(own, [self.parameters[parameter]]):
                common = common.gcd(equation)
        if common.total_degree() == 1:
            self._know(parameter)
        elif not common.is_zero():
            self.equations.append(_polynomial(common, [parameter], self.prime))

    def held(self, unknowns: Sequence[int]) -> list[tuple[int, int]]:
        """Some unknowns of the problem with their values at the point."""
        everything = (*self.at.point.states, *self.at.point.parameters)
        return [(i, everything[self.problem.columns[i]]) for i in unknowns]

    def system(self) -> tuple[list[Polynomial], list[Polynomial]]:
        """Equations and tests in the unknowns of the problem, by their numbers.

        What depends on nothing free is known; other relations hold as they are.
        """
        known: set[int] = set(range(len(self.parameters))) - set(self.free)
        for relation in self.relations:
            inside = relation.above.variables | relation.below.variables
            if inside - known:
                known.discard(relation.parameter)
        changed = True
        while changed:
            changed = False
            for relation in self.relations:
                if relation.parameter in known and (relation.above.variables | relation.below.variables) - known:
                    known.discard(relation.parameter)
                    changed = True
        equations = list(self.equations)
        for relation in self.relations:
            own = variable(relation.parameter, self.prime)
            if relation.parameter in known:
                equations.append(own + constant(-self.parameters[relation.parameter], self.prime))
            else:
                equations.append(own * relation.below + relation.above.scaled(-1))
        return [self.translated(e) for e in equations], [self.translated(e) for e in self.tests]

    def translated(self, polynomial: Polynomial) -> Polynomial:
        """A polynomial in parameters as one in the unknowns of the problem."""
        total = Polynomial({}, self.prime)
        for monomial, coefficient in polynomial.terms.items():
            product = constant(coefficient, self.prime)
            for i in monomial:
                product = product * self.meaning[i]
            total = total + product
        return total


def _reference(polynomials: Sequence[nmod_mpoly]) -> nmod_mpoly:
    """The simplest coefficient of an equation, to which the others are compared."""
    return min(polynomials, key=lambda c: (c.total_degree(), len(c)))


def _equations(polynomials: Sequence[nmod_mpoly], values: Sequence[int]) -> list[nmod_mpoly]:
    """c_j(q) c_k(p) = c_k(q) c_j(p) for the simplest c_k and all others, without their common factors."""
    reference = _reference(polynomials)
    found = []
    for polynomial in polynomials:
        common = polynomial.gcd(reference)
        left, right = polynomial // common, reference // common
        equation = left * int(right(*values)) - right * int(left(*values))
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


def _polynomial(polynomial: nmod_mpoly, symbols: Sequence[int], prime: int) -> Polynomial:
    terms = {}
    for exponents, coefficient in polynomial.terms():
        terms[tuple(sorted(i for i, e in zip(symbols, exponents, strict=True) for _ in range(e)))] = int(coefficient)
    return Polynomial(terms, prime)


def _without(monomial: tuple[int, ...], i: int) -> tuple[int, ...]:
    place = monomial.index(i)
    return monomial[:place] + monomial[place + 1 :]
