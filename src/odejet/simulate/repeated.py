"""Repeated: the outputs of one plain model for many values of its unknowns, without derivatives.

What Python does around a simulation of a small model takes several times as long as its Taylor steps.  Here it is done
once for all values; what then is left for each is one call of the kernel.  A model is plain if nothing stops it on its
way: no events, no sampled inputs, no steady state before its start, no looking back in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odejet.clock import now
from odejet.jets import steps
from odejet.jets.drive import NO_DRIVE
from odejet.jets.taylor import steps_along
from odejet.simulate.flow import Flow
from odejet.simulate.steady import RestingFlow

STEPS, MANY, PATIENCE = 400, 600, steps.PATIENCE
"""Taylor steps that a simulation may take, those still to go from which on collocation may be quicker, and those before
that is asked: beyond, the flow itself is asked, which has more than Taylor steps."""

TRIED = 8
"""Simulations of which one must come to its end by Taylor steps for others to be tried."""


@dataclass(frozen=True, eq=False)
class Repeated:
    """A plain model from its start to its times."""

    flow: Flow
    start: float
    times: np.ndarray
    tolerance: float
    parameters: np.ndarray  # positions among those of the model that was asked for
    states: np.ndarray

    @classmethod
    def of(cls, flow: Flow, start: float, times: np.ndarray, tolerance: float) -> Repeated | None:
        """None for a model that is not plain."""
        parameters, states = np.arange(len(flow.model.parameters)), np.arange(len(flow.model.states))
        if isinstance(flow, RestingFlow):
            if flow.lean is not None and flow.leaner is not None:  # without the states that stay at zero
                parameters, states, flow = flow.lean.parameters, flow.lean.states, flow.leaner
            if flow.model.steady or flow.model.regimens:
                return None
        ordered = start <= times[0] and bool((times[:-1] <= times[1:]).all()) and bool(np.isfinite(times).all())
        if flow.program is not None or flow.lookback is not None or flow.driven or not ordered:
            return None
        return cls(flow, start, np.ascontiguousarray(times, dtype=float), tolerance, parameters, states)

    def outputs(self, parameters: np.ndarray, states: np.ndarray, deadline: float = math.inf) -> np.ndarray:
        """Return outputs by row of values, time and output; NaN where Taylor steps do not lead to the end in time."""
        flow, frame = self.flow, self.flow.frame(False, False)
        given, begin = frame.parameters.copy(), np.empty_like(frame.states)
        rows = np.empty((len(self.times), *begin.shape))
        shown = np.empty((len(self.times), len(flow.model.outputs), begin.shape[1]))
        found = np.full((len(parameters), len(self.times), len(flow.model.outputs)), math.nan)
        limits, completed = (self.tolerance, STEPS, MANY, PATIENCE), 0
        for i, own in enumerate(found):
            if now() > deadline or (i >= TRIED and not completed):
                break
            given[:, 0], begin[:, :] = parameters[i, self.parameters], frame.states
            begin[:, 0] = states[i, self.states]
            taken = steps_along(
                flow.tape, False, given, begin, NO_DRIVE, self.start, self.times, limits, (rows, shown), None
            )
            # A sum tells in one pass that all states are finite, unless it overflows.
            if taken.done == len(self.times) and math.isfinite(rows.sum()):
                own[:] = shown[:, :, 0]
                completed += 1
        return found
