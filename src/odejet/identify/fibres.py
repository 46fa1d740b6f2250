"""Fibres: all parameters that give the same coefficients, found before the states are.

The equations of `coefficients` hold where parameters give the same coefficients, and also where all coefficients of an
equation vanish, which is no solution.  There are many such places, often infinitely many, and what vanishes there is
known: the coefficient to which all others are compared, and parameters.  One more variable, the inverse of a product of
these, leaves only solutions.  Few equations determine them; the others are tested at what is left.

The solutions are handed on as a Groebner basis in all parameters, also in those that relations give by others.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from flint import nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.identify.coefficients import Coefficients
from odejet.identify.globally import Engine, Fibre, solve
from odejet.identify.polynomials import ENTRY, TERM, Monomial, Polynomial, constant, variable
from odejet.identify.prolong import Prolonged
from odejet.identify.quotient import Infinite, Quotient, order_key

ATTEMPTS = ((30, 0.1), (15, 0.1), (60, 0.2))
"""How many of the simplest equations are solved, and the part of what is left that this may take."""

MOST_SOLUTIONS = 200
"""Solutions up to which they are found by themselves."""


def alone(facts: Coefficients, budget: Budget) -> list[Polynomial] | None:
    """A Groebner basis of the parameters that give the same coefficients; None where it is not found."""
    if not facts.equations or len(facts.free) < 2:
        return None
    for number, share in ATTEMPTS:
        try:
            fibre = _solutions(facts, number, budget.share(share))
            break
        except (OutOfBudget, Infinite):
            budget.check()
    else:
        return None
    elements = {i: fibre.elements[i] for i in facts.free}
    numbers = {i: fibre.algebra.number(value) for i, value in enumerate(facts.parameters) if i not in elements}
    for relation in reversed(facts.relations):
        known = Quotient(facts.prime, fibre.algebra.dimension, {**numbers, **elements})
        try:
            inverse = known.evaluate(relation.below).inv()
        except ZeroDivisionError:
            return None
        elements[relation.parameter] = known.evaluate(relation.above) * inverse
    return vanishing(fibre.algebra, elements)


def _solutions(facts: Coefficients, number: int, budget: Budget) -> Fibre:
    """The solutions of some equations at which all others hold too."""
    prime = facts.prime
    product = constant(1, prime)
    for factor in facts.nonzero:
        product = product * factor
    extra = len(facts.parameters)
    values = (*facts.parameters, pow(product.at(facts.parameters), -1, prime))
    inverse = variable(extra, prime) * product + constant(-1, prime)
    equations = sorted(facts.equations, key=lambda e: (len(e.terms), e.degree))
    system = Prolonged((*equations[:number], inverse), values, (), (), {}, {})
    fibre = solve(system, (), Engine(None, budget))
    size = fibre.algebra.dimension
    if size > MOST_SOLUTIONS:
        raise OutOfBudget("parameters have many values")
    rest = [*equations[number:], *facts.tests]
    if size > 1 and rest:
        work = sum(len(monomial) for e in rest for monomial in e.terms) * (TERM + ENTRY * size**3)
        if not budget.affords(work):
            raise OutOfBudget("parameters have many values")
        budget.check(work)
        generator = random.Random(number)
        for _ in range(2):
            mixed = sum((e.scaled(generator.randrange(1, prime)) for e in rest), Polynomial({}, prime))
            fibre = fibre.restricted([fibre.element(mixed)])
    return fibre


def vanishing(algebra: Quotient, elements: Mapping[int, nmod_mat]) -> list[Polynomial]:
    """The reduced Groebner basis of the polynomials in some elements that vanish (Faugère, Gianni, Lazard and Mora).

    Monomials are taken from the smallest; one that depends linearly on those before gives a polynomial.
    """
    prime, variables = algebra.prime, sorted(elements)
    key = order_key({v: i for i, v in enumerate(variables)})
    one = nmod_mat(algebra.dimension, 1, [1] + [0] * (algebra.dimension - 1), prime)
    vectors: dict[Monomial, nmod_mat] = {(): one}
    echelon: list[tuple[int, list[int], Polynomial]] = []
    found: list[Polynomial] = []
    leads: list[Monomial] = []
    queue: list[tuple[tuple, Monomial]] = [(key(()), ())]
    while queue:
        _, monomial = heappop(queue)
        if any(_divides(lead, monomial) for lead in leads):
            continue
        rest = [int(x) for x in vectors[monomial].entries()]
        own = Polynomial({monomial: 1}, prime)
        for pivot, row, polynomial in echelon:
            if factor := rest[pivot]:
                rest = [(a - factor * b) % prime for a, b in zip(rest, row, strict=True)]
                own = own + polynomial.scaled(-factor)
        place = next((i for i, x in enumerate(rest) if x), None)
        if place is None:
            leads.append(monomial)
            found.append(own)
            continue
        scale = pow(rest[place], -1, prime)
        echelon.append((place, [x * scale % prime for x in rest], own.scaled(scale)))
        for v in variables:
            larger = tuple(sorted((*monomial, v)))
            if larger not in vectors:
                vectors[larger] = elements[v] * vectors[monomial]
                heappush(queue, (key(larger), larger))
    return found


def _divides(lead: Sequence[int], monomial: Sequence[int]) -> bool:
    return all(monomial.count(v) >= lead.count(v) for v in set(lead))
