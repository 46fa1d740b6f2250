"""Sparsity: which states the rate of each state depends on, and the order of states that keeps LU factors sparse.

What is eliminated with pivots on the diagonal fills the same entries every time, so that these are listed once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.model.tape import Column, Op, Tape

_ORDER, _FILL = "sparse order", "fill"


class Fill(NamedTuple):
    """Where the LU factors of a Jacobian in the sparse order may differ from zero, without the diagonal."""

    columns: np.ndarray  # (size, size): of the entries of a row
    counts: np.ndarray  # (size, 2): how many of those stand before the diagonal, and how many there are
    rows: np.ndarray  # (size, size): of the entries of a column below the diagonal
    below: np.ndarray  # (size): how many these are


def dependencies(tape: Tape) -> np.ndarray:
    """Whether the rate of a moving state, by rows, depends on another, by columns."""
    moving = np.flatnonzero(tape.states >= tape.statics)
    feels = np.zeros((tape.registers, len(moving)), dtype=bool)
    feels[tape.states[moving], np.arange(len(moving))] = True
    rates = np.zeros((len(moving), len(moving)), dtype=bool)
    place = {int(register): i for i, register in enumerate(tape.states[moving])}
    for row in tape.code[tape.split[0] : tape.split[1]]:
        if row[Column.OP] in (Op.LINEAR, Op.ADVANCE):
            sources = tape.terms[row[Column.BEGIN] : row[Column.END], 1]
        else:
            sources = row[[Column.A, Column.B]]
        felt = feels[sources[sources >= 0]].any(axis=0)
        if row[Column.OP] == Op.ADVANCE:
            rates[place[int(row[Column.OUT])]] = felt
        else:
            feels[row[Column.OUT]] |= felt
    return rates


def sparse_order(tape: Tape) -> np.ndarray:
    """The moving states in an order of least degree: what is eliminated next is what touches fewest others then.

    Pivots on the diagonal then fill the factors little (Markowitz 1957; Tinney and Walker 1967).
    """
    if _ORDER not in tape.layouts:
        moving = np.flatnonzero(tape.states >= tape.statics)
        touches = dependencies(tape)
        touches |= touches.T
        np.fill_diagonal(touches, False)
        left, order = list(range(len(moving))), []
        while left:
            least = min(left, key=lambda i: (int(touches[i].sum()), i))
            others = np.flatnonzero(touches[least])
            touches[np.ix_(others, others)] = True
            touches[others, others] = False
            touches[least], touches[:, least] = False, False
            left.remove(least)
            order.append(least)
        tape.layouts[_ORDER] = moving[order]
    return tape.layouts[_ORDER]


def fill_of(tape: Tape) -> Fill:
    """The entries of the factors, by elimination without numbers."""
    if _FILL not in tape.layouts:
        moving, order = np.flatnonzero(tape.states >= tape.statics), sparse_order(tape)
        places = np.searchsorted(moving, order)
        filled = dependencies(tape)[np.ix_(places, places)]
        np.fill_diagonal(filled, False)
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
        tape.layouts[_FILL] = Fill(columns, counts, rows, below)
    return tape.layouts[_FILL]
