"""Steps: a trajectory with its sensitivities, by Taylor series on the tape.

One step expands all states at the current time to order K, goes as far as `lengths` allows, evaluates the series at the
requested times inside, and moves on, in the parts that `stepper` names.  Tangents ride in the lanes of the same series,
so sensitivities are those of the computed trajectory itself.  Sampled inputs are polynomials between knots, and no step
crosses one.  Events at known times happen on the way; where a switching function loses its sign the solution stops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.caps import is_marked, unmark
from odejet.jets.crossings import Side, may_pass, pass_over
from odejet.jets.drive import first_piece, steer
from odejet.jets.features import keep, verified_step
from odejet.jets.jumps import HAPPEN, STOP
from odejet.jets.kernel import MAX_ORDER, prepare
from odejet.jets.lanes import inlined, kernel, peek, plain_entry, pointer
from odejet.jets.lengths import is_smooth, move
from odejet.jets.proposal import LONGEST, RESOLUTION, ROUNDING, Task, propose, series_of
from odejet.jets.records import observe, pass_jumps
from odejet.jets.roots import first_crossing, polished
from odejet.jets.series import sample
from odejet.jets.stepper import (
    COLLAPSED,
    GOING,
    PAUSED,
    REACHED,
    SLOW,
    STIFF,
    SWITCHED,
    begin,
    ended,
    is_going,
)

SWITCHED_STEPS = 4
"""Steps that a switch counts for: a mode that Python has to choose takes as long as dozens."""

PATIENCE = 30
"""Small steps in a row before an implicit method is asked for."""

_STEADY = 0.3  # a step that shrinks by more, while patience lasts, is on its way to a pole
_HOLDS = 1e-12  # how well the equations are to hold inside a step, relative to each state
_LOSS = 1e4  # where the tolerance is loose: the terms of the order that are left out, times that order, and their sum


class Arrays(NamedTuple):
    """The memory of an integration, which Python allots: compiling that would take longer than a whole fit."""

    memory: np.ndarray
    point_memory: np.ndarray
    advances: np.ndarray
    scales: np.ndarray
    rates: np.ndarray  # where a step is checked
    kept: np.ndarray  # of the step before, for when it is to be shortened
    now: np.ndarray
    trajectory: np.ndarray
    outputs: np.ndarray


@kernel
def in_mode(arrays, memory, point_memory):
    """The arrays with the registers of another mode, in which no size of a state is known."""
    for i in range(len(arrays.scales)):
        arrays.scales[i] = 0.0
    return Arrays(
        memory,
        point_memory,
        arrays.advances,
        arrays.scales,
        arrays.rates,
        arrays.kept,
        arrays.now,
        arrays.trajectory,
        arrays.outputs,
    )


@kernel
def unload(c, layout, states):
    """The states in the registers as rows."""
    for i in range(len(states)):
        for lane in range(layout.lanes):
            states[i, lane] = peek(c, layout.states[i] + lane)


@kernel
def nearest_time(times, first, t):
    """A time t, or the one of the times that differs from it by rounding alone."""
    for i in range(first, len(times)):
        if abs(times[i] - t) <= 2 * ROUNDING * abs(t):
            return times[i]
        if abs(times[i] - times[first]) > abs(t - times[first]):
            break
    return t


@inlined
def set_out(now, task, order):
    """Begin series, in a mode and at a place where nothing is known of steps."""
    now.begun, now.probe, now.order = now.steps, now.steps, order
    now.span = abs(now.end - now.time)
    now.density = (len(task.times) - now.done) / max(now.span, 1e-300)
    now.calm, now.slow, now.limit = 0, 0, np.inf
    now.unit, now.fresh, now.open_end, now.natural = 1.0, True, False, 0.0


@inlined
def detect(now, series, layout, point, task, jumps, switches):
    """End the step where the first switching function loses its sign; tell what else happens where it ends."""
    now.crossed, now.jumping = False, False
    if switches is not None:
        if series.watching > 0:
            whole = now.direction * now.step
            s, which = first_crossing(
                series.c, series.places, series.watching, layout.lanes, switches, now.order - 1, whole
            )
            if s <= 1:
                s = whole * s
                if s != 0:
                    s = polished(
                        series.at,
                        now.piece,
                        now.time,
                        now.unit,
                        now.order,
                        layout.switches[which],
                        point.switches[which],
                        switches.signs[which],
                        whole,
                        s,
                    )
                now.step = abs(verified_step(series.at, now.piece, now.time, now.unit, now.order, s, task.goal))
                now.crossed = now.step == abs(s)
                switches.fired[0] = which
    h, ahead = now.step * now.unit, abs(now.stop - now.time)
    now.reached = now.stop if h * (1 + ROUNDING) >= ahead and not now.crossed else now.time + now.direction * h
    if switches is not None:
        if now.crossed:  # a requested time that differs by rounding alone is that of the switch
            now.reached = nearest_time(task.times, now.done, now.reached)
    if jumps is not None:
        now.jumping = not now.crossed and jumps.done[0] < len(jumps.times) and now.reached == jumps.times[jumps.done[0]]


@inlined
def commit(now, series, layout, point, task, arrays, switches):
    """Take down what is asked for on the step and move to its end: whether the solution goes on from there."""
    times, h, remaining = task.times, now.step * now.unit, abs(now.end - now.time)
    now.first = now.done
    while now.done < len(times) and now.direction * (times[now.done] - now.reached) <= 0:
        if times[now.done] == now.reached and (now.crossed or now.jumping):
            break
        now.done += 1
    unresolved = h < RESOLUTION * abs(now.time) or now.reached == now.time
    lost = now.done < len(times) and unresolved and not now.crossed and not now.jumping
    if lost and now.step >= LONGEST:
        # What has decayed to nothing would double sooner than a time can tell, which says nothing of the solution.
        now.unit, now.done, now.open_end, now.probe = h, now.first, False, now.steps
        return False
    now.small = (remaining > task.many * h and now.step == now.natural) or lost
    now.smooth = now.small and is_smooth(
        series.c, layout, arrays.scales, now.natural, now.natural / task.tolerance ** (1 / now.order)
    )
    if lost:
        now.status, now.done = (STIFF if now.smooth else COLLAPSED), now.first
        return False
    sample(series.c, layout, now.order, now.time, now.unit, times, now.first, now.done, arrays.trajectory)
    observe(
        arrays.point_memory, point, task.drive, times, now.first, now.done, arrays.trajectory, arrays.outputs,
        task.tables, 0,
    )  # fmt: skip
    if now.done == len(times):
        now.status, now.time = REACHED, now.end
        return False
    step = (now.reached - now.time) / now.unit
    keep(series.at, now.order, step, task.rows, task.slopes)
    move(series.c, layout, now.order, step)
    now.open_end, now.before = not now.repeated and now.reached != now.stop, now.time
    now.unit_before, now.length, now.time = now.unit, h, now.reached
    if switches is not None:
        for i in range(series.watching):
            switches.zeros[i] = 0
    return True


@inlined
def cross(now, series, layout, task, arrays, this, that, crossing, parameters, states):
    """Let the solution go on in its other mode, where that is simple: whether it is."""
    times = task.times
    if not may_pass(crossing, this.switches.fired[0], now.time) or times[now.done] == now.time:
        return False
    unload(series.c, layout, states)
    if task.driven:
        steer(series.c, layout, task.drive, now.piece, now.time, 1.0)
        steer(pointer(that.memory), that.layout, task.drive, now.piece, now.time, 1.0)
    return pass_over(series.c, this, that, crossing, parameters, states, arrays, now.time, now.direction, task.plain)


@inlined
def handle(now, series, layout, point, task, arrays, jumps, switches, states):
    """Let all jumps happen where the step ends, and take up the next piece of the inputs."""
    after = now.piece
    if task.driven and now.reached == now.knot and now.knot != now.end:
        after = now.piece + np.int64(now.direction)
    if jumps is not None:
        if now.jumping and jumps.pauses == STOP:
            now.status = PAUSED
            return
    now.unit = max(now.unit, now.length)
    if jumps is not None:
        if now.jumping:
            jump(now, series, layout, point, task, arrays, jumps, switches, states, after)
    now.piece = after


@inlined
def jump(now, series, layout, point, task, arrays, jumps, switches, states, after):
    """Let all jumps at this time happen, unless Python is to be asked about one."""
    unload(series.c, layout, states)
    happened, now.done = pass_jumps(
        series.c,
        layout,
        series.at.point,
        point,
        task.drive,
        now.piece,
        after,
        jumps,
        switches,
        states,
        arrays,
        task.times,
        now.done,
        now.time,
        task.tables,
    )
    now.fresh, now.calm, now.slow, now.limit = True, 0, 0, np.inf
    if not happened:
        now.status = PAUSED
    elif now.done == len(task.times):
        now.status = REACHED


@inlined
def diagnose(now, task):
    """End where small steps follow each other: they are held down by stability, or implicit ones may be cheaper."""
    now.unit = now.length
    now.calm, now.slow = (now.calm + 1 if now.smooth else 0), (now.slow + 1 if now.small else 0)
    if now.slow == 1:
        now.steady = _STEADY * now.length
    if now.calm >= PATIENCE:
        now.status = STIFF
    elif now.slow >= task.patience:
        if now.length > now.steady:
            now.status = SLOW
        now.slow = 0


@plain_entry
def integrate(
    layout,
    point,
    constants,
    parameters,
    states,
    drive,
    start,
    times,
    limits,
    work,
    tables,
    arrays,
    jumps,
    switches,
    crossing,
):
    """States and outputs at `times`, which lead away from `start` in one direction.

    `layout` holds series and `point` single values; `parameters` and `states` are rows of value and tangents, and
    `states` is left at the time reached; `drive` holds the sampled inputs.  Limits are the tolerance, the number of
    steps, and after how many steps, so small that how many more would follow, a trajectory is called slow.  The memory
    comes from `Arrays`.  What is asked for at the time of a jump is what holds before the first one there that follows
    it; where a switching function loses its sign at a time that is asked for, Python is to say what holds there.
    Returns (status, times done, time reached, steps, their order and last length).

    Models without events have None for `jumps`, `switches` and `crossing`: what these need is compiled for others only.
    Past the switching function of a crossing the solution goes on in its other mode.
    """
    tolerance, max_steps, many, patience = limits
    reciprocals, highest = tables[1], np.int64(MAX_ORDER)
    integers, inverses = pointer(tables[0]), pointer(reciprocals)
    scaled, plain = (integers, inverses, pointer(arrays.advances)), (integers, inverses, inverses)
    series = series_of(layout, point, arrays.memory, arrays.point_memory, drive, tables, arrays.rates)
    goal, kept = max(_HOLDS, _LOSS * tolerance), arrays.kept
    slopes = pointer(kept[2 * len(states)])
    task = Task(
        times, drive, len(layout.inputs) > 0, tolerance, goal, many, patience, work, scaled, plain,
        pointer(arrays.scales), slopes, pointer(kept),
    )  # fmt: skip
    unmark(scaled)
    prepare(series.c, layout, constants, parameters, states, scaled, 0)
    for i in range(layout.dynamic):
        arrays.point_memory[i] = arrays.memory[i]
    now = arrays.now[0]
    begin(now, start, times[-1], max_steps)
    now.capped, now.direction = is_marked(scaled), (1.0 if now.end >= start else -1.0)
    set_out(now, task, highest)
    now.before = start
    now.piece = first_piece(drive.knots, start, now.direction)
    if crossing is not None:
        this = Side(layout, point, constants, arrays.memory, arrays.point_memory, switches)
        that = crossing.other
    if jumps is not None:
        if jumps.done[0] < len(jumps.times) and jumps.times[jumps.done[0]] == start and jumps.pauses == HAPPEN:
            now.reached, now.knot = start, now.end
            jump(now, series, layout, point, task, arrays, jumps, switches, states, now.piece)
    while is_going(now):
        if not propose(now, series, layout, task, arrays, reciprocals, jumps, switches):
            continue
        detect(now, series, layout, point, task, jumps, switches)
        if not commit(now, series, layout, point, task, arrays, switches):
            continue
        if now.crossed:
            now.status = SWITCHED
            if crossing is not None:
                if cross(now, series, layout, task, arrays, this, that, crossing, parameters, states):
                    this, that = that, this
                    layout, point, constants, memory, point_memory, switches = this
                    arrays = in_mode(arrays, memory, point_memory)
                    series = series_of(layout, point, memory, point_memory, drive, tables, arrays.rates)
                    now.status, now.allowed = GOING, now.allowed - SWITCHED_STEPS
                    set_out(now, task, highest)
        elif now.reached == now.stop:  # the length of this step says nothing about the solution
            handle(now, series, layout, point, task, arrays, jumps, switches, states)
        else:
            diagnose(now, task)
    unload(series.c, layout, states)
    # A last use keeps numba from freeing memory while pointers lead to it.
    arrays.advances[0] = 0.0
    arrays.memory[0] += 0.0
    return ended(now), now.done, now.time, now.steps, now.order, now.unit
