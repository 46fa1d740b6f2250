"""Sparsity: which states the rate of each state depends on, and the order of states that keeps LU factors sparse."""

from __future__ import annotations

import numpy as np

from odejet.model.tape import Column, Op, Tape

_ORDER = "sparse order"


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
