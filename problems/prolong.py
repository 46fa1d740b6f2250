"""Prolong: the polynomial system of a model as the paper writes it, for reading, counting and other programs.

The equations F(z, d) = 0 of the paper's Steps 2 and 4.  The unknowns z are the parameters and, at each shooting point,
the states and their derivatives; the data d are the derivatives of outputs and inputs.  Derivatives are meant, x^(k),
as in the paper, and not the Taylor coefficients x^(k)/k! of the tapes.

Every equation x' = P/Q is first cleared, Q x' - P = 0 with P and Q free of common factors, and then differentiated; so
degrees do not grow with the order.  A root at which some Q vanishes is no solution of the model: `denominators` tells.

Inputs, the time and functions of these are data; so are unknowns that are held fixed.  Other functions than rational
ones have no place in a polynomial system: the paper's CSTR carries its Arrhenius factor as a state of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from odejet.errors import ModelError, nearest
from odejet.jets import numeric
from odejet.model import Model, tape
from odejet.model.expressions import TIME, Expression, Number, names
from problems.rational import MAX_TERMS, Equations, Factors, Quotient, clear

Rows = Sequence[tuple[int, int]]
"""Equations of one shooting point: (output, order of its derivative)."""


@dataclass(frozen=True, order=True)
class Variable:
    """An unknown or a datum: the derivative of a named quantity at a shooting point; constants have no point."""

    name: str
    order: int = 0
    point: int | None = None

    def __str__(self) -> str:
        primes = "'" * self.order if self.order <= 3 else f"^({self.order})"
        return f"{self.name}{primes}" + (f"@{self.point + 1}" if self.point else "")


Monomial = tuple[Variable, ...]
"""A product of variables, each as often as its power says, in sorted order."""

Polynomial = Mapping[Monomial, Fraction]


@dataclass(frozen=True)
class Sizes:
    """How large a system is at generic data; `monomials` counts each product of unknowns once over all equations."""

    equations: int
    unknowns: int
    terms: int
    monomials: int
    degree: int


@dataclass(frozen=True)
class Terms:
    """A polynomial in the unknowns with numbers as coefficients: sum_i c_i z^(e_i)."""

    coefficients: np.ndarray
    exponents: np.ndarray  # (terms, unknowns)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The value at one point or, with leading axes, at many."""
        return self._products(z) @ self.coefficients

    def size(self, z: np.ndarray) -> np.ndarray:
        """The sum of the absolute values of the terms, by which a residual is judged."""
        return np.abs(self._products(z)) @ np.abs(self.coefficients)

    def _products(self, z: np.ndarray) -> np.ndarray:
        return np.prod(np.asarray(z)[..., None, :] ** self.exponents, axis=-1)


@dataclass(frozen=True)
class Numeric:
    """A system at given data."""

    equations: tuple[Terms, ...]
    denominators: tuple[Terms, ...]
    unknowns: int

    def values(self, z: np.ndarray) -> np.ndarray:
        return np.stack([equation(z) for equation in self.equations], axis=-1)

    def residuals(self, z: np.ndarray) -> np.ndarray:
        """The value of every equation relative to the size of its terms."""
        return np.stack([abs(e(z)) / np.maximum(e.size(z), np.finfo(float).tiny) for e in self.equations], axis=-1)

    def genuine(self, z: np.ndarray, tolerance: float = 1e-8) -> np.ndarray:
        """Whether no cleared denominator vanishes: other roots belong to the polynomials, but not to the model."""
        z = np.asarray(z)
        apart = [abs(q(z)) > tolerance * q.size(np.maximum(abs(z), 1.0)) for q in self.denominators]
        return np.all(apart, axis=0) if apart else np.ones(z.shape[:-1], dtype=bool)

    def told(self) -> dict[int, complex]:
        """The unknowns that one equation, a + b z_i = 0, tells alone: a state that is an output, say."""
        found: dict[int, complex] = {}
        for equation in self.equations:
            rows, places = np.nonzero(equation.exponents)
            if len(equation.exponents) <= 2 and len(rows) == 1 and equation.exponents[rows[0], places[0]] == 1:
                rest = equation.coefficients.sum() - equation.coefficients[rows[0]]
                found[int(places[0])] = complex(-rest / equation.coefficients[rows[0]])
        return found

    def inserted(self, values: Mapping[int, complex]) -> Numeric:
        """The system in the other unknowns; equations without any are left out."""
        others = [i for i in range(self.unknowns) if i not in values]
        known = np.array([values.get(i, 1.0) for i in range(self.unknowns)])

        def insert(terms: Terms) -> Terms:
            kept, index = np.unique(terms.exponents[:, others], axis=0, return_inverse=True)
            weights = terms.coefficients * np.prod(known**terms.exponents, axis=1)
            coefficients = np.zeros(len(kept), dtype=complex)
            np.add.at(coefficients, index.ravel(), weights)
            return Terms(coefficients[coefficients != 0], kept[coefficients != 0])

        equations = tuple(e for e in map(insert, self.equations) if e.exponents.any())
        return Numeric(equations, tuple(map(insert, self.denominators)), len(others))

    def to_phcpack(self) -> str:
        """The input of PHCpack's `phc`, in double precision; unknown i is called z(i+1)."""
        count = len(self.equations)
        lines = [str(count) if count == self.unknowns else f"{count} {self.unknowns}"]
        for equation in self.equations:
            terms = [
                f"({value.real:.17e}{value.imag:+.17e}*i)"
                + "".join(f"*z{i + 1}^{power}" for i, power in enumerate(powers) if power)
                for value, powers in zip(equation.coefficients.tolist(), equation.exponents.tolist(), strict=True)
            ]
            lines.append(" + ".join(terms) + ";")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Explicit:
    """Polynomial equations in unknowns and data, all equal to zero."""

    model: Model
    equations: tuple[Polynomial, ...]
    denominators: tuple[Polynomial, ...]
    unknowns: tuple[Variable, ...]
    data: tuple[Variable, ...]
    signals: Mapping[str, Expression]  # known functions of time and of fixed values, by the names of their data

    @cached_property
    def _places(self) -> dict[Variable, int]:
        return {variable: i for i, variable in enumerate(self.unknowns)}

    @cached_property
    def sizes(self) -> Sizes:
        supports = [{self._split(monomial)[0] for monomial in equation} for equation in self.equations]
        return Sizes(
            equations=len(self.equations),
            unknowns=len(self.unknowns),
            terms=sum(len(support) for support in supports),
            monomials=len(set().union(*supports)),
            degree=max((len(monomial) for support in supports for monomial in support), default=0),
        )

    def _split(self, monomial: Monomial) -> tuple[Monomial, Monomial]:
        """The unknowns and the data of a product."""
        places = self._places
        return tuple(v for v in monomial if v in places), tuple(v for v in monomial if v not in places)

    def __str__(self) -> str:
        head = f"{self.model.name}: {self.sizes.equations} equations in {self.sizes.unknowns} unknowns"
        listed = {"unknowns": self.unknowns, "data": self.data}
        lines = [f"  {name}: {', '.join(map(str, variables))}" for name, variables in listed.items()]
        return "\n".join([head, *lines, *(f"  {_written(equation)} = 0" for equation in self.equations)])

    # --- at data ---

    def at(self, data: Mapping[Variable, complex]) -> Numeric:
        """The system with numbers for its data."""
        given = self._checked(data)
        return Numeric(
            tuple(self._terms(self._collected(equation, given, complex)) for equation in self.equations),
            tuple(self._terms(self._collected(q, given, complex)) for q in self.denominators),
            len(self.unknowns),
        )

    def _checked(self, data: Mapping[Variable, Any]) -> Mapping[Variable, Any]:
        missing = [str(variable) for variable in self.data if variable not in data]
        if missing:
            raise ModelError(f"{self.model.name}: the data {', '.join(missing[:5])} are missing; give all of .data")
        return data

    def _collected(self, polynomial: Polynomial, data: Mapping[Variable, Any], number: Any) -> dict[Monomial, Any]:
        """The coefficient of each product of unknowns."""
        collected: dict[Monomial, Any] = {}
        for monomial, coefficient in polynomial.items():
            unknown, known = self._split(monomial)
            value = number(coefficient)
            for variable in known:
                value = value * data[variable]
            collected[unknown] = collected[unknown] + value if unknown in collected else value
        return collected

    def _terms(self, collected: Mapping[Monomial, complex]) -> Terms:
        collected = {monomial: value for monomial, value in collected.items() if value}
        exponents = np.zeros((len(collected), len(self.unknowns)), dtype=int)
        for row, monomial in enumerate(collected):
            for variable in monomial:
                exponents[row, self._places[variable]] += 1
        return Terms(np.array(list(collected.values()), dtype=complex), exponents)

    # --- for other programs ---

    def to_phcpack(self, data: Mapping[Variable, complex]) -> str:
        """The input of PHCpack's `phc`, in double precision; unknown i of `unknowns` is called z(i+1)."""
        return self.at(data).to_phcpack()

    def to_msolve(self, data: Mapping[Variable, Any], prime: int | None = None) -> str:
        """The input of msolve over the rationals or, with a prime, modulo that; data are then whole numbers.

        Unknown i of `unknowns` is called z(i+1).  Numbers are taken exactly: 0.1 is the binary fraction it stands for.
        """
        try:
            given = {variable: Fraction(value) for variable, value in self._checked(data).items()}
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                f"{self.model.name}: msolve wants finite real numbers as data; others cannot be written"
            ) from None
        lines = [",".join(f"z{i + 1}" for i in range(len(self.unknowns))), str(prime or 0)]
        written = []
        for equation in self.equations:
            terms = []
            for monomial, value in self._collected(equation, given, Fraction).items():
                if prime is not None:
                    value = Fraction(value.numerator * pow(value.denominator, -1, prime) % prime)
                if value:
                    powers = [(self._places[v] + 1, monomial.count(v)) for v in dict.fromkeys(monomial)]
                    terms.append(str(value) + "".join(f"*z{place}^{power}" for place, power in powers))
            written.append("+".join(terms).replace("+-", "-") or "0")
        return "\n".join([*lines, ",\n".join(written)]) + "\n"

    # --- from a solution of the model ---

    def graph(
        self,
        states: np.ndarray,
        parameters: np.ndarray,
        times: np.ndarray | float = 0.0,
        inputs: np.ndarray | None = None,
    ) -> tuple[np.ndarray, dict[Variable, complex]]:
        """The unknowns and the data at given states (points, states) and parameters; they solve the equations.

        `inputs` are Taylor coefficients (points, inputs, orders) in place of the model's own functions of time, with at
        least as many orders as the highest derivative among unknowns and data asks for.
        """
        order = max(variable.order for variable in (*self.unknowns, *self.data))
        unused = _unused(self.model)
        extra = {f"{unused}{i}": signal for i, signal in enumerate(self.signals.values())}
        program = tape.build(
            self.model.replace(outputs={**self.model.outputs, **extra}), free_inputs=inputs is not None
        )
        if inputs is not None:
            inputs = np.asarray(inputs)[:, :, : order + 1]
        states, parameters = np.atleast_2d(states), np.asarray(parameters)
        series = numeric.jets(program, states, parameters, times, order=order, inputs=inputs)
        values = {Variable(name): parameters[i] for i, name in enumerate(self.model.parameters)}
        observed = (*self.model.outputs, *self.signals)
        for point in range(len(states)):
            for quantities, coefficients in ((self.model.states, series.states), (observed, series.outputs)):
                for i, name in enumerate(quantities):
                    for k in range(order + 1):
                        values[Variable(name, k, point)] = coefficients[point, i, k, 0] * factorial(k)
                    values.setdefault(Variable(name), coefficients[point, i, 0, 0])
        return np.array([values[v] for v in self.unknowns]), {v: values[v] for v in self.data}


def _unused(model: Model) -> str:
    """The beginning of names that the model does not use."""
    taken = (*model.states, *model.parameters, *model.fixed, *model.inputs, *model.outputs)
    prefix = "signal_"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def _written(polynomial: Polynomial) -> str:
    parts: list[str] = []
    for monomial, coefficient in polynomial.items():
        powers = [(str(v), monomial.count(v)) for v in dict.fromkeys(monomial)]
        factors = [name if power == 1 else f"{name}**{power}" for name, power in powers]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(Number(abs(coefficient))))
        sign = ("-" if coefficient < 0 else "") if not parts else (" - " if coefficient < 0 else " + ")
        parts.append(sign + "*".join(factors))
    return "".join(parts) or "0"


# --- building ---------------------------------------------------------------------------------------------------------


def prolong(model: Model, rows: Sequence[Rows], fixed: Iterable[str] = (), beyond: int = 1) -> Explicit:
    """The polynomial system of the derivatives of outputs that `rows` names, one entry for each shooting point.

    It holds the equations of all state derivatives on which those of the outputs depend.  `beyond` says how many more
    derivatives of each such state are carried along, every one an unknown that its own equation gives: the paper's
    templates have one (and so 26 equations for CSTR), its introductory example has none, and the roots are the same.
    `fixed` names unknowns that are data: parameters, or states at every shooting point.
    """
    held = tuple(fixed)
    _check(model, rows, held, beyond)
    cleared = clear(model, held)
    moving = {*model.states, *model.outputs, *(name for name, s in cleared.signals.items() if _moves(s, model))}
    equations: list[Polynomial] = []
    denominators: dict[tuple, Polynomial] = {}
    for point, chosen in enumerate(rows):
        for name, order, quotient, wanted in _wanted(cleared, chosen, beyond):
            above, below = (_placed(part, point, moving) for part in (quotient.above, quotient.below))
            if any(below):
                denominators[tuple(sorted(below.items()))] = below
            left = Variable(name, order, point)
            equation = {tuple(sorted((left, *monomial))): c for monomial, c in below.items()}
            equation |= {monomial: -c for monomial, c in above.items()}
            equations += _derivatives(equation, wanted, f"{model.name}: {name}")
    return _result(model, held, cleared.signals, equations, tuple(denominators.values()))


def _check(model: Model, rows: Sequence[Rows], held: Sequence[str], beyond: int) -> None:
    for name in held:
        if name not in (*model.states, *model.parameters):
            raise ModelError(f"{model.name}: there is no unknown '{name}' to fix{nearest(name, model.unknowns)}")
    for row in (row for chosen in rows for row in chosen):
        if not isinstance(row, Sequence) or len(row) != 2 or not 0 <= row[0] < len(model.outputs) or row[1] < 0:
            last = len(model.outputs) - 1
            raise ModelError(f"{model.name}: a row is (output, order) with an output from 0 to {last}, not {row}")
    if not any(len(chosen) for chosen in rows):
        raise ModelError(f"{model.name}: no rows are given; name the derivatives of outputs that are measured")
    if beyond < 0:
        raise ModelError(f"{model.name}: beyond must not be negative, and is {beyond}")


def state_orders(cleared: Equations, rows: Rows, beyond: int) -> dict[str, int]:
    """The highest derivative of each state that the rows need, and so many beyond."""
    orders: dict[str, int] = {}

    def need(state: str, order: int) -> None:
        if order > orders.get(state, -1):
            orders[state] = order
            if order:
                for other in cleared.states[state].symbols & cleared.states.keys():
                    need(other, order - 1)

    outputs = tuple(cleared.outputs.values())
    for i, order in rows:
        for state in outputs[i].symbols & cleared.states.keys():
            need(state, order)
    for state, order in tuple(orders.items()):
        need(state, order + beyond)
    return {state: orders[state] for state in cleared.states if state in orders}


def _wanted(cleared: Equations, rows: Rows, beyond: int) -> Iterator[tuple[str, int, Quotient, AbstractSet[int]]]:
    """What equals which quotient, as (name, order, quotient), and how often to differentiate that."""
    for i, (output, quotient) in enumerate(cleared.outputs.items()):
        if wanted := {order for k, order in rows if k == i}:
            yield output, 0, quotient, wanted
    for state, order in state_orders(cleared, rows, beyond).items():
        if order:
            yield state, 1, cleared.states[state], set(range(order))


def _moves(signal: Expression, model: Model) -> bool:
    """Whether a signal changes in time."""
    return any(name == TIME or name in model.inputs for name in names(signal))


def _placed(part: Mapping[Factors, Fraction], point: int, moving: AbstractSet[str]) -> dict[Monomial, Fraction]:
    """A polynomial in names as one in variables at a shooting point."""
    return {
        tuple(sorted(Variable(name, 0, point) if name in moving else Variable(name) for name in factors)): coefficient
        for factors, coefficient in part.items()
    }


def _derivatives(equation: Polynomial, wanted: AbstractSet[int], where: str) -> Iterator[Polynomial]:
    """The wanted derivatives of an equation with respect to time."""
    for order in range(max(wanted) + 1):
        equation = _derivative(equation) if order else equation
        if len(equation) > MAX_TERMS:
            raise ModelError(f"{where} has too many terms to be written out; choose rows of lower order")
        if order in wanted:
            yield equation


def _derivative(polynomial: Polynomial) -> Polynomial:
    found: dict[Monomial, Fraction] = {}
    for monomial, coefficient in polynomial.items():
        for variable in dict.fromkeys(v for v in monomial if v.point is not None):
            rest = list(monomial)
            rest.remove(variable)
            if variable.name != TIME:
                rest.append(Variable(variable.name, variable.order + 1, variable.point))
            key = tuple(sorted(rest))
            found[key] = found.get(key, Fraction(0)) + coefficient * monomial.count(variable)
    return {monomial: coefficient for monomial, coefficient in found.items() if coefficient}


def _result(
    model: Model,
    held: Sequence[str],
    signals: Mapping[str, Expression],
    equations: Sequence[Polynomial],
    denominators: tuple[Polynomial, ...],
) -> Explicit:
    """The system with all that occurs in it: unknowns as parameters and then by point, data likewise."""
    ranks = {name: i for i, name in enumerate((*model.parameters, *model.states, *model.outputs, *signals))}
    occurring = sorted(
        {variable for equation in equations for monomial in equation for variable in monomial},
        key=lambda v: (v.point is not None, v.point, ranks[v.name], v.order),
    )
    own = {*model.parameters, *model.states}
    unknowns = tuple(v for v in occurring if v.name in own and (v.name not in held or v.order))
    data = tuple(v for v in occurring if v not in set(unknowns))
    return Explicit(model, tuple(equations), denominators, unknowns, data, signals)
