"""Generators: identifiable combinations from which everything else that is identifiable can be computed.

Let F be the field of all identifiable functions of the unknowns, L that of all functions, and G the one that some
functions of F generate.  With a least set T of lost unknowns held fixed, L has a finite degree over F(T), the number of
values that all unknowns together have; `globally` and `elimination` count it.  The degree of L over G(T) is the number
of solutions of the equations that give the generators their values, a small system in the unknowns alone.  G is in F,
so both are the same exactly if the degrees are: each generator is identifiable, and nothing identifiable is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flint import nmod_mat

from odejet.budget import OutOfBudget
from odejet.errors import ModelError
from odejet.identify import local
from odejet.identify.globally import PRIME, Engine, solve
from odejet.identify.msolve import Failed
from odejet.identify.prolong import prolong
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Unlucky
from odejet.model import Model
from odejet.model.expressions import Expression, Product, Sum, Symbol, fresh, names

TRIALS = 20
"""Further functions that are tried where those of full rank leave several solutions."""


DERIVATIVES, LONGEST = 3, 100
"""Derivatives of outputs that are tried, and characters of each: longer ones are nothing a person would write."""


@dataclass(frozen=True)
class Generators:
    """Functions of one value that were chosen besides those given; `complete` if all together generate the field."""

    chosen: tuple[str, ...]
    complete: bool


def find(
    model: Model, given: Sequence[str], candidates: Sequence[str], fixed: Sequence[str], degree: int, engine: Engine
) -> Generators | None:
    """Candidates, the first ones first, that together with what is given generate a field of the right degree.

    All of them are identifiable.  None where it does not come out, for want of time or of a generic point.
    """
    try:
        field = _Field(model, [*given, *candidates], fixed, engine)
        chosen = list(given)
        for text in candidates:
            if field.rank(chosen) == field.full:
                break
            if field.rank([*chosen, text]) > field.rank(chosen):
                chosen.append(text)
        if field.rank(chosen) < field.full:
            return Generators(tuple(chosen[len(given) :]), False)
        reached = field.degree(chosen)
        for text in [text for text in candidates if text not in chosen][:TRIALS]:
            if reached == degree:
                break
            if (smaller := field.degree([*chosen, text])) < reached:
                chosen, reached = [*chosen, text], smaller
        if reached < degree:
            return None  # something that is chosen cannot be identifiable
        for text in reversed(chosen[len(given) :]) if len(chosen) > field.full else ():
            rest = [other for other in chosen if other != text]
            if field.rank(rest) == field.full and field.degree(rest) == reached:
                chosen = rest
        return Generators(tuple(chosen[len(given) :]), reached == degree)
    except (OutOfBudget, Infinite, Unlucky, Failed, ModelError):
        return None


class _Field:
    """Fields that some functions of the unknowns generate, with a set of unknowns held fixed."""

    def __init__(self, model: Model, functions: Sequence[str], fixed: Sequence[str], engine: Engine) -> None:
        self.engine, self.fixed = engine, fixed
        taken = {*model.states, *model.parameters, *model.fixed}
        self.outputs = {text: fresh(f"g{i}", taken) for i, text in enumerate(dict.fromkeys(functions))}
        expressions = local.problem(model, list(self.outputs)).functions
        used = {name for expression in expressions.values() for name in names(expression)}
        # All unknowns as states without a rate: nothing but the functions is left of the model.
        self.model = Model(
            states=dict.fromkeys(model.unknowns, "0"),
            outputs={name: expressions[text] for text, name in self.outputs.items()},
            fixed={name: value for name, value in model.fixed.items() if name in used},
        )
        self.problem = local.problem(self.model)
        self.at = self.problem.at_random(PRIME, 0, 0)
        self.places = {text: i for i, text in enumerate(self.outputs)}
        self.full = len(model.unknowns) - len(fixed)

    def rank(self, functions: Sequence[str]) -> int:
        """How many of the functions are independent."""
        if not functions:
            return 0
        rows = [int(x) for text in functions for x in self.at.jets[self.places[text], 0, 1:]]
        return nmod_mat(len(functions), len(rows) // len(functions), rows, PRIME).rank()

    def degree(self, functions: Sequence[str]) -> int:
        """How many points share the values of the functions and of what is fixed."""
        rows = [(self.places[text], 0) for text in functions]
        system = prolong(self.problem, self.at, rows, budget=self.engine.budget)
        held = [self.model.unknowns.index(name) for name in self.fixed]
        return solve(system, held, self.engine).algebra.dimension


def of_outputs(model: Model) -> list[str]:
    """Outputs and their derivatives at the initial time, as far as they are short: identifiable by themselves.

    Inputs are generic, so that every coefficient of a power of an input is identifiable too; the one without is taken.
    """
    rates = {name: _without_inputs(rate, model) for name, rate in model.states.items()}
    known = {*model.states, *model.parameters, *model.fixed}
    found: list[str] = []
    for output in model.outputs.values():
        expression: Expression | None = _without_inputs(output, model)
        for _ in range(DERIVATIVES):
            if expression is None or len(str(expression)) > LONGEST or not set(names(expression)) <= known:
                break
            found.append(str(expression))
            expression = _derivative(expression, rates)
    unknown = set(model.unknowns)
    return [text for text in found if len(unknown & set(names(local.problem(model, [text]).functions[text]))) > 1]


def _without_inputs(expression: Expression, model: Model) -> Expression:
    """The expression without terms that have an input as a factor."""
    if not isinstance(expression, Sum):
        return expression

    def driven(term: Expression) -> bool:
        factors = term.factors if isinstance(term, Product) else ((1, term),)
        return any(power > 0 and isinstance(f, Symbol) and f.name in model.inputs for power, f in factors)

    return Sum(tuple((sign, term) for sign, term in expression.terms if not driven(term)))


def _derivative(expression: Expression, rates: Mapping[str, Expression]) -> Expression | None:
    """The time derivative of a sum of products of states and parameters; None where it is something else, or zero."""
    try:
        terms = _moving_terms(expression, rates)
    except _NoSumOfProducts:
        return None
    flat = [(sign * s, t) for sign, term in terms for s, t in (term.terms if isinstance(term, Sum) else ((1, term),))]
    return Sum(tuple(flat)) if flat else None


class _NoSumOfProducts(Exception):
    pass


def _moving_terms(expression: Expression, rates: Mapping[str, Expression]) -> list[tuple[int, Expression]]:
    """The derivative as signed terms, by the rules for sums and products."""
    match expression:
        case Symbol(name) if name in rates:
            return [(1, rates[name])]
        case Sum(terms):
            return [(sign * s, t) for sign, term in terms for s, t in _moving_terms(term, rates)]
        case Product(factors):
            found: list[tuple[int, Expression]] = []
            for i, (power, factor) in enumerate(factors):
                for sign, rate in _moving_terms(factor, rates):
                    if power < 0:
                        raise _NoSumOfProducts
                    found.append((sign, Product((*factors[:i], (1, rate), *factors[i + 1 :]))))
            return found
    if set(names(expression)) & set(rates):
        raise _NoSumOfProducts
    return []
