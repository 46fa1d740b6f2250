"""Caps: whether it matters what an exponential counts as that has grown beyond all numbers.

Doubles end near exp(709), and series of exponentials some way before: beyond exp(600) they count as constant, so that
1/(1 + exp(x)) is zero there.  That is no silent error as long as nothing changes if they count twice as much.
"""

from __future__ import annotations

import threading

import numpy as np

from odejet.jets.kernel import TABLES
from odejet.jets.lanes import kernel, peek, poke
from odejet.jets.points import drive_to
from odejet.jets.shared import run

_SAME = 1e-9  # what twice as much may change, relative to what it is
_NOTHING = 1e-150  # no quantity of a model is so small


class _Own(threading.local):
    """Tables of a thread, in which kernels leave marks."""

    def __init__(self) -> None:
        self.tables = tuple(table.copy() for table in TABLES)


_OWN = _Own()


def own_tables() -> tuple[np.ndarray, ...]:
    """The tables of this thread."""
    return _OWN.tables


@kernel
def unmark(tables):
    """Forget that a function has grown beyond all numbers."""
    poke(tables[0], 0, 0.0)


@kernel
def is_marked(tables):
    """Whether a function has grown beyond all numbers since that was forgotten."""
    return peek(tables[0], 0) != 0


@kernel
def differ(one, other):
    return not abs(one - other) <= _SAME * max(abs(one), abs(other)) + _NOTHING


@kernel
def caps_matter(point, piece, t, scratch):
    """Whether rates of the states in the registers of a point would be others if capped functions counted twice."""
    p, code, terms, tables, none = point.p, point.code, point.terms, point.tables, 0
    matter = False
    for turn in range(3):  # once, twice as much, and as it was
        poke(tables[1], 0, 2.0 if turn == 1 else 1.0)
        drive_to(point, piece, t)
        run(p, code, terms, none, point.last, none, point.dynamic, point.lanes, tables, none)
        for i in range(point.size):
            place = peek(point.states, i)
            if place >= point.dynamic:
                rate = peek(p, place + point.lanes)
                if turn == 0:
                    poke(scratch, i, rate)
                elif turn == 1 and differ(rate, peek(scratch, i)):
                    matter = True
    return matter


@kernel
def spoil(c, layout, static, code, terms, target, place, lanes, tables):
    """Make outputs NaN, in rows from a place on, that would be others if capped functions counted twice."""
    none = 0
    for turn in range(2):
        poke(tables[1], 0, 2.0 if turn == 0 else 1.0)
        run(c, static, terms, none, layout.split[0], none, layout.dynamic, lanes, tables, none)
        run(c, code, terms, none, len(layout.observe), none, layout.dynamic, lanes, tables, none)
        if turn == 0:
            for j in range(len(layout.outputs)):
                if differ(peek(c, layout.outputs[j]), peek(target, place + j * lanes)):
                    poke(target, place + j * lanes, np.nan)
