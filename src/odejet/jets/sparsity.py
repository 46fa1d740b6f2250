"""Sparsity: which states the rate of each state depends on, and the order of states that keeps LU factors sparse.

What is eliminated with pivots on the diagonal fills the same entries every time, so that these are listed once.  States
whose rates have no state in common share a lane when the Jacobian is computed, so that it costs as many lanes as it has
colours, which for sparse networks does not grow with their size.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from odejet.model.tape import Column, Op, Tape

_ORDER, _FILL = "sparse order", "fill"


class Fill(NamedTuple):
    """Where a Jacobian in the sparse order and its LU factors may differ from zero, without the diagonal."""

    columns: np.ndarray  # (size, size): of the entries of a row of the factors
    counts: np.ndarray  # (size, 2): how many of those stand before the diagonal, and how many there are
    rows: np.ndarray  # (size, size): of the entries of a column below the diagonal
    below: np.ndarray  # (size): how many these are
    entries: np.ndarray  # (size, most): columns of the entries of a row of the Jacobian
    lengths: np.ndarray  # (size): how many these are
    colours: np.ndarray  # (size): of each column; those of one colour have no row in common

    @property
    def width(self) -> int:
        """How many colours there are."""
        return int(self.colours.max(initial=-1)) + 1


def dependencies(tape: Tape) -> np.ndarray:
    """Return whether the rate of a moving state, by rows, depends on another, by columns."""
    moving = np.flatnonzero(tape.states >= tape.statics)
    size = len(moving)
    feels = [0] * tape.registers  # the states behind each register, as bits
    for i, register in enumerate(tape.states[moving].tolist()):
        feels[register] = 1 << i
    place = {register: i for i, register in enumerate(tape.states[moving].tolist())}
    rates, terms = [0] * size, tape.terms[:, 1].tolist()
    for row in tape.code[tape.split[0] : tape.split[1]].tolist():
        combines = row[Column.OP] in (Op.LINEAR, Op.ADVANCE)
        felt = 0
        for source in terms[row[Column.BEGIN] : row[Column.END]] if combines else (row[Column.A], row[Column.B]):
            if source >= 0:
                felt |= feels[source]
        if row[Column.OP] == Op.ADVANCE:
            rates[place[row[Column.OUT]]] = felt
        else:
            feels[row[Column.OUT]] |= felt
    wide = max(-(-size // 8), 1)
    packed = np.frombuffer(b"".join(bits.to_bytes(wide, "little") for bits in rates), np.uint8).reshape(size, wide)
    return np.unpackbits(packed, axis=1, count=size, bitorder="little").astype(bool)


def sparse_order(tape: Tape) -> np.ndarray:
    """Return the moving states in an order of least degree: next comes what touches fewest others then.

    Pivots on the diagonal then fill the factors little (Markowitz 1957; Tinney and Walker 1967).
    """
    if _ORDER not in tape.layouts:
        moving = np.flatnonzero(tape.states >= tape.statics)
        felt = dependencies(tape)
        touches = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(felt | felt.T)]
        queue, order, done = [(len(others), i) for i, others in enumerate(touches)], [], set[int]()
        heapify(queue)
        while queue:
            degree, least = heappop(queue)
            if least in done or degree != len(touches[least]):
                continue  # its degree has changed since
            done.add(least)
            order.append(least)
            for other in touches[least]:
                touches[other] |= touches[least]
                touches[other] -= {other, least}
                heappush(queue, (len(touches[other]), other))
        tape.layouts[_ORDER] = moving[order]
    return tape.layouts[_ORDER]


def fill_of(tape: Tape) -> Fill:
    """Return the entries of Jacobian and factors, the latter by elimination without numbers."""
    if _FILL not in tape.layouts:
        moving, order = np.flatnonzero(tape.states >= tape.statics), sparse_order(tape)
        places = np.searchsorted(moving, order)
        filled = dependencies(tape)[np.ix_(places, places)]
        np.fill_diagonal(filled, False)
        colours, entries, lengths = _colours(filled), *_listed(filled)
        size = len(order)
        for k in range(size):
            under = k + 1 + np.flatnonzero(filled[k + 1 :, k])
            filled[under, k + 1 :] |= filled[k, k + 1 :]
            filled[under, under] = False
        columns, rows = np.zeros((2, size, size), dtype=np.int64)
        counts, below = np.zeros((size, 2), dtype=np.int64), np.zeros(size, dtype=np.int64)
        for k in range(size):
            own, under = np.flatnonzero(filled[k]), k + 1 + np.flatnonzero(filled[k + 1 :, k])
            columns[k, : len(own)], counts[k] = own, (np.count_nonzero(own < k), len(own))
            rows[k, : len(under)], below[k] = under, len(under)
        tape.layouts[_FILL] = Fill(columns, counts, rows, below, entries, lengths, colours)
    return tape.layouts[_FILL]


def _listed(pattern: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of the entries of each row, and how many there are."""
    lengths = pattern.sum(axis=1).astype(np.int64)
    entries = np.zeros((len(pattern), max(int(lengths.max(initial=0)), 1)), dtype=np.int64)
    for row, target in zip(pattern, entries, strict=True):
        own = np.flatnonzero(row)
        target[: len(own)] = own
    return entries, lengths


def _colours(pattern: np.ndarray) -> np.ndarray:
    """Return colours of the columns, such that one derivative along all columns of a colour tells their entries apart.

    Columns that stand in most rows come first (Curtis, Powell and Reid 1974).  The diagonal counts as an entry.
    """
    whole = pattern | np.eye(len(pattern), dtype=bool)
    taken = [set[int]() for _ in whole]  # colours in each row
    colours = np.zeros(len(whole), dtype=np.int64)
    for column in np.argsort(-whole.sum(axis=0), kind="stable").tolist():
        rows = np.flatnonzero(whole[:, column]).tolist()
        barred = set[int]().union(*(taken[row] for row in rows))
        colours[column] = next(colour for colour in count() if colour not in barred)
        for row in rows:
            taken[row].add(int(colours[column]))
    return colours
