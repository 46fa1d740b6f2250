"""Proposal: the first part of a step by Taylor series, which chooses how far they tell all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from odejet.jets.caps import caps_matter, is_marked, unmark
from odejet.jets.drive import Drive, next_stop, steer
from odejet.jets.features import Checks, attentive_step, continues, is_plain, proceed, take_back, verified_step
from odejet.jets.kernel import MAX_ORDER, expand
from odejet.jets.lanes import inlined, kernel, pointer
from odejet.jets.lengths import best_order, finite, first_unit, guarded_step, step_size
from odejet.jets.points import point_of
from odejet.jets.roots import held_step
from odejet.jets.stepper import NONFINITE, record

RESOLUTION = 1e-14
"""The smallest step, relative to the time."""

LONGEST = 1e6
"""A step in units of the one before: powers of it must not overflow."""

ROUNDING = 1e-15
"""A step that is shorter than what is left by no more than this, relative to it, reaches the end."""

_CAUTION = 2.0  # the growth of a step after one that was shortened by what it met
_WATCHING = 20  # the least order where switching functions are watched, which need not be as simple as the solution

NOW = record(
    {
        "direction": float,  # of time
        "span": float,  # from where the series began to the end
        "density": float,  # requested times per unit of time
        "unit": float,  # of time, in which the series are
        "step": float,  # in units
        "natural": float,  # the step that the solution itself allows, in units
        "length": float,  # of the step, and of the one before until a new one is known
        "limit": float,  # the longest step after one that was shortened
        "steady": float,  # the least length of the first of many small steps for them not to lead to a pole
        "stop": float,  # where a step ends at the latest
        "knot": float,  # of the inputs
        "reached": float,  # the time at the end of the step
        "before": float,  # where the step before began, and its unit
        "unit_before": float,
        "first": int,  # times that were reached before the last step
        "order": int,
        "begun": int,  # steps before this mode, and the step at which the best order is looked for again
        "probe": int,
        "probing": bool,
        "piece": int,  # of the inputs
        "fresh": bool,  # whether a solution begins or goes on after a jump
        "capped": bool,  # whether what is static was capped
        "open_end": bool,  # whether the equations are yet to be seen to hold at the end of the step before
        "repeated": bool,  # whether they did not, so that it is taken again
        "jumping": bool,  # whether the step ends at a jump
        "small": bool,  # whether many steps as small would follow, and whether the solution is smooth none the less
        "smooth": bool,
        "slow": int,  # how many steps in a row were
        "calm": int,
    }
)


class Series(NamedTuple):
    """The series of all states in one mode of a model, by pointers."""

    c: Any
    at: Checks
    places: Any  # of the switching functions
    watching: int  # how many there are
    watched: Any  # arguments
    watches: int


class Task(NamedTuple):
    """What is asked of a trajectory, and what does not change along it."""

    times: np.ndarray
    drive: Drive
    driven: bool
    tolerance: float
    goal: float  # how well equations are to hold
    many: int
    patience: int
    work: np.ndarray
    tables: Any  # those of numbers, and with the unit of time in place of one
    plain: Any
    sizes: Any  # of the states on the step before, their rates at its end, and all that it overwrote
    slopes: Any
    rows: Any


@kernel
def series_of(layout, point, memory, point_memory, drive, tables, rates):
    """The series that begin in a mode whose registers are prepared."""
    c = pointer(memory)
    at = Checks(c, pointer(layout.states), point_of(point, point_memory, drive, tables), pointer(rates))
    return Series(c, at, pointer(layout.switches), len(layout.switches), pointer(layout.watched), len(layout.watched))


@inlined
def expand_rates(now, series, layout, task, advances, reciprocals):
    """Expand all series to first order, in the unit of time of the step before: whether no cap matters."""
    none, first_order = np.int64(0), np.int64(1)  # named: numba would compile the kernels anew for every literal
    if now.fresh:  # where a solution begins or goes on after a jump, its unit of time is not known
        for k in range(len(advances)):
            advances[k] = reciprocals[k]
        if task.driven:
            steer(series.c, layout, task.drive, now.piece, now.time, 1.0)
        expand(series.c, layout, now.time, none, first_order, layout.split[1], task.tables, 0)
        now.unit, now.fresh = first_unit(series.c, layout, max(abs(now.end - now.time), 1e-300)), False
    for k in range(len(advances)):
        advances[k] = now.unit * reciprocals[k]
    if task.driven:
        steer(series.c, layout, task.drive, now.piece, now.time, now.unit)
    if not now.capped:
        unmark(task.tables)
    expand(series.c, layout, now.time, none, first_order, layout.split[1], task.tables, 0)
    if is_marked(task.tables):
        proceed(series.at, now.piece, now.time, now.unit, none, 0.0, 0.0)
        return not caps_matter(series.at.point, now.piece, now.time, series.at.rates)
    return True


@inlined
def retract(now, series, task):
    """Go back to where the step before began, and halve it until the equations hold where it ends."""
    take_back(series.at, task.rows)
    now.time, now.unit, now.done = now.before, now.unit_before, now.first
    whole = now.direction * now.length / now.unit
    now.step = abs(verified_step(series.at, now.piece, now.time, now.unit, now.order, whole, task.goal))


@inlined
def expand_all(now, series, layout, task):
    """Expand all series to the order of the step: whether they are finite; if not by their unit alone, try again."""
    first_order, highest = np.int64(1), np.int64(MAX_ORDER)
    # The best order depends on the solution; it is looked for again after 8, 16, 32 ... steps.
    now.probing = now.steps == now.probe
    if now.probing:
        now.order, now.probe = highest, now.begun + max(8, 2 * (now.steps - now.begun))
    expand(series.c, layout, now.time, first_order, now.order, layout.split[1], task.tables, 0)
    if finite(series.c, layout, now.order):
        return True
    if finite(series.c, layout, first_order) and now.unit > RESOLUTION * abs(now.time):
        now.unit, now.probe, now.steps, now.open_end = 1e-3 * now.unit, now.steps + 1, now.steps + 1, False
    else:
        now.status = NONFINITE
    return False


@inlined
def choose_step(now, series, layout, task, switches, scales):
    """The longest step at which the series tell all: whether there is one."""
    c, at, lanes, ahead = series.c, series.at, layout.lanes, abs(now.stop - now.time)
    longest = min(ahead / now.unit, LONGEST)
    if now.probing:
        now.order, longest = best_order(c, layout, task.tolerance, longest, now.density * now.unit, task.work)
        if switches is not None:
            if series.watching > 0:
                now.order = max(now.order, np.int64(_WATCHING))
    h, seen = step_size(c, layout, scales, now.order, task.tolerance, longest)
    if not seen and not now.probing:  # perhaps terms beyond this order do not vanish
        now.probe, now.open_end = now.steps, False
        return False
    h = min(h, 0.125 * now.span / now.unit) if not seen else h
    now.natural = abs(guarded_step(c, layout, now.order, now.direction * h))
    if now.natural < h and now.natural * now.unit < RESOLUTION * now.span:
        now.status = NONFINITE
        return False
    now.step, now.steps = min(now.natural, now.limit / now.unit), now.steps + 1
    if switches is not None:
        if series.watching > 0:
            now.step = held_step(c, series.places, series.watching, lanes, switches, now.order, now.step)
    if not is_plain(c, series.watched, series.watches, lanes, now.order, now.step):
        whole = now.direction * now.step
        now.step = abs(
            attentive_step(
                at, series.watched, series.watches, now.piece, now.time, now.unit, now.order, whole, task.goal
            )
        )
    if now.step * now.unit * (1 + ROUNDING) >= ahead:  # no further series will tell
        whole = now.direction * now.step
        now.step = abs(verified_step(at, now.piece, now.time, now.unit, now.order, whole, task.goal))
    return True


@inlined
def propose(now, series, layout, task, arrays, reciprocals, jumps, switches):
    """Choose a step that the solution allows, from its series: whether there is one."""
    if not expand_rates(now, series, layout, task, arrays.advances, reciprocals):
        now.status = NONFINITE
        return False
    now.repeated = now.open_end and not continues(
        series.at, task.slopes, task.sizes, now.unit_before, now.unit, now.length, task.goal
    )
    if now.repeated:
        retract(now, series, task)
    elif not expand_all(now, series, layout, task):
        return False
    now.knot = next_stop(task.drive.knots, now.piece, now.direction, now.end) if task.driven else now.end
    now.stop = now.knot
    if jumps is not None:
        if jumps.done[0] < len(jumps.times) and now.direction * (jumps.times[jumps.done[0]] - now.stop) <= 0:
            now.stop = jumps.times[jumps.done[0]]
    if not now.repeated:
        if not choose_step(now, series, layout, task, switches, arrays.scales):
            return False
    now.limit = np.inf if now.step == now.natural else _CAUTION * now.step * now.unit
    return True
