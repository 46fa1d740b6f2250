"""Inspection: what the polynomial of a step of collocation shows between the points of its rule.

There a change may hide that none of them sees, and a switching function may lose its sign.
"""

from __future__ import annotations

import numpy as np

from odejet.jets.abreast import find_rates_abreast
from odejet.jets.features import VANISHES, awake_step, exponent_of, may_hide, next_peak, slack_of
from odejet.jets.lanes import kernel, peek, pointer, poke
from odejet.jets.linear import solve
from odejet.jets.polynomial import analyse_row, legendre
from odejet.jets.roots import NONE, crossing
from odejet.jets.stages import factored

GRAIN_OF_TIME = 2e-15
"""The rounding of a time, relative to it."""

SHORTEST = 0.2
"""The least part of a step that the next is tried with."""

_UNSEEN = 300.0  # times the tolerance: what a hidden change may do to a state
_AIMED, _TRIES = 1e-13, 8  # how near to the end of a step a switch is to be, relative to the step; in how many tries


@kernel
def gap(point, piece, moving, rule, work, t, h, s):
    """How far the polynomial is from the equations at a place, in units of the states, after one implicit correction.

    At the start of a step the registers have its rates already.
    """
    n, nodes, systems = len(moving), len(rule.nodes), work.systems.shape[2]
    legendre(2 * s - 1, nodes, work.weights[0], work.weights[1])
    if s != 0:
        for a in range(n):
            total = 0.0
            for k in range(nodes):
                total += work.weights[0, k] * work.coefficients[a, k]
            poke(point.p, peek(point.states, moving[a]), total)
        find_rates_abreast(point, piece, t + s * h, 0.0, rule.abreast.nodes, 1)
    for a in range(n):
        total = 0.0
        for k in range(1, nodes):
            total += 2 * work.weights[1, k] * work.coefficients[a, k]
        rate = peek(point.p, peek(point.states, moving[a]) + point.lanes)
        for part in range(2):
            for q in range(systems):
                work.systems[a, part, q] = 0.0
        work.systems[a, 0, 0] = (h * rate - total) / work.scales[a]
    solve(factored(work), pointer(work.systems))
    largest = 0.0
    for a in range(n):
        if not abs(work.systems[a, 0, 0]) < np.inf:
            return np.inf
        largest = max(largest, abs(work.systems[a, 0, 0]))
    return largest


@kernel
def attentive_part(point, piece, moving, watched, rule, work, t, h, tolerance):
    """The part of a step, at most one, in which every watched argument holds and nothing hides."""
    nodes, c, lanes = len(work.powers), pointer(work.powers), np.int64(1)
    part = 1.0
    # The points do not see the start of the step.
    if len(watched) > 0 and gap(point, piece, moving, rule, work, t, h, 0.0) > _UNSEEN * tolerance:
        return SHORTEST
    for i in range(len(watched)):
        kind, power = watched[i, 0], watched[i, 2]
        exponent = exponent_of(point.p, power)
        first, change, last, size = work.watched[i, 0], 0.0, 0.0, 0.0
        analyse_row(rule, work.watched, i, work.weights)
        for k in range(nodes):
            last, size = abs(work.weights[0, k]), max(size, abs(work.watched[i, k]))
            change += 2 * last if k > 0 else 0.0
        if kind == VANISHES and first * work.watched[i, nodes - 1] <= 0:
            continue  # what it divides vanishes there too: at a pole there would be no smooth solution
        slack = slack_of(kind, size)
        if last > slack:
            part = min(part, max(SHORTEST, (slack / last) ** (1 / nodes)))
        elif may_hide(kind, first, change, exponent):
            for k in range(nodes):
                work.powers[k] = 0.0
                for j in range(nodes):
                    work.powers[k] += rule.powers[k, j] * work.watched[i, j]
            degree = np.int64(nodes - 1)
            part = min(part, awake_step(c, np.int64(0), lanes, degree, kind, exponent, part))
            j, s = 0, 1.0
            while s != 0 and part == 1:
                s, j = next_peak(c, np.int64(0), lanes, degree, kind, exponent, 1.0, j)
                if s != 0 and gap(point, piece, moving, rule, work, t, h, s) > _UNSEEN * tolerance:
                    part = 0.5 * s
    return part


@kernel
def switching(rule, work, first, i):
    """The recorded function `first + i` as powers of the place on the step; its value and slope at the end."""
    nodes, slope = len(work.powers), 0.0
    for k in range(nodes):
        total = 0.0
        for j in range(nodes):
            total += rule.powers[k, j] * work.watched[first + i, j]
        work.powers[k] = total
        slope += k * total
    return work.watched[first + i, nodes - 1], slope


@kernel
def is_at(time, other):
    """Whether two times are the same but for rounding."""
    return abs(time - other) <= GRAIN_OF_TIME * abs(time)


@kernel
def first_switch(rule, work, first, switches, grain):
    """The first place on the step at which a switching function loses its sign, and which of them does.

    A root that lies beyond the end by no more than the grain of time is at the end.
    """
    best, which, one = NONE, np.int64(-1), np.int64(1)
    for i in range(len(switches.signs)):
        if switches.signs[i] != 0:
            value, slope = switching(rule, work, first, i)
            c, degree = pointer(work.powers), np.int64(len(work.powers) - 1)
            s = crossing(
                c, np.int64(0), one, switches.signs[i], switches.zeros[i], degree, 1.0, best, switches.polynomials
            )
            if s >= best > 1 and switches.signs[i] * slope < 0 and abs(value) <= grain * abs(slope):
                s = 1.0
            if s < best:
                best, which = s, np.int64(i)
    return best, which


@kernel
def aimed(rule, work, first, switches, which, tries, grain):
    """The part of a step that ends where a switching function vanishes, one if it does: the one to which the step
    was cut before, or the first."""
    if which < 0:
        s, which = first_switch(rule, work, first, switches, grain)
        if which < 0:
            return 1.0, which
        if s < 1 - _AIMED:
            return max(s, _AIMED), which
    value, slope = switching(rule, work, first, which)
    part = 1 - value / slope if slope != 0 else 1.0
    return (part if tries < _TRIES and _AIMED < abs(part - 1) < 0.5 else 1.0), which
