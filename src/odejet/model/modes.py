"""Modes: what a model with switches is between two of them, a model without any.

Every comparison is the sign of a *switching function* g, left minus right.  With the signs of all that matter known,
each switch takes one of its branches and the equations are analytic; which functions mattered is kept with the
equations, for along a solution their signs are to be watched.  A function may also be held at zero by a solution that
both sides drive towards its surface (dry friction at rest): then the solution slides on the surface, by the mixture

    x' = (a- f+ - a+ f-) / (a- - a+),     a+- = dg/dx f+- + dg/dt

of the rates on both sides for which g stays zero (Filippov 1988), as long as a+ < 0 < a-.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from odejet.errors import ModelError
from odejet.model.derivatives import derivative
from odejet.model.expressions import (
    TIME,
    ZERO,
    Choice,
    Comparison,
    Condition,
    Delay,
    Expression,
    Function,
    Logic,
    Number,
    Piecewise,
    Power,
    Product,
    Sum,
    Symbol,
    constant,
    evaluate,
    names,
    number,
    switches,
)

if TYPE_CHECKING:
    from odejet.model import Model

ONE = Number(Fraction(1))


@dataclass(frozen=True)
class Equations:
    """A model as its tape needs it; parameters that events set are states at rest."""

    fixed: Mapping[str, Fraction]
    parameters: tuple[str, ...]
    states: Mapping[str, Expression]
    outputs: Mapping[str, Expression]
    inputs: Mapping[str, Expression | None]
    initial: Mapping[str, Expression]


def equations(model: Model) -> tuple[Equations, tuple[str, ...]]:
    """The equations of a model, and the parameters that its events set, which are its last states."""
    held = tuple(dict.fromkeys(name for event in model.events for name in event.set if name not in model.states))
    return Equations(
        {name: value for name, value in model.fixed.items() if name not in held},
        tuple(name for name in model.parameters if name not in held),
        {**model.states, **dict.fromkeys(held, ZERO)},
        model.outputs,
        model.inputs,
        {},
    ), held


# --- branches ---


@dataclass
class Branches:
    """Expressions with their branches taken.  `sign` tells that of a switching function and `whole` the largest whole
    number below a function; all that were asked for are kept, with the answers."""

    sign: Callable[[Expression], int]
    whole: Callable[[Expression], int]
    asked: dict[Expression, int] = field(default_factory=dict)

    def ask(self, g: Expression) -> int:
        exact = constant(g)
        if exact is not None:
            return (exact > 0) - (exact < 0)
        if g not in self.asked:
            self.asked[g] = self.sign(g)
        return self.asked[g]

    def taken(self, expression: Expression) -> Expression:
        """The expression without switches."""
        match expression:
            case Number() | Symbol():
                return expression
            case Sum(terms):
                return Sum(tuple((sign, self.taken(term)) for sign, term in terms))
            case Product(factors):
                return Product(tuple((exponent, self.taken(factor)) for exponent, factor in factors))
            case Power(base, exponent):
                return Power(self.taken(base), self.taken(exponent))
            case Function(name, argument):
                return Function(name, self.taken(argument))
            case Piecewise(values, conditions):
                holding = (i for i, condition in enumerate(conditions) if self.holds(condition))
                return self.taken(values[next(holding, len(conditions))])
            case Choice(name, arguments):
                return self.choice(name, [self.taken(argument) for argument in arguments])
            case Delay(argument, by):
                return Delay(self.taken(argument), by)
        raise AssertionError(expression)

    def choice(self, name: str, arguments: list[Expression]) -> Expression:
        first, *others = arguments
        match name:
            case "abs":
                return first if self.ask(first) >= 0 else Sum(((-1, first),))
            case "sign":
                return number(self.ask(first))
            case "floor":
                return self.floor(first)
            case "ceil":
                return Sum(((-1, self.floor(Sum(((-1, first),)))),))
        for other in others:
            sign = self.ask(difference(first, other))
            first = other if sign * (1 if name == "min" else -1) > 0 else first
        return first

    def floor(self, argument: Expression) -> Expression:
        below = self.whole(argument)
        if self.ask(difference(argument, number(below))) < 0:
            below -= 1
            self.ask(difference(argument, number(below)))
        self.ask(difference(argument, number(below + 1)))
        return number(below)

    def holds(self, condition: Condition) -> bool:
        """Whether a condition holds; all of its parts are asked, for each may be the one that changes it."""
        match condition:
            case Comparison(relation, left, right):
                sign = self.ask(difference(self.taken(left), self.taken(right)))
                return {
                    "<": sign < 0,
                    "<=": sign <= 0,
                    ">": sign > 0,
                    ">=": sign >= 0,
                    "==": sign == 0,
                    "!=": sign != 0,
                }[relation]
            case Logic("not", (part,)):
                return not self.holds(part)
            case Logic(word, parts):
                found = [self.holds(part) for part in parts]
                return all(found) if word == "and" else any(found)
        raise AssertionError(condition)


def difference(left: Expression, right: Expression) -> Expression:
    return left if constant(right) == 0 else Sum(((1, left), (-1, right)))


def decided(expression: Expression) -> Expression:
    """The expression with those switches taken that numbers alone decide."""
    match expression:
        case Number() | Symbol():
            return expression
        case Sum(terms):
            return Sum(tuple((sign, decided(term)) for sign, term in terms))
        case Product(factors):
            return Product(tuple((exponent, decided(factor)) for exponent, factor in factors))
        case Power(base, exponent):
            return Power(decided(base), decided(exponent))
        case Function(name, argument):
            return Function(name, decided(argument))
        case Delay(argument, by):
            return Delay(decided(argument), by)
        case Choice(name, arguments):
            kept: Expression = Choice(name, tuple(map(decided, arguments)))
        case Piecewise(values, conditions):
            kept = Piecewise(tuple(map(decided, values)), conditions)
    try:
        return Branches(_unknown, _unknown).taken(kept)
    except _Unknown:
        return kept


class _Unknown(Exception):
    pass


def _unknown(g: Expression) -> int:
    exact = constant(g)
    if exact is None:
        raise _Unknown
    return exact.numerator // exact.denominator


def analytic_at(expression: Expression, t: float) -> Expression:
    """The branch of a function of the time that holds from t on."""
    if not switches(expression):
        return expression

    def value(g: Expression) -> float:
        return float(evaluate(g, {TIME: t}, math))

    def sign(g: Expression) -> int:
        here = value(g) or value(derivative(g, TIME))
        return (here > 0) - (here < 0)

    return Branches(sign, lambda argument: math.floor(value(argument))).taken(expression)


# --- modes ---


@dataclass(frozen=True)
class Mode:
    """Equations without switches, the functions to watch with their signs, and which conditions of events hold."""

    equations: Equations
    asked: Mapping[Expression, int]
    holds: tuple[bool, ...]
    sliding: Mapping[Expression, tuple[Expression, Expression]] = field(default_factory=dict)
    """Functions held at zero, each with the rates a+ and a- towards it."""


def mode(
    whole: Equations, branching: Mapping[str, Iterable[str]], conditions: Iterable[Condition], branches: Branches
) -> Mode:
    """The mode of equations that a choice of signs gives; `branching` are the names, by table, of those that switch."""
    tables: dict[str, Any] = {
        table: {**getattr(whole, table), **{name: branches.taken(getattr(whole, table)[name]) for name in switching}}
        for table, switching in branching.items()
    }
    holds = tuple(branches.holds(condition) for condition in conditions)
    return Mode(replace(whole, **tables), dict(branches.asked), holds)


def slid(above: Mode, below: Mode, g: Expression) -> Mode:
    """The mode that holds g at zero, from the modes on both sides of it."""
    rate_above, rate_below = (along(one.equations, g) for one in (above, below))
    span = difference(rate_below, rate_above)

    def mixed(one: Expression, other: Expression) -> Expression:
        if one == other:
            return one
        top = Sum(((1, Product(((1, rate_below), (1, one)))), (-1, Product(((1, rate_above), (1, other))))))
        return Product(((1, top), (-1, span)))

    tables: dict[str, Any] = {
        table: {
            name: mixed(value, getattr(below.equations, table)[name])
            for name, value in getattr(above.equations, table).items()
        }
        for table in ("states", "outputs")
    }
    asked = {**below.asked, **above.asked, g: 0, rate_above: -1, rate_below: 1}
    sliding = {**below.sliding, **above.sliding, g: (rate_above, rate_below)}
    return Mode(replace(above.equations, **tables), asked, above.holds, sliding)


def along(equations: Equations, g: Expression) -> Expression:
    """The rate of a function along the solutions of equations."""
    involved = dict.fromkeys(names(g))
    if any(name in equations.inputs for name in involved):
        raise ModelError("a switch on a sampled input cannot hold a solution back")
    terms: list[tuple[int, Expression]] = []
    for name in involved:
        rate = ONE if name == TIME else equations.states.get(name, ZERO)
        slope = derivative(g, name)
        if ZERO not in (slope, rate):
            terms.append((1, Product(((1, slope), (1, rate)))))
    return Sum(tuple(terms)) if terms else ZERO
