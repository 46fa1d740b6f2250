"""Still: how long a solution that starts at rest stays there.

A stimulus is often given some time after the start.  Until then the equations are those under which the model came to
rest, and nothing moves; to follow that in steps would be to follow rounding.  Only equations that are written alike
count as the same: a slow process is none that can be left out because its rates are small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.jets.inputs import Sampled
from odejet.model import Model
from odejet.model.derivatives import derivative
from odejet.model.expressions import (
    TIME,
    ZERO,
    Comparison,
    Expression,
    Piecewise,
    Symbol,
    children,
    evaluate,
    names,
    number,
    substituted,
    switches,
)
from odejet.model.folding import folded
from odejet.model.modes import difference
from odejet.model.transform import rewritten
from odejet.simulate.flow import Flow
from odejet.simulate.trajectory import Trajectory

Turn = tuple[Expression, Expression]
"""A switching function that is linear in the time, and its slope."""


@dataclass(frozen=True, eq=False)
class Still:
    """A stretch from the start on in which nothing moves."""

    model: Model
    samples: Mapping[str, Sampled]
    start: float
    turns: Sequence[Turn]

    def until(self, values: Mapping[str, float]) -> float:
        """When the first event or switch comes; the start, if one may come at once."""
        times = [turned(turn, values) for turn in self.turns]
        times += [float(evaluate(time, values, math)) for event in self.model.events for time in event.at]
        if any(math.isnan(time) or time == self.start for time in times):
            return self.start
        return min((time for time in times if time > self.start), default=math.inf)

    @cached_property
    def flow(self) -> Flow:
        """The outputs of states that do not move."""
        states = dict.fromkeys(self.model.states, ZERO)
        motionless = rewritten(self.model, states=states, initial={}, before={}, events=(), ordered=False)
        return Flow(motionless, self.samples)

    def run(self, parameters: np.ndarray, rows: np.ndarray, times: np.ndarray) -> Trajectory:
        """The trajectory there, from rows of the states; the last lanes are those of all parameters."""
        n, used = rows.shape
        places = np.array([self.model.parameters.index(name) for name in self.flow.model.parameters], dtype=int)
        found = self.flow.run(
            parameters[places], rows[:, 0], times, start=self.start, sensitivities=used > 1, free_states=True
        )
        outputs = np.zeros((*found.outputs.shape[:2], used))
        outputs[:, :, 0] = found.outputs[:, :, 0]
        if used > 1:
            outputs[:, :, 1:] = found.outputs[:, :, 1 : 1 + n] @ rows[:, 1:]
            outputs[:, :, used - len(parameters) + places] += found.outputs[:, :, 1 + n :]
        states = np.broadcast_to(rows, (len(found.states), n, used))
        return replace(found, states=states, outputs=outputs, method="steady state")


def still(model: Model, samples: Mapping[str, Sampled], start: float, rest: Model) -> Still | None:
    """The stretch in which a model stays at the rest of some equations, if these are its own at first.

    States that the equations leave out are zero at rest.
    """
    functions = {name: value for name, value in model.inputs.items() if value is not None}
    known = {name: number(value) for name, value in model.fixed.items()}
    rates = {name: folded(substituted(substituted(rate, functions), known)) for name, rate in model.states.items()}
    turns = [turn for rate in rates.values() for turn in turns_of(rate)]
    moving = {*model.states, *(name for name, value in model.inputs.items() if value is None)}
    sampled = moving - model.states.keys()
    unclear = (
        any(map(moves, rates.values()))
        or any(event.when is not None or event.every is not None for event in model.events)
        or any(turn is None or moving & set(names(turn[0])) for turn in turns)
        or any(sampled & set(names(rate)) for rate in rates.values())
    )
    moment = {TIME: number(start), **{name: ZERO for name in rates if name not in rest.states}}
    now = {name: folded(substituted(rate, moment)) for name, rate in rates.items()}
    if unclear or any(rate != rest.states.get(name, ZERO) for name, rate in now.items()):
        return None
    return Still(model, samples, start, [turn for turn in turns if turn])


def moves(expression: Expression) -> bool:
    """Whether an expression depends on the time other than by conditions."""
    if isinstance(expression, Symbol):
        return expression.name == TIME
    parts = expression.values if isinstance(expression, Piecewise) else children(expression)
    return any(moves(part) for part in parts if isinstance(part, Expression))


def turns_of(part: Any) -> Iterator[Turn | None]:
    """The switching functions in conditions that are linear in the time, with their slopes; None for other ones."""
    if not isinstance(part, Comparison):
        for inner in children(part):
            yield from turns_of(inner)
    elif TIME in names(part):
        g = difference(part.left, part.right)
        slope = None if switches(g) else derivative(g, TIME)
        yield None if slope is None or TIME in names(slope) else (g, slope)


def turned(turn: Turn, values: Mapping[str, float]) -> float:
    """The time at which a switching function vanishes; minus infinity where it never does."""
    g, slope = turn
    rate = float(evaluate(slope, values, math))
    when = -float(evaluate(g, {**values, TIME: 0.0}, math)) / rate if rate else -math.inf
    return when if math.isfinite(when) else -math.inf
