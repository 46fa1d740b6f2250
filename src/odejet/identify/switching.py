"""Switching: what ranks tell of models whose equations switch between modes.

Inside a mode the equations are analytic, and what begins near a solution that begins there begins in the same mode.  So
a quantity that is locally identifiable in every mode has no other value nearby, whatever the mode at the start is.  It
may have others far away, in other modes too (the output abs(x) tells x but for its sign), so nothing is said to be
global but what is measured in all modes.

Lost is what is lost although more is measured than can be: the outputs of all modes and all switching functions, while
the modes are mixed as one likes,

    x' = f_1 + u_1 (f_2 - f_1) + u_2 (f_3 - f_1) + ...      with generic inputs u_1, u_2, ...

The derivatives of these outputs hold all that iterated derivatives along the fields of the modes tell, and no sequence
of modes, nor a solution that slides between two, tells more (Sussmann 1973 for the orbits of families of fields).

Where some modes tell a quantity and others do not, it depends on the modes that are visited, and the reason names them.
Modes that the time alone chooses, from zero on, are all visited, and each is known: a parameter that one of them tells
is told, and has one value if it has one there.  Where initial states are known this goes for the first mode alone,
since the states at the beginning of a later one are neither known nor generic.  Known values and bounds may choose the
first mode too.

Where all switching functions are of the time, of inputs and of states that are outputs themselves, the outputs show
the mode at the start, and what has one value in each of the modes has one.

A mode may have equations that can be evaluated nowhere modulo a prime, such as a power of zero with an unknown
exponent.  Of such a mode nothing is known, and of a mixture with it nothing is said to be lost; so it is with roots of
x in one mode and of -x in another, since no point modulo these primes has both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from odejet.budget import Budget
from odejet.errors import ExpressionError
from odejet.identify import local
from odejet.model import Model
from odejet.model.derivatives import derivative
from odejet.model.expressions import (
    TIME,
    Expression,
    Product,
    Sum,
    Symbol,
    constant,
    evaluate,
    fresh,
    names,
    switches,
)
from odejet.model.folding import folded
from odejet.model.modes import Branches, difference
from odejet.model.transform import rewritten

MOST = 16
"""Modes that are looked at."""

TABLES = "states", "outputs", "inputs"

Ranges = Mapping[str, tuple[float, float]]

TIMES = (0.0, *(10 ** (k / 100) for k in range(-600, 601)))
"""Times at which switches by the time alone are looked at; an interval between two of them is overlooked."""


class TooMany(Exception):
    """There are more modes than are looked at, or infinitely many."""


@dataclass(frozen=True)
class Mode:
    """A model between its switches, and the signs of the functions that choose it."""

    model: Model
    signs: Mapping[Expression, int]

    @property
    def label(self) -> str:
        return " and ".join(f"{g} {'>' if sign > 0 else '<'} 0" for g, sign in self.signs.items())


@dataclass(frozen=True)
class Ranks:
    """Of every unknown and function: whether it is lost, and the modes that tell it up to other values nearby.

    `local` is what has no other values nearby, and `measured` what is an output in all modes.  `visited` are modes that
    every solution visits, by what is known of the time and of the start; the first is that of the start.  `shown` is
    whether the outputs show the mode at the start.
    """

    modes: tuple[Mode, ...]
    lost: frozenset[str]
    telling: Mapping[str, tuple[Mode, ...]]
    local: frozenset[str]
    measured: frozenset[str]
    visited: tuple[Mode, ...] = ()
    shown: bool = False


def analyse(
    question: local.Problem, seed: int, budget: Budget, beside: Sequence[Expression] = (), start: Ranges | None = None
) -> Ranks:
    """The ranks of all modes and of their mixture; `TooMany` and `OutOfBudget` where these do not come out.

    `beside` is what outputs may tell too, depending on the mode; `start` has the ranges of what is known at the start,
    which may choose the first mode.
    """
    model, asked = question.model, question.functions
    found = tuple(modes(model))
    if not found:
        raise local.NoPoint(f"{model.name}: there is no mode in which the equations have real values")
    everything = (*model.unknowns, *asked)
    told = [_told(mode.model, asked, question.inputs, seed, budget) or frozenset() for mode in found]
    whole = _told(mixture(found, beside), asked, "generic", seed, budget)
    meaning = {name: asked.get(name, Symbol(name)) for name in everything}
    measured = [set(mode.model.outputs.values()) for mode in found]
    windows = _windows(model, found, start or {})
    anywhere = [range(len(found))]

    def is_local(name: str) -> bool:
        # Of states, values at the start are meant, which is in the first window alone.
        own = windows[:1] if set(names(meaning[name])) & set(model.states) else windows
        return any(all(name in told[i] for i in window) for window in (*own, *anywhere))

    is_certain = all(len(window) == 1 for window in windows)
    seen = {state for state in model.states if all(Symbol(state) in own for own in measured)}
    choosing = {name for mode in found for g in mode.signs for name in names(g)}

    return Ranks(
        found,
        frozenset() if whole is None else frozenset(name for name in everything if name not in whole),
        {name: tuple(mode for mode, own in zip(found, told, strict=True) if name in own) for name in everything},
        frozenset(filter(is_local, everything)),
        frozenset(name for name in everything if all(meaning[name] in own for own in measured)),
        tuple(found[i] for (i,) in windows) if is_certain else (),
        choosing <= seen | {TIME} | set(model.fixed) | set(model.inputs),
    )


def _windows(model: Model, found: Sequence[Mode], start: Ranges) -> list[list[int]]:
    """The modes, by their places, that are possible at the start and in each interval between switches by the time."""
    functions = dict.fromkeys(g for mode in found for g in mode.signs)
    clocks = [g for g in functions if set(names(g)) <= {TIME, *model.fixed}]
    windows = []
    for t in TIMES[:1] if model.initial or not clocks else TIMES:
        now = {g: _sign(g, {**ranges(model.fixed), TIME: (t, t)}) for g in clocks}
        if t == 0:
            now |= {g: _sign(g, start) for g in functions if g not in now and set(names(g)) <= start.keys()}
        windows.append(
            [i for i, mode in enumerate(found) if all(now.get(g) in (s, None) for g, s in mode.signs.items())]
        )
    return [list(window) for window in dict.fromkeys(map(tuple, windows)) if window]


def ranges(values: Mapping[str, Fraction]) -> Ranges:
    return {name: (float(value), float(value)) for name, value in values.items()}


def start(model: Model) -> Ranges:
    """The range of everything of which something is known at the start, at time zero."""
    known = {**model.bounds, **ranges(model.fixed), TIME: (0.0, 0.0)}
    for state, expression in model.initial.items():
        known.pop(state, None)
        if set(names(expression)) <= {*model.fixed, TIME}:
            value = _value(expression, {name: low for name, (low, _) in known.items()})
            known[state] = value, value
    return known


def _value(g: Expression, at: Mapping[str, float]) -> float:
    try:
        return float(evaluate(g, at, math))
    except (ArithmeticError, ValueError):
        return math.nan


def _sign(g: Expression, at: Ranges) -> int | None:
    """The sign of a function inside ranges, of which ends may be infinite; None where it is not the same everywhere."""
    middle = {name: min(max(0.0, at[name][0]), at[name][1]) for name in names(g)}
    low = high = _value(g, middle)
    for name, value in middle.items():
        if at[name][0] < at[name][1]:
            slope = constant(derivative(g, name))
            if slope is None:
                return None
            ends = [float(slope) * (end - value) if slope and end != value else 0.0 for end in at[name]]
            low, high = low + min(ends), high + max(ends)
    return 1 if low >= 0 and high > 0 else -1 if high <= 0 and low < 0 else None


def _told(
    model: Model, asked: Mapping[str, Expression], inputs: local.Inputs, seed: int, budget: Budget
) -> frozenset[str] | None:
    """What is locally identifiable, not what does not occur; None where the model can be evaluated nowhere."""
    occurring = {*model.states, *model.parameters, *model.fixed}
    functions = [text for text, expression in asked.items() if set(names(expression)) <= occurring]
    try:
        found = local.analyse(local.problem(model, functions, inputs), seed, budget=budget)
    except local.NothingTold:
        return frozenset()
    except local.NoPoint:
        return None
    return frozenset(name for name, finite in found.identifiable.items() if finite)


def modes(model: Model) -> Iterator[Mode]:
    """All modes that the signs of switching functions make, whether solutions reach them or not."""
    if any(switches(value) for value in model.initial.values()):
        raise TooMany
    pending: list[dict[Expression, int]] = [{}]
    for count in range(MOST + 1):
        if not pending:
            return
        if count == MOST:
            raise TooMany
        given = pending.pop()
        branches = Branches(lambda g, given=given: given.get(g, 1), _whole)  # type: ignore[misc]
        tables: dict[str, Any] = {
            table: {name: v if v is None else folded(branches.taken(v)) for name, v in getattr(model, table).items()}
            for table in TABLES
        }
        signs = dict(branches.asked)
        new = [g for g in signs if g not in given]
        # Each function that is asked for the first time may have the other sign, given those asked before it.
        for i, g in enumerate(new):
            pending.append({**given, **dict.fromkeys(new[:i], 1), g: -1})
        try:
            yield Mode(rewritten(model, **tables, ordered=False), signs)
        except ExpressionError:
            continue  # without a real value, such as a logarithm of zero: no solution is there


def _whole(_: Expression) -> int:
    raise TooMany


def mixture(found: Sequence[Mode], beside: Sequence[Expression] = ()) -> Model:
    """The modes mixed by inputs, with the outputs of all of them and the switching functions as outputs."""
    first = found[0].model
    fixed = {name: value for mode in found for name, value in mode.model.fixed.items()}
    used = {name for mode in found for name in (*mode.model.parameters, *fixed)} | {n for g in beside for n in names(g)}
    taken = {*first.states, *first.inputs, *first.outputs, *used}
    rates = {name: [(1, rate)] for name, rate in first.states.items()}
    outputs = dict(first.outputs)
    inputs: dict[str, Expression | None] = dict(first.inputs)

    def measure(expression: Expression) -> None:
        if expression not in outputs.values() and set(names(expression)) - {TIME, *fixed, *first.inputs}:
            name = fresh(f"measured_{len(outputs)}", taken)
            taken.add(name)
            outputs[name] = expression

    for k, mode in enumerate(found):
        share = fresh(f"share_{k}", taken)
        for name, rate in mode.model.states.items():
            if rate != first.states[name]:
                inputs[share] = None
                rates[name].append((1, Product(((1, difference(rate, first.states[name])), (1, Symbol(share))))))
        for expression in (*mode.model.outputs.values(), *mode.signs, *beside):
            measure(expression)
    tables = {"states": {name: Sum(tuple(terms)) for name, terms in rates.items()}, "outputs": outputs}
    return rewritten(first, **tables, inputs=inputs, fixed=fixed, ordered=False)
