"""Blocks: parts of a model that share parameters and nothing else, such as several experiments in one model.

What a few blocks determine is determined by all.  So shared parameters are looked for in one block, in two, in three;
once all of them are known, every block can be decided by itself with these as numbers, and blocks that differ in names
only are decided once.  The numbers of solutions multiply.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from odejet.budget import Budget
from odejet.identify.globally import Count
from odejet.identify.local import Local
from odejet.model import Model
from odejet.model.expressions import Expression, Symbol, names, substituted
from odejet.model.grammar import parse
from odejet.model.transform import renamed, rewritten

TOGETHER = (1, 2, 3)
"""How many blocks are asked together for shared parameters."""

Decide = Callable[[Model, Sequence[str]], Count | None]
"""The count of a model with functions that are asked for; None if it is not found."""


@dataclass(frozen=True)
class Block:
    """States that depend on each other, the outputs that see them, and the parameters of both."""

    states: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: frozenset[str]


def split(model: Model) -> list[Block]:
    """The blocks of a model in the order of their first states; outputs of parameters alone belong to the first."""
    owner = {state: state for state in model.states}

    def root(state: str) -> str:
        while owner[state] != state:
            state = owner[state]
        return state

    def join(mentioned: Iterable[str]) -> None:
        inside = [root(name) for name in mentioned if name in owner]
        for name in inside[1:]:
            owner[root(name)] = root(inside[0])

    for state, rate in model.states.items():
        join([state, *names(rate)])
    for expression in model.outputs.values():
        join(names(expression))
    groups: dict[str, list[str]] = {}
    for state in model.states:
        groups.setdefault(root(state), []).append(state)
    first = next(iter(groups))
    outputs: dict[str, list[str]] = {group: [] for group in groups}
    for output, expression in model.outputs.items():
        outputs[next((root(n) for n in names(expression) if n in owner), first)].append(output)
    return [_block(model, states, outputs[group]) for group, states in groups.items()]


def _block(model: Model, states: Sequence[str], outputs: Sequence[str]) -> Block:
    expressions = [model.states[s] for s in states] + [model.outputs[o] for o in outputs]
    expressions += [model.initial[s] for s in states if s in model.initial]
    mentioned = {name for expression in expressions for name in names(expression)}
    return Block(tuple(states), tuple(outputs), frozenset(mentioned & set(model.parameters)))


def count(ranks: Local, decide: Decide, budget: Budget) -> Count | None:
    """The count of a model by its blocks; None where this is no help, or where there is no time for it."""
    problem = ranks.problem
    blocks = [block for block in split(problem.model) if block.outputs]
    if len(blocks) < 2:
        return None
    times = [name for block in blocks for name in block.parameters]
    shared = {name for name in times if times.count(name) > 1}
    owners = _owners(problem.functions, blocks, shared)
    if owners is None or not all(ranks.identifiable[name] for name in shared):
        return None
    known = _shared(problem.model, blocks, shared, decide, budget)
    if known != shared:
        return None
    total = Count(1, dict.fromkeys(known, 1), True, 1)
    solved: dict[Any, Count | None] = {}
    for i, block in enumerate(blocks):
        if budget.over:
            return None
        asked = [text for text, own in owners.items() if own == i]
        found = _alike(_part(problem.model, [block], known), asked, decide, solved)
        if found is None:
            return None
        values, exact = {**total.values, **found.values}, total.exact and found.exact
        invariants = *total.invariants, *found.invariants
        total = Count(total.solutions * found.solutions, values, exact, total.fibre * found.fibre, invariants)
    return total


def _owners(functions: Mapping, blocks: Sequence[Block], shared: set[str]) -> dict[str, int] | None:
    """The block that each function is about; None if one is about several."""
    owners = {}
    for text, expression in functions.items():
        mentioned = set(names(expression)) - shared
        fitting = [i for i, block in enumerate(blocks) if mentioned <= {*block.states, *block.parameters}]
        if not fitting:
            return None
        owners[text] = fitting[0]
    return owners


def _shared(model: Model, blocks: Sequence[Block], shared: set[str], decide: Decide, budget: Budget) -> set[str]:
    """The shared parameters that a few blocks together determine."""
    known: set[str] = set()
    for size in TOGETHER:
        for name in sorted(shared):
            if name in known or budget.over:
                continue
            some = [block for block in blocks if name in block.parameters][:size]
            found = decide(_part(model, some, known), ()) if len(some) == size else None
            if found is not None:
                known |= {key for key, values in found.values.items() if values == 1 and key in shared}
    return known


def _part(model: Model, blocks: Sequence[Block], known: Iterable[str]) -> Model:
    """The model of some blocks, with some parameters fixed at numbers without pattern."""
    states = [state for block in blocks for state in block.states]
    tables = {
        "states": {s: model.states[s] for s in states},
        "outputs": {o: model.outputs[o] for block in blocks for o in block.outputs},
        "initial": {s: model.initial[s] for s in states if s in model.initial},
    }
    mentioned = {name for table in tables.values() for expression in table.values() for name in names(expression)}
    draw = random.Random(len(model.parameters))
    numbers = {name: Fraction(draw.randrange(10**5, 10**6), 10**5) for name in sorted(known) if name in mentioned}
    inputs = {name: value for name, value in model.inputs.items() if name in mentioned}
    return rewritten(model, **tables, inputs=inputs, fixed={**model.fixed, **numbers}, ordered=False)


def _alike(part: Model, asked: Sequence[str], decide: Decide, solved: dict[Any, Count | None]) -> Count | None:
    """The count of a part, looked up among parts that differ in names only."""
    if not part.unknowns:
        return Count(1, {}, True, 1)
    everything = [*part.states, *part.outputs, *part.parameters, *part.fixed]
    anonymous = {name: f"n{i}_" for i, name in enumerate(everything)}
    plain = renamed(part, anonymous)
    questions = {str(_in_words(text, anonymous)): text for text in asked}
    key = (plain.key, *questions)
    if key not in solved:
        solved[key] = decide(plain, list(questions))
    found = solved[key]
    if found is None:
        return None
    back = {new: old for old, new in anonymous.items()}
    values = {questions.get(name) or back[name]: number for name, number in found.values.items()}
    return replace(found, values=values, invariants=tuple(str(_in_words(text, back)) for text in found.invariants))


def _in_words(text: str, new: Mapping[str, str]) -> Expression:
    """An expression under other names."""
    return substituted(parse(text), {name: Symbol(other) for name, other in new.items()})
