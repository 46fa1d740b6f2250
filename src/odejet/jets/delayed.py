"""Delayed: trajectories of equations that look back in time, by the method of steps on Taylor series.

Delayed values are known series wherever a step begins, for they are polynomials of steps that were taken before, or of
the history.  A step ends at the latest where one of these pieces does, and at every stop, where a delayed value comes
to another segment of the past.  Where rates jump at a stop whose time depends on unknowns, tangents jump by

    dx+ - dx- = (f- - f+) dt

as they do at events.  Every step becomes a piece of the past itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.caps import own_tables, unmark
from odejet.jets.direct import Benches, Direct
from odejet.jets.kernel import MAX_ORDER, TABLES, Layout, expand, lay_out, prepare
from odejet.jets.lanes import WIDTH, kernel, load, peek, plain_entry, pointer, poke, store
from odejet.jets.lengths import finite, first_unit, guarded_step, is_smooth, move, step_size
from odejet.jets.past import CENTRE, HIGH, LOW, UNIT, Past, Sources, Stops, recall, recall_value
from odejet.jets.series import sample
from odejet.jets.shared import run
from odejet.jets.stepper import COLLAPSED, EXHAUSTED, FULL, NONFINITE, PAUSED, REACHED, STIFF
from odejet.jets.steps import PATIENCE, unload
from odejet.model.tape import Tape

SEEN = 2
"""What happens at a stop comes before what is asked for at its time."""

_RESOLUTION = 1e-14  # the smallest step, relative to the time
_ROUNDING = 1e-12  # a step that is shorter than what is left by no more than this, relative to the times, reaches it
_BEYOND = 1e-3  # of a step
_LONGEST = 1e6  # a step in units of the one before
_FARTHER = 4.0  # how far beyond the next stop the reach of a step is looked for, relative to the way to it
_HOLDS, _LOSS = (
    1e-12,
    1e3,
)  # how well equations are to hold at the end of a step; times the tolerance where that is loose
_HALVINGS = 8
_MANY = 600  # small steps still to go that stability alone may be the reason for
_NOTHING = 1e-150  # no quantity of a model is so small


class Arrays(NamedTuple):
    """The memory of an integration, which Python allots."""

    memory: np.ndarray
    point_memory: np.ndarray
    advances: np.ndarray
    scales: np.ndarray
    rates: np.ndarray
    trajectory: np.ndarray
    outputs: np.ndarray


@kernel
def look_back(memory, layout, past, sources, segments, t):
    """The delayed values at t into the registers of a point."""
    p = pointer(memory)
    for q in range(len(sources.kinds)):
        recall_value(p, layout.inputs[q], layout.lanes, past, sources, q, segments[q], t)
    poke(p, layout.time, t)


@kernel
def find_rates(memory, layout, past, sources, segments, t, tables):
    """Time derivatives of the states in the registers of a point, as the first orders of these."""
    look_back(memory, layout, past, sources, segments, t)
    run(
        pointer(memory),
        pointer(layout.code),
        pointer(layout.terms),
        layout.split[0],
        layout.split[1],
        0,
        layout.dynamic,
        layout.lanes,
        tables,
        0,
    )


@kernel
def holds(c, layout, arrays, point, past, sources, segments, t, unit, order, h, goal, tables):
    """Whether the series solve the equations at step h."""
    lanes = layout.lanes
    p = pointer(arrays.point_memory)
    for i in range(len(layout.states)):
        x = layout.states[i]
        if x >= layout.dynamic:
            total, rate = 0.0, 0.0
            for k in range(order, -1, -1):
                rate = rate * h + total
                total = total * h + peek(c, x + k * lanes)
            for lane in range(lanes):
                poke(p, point.states[i] + lane, 0.0)
            poke(p, point.states[i], total)
            arrays.rates[i] = rate / unit
    find_rates(arrays.point_memory, point, past, sources, segments, t + h * unit, tables)
    for i in range(len(layout.states)):
        if layout.states[i] >= layout.dynamic:
            left = abs(peek(p, point.states[i] + lanes) - arrays.rates[i]) * abs(h) * unit
            if not left <= goal * arrays.scales[i] + _NOTHING:
                return False
    return True


@kernel
def observe(layout, past, sources, segments, times, first, last, arrays, tables):
    """All outputs at times[first:last], from the states there."""
    c, lanes, n, q = pointer(arrays.point_memory), layout.lanes, len(layout.states), len(layout.outputs)
    code, terms = pointer(layout.observe), pointer(layout.terms)
    source, target = pointer(arrays.trajectory), pointer(arrays.outputs)
    for i in range(first, last):
        look_back(arrays.point_memory, layout, past, sources, segments, times[i])
        for s in range(n):
            if layout.states[s] >= layout.dynamic:
                for lane in range(0, lanes, WIDTH):
                    store(c, layout.states[s] + lane, load(source, (i * n + s) * lanes + lane))
        run(c, code, terms, 0, len(layout.observe), 0, layout.dynamic, lanes, tables, 0)
        for j in range(q):
            for lane in range(0, lanes, WIDTH):
                store(target, (i * q + j) * lanes + lane, load(c, layout.outputs[j] + lane))


@kernel
def remember(c, layout, past, t, unit, order, low, high):
    """Keep the series of a step as a piece of the past."""
    piece, lanes, orders = past.position[0], layout.lanes, past.coefficients.shape[2]
    past.spans[piece, CENTRE], past.spans[piece, UNIT] = t, unit
    past.spans[piece, LOW], past.spans[piece, HIGH] = low, high
    target = pointer(past.coefficients)
    for d in range(len(past.rows)):
        x, first = layout.states[past.rows[d]], (piece * len(past.rows) + d) * orders * lanes
        for k in range(order + 1 if x >= layout.dynamic else 1):
            for lane in range(0, lanes, WIDTH):
                store(target, first + k * lanes + lane, load(c, x + k * lanes + lane))
    past.position[0] = piece + 1


@kernel
def leave(c, layout, point, past, sources, stops, arrays, t, tables):
    """Go on from a stop with delayed values in other segments; tangents jump with the rates."""
    lanes, stop = layout.lanes, past.position[2]
    p = pointer(arrays.point_memory)
    for turn in range(2):
        if stops.jumping[stop]:
            for i in range(len(layout.states)):
                if layout.states[i] >= layout.dynamic:
                    for lane in range(lanes):
                        poke(p, point.states[i] + lane, peek(c, layout.states[i] + lane))
            find_rates(arrays.point_memory, point, past, sources, stops.segments[stop + turn], t, tables)
            for i in range(len(layout.states)):
                x = layout.states[i]
                if x >= layout.dynamic and turn == 0:
                    arrays.rates[i] = peek(p, point.states[i] + lanes)
                elif x >= layout.dynamic:
                    jump = arrays.rates[i] - peek(p, point.states[i] + lanes)
                    for lane in range(1, lanes):
                        poke(c, x + lane, peek(c, x + lane) + jump * stops.moved[stop, lane])
        if turn == 0 and stops.boundaries[stop]:
            past.position[1] += 1
            past.firsts[past.position[1]] = past.position[0]
    past.position[2] = stop + 1


@plain_entry
def integrate(layout, point, constants, parameters, states, past, sources, stops, start, times, limits, tables, arrays):
    """States and outputs at `times` after `start`, as `steps.integrate`; the past says at which stop the solution is.

    Limits are the tolerance, the order and the number of steps.  Returns (status, times done, time reached, steps).
    """
    tolerance, order, max_steps = limits
    reciprocals = tables[1]
    memory, point_memory, advances, scales = arrays.memory, arrays.point_memory, arrays.advances, arrays.scales
    c, pointers = pointer(memory), (pointer(tables[0]), pointer(reciprocals), pointer(advances))
    plain = pointer(tables[0]), pointer(reciprocals), pointer(reciprocals)
    unmark(pointers)
    prepare(c, layout, constants, parameters, states, pointers, 0)
    for i in range(layout.dynamic):
        point_memory[i] = memory[i]
    none, t, end, done, steps, status = np.int64(0), start, times[-1], np.int64(0), np.int64(0), np.int64(EXHAUSTED)
    unit, fresh, calm, goal = 1.0, True, np.int64(0), max(_HOLDS, _LOSS * tolerance)
    while steps < max_steps:
        segments = stops.segments[past.position[2]]
        stop = stops.times[past.position[2]] if past.position[2] < len(stops.times) else end
        ahead = min(stop, end) - t
        if past.position[0] == len(past.spans):
            status = np.int64(FULL)
            break
        if fresh:
            for k in range(len(advances)):
                advances[k] = reciprocals[k]
            for q in range(len(sources.kinds)):
                recall(c, layout.inputs[q], layout.lanes, past, sources, q, segments[q], t, order, 1.0)
            expand(c, layout, t, none, np.int64(1), layout.split[1], pointers, 0)
            unit, fresh = first_unit(c, layout, max(ahead, 1e-300)), False
        low, high = -np.inf, np.inf
        for k in range(len(advances)):
            advances[k] = unit * reciprocals[k]
        for q in range(len(sources.kinds)):
            back, reach = recall(c, layout.inputs[q], layout.lanes, past, sources, q, segments[q], t, order, unit)
            low, high = max(low, back), min(high, reach)
        expand(c, layout, t, none, order, layout.split[1], pointers, 0)
        if not finite(c, layout, order):
            # Perhaps only the powers of the unit are too large.
            if finite(c, layout, np.int64(1)) and unit > _RESOLUTION * max(abs(t), abs(end - start)):
                unit, steps = 1e-3 * unit, steps + 1
                continue
            status = np.int64(NONFINITE)
            break
        natural, _ = step_size(c, layout, scales, order, tolerance, min(_FARTHER * ahead / unit, _LONGEST))
        natural = abs(guarded_step(c, layout, order, natural))
        whole = min(ahead, high - t) / unit
        h, tries = min(natural, whole), 0
        while tries < _HALVINGS and not (
            holds(c, layout, arrays, point, past, sources, segments, t, unit, order, h, goal, plain)
            and holds(c, layout, arrays, point, past, sources, segments, t, unit, order, 0.5 * h, goal, plain)
        ):
            h, natural, tries = 0.5 * h, 0.5 * h, tries + 1
        steps += 1
        # A little beyond its reach a series is as good, and a step as short as rounding would lead nowhere.
        beyond = min(_ROUNDING * max(abs(start), abs(end)), _BEYOND * h * unit)
        reached = min(stop, end) if h * unit + beyond >= ahead else t + h * unit
        if t < end and (reached == t or h * unit < _RESOLUTION * abs(t)):
            status = np.int64(COLLAPSED)
            break
        first = done
        early = reached == stop and past.position[2] < len(stops.times) and stops.pauses[past.position[2]] == SEEN
        while done < len(times) and (times[done] < reached or (times[done] == reached and not early)):
            done += 1
        remember(c, layout, past, t, unit, order, max(low, t - natural * unit), min(high, t + natural * unit, stop))
        sample(c, layout, order, t, unit, times, first, done, arrays.trajectory)
        observe(point, past, sources, segments, times, first, done, arrays, plain)
        small = end - reached > _MANY * h * unit and h == natural
        smooth = small and is_smooth(c, layout, scales, h, h / tolerance ** (1 / order))
        move(c, layout, order, (reached - t) / unit)
        unit, t = (max(unit, (reached - t)) if h < natural else reached - t), reached
        if done == len(times):
            status = np.int64(REACHED)
            break
        if reached == stop and past.position[2] < len(stops.times):
            if stops.pauses[past.position[2]] > 0:
                status = np.int64(PAUSED)
                break
            leave(c, layout, point, past, sources, stops, arrays, t, plain)
        calm = calm + 1 if smooth else none
        if calm >= PATIENCE:
            status = np.int64(STIFF)
            break
    unload(c, layout, states)
    # A last use keeps numba from freeing memory while pointers lead to it.
    advances[0] = 0.0
    memory[0] += 0.0
    return status, done, t, steps


_INTEGRATE = Direct(integrate)


class Plan(NamedTuple):
    """What all trajectories of a tape have in common that have as many lanes."""

    layouts: tuple[Layout, Layout]
    benches: Benches

    def shapes(self) -> dict[str, tuple[int, ...]]:
        series, point = self.layouts
        states = len(series.states)
        return {
            "memory": (series.size,),
            "point_memory": (point.size,),
            "advances": TABLES[1].shape,
            "scales": (states,),
            "rates": (states,),
        }


def steps_along(
    tape: Tape,
    rows: tuple[np.ndarray, np.ndarray],
    back: tuple[Past, Sources, Stops],
    start: float,
    times: np.ndarray,
    limits: tuple[float, int, int],
    found: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int, float, int]:
    """Call `integrate` on a tape, with rows of parameters and states; the latter are left at the time reached."""
    parameters, states = rows
    key = "delayed", states.shape[1]
    if key not in tape.layouts:
        lanes = states.shape[1]
        layouts = lay_out(tape, lanes, MAX_ORDER + 1, True), lay_out(tape, lanes, 2, True)
        tape.layouts[key] = Plan(layouts, Benches())
    plan = tape.layouts[key]
    arrays = Arrays._make((*plan.benches.cleared(plan.shapes, lambda made: tuple(made.values())), *found))
    status, done, time, steps = _INTEGRATE(
        *plan.layouts,
        tape.constant_values,
        parameters,
        states,
        *back,
        float(start),
        np.ascontiguousarray(times, dtype=float),
        limits,
        own_tables(),
        arrays,
    )
    return int(status), int(done), float(time), int(steps)
