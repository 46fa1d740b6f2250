"""Kept: the implicit steps of a solution, for whoever follows it backward.

Where a step begins, how long it is and the values of its stages tell all that the discrete equations were solved for:
their derivatives follow from these alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odejet.jets.lanes import kernel


class Kept(NamedTuple):
    """Steps in their order, as many as there is room for."""

    taken: np.ndarray  # (1,): how many there are
    times: np.ndarray  # where they begin
    lengths: np.ndarray
    values: np.ndarray  # (steps, states, lanes): at the nodes

    @classmethod
    def room(cls, steps: int, states: int, lanes: int) -> Kept:
        """Return room for so many steps."""
        return cls(np.zeros(1, np.int64), np.zeros(steps), np.zeros(steps), np.empty((steps, states, lanes)))


NOT_KEPT = Kept.room(0, 0, 0)


@kernel
def keep_step(kept, work, t, h):
    """Add the step from t of length h, if there is room."""
    i = kept.taken[0]
    if i < len(kept.times):
        kept.times[i], kept.lengths[i] = t, h
        for a in range(work.values.shape[0]):
            for lane in range(work.values.shape[1]):
                kept.values[i, a, lane] = work.values[a, lane]
        kept.taken[0] = i + 1
