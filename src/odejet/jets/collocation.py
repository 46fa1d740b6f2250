"""Collocation: stiff trajectories with their sensitivities, in large implicit steps.

Where a solution is smooth but explicit steps must stay tiny for stability, the states on a step of length h are a
polynomial that satisfies the equations at the points of a Radau rule:

    Z_i = x + h sum_j A_ij f(t + c_j h, Z_j)

Newton's method with one Jacobian for all stages solves it in one real and a few complex systems of the size of the
model (see `radau`).  A step is accepted when the coefficients of its polynomial in Legendre's basis decay so that the
first which it lacks is of the size of the tolerance, and when no function of the tape hides a change between the points
(see `features`).  Then follow the sensitivities of the stages: the same factors solve their linear equations, with
exact derivatives at every stage, until they are the derivatives of the computed trajectory itself.  They may move where
values are at rest, as oscillations do that nothing has set off, so that their polynomials are to decay alike.  Where a
switching function loses its sign inside a step, the step is taken again to end there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.abreast import find_rates_abreast, take_statics
from odejet.jets.caps import caps_matter, is_marked, own_tables, unmark
from odejet.jets.direct import Benches, Direct
from odejet.jets.drive import Drive
from odejet.jets.inspection import GRAIN_OF_TIME, SHORTEST, aimed, attentive_part, is_at
from odejet.jets.kept import NOT_KEPT, Kept, keep_step
from odejet.jets.kernel import Layout, lay_out, prepare
from odejet.jets.lanes import (
    entry,
    inlined,
    kernel,
    padded,
    peek,
    pointer,
    poke,
)
from odejet.jets.points import Point, point_of
from odejet.jets.polynomial import (
    analyse,
    analyse_tangents,
    extrapolate_tangents,
    look_ahead,
    sample,
    start_next,
)
from odejet.jets.radau import Radau, radau, stages_for
from odejet.jets.records import observe
from odejet.jets.roots import Switches
from odejet.jets.sparsity import Fill, fill_of, sparse_order
from odejet.jets.stages import (
    Work,
    begin_stages,
    decompose,
    differentiate,
    is_outgrown,
    measure,
    shapes_of,
    size_of,
    solve_stages,
)
from odejet.jets.stepper import COLLAPSED, GOING, NONFINITE, REACHED, SLOW, SWITCHED, begin, is_going, record
from odejet.jets.tangents import find_slight, solve_tangents
from odejet.model.tape import Tape

_INSIDE = 4.0  # times the tolerance: what a polynomial may lack, since errors at the end of its step are far smaller
_LACKING = 1e-13  # what it may lack in any case: rounding of rates that cancel comes to that
_LACKING_TANGENTS = 1e-11  # the same of sensitivities
_GRAIN = 1e-6  # what sensitivities lack may be rounding if it is less
_FINER = 0.5  # and if a shorter step does not make so much less of it
_DENIALS = 12  # or if so many shorter ones have not helped
_FRESH = 0.02  # ratios of updates beyond which the Jacobian is computed again
_GROW = 4.0  # the limit of the growth of a step
_KEPT = 1.15  # a step that could grow by less keeps its length, and with it the factors
_SAFE = 0.8
_SHORT, _LENGTHENS = 5, 1.5  # steps in a row that are too short to be worth their effort and grow by less than that
_RESOLUTION = 1e-13  # the smallest step, relative to the time
_MEMORIES = "abreast", "slope", "force"  # of the layouts


NOW = record(
    {
        "length": float,  # of the step, which shows in which direction it leads
        "before": float,  # of the last one that was taken
        "decomposed": float,  # of the one for which the factors are; zero where there are none
        "ratio": float,  # of updates of Newton's method, as of late
        "failed": bool,  # whether that did not converge
        "goal": float,  # what polynomials of values may lack, and those of sensitivities
        "aim": float,
        "grain": float,  # what these lack by rounding
        "denials": int,  # of steps in a row by them, and what they lacked at the last
        "denied": float,
        "rough": float,  # what the polynomials of the step lack
        "tries": int,  # to end a step at a switch
        "short": int,  # steps in a row that are not worth their effort
    }
)


class Scheme(NamedTuple):
    """A rule on the equations of a model, and the memory of its steps."""

    point: Point  # with a lane per node
    slope: Point  # with one per colour of the Jacobian
    force: Point  # with those of the states
    rule: Radau
    work: Work
    moving: np.ndarray
    recorded: np.ndarray
    watched: np.ndarray


class StiffRequest(NamedTuple):
    """What is asked of a trajectory."""

    times: np.ndarray
    piece: int  # of the inputs
    tolerance: float
    least: float  # length of a step that is worth its effort
    with_tangents: bool
    kept: Kept


def collocate(
    tape: Tape,
    parameters: np.ndarray,
    states: np.ndarray,
    drive: Drive,
    piece: int,
    start: float,
    times: np.ndarray,
    tolerance: float,
    max_steps: int,
    least: float,
    tangents: bool,
    switches: Switches,
    stages: int | None = None,
    found: tuple[np.ndarray, np.ndarray] | None = None,
    kept: Kept = NOT_KEPT,
) -> tuple[np.ndarray, np.ndarray, float, int, bool]:
    """States and outputs at `times`, which lead away from `start`; and the time reached, how many steps it took, and
    whether a switching function lost its sign there.

    `parameters` and `states` are rows of value and tangents, of which the latter may be left out; the states are left
    at the time reached.  Sampled inputs are those of one piece.  Steps below `least` are not worth their effort.
    Rows of the times that are reached are written to what is to be `found`, if there is such a place, and steps to
    what is to be `kept` of them.
    """
    rule, lanes = radau(stages or stages_for(tolerance)), states.shape[1]
    plan = plan_of(tape, rule, lanes)
    work, memories, now = plan.benches.cleared(plan.shapes, plan.arranged, scratch=1)
    if found is None:
        found = np.empty((len(times), *states.shape)), np.empty((len(times), len(tape.outputs), lanes))
    done, reached, steps, crossed = _follow(
        plan.layouts,
        memories,
        (tape.constant_values, parameters),
        work,
        plan.recorded,
        plan.moving,
        states,
        rule,
        drive,
        int(piece),
        float(start),
        np.ascontiguousarray(times, dtype=float),
        (float(tolerance), int(max_steps), float(least), bool(tangents)),
        own_tables(),
        found,
        switches,
        now,
        kept,
    )
    return found[0][:done], found[1][:done], reached, steps, crossed


class Plan(NamedTuple):
    """What all trajectories of a tape have in common, by one rule and with as many lanes."""

    layouts: tuple[Layout, ...]  # with a lane per node, one per colour of the Jacobian, and those of the states
    recorded: np.ndarray  # the places of watched arguments and of switching functions
    moving: np.ndarray
    fill: Fill
    stages: int
    benches: Benches

    def shapes(self) -> dict[str, tuple[int, ...]]:
        sizes = {name: (layout.size,) for name, layout in zip(_MEMORIES, self.layouts, strict=True)}
        return (
            {"now": (NOW.itemsize // 8,)}
            | sizes
            | shapes_of(len(self.moving), self.layouts[2].lanes, self.stages, len(self.recorded))
        )

    def arranged(self, arrays: dict[str, np.ndarray]) -> tuple[Work, tuple[np.ndarray, ...], np.ndarray]:
        now = arrays.pop("now").view(NOW)
        memories = tuple([arrays.pop(name) for name in _MEMORIES])
        n = len(self.moving)
        lists = np.zeros((n + 3, n), np.int64)
        work = Work(
            **arrays,
            fill=self.fill,
            pivoted=np.zeros(1, np.int64),
            pivots=lists[n],
            filled=lists[:n],
            counts=lists[n + 1 :].reshape(n, 2),
        )
        return work, memories, now


def plan_of(tape: Tape, rule: Radau, lanes: int) -> Plan:
    """Return what trajectories of a tape have in common, made once."""
    key = "collocation", len(rule.points), lanes
    if key not in tape.layouts:
        moving, fill = sparse_order(tape), fill_of(tape)
        widths = len(rule.abreast.nodes), padded(1 + fill.width), lanes
        layouts = tuple([lay_out(tape, width, 2, True) for width in widths])
        recorded = np.concatenate([layouts[0].watched[:, 1], layouts[0].switches])
        tape.layouts[key] = Plan(layouts, recorded, moving, fill, len(rule.points), Benches())
    return tape.layouts[key]


@kernel
def shrinkage(goal, rough, stages):
    """The part of a step whose polynomial would lack no more than the goal."""
    return max(SHORTEST, _SAFE * (goal / rough) ** (1 / stages))


@kernel
def first_step(point, piece, t, moving, rule, work, longest):
    """A tenth of the time in which a state would change by its own size, but no shorter than a time can tell."""
    for a in range(len(moving)):
        for lane in range(point.lanes):
            poke(point.p, peek(point.states, moving[a]) + lane, work.start[a])
    find_rates_abreast(point, piece, t, 0.0, rule.abreast.nodes, 1)
    h = abs(longest)
    for a in range(len(moving)):
        speed, size = abs(peek(point.p, peek(point.states, moving[a]) + point.lanes)), abs(work.start[a])
        if speed * h > 0.1 * size > 0:
            h = 0.1 * size / speed
    h = min(max(h, 2 * _RESOLUTION * abs(t)), abs(longest))
    return h if longest >= 0 else -h


@kernel
def record_watched(point, recorded, work):
    """Watched arguments and switching functions at the nodes, from the registers."""
    for i in range(len(recorded)):
        for lane in range(point.lanes):
            work.watched[i, lane] = peek(point.p, recorded[i] + lane)


@inlined
def set_out(now, method, task, states, parameters):
    """Take up the states and how long the first step may be."""
    work, stages = method.work, len(method.rule.points)
    begin_stages(work, method.moving, states)
    find_slight(work, parameters)
    now.goal = max(_INSIDE * task.tolerance, _LACKING) ** (stages / (stages + 1))
    now.aim = max(_INSIDE * task.tolerance, _LACKING_TANGENTS) ** (stages / (stages + 1))
    now.denied, now.ratio, now.which = np.inf, 1.0, -1
    now.length = first_step(method.point, task.piece, now.time, method.moving, method.rule, work, now.end - now.time)
    now.before = now.length
    measure(work)
    for a in range(len(method.moving)):
        work.scales[a] = size_of(work, a)


@inlined
def shorten(now, part):
    """Take the step again, of a part of its length, wherever a switch was aimed at."""
    now.length *= part
    now.which, now.crossed = -1, False
    return False


@inlined
def fail(now):
    """Take a much shorter step, with a new Jacobian, where Newton's method does not converge."""
    now.ratio, now.failed = np.inf, True
    return shorten(now, 0.4)


@inlined
def propose(now, method, task):
    """Solve a step whose polynomial lacks no more than it may, and on which nothing hides: whether there is one."""
    work, rule, stages, ahead = method.work, method.rule, len(method.rule.points), now.end - now.time
    now.steps += 1
    now.length = ahead if abs(now.length) >= abs(ahead) else now.length
    if abs(now.length) <= _RESOLUTION * abs(now.time):
        now.status = COLLAPSED
        return False
    look_ahead(rule, work, now.length / now.before, task.with_tangents)
    measure(work)
    if now.length != now.decomposed or now.ratio > _FRESH or is_outgrown(work):
        middle = stages // 2
        t = now.time + rule.nodes[middle] * now.length
        differentiate(method.slope, task.piece, t, now.length, method.moving, middle, work)
        now.decomposed = now.length if decompose(rule, work, now.length, now.failed) else 0.0
    settled, now.ratio = solve_stages(
        method.point, task.piece, method.moving, rule, work, now.time, now.length, task.tolerance, min(now.ratio, 1.0)
    )
    now.failed = now.decomposed == 0.0 or not settled
    if now.failed:
        return fail(now)
    measure(work)
    record_watched(method.point, method.recorded, work)
    now.rough = analyse(rule, work)
    if now.rough > now.goal:
        return shorten(now, shrinkage(now.goal, now.rough, stages))
    part = attentive_part(
        method.point, task.piece, method.moving, method.watched, rule, work, now.time, now.length, task.tolerance
    )
    return True if part >= 1 else shorten(now, part)


@inlined
def detect(now, method, switches):
    """See whether a switching function loses its sign where the step ends; where one does before, aim at that."""
    if len(switches.signs) == 0:
        return True
    now.tries = now.tries + 1 if now.which >= 0 else 0
    grain = GRAIN_OF_TIME * abs((now.time + now.length) / now.length)
    part, now.which = aimed(method.rule, method.work, len(method.watched), switches, now.which, now.tries, grain)
    now.length *= part
    now.crossed = part == 1 and now.which >= 0
    return part == 1


@inlined
def differentiate_step(now, method, task):
    """Solve for the sensitivities of the stages: whether their polynomials lack no more than they may."""
    work, rule, stages = method.work, method.rule, len(method.rule.points)
    extrapolate_tangents(work)
    settled, left = solve_tangents(
        method.force, task.piece, method.moving, rule, work, now.time, now.length, task.tolerance, now.ratio
    )
    now.failed = not settled
    if now.failed:
        return fail(now)
    coarse = analyse_tangents(rule, work, left)
    if coarse > max(now.aim, now.grain):
        now.denials += 1
        if now.denials < _DENIALS and (coarse > _GRAIN or coarse < _FINER * now.denied):
            now.denied = coarse
            return shorten(now, shrinkage(now.aim, coarse, stages))
        now.grain = 2 * coarse  # shorter steps do not help: this is rounding
    elif coarse > now.grain:
        now.rough = max(now.rough, coarse * now.goal / now.aim)
    now.denials, now.denied = 0, np.inf
    return True


@inlined
def is_capped(now, method, task):
    """Whether something that was capped on the step matters where it ends."""
    if not is_marked(method.point.tables):
        return False
    for a in range(len(method.moving)):
        place = peek(method.slope.states, method.moving[a])
        poke(method.slope.p, place, method.work.values[a, len(method.rule.points)])
    return caps_matter(method.slope, task.piece, now.time + now.length, pointer(method.work.columns))


@inlined
def commit(now, method, task, trajectory, states):
    """Take down the states that are asked for on the step and move to its end."""
    times, reached = task.times, now.time + now.length
    while now.done < len(times) and abs(times[now.done] - now.start) <= abs(reached - now.start):
        if now.crossed and is_at(times[now.done], reached):
            break
        s = (times[now.done] - now.time) / now.length
        sample(method.rule, method.work, method.moving, states, s, trajectory[now.done], task.with_tangents)
        now.done += 1
    keep_step(task.kept, method.work, now.time, now.length)
    start_next(method.rule, method.work, task.with_tangents)
    now.before, now.time = now.length, (now.end if now.done == len(times) or is_at(now.end, reached) else reached)


@inlined
def handle(now, task, switches):
    """End where everything that was asked for is known, or where a switching function loses its sign."""
    for i in range(len(switches.signs)):
        switches.zeros[i] = 0
    if now.crossed:
        switches.fired[0] = now.which
        now.status = SWITCHED
    elif now.done == len(task.times):
        now.status = REACHED


@inlined
def diagnose(now, method, task):
    """Choose the length of the next step, and end where steps are not worth their effort."""
    stages = len(method.rule.points)
    growth = min(_GROW, _SAFE * (now.goal / max(now.rough, 1e-300)) ** (1 / stages))
    now.short = now.short + 1 if abs(now.length) < task.least and growth < _LENGTHENS else 0
    now.length *= 1.0 if 1 <= growth < _KEPT else growth
    if now.short >= _SHORT and now.status == GOING:
        now.status = SLOW


@entry
def follow(
    layouts,
    memories,
    rows,
    work,
    recorded,
    moving,
    states,
    rule,
    drive,
    piece,
    start,
    times,
    limits,
    tables,
    found,
    switches,
    places,
    kept,
):
    """`collocate`, with all memory allotted: times done, the time reached, steps, and whether a switching function
    lost its sign there.

    The layouts carry a lane per node, one per colour of the Jacobian, and the lanes of `states`; states and outputs are
    `found`.  Rows are constants and parameters.  All memory is zero.
    """
    (tolerance, max_steps, least, with_tangents), (trajectory, outputs) = limits, found
    constants, parameters = rows
    point, slope = point_of(layouts[0], memories[0], drive, tables), point_of(layouts[1], memories[1], drive, tables)
    force = point_of(layouts[2], memories[2], drive, tables)
    method = Scheme(point, slope, force, rule, work, moving, recorded, layouts[0].watched)
    task = StiffRequest(times, piece, tolerance, least, with_tangents, kept)
    none = np.int64(0)  # named: numba would compile kernels anew for each literal
    unmark(point.tables)
    prepare(force.p, layouts[2], constants, parameters, states, point.tables, none)
    take_statics(slope, force, 1)
    for a in range(len(moving)):
        poke(slope.p, peek(slope.states, moving[a]) + 1 + work.fill.colours[a], 1.0)
    take_statics(point, force, point.lanes)
    now = places[0]
    begin(now, start, times[-1], max_steps)
    set_out(now, method, task, states, parameters)
    while is_going(now):
        if not propose(now, method, task) or not detect(now, method, switches):
            continue
        if with_tangents:
            if not differentiate_step(now, method, task):
                continue
        if is_capped(now, method, task):
            now.status = NONFINITE
            break
        commit(now, method, task, trajectory, states)
        handle(now, task, switches)
        diagnose(now, method, task)
    for a in range(len(moving)):
        for k in range(1, states.shape[1]):
            states[moving[a], k] = work.ahead[0, a, k]
        states[moving[a], 0] = work.start[a]
    observe(memories[2], layouts[2], drive, times, none, now.done, trajectory, outputs, point.tables, none)
    memories[0][0] += 0.0  # a last use, for pointers do not keep the memory alive
    memories[1][0] += 0.0
    return now.done, now.time, now.steps, now.crossed


_follow = Direct(follow)
