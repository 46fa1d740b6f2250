"""Stepper: what all ways of stepping along a solution have in common, by Taylor series or by collocation.

Each turn has five parts.  `propose` chooses a step that the solution allows; `detect` shortens it to what happens on
it; `commit` takes down what is asked for on the way and moves to its end; `handle` lets happen what happens there; and
`diagnose` asks whether such steps are worth their effort.  What one part knows and another needs stands in one record
of numbers, which kernels call `now`: its fields are those below and those of the way of stepping itself.
"""

from __future__ import annotations

import numpy as np

from odejet.jets.lanes import kernel

REACHED, STIFF, SLOW, COLLAPSED, NONFINITE, EXHAUSTED, SWITCHED, PAUSED, FULL, GOING = range(10)
"""How an integration ended: at the last time; at a step limited by stability and not by the solution; after many steps
with many more to go, where implicit ones may be worth a trial; at a step too small to be resolved; at a right-hand side
that is not finite; at the limit of steps; where a switching function loses its sign; before a jump; where the past has
no room for another step.  The last one: it has not."""

_SHARED = {
    "time": float,  # where the next step begins
    "start": float,
    "end": float,  # the last time that is asked for
    "done": int,  # times that were reached
    "steps": int,
    "allowed": int,  # steps
    "status": int,
    "crossed": bool,  # whether a switching function loses its sign where the step ends
    "which": int,  # of them
}


def record(own: dict[str, type]) -> np.dtype:
    """Return the type of a record of the shared fields and of others, each as long as a double."""
    return np.dtype([(name, "f8" if kind is float else "i8") for name, kind in (_SHARED | own).items()])


@kernel
def begin(now, start, end, allowed):
    """Stand at the start; all other fields are zero."""
    now.time, now.start, now.end = start, start, end
    now.allowed, now.status = allowed, GOING


@kernel
def is_going(now):
    """Whether another turn may begin."""
    return now.status == GOING and now.steps < now.allowed


@kernel
def ended(now):
    """How it ended: at the limit of steps if nothing else was the reason."""
    return EXHAUSTED if now.status == GOING else now.status
