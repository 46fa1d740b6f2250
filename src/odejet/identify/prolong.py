"""Prolong: the derivatives of the outputs at one time as explicit polynomial equations, with exact generic data.

The paper's system F(z, d) = 0 (its Steps 2 and 4), over a prime field and at data that come from a random point, so
that the point is a solution and all other solutions are what the outputs cannot tell from it.  State derivatives are
unknowns, as in the paper: x_(k+1) (k + 1) = [f]_k for Taylor coefficients x_k.  A division a / b brings an unknown for
1 / b at order zero, which also excludes solutions with a zero denominator; a root or a rational power brings one with
r^m = a^l.  Exponentials, logarithms and angles are unknowns without an equation of their own (but cos^2 + sin^2 = 1):
dropping e = exp(x) leaves more solutions, never fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from odejet.identify.local import Jacobian, Problem
from odejet.identify.polynomials import Polynomial, System, constant, variable
from odejet.identify.ring import Run
from odejet.jets.modular import Field
from odejet.tape import Elementary


@dataclass
class Explicit:
    """Arithmetic on polynomials that names what would grow: each new variable comes with its equation."""

    field: Field
    known: Mapping[int, int]  # transcendental functions, by place, whose value is known
    used: int = 0
    equations: list[Polynomial] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    functions: dict[int, Polynomial] = field(default_factory=dict)
    arguments: dict[int, Polynomial] = field(default_factory=dict)
    inverses: dict[tuple, Polynomial] = field(default_factory=dict)

    @property
    def prime(self) -> int:
        return self.field.prime

    def new(self) -> Polynomial:
        self.used += 1
        return variable(self.used - 1, self.prime)

    def number(self, residue: int) -> Polynomial:
        return constant(residue, self.prime)

    def scale(self, element: Polynomial, residue: int) -> Polynomial:
        return element.scaled(residue)

    def name(self, element: Polynomial) -> Polynomial:
        if element.degree <= 1 and len(element.terms) <= 2:
            return element
        fresh = self.new()
        self.equations.append(fresh + element.scaled(-1))
        return fresh

    def quotient(self, above: Polynomial, below: Polynomial) -> Polynomial:
        if below.is_constant:
            return above.scaled(self.field.inverse(below.terms.get((), 0)))
        key = tuple(sorted(below.terms.items()))
        if key not in self.inverses:
            self.inverses[key] = inverse = self.new()
            self.equations.append(inverse * below + constant(-1, self.prime))
        return self.name(above * self.inverses[key])

    def root(self, element: Polynomial, exponent: Fraction, value: int) -> Polynomial:
        if element.is_constant:
            return constant(value, self.prime)
        fresh = self.new()
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
        self.arguments[place] = argument
        fresh = self.functions[place] = self.new()
        if kind == Elementary.EXP:
            self.quotient(constant(1, self.prime), fresh)
        if kind in (Elementary.SIN, Elementary.COS):
            self._circle(place, argument, fresh)
        return fresh

    def _circle(self, place: int, argument: Polynomial, fresh: Polynomial) -> None:
        """Sine and cosine of one argument lie on the unit circle."""
        for other, partner in self.functions.items():
            if other != place and self.arguments[other] == argument:
                self.equations.append(fresh * fresh + partner * partner + constant(-1, self.prime))


@dataclass(frozen=True)
class Prolonged:
    """The equations of some rows at a random point, and each unknown and function as a polynomial in their variables."""

    problem: Problem
    at: Jacobian
    system: System
    variables: int
    unknowns: tuple[Polynomial, ...]
    asked: tuple[Polynomial, ...]
    functions: Mapping[int, Polynomial]
    arguments: Mapping[int, Polynomial]


def prolong(
    problem: Problem,
    at: Jacobian,
    rows: Sequence[tuple[int, int]],
    fixed: Sequence[int] = (),
    known: Mapping[int, int] | None = None,
) -> Prolonged:
    """The equations `output i has the point's derivative of order j` for the rows (i, j), with some unknowns fixed."""
    model, tape = problem.model, problem.tape
    ring = Explicit(Field(at.prime), known or {})
    values = (*at.point.states, *at.point.parameters)
    elements = [constant(value, at.prime) for value in values]
    for i, column in enumerate(problem.columns):
        if i not in fixed:
            elements[column] = ring.new()
    n = len(model.states)
    run = Run(tape, ring.field, at.point, ring, elements[:n], elements[n:], bool(model.initial))
    data = [run.output(i, j) + constant(-int(at.jets[i, j, 0]), at.prime) for i, j in rows]
    first = len(model.outputs)
    asked = tuple(run.output(first + i, 0) for i in range(len(problem.functions)))
    system = System([e for e in (*ring.equations, *data) if e])
    unknowns = tuple(elements[column] for column in problem.columns)
    return Prolonged(problem, at, system, ring.used, unknowns, asked, ring.functions, ring.arguments)
