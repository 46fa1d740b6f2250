"""Tracker: paths of roots while the data move, in compiled code.

Steps are predicted by the polynomial of degree seven through the last four points and their slopes and corrected by
Newton's method.  The first correction measures the error of the prediction, which goes like h^8 and gives the next
step; a second correction that is not much smaller than the first says that the prediction was outside Newton's reach,
which is then taken to be smaller for the steps that follow.  A root is accepted by backward error too: where the
Jacobian is so ill-conditioned that corrections are rounding, equations that hold to rounding are all that can be asked
for.

Paths are followed in slices of so many evaluations.  What a slice leaves unfinished the next one takes up at the same
place, so that where slices end changes nothing but when the clock is looked at.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from odejet.algebra.newton import HERE, NEXT, correct, substitute, taxicab
from odejet.jets.lanes import inlined, kernel, plain_entry, pointer

GROWTH = 1e9
"""Unknowns that grow by this factor while steps collapse are on their way to infinity."""
NOTHING = 1e-100
"""The least size by which an unknown is measured."""
FADING = 0.7
"""An unknown that passes near zero is measured by what it was before, less and less so."""
FIRST_STEP = 0.02
"""The first step changes no unknown by more than this share."""
AIM = 0.3
"""The first correction that steps aim at, as a share of Newton's reach: larger steps would fail too often."""
SMALLEST_GROWTH, LARGEST_GROWTH = 0.3, 2.5
"""Factors between which a step changes after a good one."""
LEAST_CUT, DEEPEST_CUT, HALF = 0.6, 0.1, 0.5
"""Factors between which it changes after a bad one, and the one where Newton's method did not contract."""
RECOVERY, LEAST_REACH = 1.2, 1e-6
"""How fast Newton's reach, once found to be smaller, grows again, and how small it can be."""
ROUGH = 0.1
"""Corrections below this share of the reach may be left where they are rounding."""
AT_END = 1e-9
"""What a step may leave of the way is made part of it."""
TINY = 1e-14
"""First corrections below this are rounding."""


class PathEnd(IntEnum):
    """How a path ended."""

    CONVERGED = 0
    SINGULAR = 1  # steps collapsed: the root is multiple, or the Jacobian is singular to rounding
    DIVERGED = 2  # unknowns grew beyond all bounds: the target has fewer roots than generic data
    EXHAUSTED = 3  # the steps of one path ended
    UNFINISHED = 4  # the budget of all paths ended


CONVERGED, SINGULAR, DIVERGED, EXHAUSTED, UNFINISHED = map(int, PathEnd)
"""The same for kernels."""


class Settings(NamedTuple):
    """How paths are followed."""

    reach: float  # the largest first correction, relative to each unknown
    steps: int
    smallest: float = 1e-13  # step


DEFAULT = Settings(reach=0.05, steps=300)
CAREFUL = Settings(reach=0.02, steps=1000)
NEAR = Settings(reach=0.05, steps=60)


class Ends(NamedTuple):
    """Ends of paths; allocating arrays in Python spares the kernel most of its compilation."""

    roots: np.ndarray
    outcomes: np.ndarray
    errors: np.ndarray
    steps: np.ndarray
    evaluations: np.ndarray


@kernel
def move(path, s, work):
    """The data at s and their derivatives with respect to s."""
    start, shift, bend, geometric = path
    for i in range(len(start)):
        turn = s * (1 - s) * bend[i]
        if geometric[i]:
            now = start[i] * np.exp(s * shift[i] + turn)
            work.moving[i] = now
            work.motion[i] = now * (shift[i] + (1 - 2 * s) * bend[i])
        else:
            work.moving[i] = start[i] + s * shift[i] + turn
            work.motion[i] = shift[i] + (1 - 2 * s) * bend[i]


@kernel
def slope(work):
    """dz/ds at the next point, from the factors left by its last correction."""
    n = len(work.step)
    for r in range(n):
        work.step[r] = work.along[r] * work.scales[r]
    substitute(work.jacobian, work.pivots, work.step)
    speed = 0.0
    for i in range(n):
        speed = max(speed, taxicab(work.step[i]))
        work.slopes[NEXT, i] = work.step[i] * work.sizes[i]
    return speed


@kernel
def predict(work, times, known, target):
    """The next point by Hermite extrapolation through the last `known` points and slopes at `times`.

    Divided differences over nodes that each stand twice; the newest point comes first, so that rounding in the old
    ones is not amplified.
    """
    table = work.table
    for i in range(len(work.step)):
        for j in range(known):
            table[2 * j] = table[2 * j + 1] = work.points[HERE - j, i]
        for level in range(1, 2 * known):
            for j in range(2 * known - 1, level - 1, -1):
                right, left = j // 2, (j - level) // 2
                if right == left:
                    table[j] = work.slopes[HERE - right, i]
                else:
                    table[j] = (table[j] - table[j - 1]) / (times[HERE - right] - times[HERE - left])
        value = table[2 * known - 1]
        for j in range(2 * known - 2, -1, -1):
            value = value * (target - times[HERE - j // 2]) + table[j]
        work.points[NEXT, i] = value


@kernel
def advance(work, times):
    """Make the next point the present one, and measure unknowns by their size there."""
    for i in range(len(work.step)):
        for k in range(HERE + 1):
            work.points[k, i] = work.points[k + 1, i]
            work.slopes[k, i] = work.slopes[k + 1, i]
        work.sizes[i] = max(abs(work.points[HERE, i]), FADING * work.sizes[i], NOTHING)
    for k in range(HERE + 1):
        times[k] = times[k + 1]


@kernel
def begin(start, work, settings):
    """Put a path at its start."""
    work.times[:] = 0.0
    largest = 0.0
    for i in range(len(start)):
        work.points[NEXT, i] = start[i]
        work.sizes[i] = max(abs(start[i]), NOTHING)
        largest = max(largest, work.sizes[i])
    work.progress[0], work.progress[1], work.progress[2] = 0.0, settings.reach, largest
    work.counts[:] = 0


@inlined
def follow(c, layout, program, parameters, states, path, work, pointers, settings, most):
    """One path for about `most` evaluations: how it ended, its last correction, and the evaluations of this slice."""
    times, h, reach = work.times, work.progress[0], work.progress[1]
    known, count, spent = work.counts[0], work.counts[1], 0
    outcome, last_correction = -1, 1.0
    while count <= settings.steps and (h >= settings.smallest or known == 0):
        if spent >= most:
            outcome = UNFINISHED
            break
        s = times[HERE]
        last = known > 0 and s + h >= 1 - AT_END
        times[NEXT] = 1.0 if last else s + h
        h = times[NEXT] - s
        if known > 0:
            predict(work, times, known, times[NEXT])
        move(path, times[NEXT], work)
        good, first, size, evaluations = correct(
            c, layout, program, parameters, states, work, pointers, reach, ROUGH * settings.reach, last
        )
        spent, count = spent + evaluations, count + 1
        if good and last:
            outcome, last_correction = CONVERGED, size
            break
        if good:
            speed = slope(work)
            advance(work, times)
            growth = (AIM * reach / max(first, TINY)) ** (0.5 / max(known, 1))
            h = (
                h * min(max(growth, SMALLEST_GROWTH), LARGEST_GROWTH)
                if known > 0
                else min(1.0, FIRST_STEP / max(speed, 1e-300))
            )
            reach = min(RECOVERY * reach, settings.reach)
            known = min(known + 1, HERE + 1)
        elif known == 0:
            break
        elif first <= reach:
            h, reach = HALF * h, max(HALF * first, LEAST_REACH)
        else:
            h *= min(max((AIM * reach / first) ** (0.5 / known), DEEPEST_CUT), LEAST_CUT)
    if outcome < 0:
        outcome = failure(work, count > settings.steps)
    work.progress[0], work.progress[1] = h, reach
    work.counts[0], work.counts[1], work.counts[2] = known, count, work.counts[2] + spent
    return outcome, last_correction, spent


@kernel
def failure(work, exhausted):
    """Why a path did not arrive."""
    for i in range(len(work.step)):
        if abs(work.points[HERE, i]) > GROWTH * work.progress[2]:
            return DIVERGED
    return EXHAUSTED if exhausted else SINGULAR


@plain_entry
def follow_all(
    layout, program, parameters, states, starts, paths, tables, settings, work, ends, first, under_way, most
):
    """Paths from their starts to `ends`, for about `most` evaluations; all arrays lead with the path.

    The first one may be under way already.  Returned are the first that is not finished, whether it is under way, and
    the evaluations spent.
    """
    memory = work.memory
    c, pointers = pointer(memory), (pointer(tables[0]), pointer(tables[1]), pointer(tables[1]))
    total, p = 0, first
    while p < len(starts) and total < most:
        if not under_way:
            begin(starts[p], work, settings)
        path = (paths[0][p], paths[1][p], paths[2][p], paths[3][p])
        outcome, error, spent = follow(
            c, layout, program, parameters, states, path, work, pointers, settings, most - total
        )
        total, under_way = total + spent, outcome == UNFINISHED
        if under_way:
            break
        ends.outcomes[p], ends.errors[p] = outcome, error
        ends.steps[p], ends.evaluations[p] = work.counts[1], work.counts[2]
        for i in range(starts.shape[1]):
            ends.roots[p, i] = work.points[NEXT if outcome == CONVERGED else HERE, i]
        p += 1
    memory[0] = 0  # the pointer above does not keep the memory alive
    return p, under_way, total
