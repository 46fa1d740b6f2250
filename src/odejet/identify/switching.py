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
since the states at the beginning of a later one are neither known nor generic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from odejet.budget import Budget
from odejet.errors import ModelError
from odejet.identify import local
from odejet.model import Model
from odejet.model.expressions import TIME, Expression, Product, Sum, Symbol, evaluate, fresh, names, switches
from odejet.model.modes import Branches, difference

MOST = 16
"""Modes that are looked at."""

TABLES = "states", "outputs", "inputs"

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

    `local` is what has no other values nearby, and `measured` what is an output in all modes.  `timed` are the modes of
    the intervals between switches, where nothing but the time chooses between them.
    """

    modes: tuple[Mode, ...]
    lost: frozenset[str]
    telling: Mapping[str, tuple[Mode, ...]]
    local: frozenset[str]
    measured: frozenset[str]
    timed: tuple[Mode, ...] = ()


def analyse(question: local.Problem, seed: int, budget: Budget) -> Ranks:
    """The ranks of all modes and of their mixture; `TooMany` and `OutOfBudget` where these do not come out."""
    model, asked = question.model, question.functions
    found = tuple(modes(model))
    everything = (*model.unknowns, *asked)
    told = [_told(mode.model, asked, question.inputs, seed, budget) for mode in found]
    whole = _told(mixture(found), asked, "generic", seed, budget)
    meaning = {name: asked.get(name, Symbol(name)) for name in everything}
    measured = [set(mode.model.outputs.values()) for mode in found]
    windows = [*_windows(model, found), range(len(found))]

    def is_local(name: str) -> bool:
        # Of states, values at the start are meant, which need not be in a given window.
        own = windows[-1:] if set(names(meaning[name])) & set(model.states) else windows
        return any(all(name in told[i] for i in window) for window in own)

    return Ranks(
        found,
        frozenset(name for name in everything if name not in whole),
        {name: tuple(mode for mode, own in zip(found, told, strict=True) if name in own) for name in everything},
        frozenset(filter(is_local, everything)),
        frozenset(name for name in everything if all(meaning[name] in own for own in measured)),
        tuple(found[i] for (i,) in windows[:-1])
        if _clocks(model, found) == {g for m in found for g in m.signs}
        else (),
    )


def _clocks(model: Model, found: Sequence[Mode]) -> set[Expression]:
    """The switching functions of the time alone."""
    return {g for mode in found for g in mode.signs if set(names(g)) <= {TIME, *model.fixed}}


def _windows(model: Model, found: Sequence[Mode]) -> list[list[int]]:
    """The modes, by their places, that are possible in each interval between switches by the time alone."""
    clocks = list(_clocks(model, found))
    times = TIMES[:1] if model.initial else TIMES if clocks else ()
    windows = []
    for signs in dict.fromkeys(tuple(_sign(g, t, model.fixed) for g in clocks) for t in times):
        now = dict(zip(clocks, signs, strict=True))
        windows.append([i for i, mode in enumerate(found) if all(now.get(g, s) == s for g, s in mode.signs.items())])
    return [window for window in windows if window]


def _sign(g: Expression, t: float, fixed: Mapping[str, Fraction]) -> int:
    try:
        value = float(evaluate(g, {TIME: t, **{name: float(value) for name, value in fixed.items()}}, math))
    except (ArithmeticError, ValueError):
        return 0
    return 1 if value >= 0 else -1


def _told(
    model: Model, asked: Mapping[str, Expression], inputs: local.Inputs, seed: int, budget: Budget
) -> frozenset[str]:
    """What is locally identifiable; not what does not occur."""
    occurring = {*model.states, *model.parameters, *model.fixed}
    functions = [text for text, expression in asked.items() if set(names(expression)) <= occurring]
    try:
        found = local.analyse(local.problem(model, functions, inputs), seed, budget=budget)
    except ModelError:
        return frozenset()  # no output depends on anything unknown
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
            table: {name: v if v is None else branches.taken(v) for name, v in getattr(model, table).items()}
            for table in TABLES
        }
        signs = dict(branches.asked)
        new = [g for g in signs if g not in given]
        # Each function that is asked for the first time may have the other sign, given those asked before it.
        for i, g in enumerate(new):
            pending.append({**given, **dict.fromkeys(new[:i], 1), g: -1})
        yield Mode(_analytic(model, tables), signs)


def _whole(_: Expression) -> int:
    raise TooMany


def mixture(found: Sequence[Mode]) -> Model:
    """The modes mixed by inputs, with the outputs of all of them and the switching functions as outputs."""
    first = found[0].model
    taken = {*first.states, *first.parameters, *first.fixed, *first.inputs, *first.outputs}
    rates = {name: [(1, rate)] for name, rate in first.states.items()}
    outputs = dict(first.outputs)
    inputs: dict[str, Expression | None] = dict(first.inputs)

    def measure(expression: Expression) -> None:
        if expression not in outputs.values() and set(names(expression)) & {*first.states, *first.parameters}:
            name = fresh(f"measured_{len(outputs)}", taken)
            taken.add(name)
            outputs[name] = expression

    for k, mode in enumerate(found):
        share = fresh(f"share_{k}", taken)
        for name, rate in mode.model.states.items():
            if rate != first.states[name]:
                inputs[share] = None
                rates[name].append((1, Product(((1, difference(rate, first.states[name])), (1, Symbol(share))))))
        for expression in (*mode.model.outputs.values(), *mode.signs):
            measure(expression)
    tables = {"states": {name: Sum(tuple(terms)) for name, terms in rates.items()}, "outputs": outputs}
    return _analytic(first, {**tables, "inputs": inputs})


def _analytic(model: Model, tables: Mapping[str, Any]) -> Model:
    """The model with other equations; what does not occur in them is no parameter of it."""
    expressions = [
        value for table in (*tables.values(), model.initial) for value in table.values() if value is not None
    ]
    used = {name for expression in expressions for name in names(expression)}
    fixed = {name: value for name, value in model.fixed.items() if name in used}
    return Model(**tables, initial=model.initial, fixed=fixed, name=model.name)
