"""Schedule: the events at known times that a solution meets on its way.

Times are expressions in parameters, so that they come as rows of value and tangents.  A solution that goes backward
meets the inverses of events, up to one that has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odejet.jets.jumps import Jumps, no_jumps
from odejet.model.events import Event
from odejet.model.expressions import Expression, Sum, Symbol, names
from odejet.simulate.program import Endless, Program, Undecided

MAX_JUMPS = 100_000
"""Events at known times on one solution."""

_BESIDE = 1e-9  # of a period: repetitions this near to the start or the end are looked at


@dataclass(frozen=True, eq=False)
class Schedule:
    """Events in the order in which a solution meets them, with rows of their times."""

    events: list[Event]
    rows: np.ndarray
    barrier: float | None  # where a solution that goes backward meets an event that cannot be undone

    def jumps(self, program: Program, parameters: np.ndarray) -> Jumps:
        """The events for the steps of a solution: with their maps, or as places to stop where the model switches."""
        moved = self.rows.reshape(len(self.events), parameters.shape[1]).copy()
        times = moved[:, 0].copy()
        moved[:, 0] = 0
        jumps = no_jumps()._replace(times=times, moved=moved, pauses=int(program.switching))
        return jumps if program.switching or not self.events else self.mapped(jumps, program, parameters)

    def mapped(self, jumps: Jumps, program: Program, parameters: np.ndarray) -> Jumps:
        order = {name: i for i, name in enumerate(program.equations.states)}
        distinct = list(dict.fromkeys(tuple(event.set.items()) for event in self.events))
        index = {group: i for i, group in enumerate(distinct)}
        maps = program.maps([[value for _, value in group] for group in distinct])
        registers = maps.registers(parameters)
        layout = registers.layout
        targets = [order[name] for group in distinct for name, _ in group]
        return jumps._replace(
            maps=np.array([index[tuple(event.set.items())] for event in self.events], dtype=np.int64),
            code=np.ascontiguousarray(layout.code[np.concatenate(maps.positions)]),
            terms=layout.terms,
            bounds=np.cumsum([0, *map(len, maps.positions)]),
            targets=np.column_stack([np.array(targets, dtype=np.int64), layout.outputs]),
            ends=maps.ends,
            memory=registers.memory[0],
            states=layout.states,
            inputs=layout.inputs,
            time=layout.time,
        )


def occurrences(timed: Sequence[Event], rows: np.ndarray, start: float, end: float) -> list[tuple[np.ndarray, Event]]:
    """Every event at each of its times; `rows` are those of all first times and then of all periods."""
    found: list[tuple[np.ndarray, Event]] = []
    position, repeated = 0, sum(len(event.at) for event in timed)
    for event in timed:
        for row in rows[position : position + len(event.at)]:
            if event.every is None:
                found.append((row, event))
            else:
                period = rows[repeated]
                found += [(row + i * period, event) for i in _repeats(event, row[0], period[0], start, end)]
        position += len(event.at)
        repeated += event.every is not None
    return found


def _repeats(event: Event, first: float, every: float, start: float, end: float) -> range:
    """Which repetitions of an event may lie on the way."""
    if not (every > 0 and math.isfinite(first)):
        raise Endless
    last = math.floor((max(start, end) - first) / every + _BESIDE)
    begin = max(0, math.ceil((min(start, end) - first) / every - _BESIDE))
    count = last + 1 if event.count is None else min(event.count, last + 1)
    if count - begin > MAX_JUMPS:
        raise Endless
    return range(begin, count)


def arranged(found: list[tuple[np.ndarray, Event]], start: float, end: float) -> Schedule:
    """The events on the way, sorted; on the way back their inverses, up to one that has none."""
    if any(math.isnan(row[0]) for row, _ in found):
        raise Undecided
    barrier = None
    if end >= start:
        kept = sorted((one for one in found if start <= one[0][0] <= end), key=lambda one: one[0][0])
    else:
        kept = []
        for row, event in sorted((one for one in found[::-1] if end <= one[0][0] < start), key=lambda one: -one[0][0]):
            undone = inverse(event)
            if undone is None:
                barrier = float(row[0])
                break
            kept.append((row, undone))
    if len(kept) > MAX_JUMPS:
        raise Endless
    return Schedule([event for _, event in kept], np.array([row for row, _ in kept]), barrier)


def inverse(event: Event) -> Event | None:
    """The event that undoes another, where everything it sets is moved by what it does not set."""
    undone: dict[str, Expression] = {}
    for name, value in event.set.items():
        match value:
            case Sum(terms) if (1, Symbol(name)) in terms:
                at = terms.index((1, Symbol(name)))
                rest = (*terms[:at], *terms[at + 1 :])
                if any(other in event.set for _, term in rest for other in names(term)):
                    return None
                undone[name] = Sum(((1, Symbol(name)), *((-sign, term) for sign, term in rest)))
            case Symbol(other) if other == name:
                undone[name] = value
            case _:
                return None
    return Event(at=0, set=undone)
