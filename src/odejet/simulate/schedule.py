"""Schedule: the events at known times that a solution meets on its way.

Times are expressions in parameters, so that they come as rows of value and tangents.  A solution that goes backward
meets the inverses of events, up to one that has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odejet.jets.jumps import ASK, HAPPEN, STOP, Jumps, no_jumps
from odejet.model.events import Event
from odejet.model.expressions import Expression, Sum, Symbol, names, switches
from odejet.simulate.program import Endless, Program, Undecided

MAX_JUMPS = 100_000
"""Events at known times on one solution."""

_BESIDE = 1e-9  # of a period: repetitions this near to the start or the end are looked at


@dataclass(frozen=True, eq=False)
class Schedule:
    """Events in the order in which a solution meets them, with rows of their times."""

    events: Sequence[Event]
    which: np.ndarray  # of the events each is
    rows: np.ndarray
    follows: np.ndarray  # whether each comes after what is asked for at its time
    barrier: float | None = None  # where a solution that goes backward meets an event that cannot be undone
    is_beyond: bool = False  # whether what is asked for at the barrier is not reached

    def jumps(self, program: Program, parameters: np.ndarray) -> Jumps:
        """The events for the steps of a solution: with their maps, or as places to stop where the maps switch."""
        moved = self.rows.copy()
        times = moved[:, 0].copy()
        moved[:, 0] = 0
        jumps = no_jumps()._replace(times=times, moved=moved, follows=self.follows)
        if any(switches(value) for event in self.events for value in event.set.values()):
            return jumps._replace(pauses=STOP)
        pauses = ASK if program.switching else HAPPEN
        return self.mapped(jumps, program, parameters)._replace(pauses=pauses) if len(times) else jumps

    def mapped(self, jumps: Jumps, program: Program, parameters: np.ndarray) -> Jumps:
        maps = program.maps([tuple(event.set.values()) for event in self.events])
        registers = maps.registers(parameters)
        layout = registers.layout
        order = {name: i for i, name in enumerate(program.equations.states)}
        targets = [order[name] for event in self.events for name in event.set]
        return jumps._replace(
            maps=self.which,
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


def scheduled(timed: Sequence[Event], rows: np.ndarray, start: float, end: float) -> Schedule:
    """The events on the way from one time to another; `rows` are those of all first times and then of all periods."""
    found, position, repeated = [], 0, sum(len(event.at) for event in timed)
    for event in timed:
        first = rows[position : position + len(event.at)]
        if event.every is not None:
            times = np.arange(*_repeats(event, first[0, 0], rows[repeated, 0], start, end))
            first = first[0] + times[:, None] * rows[repeated]
            repeated += 1
        found.append(first)
        position += len(event.at)
    every, which = np.concatenate(found), np.repeat(np.arange(len(timed)), [len(part) for part in found])
    if np.isnan(every[:, 0]).any():
        raise Undecided
    return _forward(timed, which, every, start, end) if end >= start else _backward(timed, which, every, start, end)


def _repeats(event: Event, first: float, every: float, start: float, end: float) -> tuple[int, int]:
    """Which repetitions of an event may lie on the way: the first, and the one after the last."""
    if not (every > 0 and math.isfinite(first)):
        raise Endless
    last = math.floor((max(start, end) - first) / every + _BESIDE)
    begin = max(0, math.ceil((min(start, end) - first) / every - _BESIDE))
    count = last + 1 if event.count is None else min(event.count, last + 1)
    if count - begin > MAX_JUMPS:
        raise Endless
    return begin, max(begin, count)


def _forward(timed: Sequence[Event], which: np.ndarray, rows: np.ndarray, start: float, end: float) -> Schedule:
    kept = np.flatnonzero((start <= rows[:, 0]) & (rows[:, 0] <= end))
    # At one time what is asked for there sees the first of them.
    follows = ~np.array([event.seen for event in timed], dtype=bool)[which]
    kept = kept[np.lexsort((follows[kept], rows[kept, 0]))]
    if len(kept) > MAX_JUMPS:
        raise Endless
    return Schedule(timed, which[kept], rows[kept], follows[kept])


def _backward(timed: Sequence[Event], which: np.ndarray, rows: np.ndarray, start: float, end: float) -> Schedule:
    """Inverses in the opposite order, up to an event that has none."""
    forward = _forward(timed, which, rows, end, np.nextafter(start, -np.inf))
    undone = [inverse(event) for event in timed]
    which, rows, follows, barrier = forward.which[::-1], forward.rows[::-1], ~forward.follows[::-1], None
    is_beyond = False
    lost = np.flatnonzero([undone[k] is None for k in which])
    if len(lost):
        first = lost[0]
        is_beyond, barrier = not follows[first], float(rows[first, 0])
        which, rows, follows = which[:first], rows[:first], follows[:first]
    possible = [k for k, event in enumerate(undone) if event is not None]
    places = {k: i for i, k in enumerate(possible)}
    events = [event for event in undone if event is not None]
    found = np.array([places[k] for k in which], dtype=np.int64)
    return Schedule(events, found, np.ascontiguousarray(rows), np.ascontiguousarray(follows), barrier, is_beyond)


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
