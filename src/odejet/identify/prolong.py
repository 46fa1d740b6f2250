"""Prolong: the derivatives of the outputs at one time as explicit polynomial equations, with exact generic data.

The paper's system F(z, d) = 0 (its Steps 2 and 4), over a prime field and at data that come from a random point, so
that the point is a solution and all other solutions are what the outputs cannot tell from it.  State derivatives are
unknowns, as in the paper: x_(k+1) (k + 1) = [f]_k for Taylor coefficients x_k.  A division a / b brings an unknown for
1 / b at order zero, which also excludes solutions with a zero denominator; a root or a rational power brings one with
r^m = a^l.  Exponentials, logarithms and angles are unknowns without an equation of their own (but cos^2 + sin^2 = 1):
dropping e = exp(x) leaves more solutions, never fewer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.identify.local import Jacobian, Problem
from odejet.identify.polynomials import TERM, Polynomial, System, constant, variable
from odejet.identify.ring import Run
from odejet.jets.modular import Field
from odejet.model.tape import Elementary

BYTES = 250.0
"""Memory of a term of a polynomial."""
PRODUCT = 1500.0
"""Operations, in nanoseconds, of the product of two terms."""


class Size:
    """A polynomial known by its number of terms alone; `multiplied` counts the products of terms so far."""

    multiplied = 0

    def __init__(self, terms: int, named: bool = False) -> None:
        self.terms, self.named = terms, named

    def __add__(self, other: Size) -> Size:
        return Size(self.terms + other.terms, self.named and other.named)

    def __mul__(self, other: Size) -> Size:
        product = Size(self.terms * other.terms)
        Size.multiplied += product.terms
        return product


class Sizes:
    """Arithmetic of numbers of terms: what `Explicit` would make, without making it."""

    def number(self, residue: int) -> Size:
        return Size(1 if residue else 0, named=True)

    def scale(self, element: Size, residue: int) -> Size:
        return element

    def name(self, element: Size) -> Size:
        return element if element.named else Size(1, named=True)

    def quotient(self, above: Size, below: Size) -> Size:
        return self.name(above * Size(1))

    def root(self, place: int, element: Size, exponent: Fraction, value: int) -> Size:
        return Size(1, named=True)

    def function(self, place: int, kind: int, argument: Size, value: int) -> Size:
        return Size(1, named=True)


def refuse_too_large(problem: Problem, at: Jacobian, highest: int, budget: Budget) -> None:
    """`OutOfBudget` where the equations up to an order have more terms than time and memory allow."""
    n = len(problem.model.states)
    one = [Size(1, named=True) for _ in (*at.point.states, *at.point.parameters)]
    before = Size.multiplied
    run = Run(problem.tape, Field(at.prime), at.point, Sizes(), one[:n], one[n:], bool(problem.model.initial))
    for order in range(highest + 1):
        budget.check()
        run.extend(order)
        terms = Size.multiplied - before
        if not budget.fits(BYTES * terms) or not budget.affords(PRODUCT * terms):
            raise OutOfBudget(f"its equations up to order {order} have some {terms:.0e} terms")
    budget.spend(PRODUCT * (Size.multiplied - before))


@dataclass
class Explicit:
    """Arithmetic on polynomials that names what would grow: each new variable comes with its equation.

    `values` holds every variable's value at the point.
    """

    field: Field
    known: AbstractSet[int]  # places of functions and roots whose value is known
    values: list[int] = dataclasses.field(default_factory=list)
    equations: list[Polynomial] = dataclasses.field(default_factory=list)
    functions: dict[int, Polynomial] = dataclasses.field(default_factory=dict)
    arguments: dict[int, Polynomial] = dataclasses.field(default_factory=dict)
    inverses: dict[tuple, Polynomial] = dataclasses.field(default_factory=dict)

    @property
    def prime(self) -> int:
        return self.field.prime

    def new(self, value: int) -> Polynomial:
        self.values.append(value)
        return variable(len(self.values) - 1, self.prime)

    def number(self, residue: int) -> Polynomial:
        return constant(residue, self.prime)

    def scale(self, element: Polynomial, residue: int) -> Polynomial:
        return element.scaled(residue)

    def name(self, element: Polynomial) -> Polynomial:
        if element.degree <= 1 and len(element.terms) <= 2:
            return element
        fresh = self.new(element.at(self.values))
        self.equations.append(fresh + element.scaled(-1))
        return fresh

    def quotient(self, above: Polynomial, below: Polynomial) -> Polynomial:
        if below.is_constant:
            return above.scaled(self.field.inverse(below.terms.get((), 0)))
        key = tuple(sorted(below.terms.items()))
        if key not in self.inverses:
            self.inverses[key] = inverse = self.new(self.field.inverse(below.at(self.values)))
            self.equations.append(inverse * below + constant(-1, self.prime))
        return self.name(above * self.inverses[key])

    def root(self, place: int, element: Polynomial, exponent: Fraction, value: int) -> Polynomial:
        if element.is_constant or place in self.known:
            return constant(value, self.prime)
        fresh = self._unknown(place, element, value)
        above, below = exponent.numerator, exponent.denominator
        left, right = self.power(fresh, below), self.power(element, abs(above))
        self.equations.append(left + right.scaled(-1) if above > 0 else left * right + constant(-1, self.prime))
        return fresh

    def power(self, element: Polynomial, times: int) -> Polynomial:
        product = constant(1, self.prime)
        for _ in range(times):
            product = self.name(product * element)
        return product

    def function(self, place: int, kind: int, argument: Polynomial, value: int) -> Polynomial:
        if argument.is_constant or place in self.known:
            return constant(value, self.prime)
        partners = [self.functions[other] for other, same in self.arguments.items() if same == argument]
        fresh = self._unknown(place, argument, value)
        if kind == Elementary.EXP:
            self.quotient(constant(1, self.prime), fresh)
        if kind in (Elementary.SIN, Elementary.COS):
            for partner in partners:
                self.equations.append(fresh * fresh + partner * partner + constant(-1, self.prime))
        return fresh

    def _unknown(self, place: int, argument: Polynomial, value: int) -> Polynomial:
        self.arguments[place] = argument
        self.functions[place] = self.new(value)
        return self.functions[place]


@dataclass(frozen=True)
class Prolonged:
    """The equations of some rows at a random point; unknowns and functions as polynomials in their variables."""

    equations: tuple[Polynomial, ...]
    values: tuple[int, ...]
    unknowns: tuple[Polynomial, ...]
    asked: tuple[Polynomial, ...]
    functions: Mapping[int, Polynomial]
    arguments: Mapping[int, Polynomial]
    weights: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """Of variables, for orderings: how late the outputs see them; one where nothing is said."""

    @property
    def prime(self) -> int:
        return self.equations[0].prime

    def jacobian(self) -> nmod_mat:
        """Derivatives of the equations with respect to all variables, at the point."""
        matrix = nmod_mat(len(self.equations), len(self.values), self.prime)
        for i, equation in enumerate(self.equations):
            for number, derivative in equation.gradient(self.values).items():
                matrix[i, number] = derivative
        return matrix

    def with_fixed(self, numbers: Sequence[int]) -> System:
        """The system with some variables held at their values."""
        prime = self.prime
        fixing = [variable(number, prime) + constant(-self.values[number], prime) for number in numbers]
        return System([*fixing, *self.equations])


def prolong(
    problem: Problem,
    at: Jacobian,
    rows: Sequence[tuple[int, int]],
    known: AbstractSet[int] = frozenset(),
    budget: Budget | None = None,
) -> Prolonged:
    """The equations `output i has the point's derivative of order j` for the rows (i, j).

    `OutOfBudget` where they are too large.
    """
    budget = budget or Budget()
    refuse_too_large(problem, at, max(j for _, j in rows), budget)
    model, tape = problem.model, problem.tape
    ring = Explicit(Field(at.prime), known)
    values = (*at.point.states, *at.point.parameters)
    elements = [constant(value, at.prime) for value in values]
    for column in problem.columns:
        elements[column] = ring.new(values[column])
    n = len(model.states)
    run = Run(tape, ring.field, at.point, ring, elements[:n], elements[n:], bool(model.initial))
    for order in range(max((j for _, j in rows), default=0) + 1):
        budget.check(TERM * (order + 1) * (tape.products + len(tape.terms)))
        run.extend(order)
    data = [run.output(i, j) + constant(-int(at.jets[i, j, 0]), at.prime) for i, j in rows]
    first = len(model.outputs)
    asked = tuple(run.output(first + i, 0) for i in range(len(problem.functions)))
    equations = tuple(e for e in (*ring.equations, *data) if e)
    unknowns = tuple(elements[column] for column in problem.columns)
    weights = _weights(problem, at, run)
    return Prolonged(equations, tuple(ring.values), unknowns, asked, ring.functions, ring.arguments, weights)


def _weights(problem: Problem, at: Jacobian, run: Run) -> dict[int, int]:
    """One more than the first derivative of an output that an unknown stands in, which its derivatives inherit.

    Orderings by such weights often make bases easier (Bessonov, Ilmer, Konstantinova, Ovchinnikov, Pogudin and Soto,
    Obtaining weights for Groebner basis computation in parameter identifiability problems, 2022).
    """
    unknowns = problem.model.unknowns
    weights = dict.fromkeys(range(len(unknowns)), 1)
    for i in weights:
        orders = np.flatnonzero(np.any(at.jets[: at.outputs, :, 1 + i] != 0, axis=0))
        weights[i] += int(orders[0]) if len(orders) else 0
    for state, register in zip(problem.model.states, problem.tape.states, strict=True):
        for coefficient in run.series[int(register)][1:] if state in unknowns else ():
            own = coefficient.variables - weights.keys()
            if coefficient.degree == 1 and len(coefficient.terms) == 1:
                weights |= dict.fromkeys(own, weights[unknowns.index(state)])
    return {v: weight for v, weight in weights.items() if weight > 1}
