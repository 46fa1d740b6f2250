"""Periods: equations that look back and switch at known times, driven by functions that are one in each period.

The method of steps follows smooth equations from stop to stop, and inputs may jump there.  So a switch whose conditions
compare the time with numbers becomes a sum of its branches, each times a known input that is one where the branch is
taken and zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from odejet.jets.inputs import HOLD, Sampled
from odejet.model import Model
from odejet.model.delays import resolved
from odejet.model.expressions import (
    TIME,
    Comparison,
    Expression,
    Piecewise,
    Product,
    Sum,
    Symbol,
    children,
    constant,
    evaluate,
    fresh,
    names,
    substituted,
)
from odejet.model.wellformed import rebuilt

_FAR = 1e5
"""Times the latest switch, and that after the last and before the first: how long the first and last periods are."""


def by_periods(model: Model) -> tuple[Model, dict[str, Sampled]]:
    """Return the model with inputs in the place of switches at known times, and these; one that does not look back at
    states or samples stays as it is."""
    every = (*model.states.values(), *(value for value in model.inputs.values() if value is not None))
    if not (model.is_delayed and any(next(_timed(value), None) for value in every) and resolved(model).is_delayed):
        return model, {}
    taken = {*model.states, *model.outputs, *model.inputs, *model.parameters, *model.fixed, *model.expressions}
    found: dict[tuple[Piecewise, int], tuple[str, Sampled]] = {}

    def plain(expression: Any) -> Any:
        parts = tuple(plain(part) for part in children(expression))
        whole = rebuilt(expression, parts) if parts else expression
        return _summed(expression, parts[: len(expression.values)], found, taken) if _is_timed(expression) else whole

    functions = {name: value for name, value in model.inputs.items() if value is not None}
    switching = {name: plain(value) for name, value in functions.items() if next(_timed(value), None)}
    states = {name: plain(substituted(value, switching)) for name, value in model.states.items()}
    # An output is what its comparisons say at the very instant, which a period does not tell.
    shown = {name for value in model.outputs.values() for name in names(value)}
    given = {name: value for name, value in model.to_dict()["inputs"].items() if name not in switching or name in shown}
    told = {name: value for name, value in switching.items() if name not in shown}
    new = dict(found.values())
    inputs, named = {**given, **dict.fromkeys(new)}, {**model.expressions, **told}
    return model.replace(states=states, inputs=inputs, expressions=named), new


def _is_timed(expression: Any) -> bool:
    """Whether it is a switch whose conditions compare the time with numbers."""
    return isinstance(expression, Piecewise) and all(
        set(names(condition)) == {TIME} and all(_instant(one) is not None for one in _comparisons(condition))
        for condition in expression.conditions
    )


def _timed(expression: Any) -> Iterator[Piecewise]:
    if _is_timed(expression):
        yield expression
    for part in children(expression):
        yield from _timed(part)


def _comparisons(condition: Any) -> Iterator[Comparison]:
    if isinstance(condition, Comparison):
        yield condition
    else:
        for part in children(condition):
            yield from _comparisons(part)


def _instant(comparison: Comparison) -> float | None:
    """The time at which it changes; None if it does not compare t with a number."""
    left, right = comparison.left, comparison.right
    time, other = (left, right) if left == Symbol(TIME) else (right, left)
    exact: Fraction | None = constant(other)
    return None if time != Symbol(TIME) or exact is None else float(exact)


def _summed(
    switch: Piecewise,
    values: tuple[Expression, ...],
    found: dict[tuple[Piecewise, int], tuple[str, Sampled]],
    taken: set[str],
) -> Expression:
    """The branches of a switch, each times the input that tells when it is taken."""
    instants = np.unique([_instant(one) for condition in switch.conditions for one in _comparisons(condition)])
    room = _FAR * max(1.0, float(np.abs(instants).max()), float(np.ptp(instants)))
    edges = np.r_[instants[0] - room, instants, instants[-1] + room]
    middle = 0.5 * (edges[1:] + edges[:-1])
    branch = [_branch(switch, float(time)) for time in middle]
    times = np.r_[edges[0], np.repeat(instants, 2), edges[-1]]
    terms: list[tuple[int, Expression]] = []
    for place, value in enumerate(values):
        key = switch, place
        if key not in found:
            on = np.array([float(own == place) for own in branch])
            found[key] = fresh("period", taken), Sampled(times, np.repeat(on, 2), HOLD)
        terms.append((1, Product(((1, Symbol(found[key][0])), (1, value)))))
    return Sum(tuple(terms))


def _branch(switch: Piecewise, time: float) -> int:
    """Which branch of a switch is taken at a time."""
    for place, condition in enumerate(switch.conditions):
        if evaluate(condition, {TIME: time}, np):
            return place
    return len(switch.conditions)
