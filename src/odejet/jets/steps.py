"""Steps: a trajectory with its sensitivities, by Taylor series on the tape.

One step expands all states at the current time to order K (Jorba and Zou 2005), takes the largest step at which the
last two terms stay below the tolerance, evaluates the series at the requested times inside, and moves on.  Tangents
ride in the lanes of the same series, so sensitivities are those of the computed trajectory itself.  Series are in units
of the previous step, so that their coefficients neither overflow nor vanish, whatever the unit of time.  Sampled inputs
are polynomials between knots, and no step crosses one.  Events at known times happen on the way; where a switching
function loses its sign the solution stops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.caps import caps_matter, is_marked, unmark
from odejet.jets.crossings import Side, may_pass, pass_over
from odejet.jets.drive import first_piece, next_stop, steer
from odejet.jets.features import Checks, attentive_step, continues, is_plain, keep, proceed, take_back, verified_step
from odejet.jets.jumps import HAPPEN, STOP
from odejet.jets.kernel import MAX_ORDER, expand, prepare
from odejet.jets.lanes import kernel, peek, plain_entry, pointer, poke
from odejet.jets.points import point_of
from odejet.jets.records import observe, pass_jumps
from odejet.jets.roots import first_crossing, held_step, polished
from odejet.jets.series import evaluate, leading, lowest, sample, size_at

REACHED, STIFF, SLOW, COLLAPSED, NONFINITE, EXHAUSTED, SWITCHED, PAUSED = range(8)
"""How an integration ended: at the last time; at a step limited by stability and not by the solution; after many steps
with many more to go, where implicit ones may be worth a trial; at a step too small to be resolved; at a right-hand side
that is not finite; at the limit of steps; where a switching function loses its sign; before a jump."""

SWITCHED_STEPS = 4
"""Steps that a switch counts for: a mode that Python has to choose takes as long as dozens."""

PATIENCE = 30
"""Small steps in a row before an implicit method is asked for."""

_TANGENT_TOLERANCE = 1e3  # times the tolerance of the values
_RESOLUTION = 1e-14  # the smallest step, relative to the time
_SMOOTH = 1e-4  # third terms below this, relative to the states, are no reason for a small step
_STEADY = 0.3  # a step that shrinks by more, while patience lasts, is on its way to a pole
_LONGEST = 1e6  # a step in units of the one before: powers of it must not overflow
_ROUNDING = 1e-15  # a step that is shorter than what is left by no more than this reaches the end
_HOLDS = 1e-12  # how well the equations are to hold inside a step, relative to each state
_LOSS = 1e4  # where the tolerance is loose: the terms of the order that are left out, times that order, and their sum
_CAUTION = 2.0  # the growth of a step after one that was shortened by what it met
_WATCHING = 20  # the least order where switching functions are watched, which need not be as simple as the solution
_BEGUN = 4  # orders that a series goes on after its first term, at least
_VANISHED = 1e-200  # below this the high orders of a series underflow; no quantity of a model is so small


@kernel
def shortened(c, place, k, lanes, h, tolerance):
    """The step h, or the longest at which term k is below the tolerance relative to the first terms of its series.

    A series that has only begun tells nothing.
    """
    last = abs(peek(c, place + k * lanes))
    if last * h**k <= tolerance * size_at(c, place, lanes, k, h):
        return h
    longest, first = 0.0, leading(c, place, lanes, k)
    for j in range(first, first + _BEGUN if first + _BEGUN <= k else first):
        term = abs(peek(c, place + j * lanes))
        if term > 0:
            longest = max(longest, (tolerance * term / last) ** (1 / (k - j)))
    return min(h, longest) if longest > 0 else h


@kernel
def step_size(c, layout, scales, order, tolerance, longest):
    """The largest step at which terms order-1 and order of all values and tangents are below their tolerances; the
    second result tells whether there were such terms at all, and none of a series that has only begun."""
    lanes = layout.lanes
    h, seen, late = longest, False, False
    for i in range(len(layout.states)):
        x = layout.states[i]
        if x >= layout.dynamic:
            late = late or order - _BEGUN < leading(c, x, lanes, order) <= order
            for lane in range(lanes):
                goal = tolerance if lane == 0 else _TANGENT_TOLERANCE * tolerance
                for k in range(order - 1, order + 1):
                    if peek(c, x + k * lanes + lane) != 0:
                        h, seen = shortened(c, x + lane, k, lanes, h, goal), True
    for i in range(len(layout.states)):
        scales[i] = size_at(c, layout.states[i], lanes, order, h) if layout.states[i] >= layout.dynamic else 0.0
    return h, seen and not late


@kernel
def guarded_step(c, layout, order, h):
    """The step, halved until no logarithm, root or real power leaves its branch.

    A series may run on smoothly through a branch point, as (1 - t/2)^2 solves x' = -sqrt(x) only up to t = 2.
    """
    for i in range(len(layout.guards)):
        place, tries = layout.guards[i], 0
        while tries < 60:
            total, start = 0.0, peek(c, place)
            for k in range(order - 1, -1, -1):
                total = total * h + peek(c, place + k * layout.lanes)
            if start == 0 or (total > 0 if start > 0 else total < 0):  # their product might underflow
                break
            h, tries = 0.5 * h, tries + 1
    return h


@kernel
def best_order(c, layout, tolerance, longest, density, work):
    """The order at which a unit of time costs least, from series known to MAX_ORDER, and the longest step it allows.

    `work` holds the cost of a step that is constant, linear and quadratic in the order, and of a requested time per
    order; `density` is the number of requested times per unit of time.  A step is bounded by all terms that an order
    leaves out, since the first of them may happen to vanish.  No series may end where it has only begun.
    """
    best, least, allowed, bound = MAX_ORDER, np.inf, longest, longest
    for order in range(MAX_ORDER, 6, -1):
        for i in range(len(layout.states)):
            if layout.states[i] >= layout.dynamic:
                size, last = abs(peek(c, layout.states[i])), abs(peek(c, layout.states[i] + order * layout.lanes))
                if size == 0:
                    if order < leading(c, layout.states[i], layout.lanes, np.int64(MAX_ORDER)) + _BEGUN <= MAX_ORDER:
                        return best, allowed
                    size = size_at(c, layout.states[i], layout.lanes, order, bound)
                if last > 0 and size > 0:
                    bound = min(bound, (tolerance * size / last) ** (1 / order))
        above = order + 1  # the bound now holds for a series that ends here
        if above <= MAX_ORDER:
            effort = (work[0] + work[1] * above + work[2] * above * above) / bound + density * work[3] * above
            if effort < least:
                best, least, allowed = above, effort, bound
    return best, allowed


@kernel
def finite(c, layout, order):
    for i in range(len(layout.states)):
        for lane in range(layout.lanes):
            if not np.isfinite(peek(c, layout.states[i] + lane)):
                return False
            if layout.states[i] >= layout.dynamic:
                if not np.isfinite(peek(c, layout.states[i] + order * layout.lanes + lane)):
                    return False
    return True


@kernel
def is_smooth(c, layout, scales, h, radius):
    """Whether the third terms of all values and tangents at the radius of convergence are small.

    Near a singularity the terms of a series are alike there, from the first on.  Where a stiff solution limits the
    radius, its low orders know nothing of it.
    """
    lanes = layout.lanes
    for i in range(len(layout.states)):
        if scales[i] > 0:
            for lane in range(lanes):
                x = layout.states[i] + lane
                size = scales[i] if lane == 0 else lowest(c, x, lanes, h)
                if abs(peek(c, x + 3 * lanes)) * radius**3 > _SMOOTH * size:
                    return False
    return True


@kernel
def first_unit(c, layout, longest):
    """The time in which a state would change by its own size, from series to first order in units of one."""
    unit = longest
    for i in range(len(layout.states)):
        if layout.states[i] >= layout.dynamic:
            size, rate = abs(peek(c, layout.states[i])), abs(peek(c, layout.states[i] + layout.lanes))
            if size > 0 and rate * unit > size:
                unit = size / rate
    return unit


@kernel
def move(c, layout, order, h):
    """All states to the end of the step; what has all but vanished is zero from then on."""
    for i in range(len(layout.states)):
        x = layout.states[i]
        if x >= layout.dynamic:
            evaluate(c, x, order, layout.lanes, h, c, x)
            for lane in range(layout.lanes):
                if abs(peek(c, x + lane)) < _VANISHED:
                    poke(c, x + lane, 0.0)


class Arrays(NamedTuple):
    """The memory of an integration, which Python allots: compiling that would take longer than a whole fit."""

    memory: np.ndarray
    point_memory: np.ndarray
    advances: np.ndarray
    scales: np.ndarray
    rates: np.ndarray  # where a step is checked
    kept: np.ndarray  # of the step before, for when it is to be shortened
    trajectory: np.ndarray
    outputs: np.ndarray


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
        if abs(times[i] - t) <= 2 * _ROUNDING * abs(t):
            return times[i]
        if abs(times[i] - times[first]) > abs(t - times[first]):
            break
    return t


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
    lanes, modulus, reciprocals = layout.lanes, 0, tables[1]
    memory, point_memory, advances, scales, rates, kept, trajectory, outputs = arrays
    c, pointers = pointer(memory), (pointer(tables[0]), pointer(reciprocals), pointer(advances))
    unmark(pointers)
    prepare(c, layout, constants, parameters, states, pointers, modulus)
    capped = is_marked(pointers)
    for i in range(layout.dynamic):
        point_memory[i] = memory[i]
    at = Checks(c, pointer(layout.states), point_of(point, point_memory, drive, tables), pointer(rates))
    watched, watches, goal = pointer(layout.watched), len(layout.watched), max(_HOLDS, _LOSS * tolerance)
    sizes, slopes, rows = pointer(scales), pointer(kept[2 * len(states)]), pointer(kept)

    t, end = start, times[-1]
    direction, span = (1.0 if end >= start else -1.0), abs(end - start)
    density = len(times) / max(span, 1e-300)
    # Named integers: numba would compile the kernels below anew for every literal.
    none, first_order, highest = np.int64(0), np.int64(1), np.int64(MAX_ORDER)
    status, done, steps, probe, order = np.int64(EXHAUSTED), none, none, none, highest
    calm, slow, steady, limit = none, none, 0.0, np.inf
    knots, driven = drive.knots, len(layout.inputs) > 0
    piece = first_piece(knots, t, direction)
    places, watching = pointer(layout.switches), len(layout.switches)
    begun, plain = none, (pointers[0], pointers[1], pointers[1])
    if crossing is not None:
        this, that = Side(layout, point, constants, memory, point_memory, switches), crossing.other
    if jumps is not None:
        if jumps.done[0] < len(jumps.times) and jumps.times[jumps.done[0]] == start and jumps.pauses == HAPPEN:
            _, done = pass_jumps(
                c,
                layout,
                at.point,
                point,
                drive,
                piece,
                piece,
                jumps,
                switches,
                states,
                arrays,
                times,
                done,
                t,
                pointers,
            )
            if done == len(times):
                status, max_steps = np.int64(REACHED), none
    unit, fresh, crossed, jumping = 1.0, True, False, False
    # The step before, until the equations are seen to hold at its end: where it began and its unit and length.
    open_end, before, unit_before, length, first, guarded = False, t, unit, 0.0, none, 0.0
    while steps < max_steps:
        if fresh:  # where a solution begins or goes on after a jump, its unit of time is not known
            for k in range(len(advances)):
                advances[k] = reciprocals[k]
            if driven:
                steer(c, layout, drive, piece, t, 1.0)
            expand(c, layout, t, none, first_order, layout.split[1], pointers, modulus)
            unit, fresh = first_unit(c, layout, max(abs(end - t), 1e-300)), False
        for k in range(len(advances)):
            advances[k] = unit * reciprocals[k]
        if driven:  # a call is not free: numba counts references to all arrays of a layout
            steer(c, layout, drive, piece, t, unit)
        if not capped:
            unmark(pointers)
        expand(c, layout, t, none, first_order, layout.split[1], pointers, modulus)
        if is_marked(pointers):
            proceed(at, piece, t, unit, none, 0.0, 0.0)
            if caps_matter(at.point, piece, t, at.rates):
                status = NONFINITE
                break
        repeated = open_end and not continues(at, slopes, sizes, unit_before, unit, length, goal)
        if repeated:
            take_back(at, rows)
            t, unit, done = before, unit_before, first
            h = verified_step(at, piece, t, unit, order, direction * length / unit, goal)
            noticed = abs(h)
        else:
            # The best order depends on the solution; it is looked for again after 8, 16, 32 ... steps.
            probing = steps == probe
            if probing:
                order, probe = highest, begun + max(8, 2 * (steps - begun))
            expand(c, layout, t, first_order, order, layout.split[1], pointers, modulus)
            if not finite(c, layout, order):
                # Perhaps only the powers of the unit are too large.
                if finite(c, layout, first_order) and unit > _RESOLUTION * abs(t):
                    unit, probe, steps, open_end = 1e-3 * unit, steps + 1, steps + 1, False
                    continue
                status = NONFINITE
                break
        knot = next_stop(knots, piece, direction, end) if driven else end
        stop = knot
        if jumps is not None:
            if jumps.done[0] < len(jumps.times) and direction * (jumps.times[jumps.done[0]] - stop) <= 0:
                stop = jumps.times[jumps.done[0]]
        remaining, ahead = abs(end - t), abs(stop - t)
        if not repeated:
            longest = min(ahead / unit, _LONGEST)
            if probing:
                order, longest = best_order(c, layout, tolerance, longest, density * unit, work)
                if switches is not None and watching > 0:
                    order = max(order, np.int64(_WATCHING))
            h, seen = step_size(c, layout, scales, order, tolerance, longest)
            if not seen and not probing:  # perhaps terms beyond this order do not vanish
                probe, open_end = steps, False
                continue
            h = min(h, 0.125 * span / unit) if not seen else h
            guarded = abs(guarded_step(c, layout, order, direction * h))
            if guarded < h and guarded * unit < _RESOLUTION * span:
                status = NONFINITE
                break
            noticed, steps = min(guarded, limit / unit), steps + 1
            if switches is not None and watching > 0:
                noticed = held_step(c, places, watching, lanes, switches, order, noticed)
            if not is_plain(c, watched, watches, lanes, order, noticed):
                noticed = abs(attentive_step(at, watched, watches, piece, t, unit, order, direction * noticed, goal))
            if noticed * unit * (1 + _ROUNDING) >= ahead:  # no further series will tell
                noticed = abs(verified_step(at, piece, t, unit, order, direction * noticed, goal))
        limit = np.inf if noticed == guarded else _CAUTION * noticed * unit
        crossed = False
        if switches is not None and watching > 0:
            s, which = first_crossing(c, places, watching, lanes, switches, order - 1, direction * noticed)
            if s <= 1:
                s = direction * noticed * s
                if s != 0:
                    s = polished(
                        at,
                        piece,
                        t,
                        unit,
                        order,
                        layout.switches[which],
                        point.switches[which],
                        switches.signs[which],
                        direction * noticed,
                        s,
                    )
                noticed = abs(verified_step(at, piece, t, unit, order, s, goal))
                crossed = noticed == abs(s)
                switches.fired[0] = which
        h = noticed * unit
        reached = stop if h * (1 + _ROUNDING) >= ahead and not crossed else t + direction * h
        if switches is not None and crossed:  # a requested time that differs by rounding alone is that of the switch
            reached = nearest_time(times, done, reached)
        if jumps is not None:
            jumping = not crossed and jumps.done[0] < len(jumps.times) and reached == jumps.times[jumps.done[0]]
        first = done
        while done < len(times) and direction * (times[done] - reached) <= 0:
            if times[done] == reached and (crossed or jumping):
                break
            done += 1
        lost = done < len(times) and (h < _RESOLUTION * abs(t) or reached == t) and not crossed and not jumping
        if lost and noticed >= _LONGEST:
            # What has decayed to nothing would double sooner than a time can tell, which says nothing of the solution.
            unit, done, open_end, probe = h, first, False, steps
            continue
        small = (remaining > many * h and noticed == guarded) or lost
        smooth = small and is_smooth(c, layout, scales, guarded, guarded / tolerance ** (1 / order))
        if lost:
            status, done = (STIFF if smooth else COLLAPSED), first
            break
        sample(c, layout, order, t, unit, times, first, done, trajectory)
        observe(point_memory, point, drive, times, first, done, trajectory, outputs, pointers, modulus)
        if done == len(times):
            status, t = REACHED, end
            break
        keep(at, order, (reached - t) / unit, rows, slopes)
        move(c, layout, order, (reached - t) / unit)
        open_end, before, unit_before, length = not repeated and reached != stop, t, unit, h
        t = reached
        if switches is not None:
            for i in range(watching):
                switches.zeros[i] = 0
        if crossed:
            if crossing is not None:
                if may_pass(crossing, switches.fired[0], t) and times[done] != t:
                    unload(c, layout, states)
                    if driven:
                        steer(c, layout, drive, piece, t, 1.0)
                        steer(pointer(that.memory), that.layout, drive, piece, t, 1.0)
                    if pass_over(c, this, that, crossing, parameters, states, arrays, t, direction, plain):
                        this, that = that, this
                        layout, point, constants, memory, point_memory, switches = this
                        arrays = Arrays(memory, point_memory, advances, scales, rates, kept, trajectory, outputs)
                        c, places, watching = pointer(memory), pointer(layout.switches), len(layout.switches)
                        at = Checks(c, pointer(layout.states), point_of(point, point_memory, drive, tables), at.rates)
                        watched, watches = pointer(layout.watched), len(layout.watched)
                        for i in range(len(scales)):
                            scales[i] = 0.0
                        begun, probe, max_steps, order = steps, steps, max_steps - SWITCHED_STEPS, highest
                        span, calm, slow, limit = abs(end - t), none, none, np.inf
                        density = (len(times) - done) / max(span, 1e-300)
                        unit, fresh, open_end, guarded = 1.0, True, False, 0.0
                        continue
            status = SWITCHED
            break
        if jumps is not None and jumping and jumps.pauses == STOP:
            status = PAUSED
            break
        if reached == stop:  # the length of this step says nothing about the solution
            after = piece + np.int64(direction) if driven and reached == knot and knot != end else piece
            unit = max(unit, h)
            if jumps is not None and jumping:
                unload(c, layout, states)
                happened, done = pass_jumps(
                    c,
                    layout,
                    at.point,
                    point,
                    drive,
                    piece,
                    after,
                    jumps,
                    switches,
                    states,
                    arrays,
                    times,
                    done,
                    t,
                    pointers,
                )
                if not happened:
                    status = PAUSED
                    break
                fresh, calm, slow, limit = True, none, none, np.inf
                if done == len(times):
                    status = REACHED
                    break
            piece = after
            continue
        unit = h
        calm, slow = (calm + 1 if smooth else 0), (slow + 1 if small else 0)
        if slow == 1:
            steady = _STEADY * h
        if calm >= PATIENCE:
            status = STIFF
            break
        if slow >= patience:
            if h > steady:
                status = SLOW
                break
            slow = none
    unload(c, layout, states)
    # A last use keeps numba from freeing memory while pointers lead to it.
    advances[0] = 0.0
    memory[0] += 0.0
    return status, done, t, steps, order, unit
