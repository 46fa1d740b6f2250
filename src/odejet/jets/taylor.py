"""Taylor: trajectories by the steps of `steps`, as Python asks for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from odejet.jets.caps import own_tables
from odejet.jets.direct import Benches, Direct
from odejet.jets.drive import Drive
from odejet.jets.kernel import MAX_ORDER, TABLES, Layout, lay_out
from odejet.jets.proposal import NOW
from odejet.jets.steps import Arrays, integrate
from odejet.model.tape import Tape

_PLAIN, _PASSING = Direct(integrate), Direct(integrate)  # models without events, and with


class Taken(NamedTuple):
    """What steps have come to."""

    status: int
    done: int  # times that were reached
    time: float
    steps: int
    order: int  # of the last one
    length: float
    scales: np.ndarray  # the largest values of the states on it


class Plan(NamedTuple):
    """What all trajectories of a tape have in common that have as many lanes."""

    layouts: tuple[Layout, Layout]  # of series, and of single values
    benches: Benches

    def shapes(self) -> dict[str, tuple[int, ...]]:
        series, point = self.layouts
        states, lanes = len(series.states), series.lanes
        return {
            "memory": (series.size,),
            "point_memory": (point.size,),
            "advances": TABLES[1].shape,
            "scales": (states,),
            "rates": (2 * states, lanes),
            "kept": (2 * states + states // lanes + 1, lanes),
            "now": (NOW.itemsize // 8,),
        }


def _parts(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    return tuple((arrays | {"now": arrays["now"].view(NOW)}).values())


def _plan(tape: Tape, lanes: int, free: bool) -> Plan:
    key = "series", lanes, free
    if key not in tape.layouts:
        layouts = lay_out(tape, lanes, MAX_ORDER + 1, free), lay_out(tape, lanes, 2, free)
        tape.layouts[key] = Plan(layouts, Benches())
    return tape.layouts[key]


def steps_along(
    tape: Tape,
    free: bool,
    parameters: np.ndarray,
    states: np.ndarray,
    drive: Drive,
    start: float,
    times: np.ndarray,
    limits: tuple[float, int, int, int],
    found: tuple[np.ndarray, np.ndarray],
    passing: tuple[Any, Any, Any] | None,
) -> Taken:
    """`integrate` on a tape; the states are left at the time reached, and rows of states and outputs at all times until
    then are `found`.

    With `free` states no initial state is known.  Models with events are `passing` jumps, switches and a crossing.
    """
    lanes, (tolerance, *counts) = states.shape[1], limits
    plan = _plan(tape, lanes, free)
    parts = plan.benches.cleared(plan.shapes, _parts)
    arrays = Arrays._make((*parts, *found))
    arrays.advances[:] = TABLES[1]
    call = _PLAIN if passing is None else _PASSING
    status, done, time, count, order, step = call(
        *plan.layouts,
        tape.constant_values,
        parameters,
        states,
        drive,
        float(start),
        np.ascontiguousarray(times, dtype=float),
        (float(tolerance), *map(int, counts)),
        tape.work,
        own_tables(),
        arrays,
        *(passing or (None, None, None)),
    )
    return Taken(status, done, time, count, order, step, arrays.scales.copy())
