"""Local: which quantities the outputs determine up to finitely many values, by exact ranks modulo a prime.

The jet of the outputs at one time is a map Phi of the unknowns z: the states at that time and the parameters.  Let J be
its Jacobian at a generic point, one row for each derivative of each output.  A function q of the unknowns is locally
identifiable exactly when its gradient lies in the row space of J (Hermann and Krener 1977; Sedoglavic 2002), that is,
when it is constant along every direction in the kernel of J.

*How many orders are enough.* Let r_j be the rank of the rows up to order j. The total time derivative maps rows of
order j to rows of order j + 1, and it acts on the row space over the field of functions as a derivation; so when r_j
= r_(j+1), the space is closed under it and r_j is final. Ranks therefore grow by at least one per order until they
stop, and order n - 1 is enough for n unknowns; most models stop much earlier, so orders are added until one of them
adds nothing. This needs a generic point. Where initial states are known the point is special, and ranks may pause and
grow again (x' = k, y = x**3, x(0) = 0 tells nothing before order 3). There orders are added until the rank is full, or
has not grown for as many orders as it took to reach it and for twice the number of states, or up to 2 n + 2, n
counting all states and parameters: a choice, not a proof.

*How sure this is.* At a random point modulo a prime p, a minor that is not identically zero vanishes with probability
at most D / p, where D is its degree (Schwartz 1980, Zippel 1979); for the r-by-r minors of models with r unknowns and
right-hand sides of degree d, D is at most about 2 d r^2. For r = 50, d = 10 and p near 2^61 this is 2e-14 for one
minor; the ranks of several independent primes and points must fail together to mislead.

*Several experiments* have their parameters in common and states and inputs of their own.  A further one with Jacobian
[X | P], X by its states and P by the parameters, tells of the parameters the rows Z P with Z X = 0.  If these add
nothing to what the experiments before it tell, no other generic experiment does.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Literal

import numpy as np
from flint import nmod_mat

from odejet.budget import Budget, OutOfBudget
from odejet.errors import ExpressionError, ModelError
from odejet.jets import modular
from odejet.model import Model, algebraic
from odejet.model.expressions import TIME, ZERO, Expression
from odejet.model.grammar import parse
from odejet.model.tape import Column, Tape

ATTEMPTS = 100
"""Points of another experiment that are tried until the model can be evaluated."""

POINTS = 2
"""How many random points, each with a prime of its own, must agree."""

STEP = 8.0
"""Operations, in nanoseconds, of one product of residues with its tangent in a jet."""

ENTRY = 4.0
"""Operations, in nanoseconds, for one entry of a matrix that is reduced by one row; making it costs a hundred each."""

Inputs = Literal["generic", "actual"]


class NoPoint(ModelError):
    """The model can be evaluated nowhere, so that ranks tell nothing."""


class NothingTold(ModelError):
    """No output depends on anything unknown."""


@dataclass(frozen=True)
class Problem:
    """A model and the functions of its unknowns that are asked for, as one tape for exact arithmetic."""

    model: Model
    functions: Mapping[str, Expression]
    inputs: Inputs = "generic"
    experiments: int = 1
    unlimited: bool = False  # any number of experiments counts; ranks are those of so many, and of more

    @cached_property
    def tape(self) -> Tape:
        """The tape of the model, with the functions as further outputs after its own."""
        extra = {f"{_unused(self.model)}{i}": f for i, f in enumerate(self.functions.values())}
        model = self.model.replace(outputs={**self.model.outputs, **extra}) if extra else self.model
        return algebraic.build(model, free_inputs=self.inputs == "generic")

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The position of each unknown among the states and then the parameters."""
        everything = (*self.model.states, *self.model.parameters)
        return tuple(everything.index(name) for name in self.model.unknowns)

    @property
    def has_functions_of_parameters(self) -> bool:
        return any(int(row[Column.OUT]) < self.tape.statics for row in self.tape.quadratures)

    @cached_property
    def still(self) -> tuple[int, ...]:
        """States without a rate, which count as parameters; not so if every experiment has its own."""
        if self.experiments > 1 or self.unlimited:
            return ()
        return tuple(i for i, register in enumerate(self.tape.states) if register < self.tape.statics)

    @property
    def order(self) -> int:
        """Derivatives up to this order tell all that any do."""
        if self.model.initial:
            return 2 * (len(self.model.states) + len(self.model.parameters)) + 2
        return max(len(self.model.unknowns) - 1, 0)

    def work(self, order: int) -> float:
        """What a prolonged system at one point costs, in the units of a budget."""
        tape, lanes = self.tape, 1 + len(self.model.states) + len(self.model.parameters)
        series = lanes * (order + 1) * (tape.products * (order + 1) / 2 + len(tape.code) + len(tape.terms))
        rows = (order + 1) * len(self.model.outputs)
        return self.experiments * (STEP * series + ENTRY * rows * lanes * (100 + min(rows, lanes)))

    def memory(self, order: int) -> float:
        """The bytes that it takes: registers, and residues as Python integers."""
        lanes = 1 + len(self.model.states) + len(self.model.parameters)
        kept = len(self.model.states) + len(self.model.outputs) + len(self.functions)
        return lanes * (order + 2) * (8.0 * self.tape.registers + 100.0 * kept)

    def at_random(self, prime: int, seed: int, order: int | None = None) -> Jacobian:
        """The prolonged system at a random point modulo a prime."""
        field = modular.Field(prime)
        order = self.order if order is None else order
        generator = random.Random(f"{seed}/{prime}")
        known = bool(self.model.initial)
        point = modular.random_point(self.tape, field, generator, order + 1, known_initial=known)
        first = self.at(field, point, order)
        others = [self._elsewhere(field, point, generator, order).of_parameters for _ in range(1, self.experiments)]
        return replace(first, others=tuple(row for rows in others for row in rows))

    def _elsewhere(self, field: modular.Field, point: modular.Point, generator: random.Random, order: int) -> Jacobian:
        """The prolonged system of another experiment with the same parameters."""
        known = bool(self.model.initial)
        for _ in range(ATTEMPTS):
            states = [generator.randrange(1, field.prime) for _ in self.tape.states]
            inputs = [[generator.randrange(field.prime) for _ in range(order + 2)] for _ in self.tape.inputs]
            told = states, point.parameters, point.time, inputs, generator
            try:
                return self.at(field, modular.point(self.tape, field, *told, known_initial=known), order)
            except modular.Unlucky:
                continue
        raise modular.Unlucky("no other point was found at which the model can be evaluated")

    def at(self, field: modular.Field, point: modular.Point, order: int) -> Jacobian:
        """The prolonged system at a given point."""
        jets = modular.jets(self.tape, field, point, order, known_initial=bool(self.model.initial))
        lanes = [0, *(1 + column for column in self.columns)]
        states = sum(column < len(self.model.states) for column in self.columns)
        return Jacobian(field.prime, point, len(self.model.outputs), states, jets.outputs[:, :, lanes])


def problem(
    model: Model, functions: Sequence[object] = (), inputs: Inputs = "generic", experiments: int = 1
) -> Problem:
    """The question whether a model is identifiable, checked; functions are expressions in parameters and states."""
    if not model.outputs:
        raise ModelError(f"{model.name}: the model has no outputs, so nothing can be known; add a table [outputs]")
    if inputs not in ("generic", "actual"):
        raise ModelError(f"inputs must be 'generic' or 'actual', not {inputs!r}")
    if not model.unknowns:
        raise NothingTold(f"{model.name}: every parameter and initial state is known, so nothing is left to identify")
    if isinstance(functions, str):
        raise ModelError("functions must be a list of expressions, such as ['k1*k2']")
    known = (*model.states, *model.parameters, *model.fixed)
    refused = {name: f"'{name}' is an input; a function is of parameters and states" for name in model.inputs}
    refused |= {name: f"'{name}' is an output; write its expression instead" for name in model.outputs}
    refused[TIME] = "'t' is the time; a function is of parameters and states"
    asked: dict[str, Expression] = {}
    for text in functions:
        try:
            asked[str(text).strip()] = parse(str(text), known, refused)
        except ExpressionError as error:
            raise error.at("functions") from None
    question = Problem(model, asked, inputs, experiments)
    return question if _can_be_evaluated(question) else replace(question, model=_begun(model))


def _can_be_evaluated(question: Problem) -> bool:
    """Whether there are points at which a model with known initial values has jets."""
    model = question.model
    if not model.is_smooth or not any(value == ZERO for value in model.initial.values()):
        return True  # where equations switch, every mode is asked by itself
    field = modular.Field(modular.PRIMES[0])
    try:
        modular.random_point(question.tape, field, random.Random(0), 1, known_initial=True)
    except modular.Unlucky:
        return False
    return True


def _begun(model: Model) -> Model:
    """Return a model whose states that start at zero have left it, to somewhere that is known: a power or a root of
    zero has no jet, and what follows from the first moment follows from any."""
    initial = dict(model.to_dict()["initial"])
    zeros = [name for name, value in model.initial.items() if value == ZERO]
    return model.replace(initial=initial | {name: Fraction(7 + i, 11 + 2 * i) for i, name in enumerate(zeros)})


def _unused(model: Model) -> str:
    """The beginning of names that the model does not use."""
    taken = (*model.states, *model.parameters, *model.fixed, *model.inputs, *model.outputs)
    prefix = "function_"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


@dataclass(frozen=True)
class Jacobian:
    """Jets of outputs and functions with their gradients at one point: (quantities, orders, value and unknowns)."""

    prime: int
    point: modular.Point
    outputs: int
    states: int  # unknown ones, which come before the parameters
    jets: np.ndarray
    others: tuple[tuple[int, ...], ...] = ()  # what other experiments tell of the parameters, as rows

    @cached_property
    def rows(self) -> tuple[tuple[int, int], ...]:
        """(output, order) of every row, by order."""
        return tuple((i, j) for j in range(self.jets.shape[1]) for i in range(self.outputs))

    @cached_property
    def matrix(self) -> nmod_mat:
        return self.submatrix(self.rows)

    def submatrix(self, rows: Sequence[tuple[int, int]]) -> nmod_mat:
        entries = [int(x) for i, j in rows for x in self.jets[i, j, 1:]]
        return nmod_mat(len(rows), self.jets.shape[2] - 1, entries, self.prime)

    @cached_property
    def independent(self) -> tuple[tuple[int, int], ...]:
        """Each row that is independent of all before it; in order of derivatives, then of outputs."""
        echelon, rank = self.matrix.transpose().rref()
        return tuple(self.rows[i] for i in pivot_columns(echelon, rank))

    @cached_property
    def reduced(self) -> tuple[nmod_mat, int]:
        if not self.others:
            return self.matrix.rref()
        columns = self.jets.shape[2] - 1
        entries = [int(x) for x in self.matrix.entries()] + [x for row in self.others for x in row]
        return nmod_mat(len(entries) // columns, columns, entries, self.prime).rref()

    @property
    def of_parameters(self) -> list[tuple[int, ...]]:
        """What the outputs tell of the parameters whatever the states are, as rows of all unknowns."""
        # In the echelon form by states first, these are the rows without states.
        echelon, rank = self.reduced
        rows = (tuple(int(x) for x in row) for row in echelon.tolist()[:rank])
        return [row for row in rows if not any(row[: self.states])]

    @property
    def rank(self) -> int:
        return self.reduced[1]

    @cached_property
    def kernel(self) -> np.ndarray:
        """Directions along which no output changes, one per row."""
        return kernel(*self.reduced)

    @property
    def gradients(self) -> np.ndarray:
        """The gradient of every function, one per row."""
        return self.jets[self.outputs :, 0, 1:]

    def constant(self, gradients: np.ndarray) -> list[bool]:
        """Which functions, by their gradients, keep their value along the kernel."""
        if not len(self.kernel):
            return [True] * len(gradients)
        return [not any((self.kernel @ gradient) % self.prime) for gradient in gradients]


def kernel(echelon: nmod_mat, rank: int) -> np.ndarray:
    """A basis of the kernel of a matrix in reduced echelon form, one vector per row, of Python integers."""
    prime, columns = echelon.modulus(), echelon.ncols()
    pivots = pivot_columns(echelon, rank)
    free = [column for column in range(columns) if column not in pivots]
    basis = np.zeros((len(free), columns), dtype=object)
    for k, column in enumerate(free):
        basis[k, column] = 1
        for row, pivot in enumerate(pivots):
            basis[k, pivot] = -int(echelon[row, column]) % prime
    return basis


def pivot_columns(echelon: nmod_mat, rank: int) -> list[int]:
    """The columns of the leading ones of a matrix in reduced echelon form."""
    pivots: list[int] = []
    column = 0
    for row in range(rank):
        while int(echelon[row, column]) == 0:
            column += 1
        pivots.append(column)
        column += 1
    return pivots


def small_fraction(residue: int, prime: int) -> Fraction | None:
    """The fraction of small numerator and denominator with this residue (Wang 1981)."""
    bound = min(isqrt(prime // 2), 10**6)
    a, b, s, t = prime, residue, 0, 1
    while b > bound:
        quotient = a // b
        a, b, s, t = b, a - quotient * b, t, s - quotient * t
    return Fraction(b, t) if t and abs(t) <= bound else None


@dataclass(frozen=True)
class Local:
    """What ranks tell: `identifiable` for every unknown and function, and the generic rank."""

    problem: Problem
    rank: int
    identifiable: Mapping[str, bool]
    points: tuple[Jacobian, ...]

    @property
    def missing(self) -> int:
        """How many directions of the unknowns leave the outputs unchanged."""
        return len(self.problem.model.unknowns) - self.rank

    @property
    def order(self) -> int:
        """Derivatives up to this order were looked at, and tell all that any do."""
        return self.points[0].jets.shape[1] - 1


def analyse(question: Problem, seed: int = 0, points: int = POINTS, budget: Budget | None = None) -> Local:
    """Ranks at several random points, each modulo its own prime; points of less than the largest rank are unlucky.

    `OutOfBudget` where the budget does not last.
    """
    budget = budget or Budget()
    first = _first(question, seed, budget)
    found, order = [first], first.jets.shape[1] - 1
    for prime in (*modular.PRIMES[:points], *modular.OF_SQUARES):
        if prime != first.prime and len(found) < points:
            _ask(question, order, budget)
            with suppress(modular.Unlucky):
                found.append(question.at_random(prime, seed, order))
    rank = max(point.rank for point in found)
    if rank == 0:
        reason = "no output depends on a parameter or an unknown state, so nothing can be identified"
        raise NothingTold(f"{question.model.name}: {reason}; if a dose or an event begins it all, add that")
    generic = tuple(point for point in found if point.rank == rank)
    unknowns = question.model.unknowns
    unit = np.eye(len(unknowns), dtype=int).astype(object)
    names = (*unknowns, *question.functions)
    tests = [point.constant(np.vstack([unit, point.gradients])) for point in generic]
    return Local(question, rank, {name: all(test[i] for test in tests) for i, name in enumerate(names)}, generic)


def saturated(question: Problem, seed: int, budget: Budget) -> Problem:
    """The question for as many experiments as it takes until a further one adds no rank."""
    first = _first(question, seed, budget)
    order, ranks = first.jets.shape[1] - 1, [0]
    for experiments in range(1, len(question.model.unknowns) + 2):
        several = replace(question, experiments=experiments)
        _ask(several, order, budget)
        ranks.append(several.at_random(first.prime, seed, order).rank)
        if ranks[-1] == ranks[-2]:
            break
    return replace(question, experiments=len(ranks) - 2, unlimited=True)


def _first(question: Problem, seed: int, budget: Budget) -> Jacobian:
    """The prolonged system modulo the first prime that has the roots of all numbers in it."""
    for prime in (modular.PRIMES[0], *modular.OF_SQUARES):
        with suppress(modular.Unlucky):
            return _grown(question, prime, seed, budget)
    raise NoPoint(
        f"{question.model.name}: no point was found where the model can be evaluated; is there a division by zero?"
    )


def _grown(question: Problem, prime: int, seed: int, budget: Budget) -> Jacobian:
    """The prolonged system to an order from which on nothing is added."""
    model = question.model
    unknowns, states = len(model.unknowns), len(model.states)
    order = min(question.order, -(-unknowns // len(model.outputs)) + 1)
    while True:
        _ask(question, order, budget)
        found = question.at_random(prime, seed, order)
        last = found.independent[-1][1] if found.independent else -1
        settled = last < order
        if model.initial:
            settled = order >= 2 * max(last, states) + 2
        if order >= question.order or len(found.independent) == unknowns or settled:
            return found
        order = min(question.order, order + max(2, order // 2))


def _ask(question: Problem, order: int, budget: Budget) -> None:
    """Count what a prolonged system costs; `OutOfBudget` if that is too much."""
    if not budget.fits(question.memory(order)):
        raise OutOfBudget("the derivatives that tell it would not fit into memory")
    work = question.work(order)
    if not budget.affords(work) or work > 1e9 * budget.seconds:
        raise OutOfBudget("the time is over")
    budget.check(work)
