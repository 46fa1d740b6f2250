"""Generators: identifiable combinations from which everything else that is identifiable can be computed.

Let F be the field of all identifiable functions of the unknowns, L that of all functions, and G the one that some
functions of F generate.  With a least set T of lost unknowns held fixed, L has a finite degree over F(T), the number of
values that all unknowns together have; `globally` and `elimination` count it.  The degree of L over G(T) is the number
of solutions of the equations that give the generators their values, a small system in the unknowns alone.  G is in F,
so both are the same exactly if the degrees are: each generator is identifiable, and nothing identifiable is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.errors import ModelError
from odejet.identify import lie, local
from odejet.identify.globally import PRIME, Engine, solve
from odejet.identify.msolve import Failed
from odejet.identify.prolong import prolong
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Unlucky
from odejet.model import Model
from odejet.model.expressions import constant, fresh, names

TRIALS = 20
"""Further functions that are tried where those of full rank leave several solutions."""

QUICK_SHARE = 0.1
"""The part of what is left that the degree of one set of functions may take, where another set is at hand."""


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
        reached = field.quickly(chosen)
        if reached is None or reached > degree:
            chosen += [text for text in candidates if text not in chosen][:TRIALS]
            reached = field.degree(chosen)
        if reached < degree:
            return None  # something that is chosen cannot be identifiable
        for text in sorted(chosen[len(given) :], key=candidates.index, reverse=True):
            rest = [other for other in chosen if other != text]
            if field.rank(rest) == field.full and field.quickly(rest) == reached:
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
            fixed={name: value for name, value in {**model.fixed, **known_states(model)}.items() if name in used},
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

    def degree(self, functions: Sequence[str], engine: Engine | None = None) -> int:
        """How many points share the values of the functions and of what is fixed."""
        rows = [(self.places[text], 0) for text in functions]
        engine = engine or self.engine
        system = prolong(self.problem, self.at, rows, budget=engine.budget)
        held = [self.model.unknowns.index(name) for name in self.fixed]
        return solve(system, held, engine).algebra.dimension

    def quickly(self, functions: Sequence[str]) -> int | None:
        """Return the degree over these functions, or None where it takes long: fewer are often harder to solve for."""
        engine = Engine(self.engine.program, self.engine.budget.share(QUICK_SHARE))
        try:
            return self.degree(functions, engine)
        except OutOfBudget:
            self.engine.budget.check()
            return None


def known_states(model: Model) -> dict[str, Fraction]:
    """Initial states that are numbers."""
    values = {name: constant(value) for name, value in model.initial.items()}
    return {name: value for name, value in values.items() if value is not None}


def of_outputs(
    problem: local.Problem,
    known: Sequence[str],
    limits: tuple[int, int] = lie.SHORT,
    budget: Budget | None = None,
) -> list[str]:
    """Outputs, what is known of states, and derivatives of both, as far as they are short: identifiable all.

    From known initial states, values at the initial time are known that are not known at others, so that of outputs
    alone are there derivatives.
    """
    model = problem.model
    functions = list(model.outputs.values())
    if not model.initial:
        asked = local.problem(model, [text for text in known if text not in model.parameters]).functions
        functions += [f for f in asked.values() if set(names(f)) & set(model.states)]
    plain = [*(text for text in known if text in model.unknowns), *known_states(model)]
    found = lie.derivatives(model, functions, plain, problem.inputs == "generic", limits, budget)
    open_ = set(model.initial) - set(known_states(model))
    return [text for text in found if not open_ & set(names(local.problem(model, [text]).functions[text]))]
