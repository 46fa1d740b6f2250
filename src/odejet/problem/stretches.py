"""Stretches: the parts of an experiment in which nothing happens at once, so that its outputs are smooth.

Derivatives are estimated within one stretch, and what the algebra finds there is carried back to the start through
events that can be undone.  So the stretch is the longest of those that are reached from the start that way, and in
which all parameters are still what they were.  Where nobody knows when something happens, the data may show it by a
jump, and the first stretch ends before that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from odejet.data.series import MIN_TIMES, Series
from odejet.model import Event, Model
from odejet.model.expressions import TIME, Comparison, Condition, Expression, children, constant, names
from odejet.problem.conditions import Condition as Experimental
from odejet.simulate.schedule import inverse

JUMP, NEIGHBOURS = 8.0, 6
"""A change between two measurements is taken for a jump if it is so many times the typical one, of all and of so many
before it."""

SIDE, BENT = 4, 4.0
"""Measurements on either side of a kink that tell slopes, and how many times the lower quartile of all differences in
slope that at a kink is."""

SHORTEST = 3
"""Times of every output in a stretch; what has fewer lies between two edges of one event."""

MANY = 10_000
"""Repetitions of an event that are looked at."""


def stretch(condition: Experimental) -> Mapping[str, Series]:
    """The measurements of the stretch by output; empty if there is none with times enough."""
    series = {name: measured.finite.observed for name, measured in condition.series.items()}
    if not condition.model.is_smooth:
        parts, reached = _parts(condition)
        series = max(parts[:reached] or [{}], key=lambda part: min((one.distinct for one in part.values()), default=0))
    return {name: one for name, one in series.items() if one.distinct >= MIN_TIMES}


def stretches(condition: Experimental) -> list[Mapping[str, Series]]:
    """All stretches in which every output has times enough, as far as it is known or seen when something happens."""
    parts, _ = _parts(condition)
    return [part for part in parts if all(one.distinct >= SHORTEST for one in part.values())]


def known_times(event: Event, start: float, end: float) -> list[float]:
    """When an event at times that are numbers happens, from a start on and before an end."""
    return [time for time in _times(event, end) if start <= time < end]


def _parts(condition: Experimental) -> tuple[list[dict[str, Series]], int]:
    """The measurements of every stretch, and how many are reached from the start; none if nobody knows them."""
    own, experiment = condition.model, condition.experiment
    series = {name: measured.finite.observed for name, measured in condition.series.items()}
    found = _known(own, experiment.start, experiment.end)
    if found is None:
        return [], 0
    edges, reached = found
    if any(event.when is not None for event in own.events):
        edges, reached = [*edges, *_seen(series)], 1
    ends = [-math.inf, *sorted(set(edges)), math.inf]
    return [{name: _inside(one, *pair) for name, one in series.items()} for pair in itertools.pairwise(ends)], reached


def _known(own: Model, start: float, end: float) -> tuple[list[float], int] | None:
    """The last times before something happens, and how many stretches are reached from the start; None if nobody
    knows."""
    happening: list[tuple[float, bool]] = []
    told = {name for table in (own.states, own.outputs) for value in table.values() for name in names(value)}
    told |= {*own.states, *own.fixed}
    for event in own.events:
        if event.when is not None:
            continue
        involved = {name for value in event.set.values() for name in names(value)}
        undone = inverse(event) is not None and all(name in own.states for name in event.set) and involved <= told
        times = list(_times(event, end))
        if any(math.isnan(time) for time in times):
            return None
        last = [_before(time) if event.seen else time for time in times]
        happening += [(time, undone or time == start) for time in last if start <= time <= end]
    for table in (own.states, own.outputs, own.inputs):
        for expression in table.values():
            happening += [(time, True) for time in _switching(expression) if start < time <= end]
    happening.sort()
    edges = sorted({time for time, _ in happening})
    barrier = min((time for time, undone in happening if not undone), default=math.inf)
    return edges, 1 + sum(time < barrier for time in edges)


def _times(event: Event, end: float) -> Iterator[float]:
    """When an event happens; NaN where that depends on parameters."""
    every = math.nan if event.every is None else _number(event.every)
    for time in event.at:
        first = _number(time)
        if event.every is None or math.isnan(every) or math.isnan(first):
            yield first if event.every is None else math.nan
            continue
        count = min(MANY, math.inf if event.count is None else event.count)
        yield from itertools.takewhile(lambda at: at <= end, (first + i * every for i in range(int(count))))


def _number(expression: Expression) -> float:
    exact = constant(expression)
    return math.nan if exact is None else float(exact)


def _before(time: float) -> float:
    return float(np.nextafter(time, -math.inf))


def _switching(expression: Expression | Condition | None) -> Iterator[float]:
    """The last times before the time passes numbers that it is compared with."""
    if expression is None:
        return
    if isinstance(expression, Comparison) and TIME in {*names(expression.left), *names(expression.right)}:
        # t < 2 is false at 2 and after it, t <= 2 is still true there.
        for side, turned in ((expression.left, ("<=", ">")), (expression.right, ("<", ">="))):
            if (exact := constant(side)) is not None:
                yield _before(float(exact)) if expression.relation in turned else float(exact)
    for child in children(expression):
        yield from _switching(child)


def _seen(series: Mapping[str, Series]) -> list[float]:
    """Edges of stretches that the data show: by jumps or, where nothing jumps, by kinks."""
    jumps = [float(one.times[i]) for one in series.values() for i in _sudden(np.diff(one.values))]
    if jumps:
        return jumps
    return [edge for one in series.values() for edge in _kinks(one)]


def _kinks(one: Series) -> list[float]:
    """Edges on either side of every place where lines through measurements before and after it differ in slope.

    The difference must be far beyond what noise and the usual bend of the curve make of it.  A kink is somewhere beside
    the two measurements between which it is largest, so that these belong to no stretch.
    """
    times, places = np.unique(one.times, return_index=True)
    if len(times) < 4 * SIDE:
        return []
    x, y = (np.lib.stride_tricks.sliding_window_view(v, SIDE) for v in (times, one.values[places]))
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = (x**2).sum(axis=1)
    slopes = (x * y).sum(axis=1) / spread
    squares = ((y - slopes[:, None] * x) ** 2).sum(axis=1)
    noise = np.sqrt(np.median(squares) / (2 * math.log(2) * (SIDE - 2) / 2))
    turns = np.abs(slopes[SIDE:] - slopes[:-SIDE])
    errors = noise * np.sqrt(1 / spread[SIDE:] + 1 / spread[:-SIDE])
    least = np.maximum(JUMP * errors, BENT * np.quantile(turns, 0.25))
    found: list[float] = []
    for i in np.flatnonzero(turns > least).tolist():
        if turns[i] == turns[max(i - SIDE, 0) : i + SIDE + 1].max():
            last = i + SIDE - 1  # the last measurement before it
            found += [float(times[last - 1]), float(times[last + 1])]
    return found


def _sudden(changes: np.ndarray) -> list[int]:
    """Where changes are far larger than those before."""
    sizes = np.abs(changes)
    usual = np.median(sizes) if len(sizes) else 0.0
    least = (max(np.median(sizes[i - NEIGHBOURS : i]), usual) for i in range(NEIGHBOURS, len(sizes)))
    return [i for i, size in enumerate(least, NEIGHBOURS) if sizes[i] > JUMP * size]


def between(one: Series, first: float, last: float) -> Series:
    """The measurements from one time to before another."""
    return _chosen(one, (one.times >= first) & (one.times < last))


def _inside(one: Series, first: float, last: float) -> Series:
    """The measurements after one time and up to another."""
    return _chosen(one, (one.times > first) & (one.times <= last))


def _chosen(one: Series, inside: np.ndarray) -> Series:
    return one.at(inside)
