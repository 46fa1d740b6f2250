"""Many: outputs of one model at many parameters along the same times, values only.

A solution through doses takes a few dozen steps, and to set it up takes longer than that.  Here what all solutions have
in common is set up once: the mode, the maps of events and, unless they depend on parameters, the times of events.  What
Taylor series alone do not carry to the last time is NaN, for `Flow.run` to solve.
"""

from __future__ import annotations

import numpy as np

from odejet.jets import stepper, steps
from odejet.jets.jumps import Jumps
from odejet.jets.taylor import steps_along
from odejet.model.dual import differentiated
from odejet.model.expressions import names
from odejet.simulate.events import Passage
from odejet.simulate.flow import Flow
from odejet.simulate.program import Program, Trouble
from odejet.simulate.schedule import Schedule, scheduled
from odejet.simulate.standing import Place

_MANY = 600  # steps ahead from which on collocation is worth a trial, which is not made here


def outputs_of(
    flow: Flow, parameters: np.ndarray, times: np.ndarray, start: float, tolerance: float, max_steps: int
) -> np.ndarray:
    """Return outputs for rows of parameters, of shape (rows, times, outputs)."""
    found = np.full((len(parameters), len(times), len(flow.model.outputs)), np.nan)
    if len(parameters) and _is_simple(flow, times, start):
        _Batch(flow, times, start, (tolerance, max_steps, _MANY, steps.PATIENCE), parameters).fill(found)
    return found


def _is_simple(flow: Flow, times: np.ndarray, start: float) -> bool:
    """Whether solutions go forward through events at known times, and nothing else happens to them."""
    program = flow.program
    forward = np.isfinite(times).all() and start <= times[0] and bool((times[:-1] <= times[1:]).all())
    if program is None or not forward or flow.driven or flow.model.steady or flow.model.free_states:
        return False
    return not (program.switching or program.held) and bool(program.timed)


class _Batch:
    """What solutions have in common."""

    def __init__(
        self,
        flow: Flow,
        times: np.ndarray,
        start: float,
        limits: tuple[float, int, int, int],
        parameters: np.ndarray,
    ) -> None:
        assert flow.program is not None
        self.program: Program = flow.program
        self.times, self.start, self.limits, self.given = times, start, limits, parameters
        self.drive = flow.drive(times)
        frame = flow.frame(False, False)
        self.parameters, self.states = frame.parameters.copy(), frame.states.copy()
        self.parameters[:, 0] = parameters[0]
        passage = Passage(self.program, self.parameters, flow.pieces, start, float(times[-1]))
        passage.begin(Place(start, self.states.copy(), np.abs(self.states[:, 0])), True)
        self.switches, self.crossing, self.tape = passage.switches, passage.crossing(), passage.tape
        self.event_times, self.order = self._event_times(), np.zeros(0, int)
        maps = self.program.maps([tuple(event.set.values()) for event in self.program.timed])
        registers = maps.registers(self.parameters)
        self.places = registers.index("parameters").rows[:, 0] if len(self.parameters) else np.zeros(0, int)
        self.memory = registers.memory[0]

    def _event_times(self) -> np.ndarray:
        """The times and periods of events, for every row of parameters."""
        columns = dict(zip(self.program.equations.parameters, self.given.T, strict=True)) | dict(self.program.numbers)
        found = []
        for expression in self.program.times:
            used = {name: columns[name] for name in set(names(expression))}
            found.append(np.broadcast_to(differentiated(expression, used, {}, 0).value, len(self.given)))
        return np.stack(found, axis=1)

    def fill(self, found: np.ndarray) -> None:
        shared = bool((self.event_times == self.event_times[0]).all())
        alike = self._alike()
        schedule, usual, base = None, None, None
        trajectory = np.empty((len(self.times), *self.states.shape))
        outputs = np.empty((len(self.times), found.shape[2], self.states.shape[1]))
        for k, (row, values, event_times) in enumerate(zip(found, self.given, self.event_times, strict=True)):
            self.parameters[:, 0] = values
            try:
                if usual is not None and alike[k]:
                    usual.rows[:, 0] = event_times[self.order]
                    schedule = usual
                elif schedule is None or not shared:
                    schedule = self._schedule(event_times)
                    usual = schedule if alike[k] else usual
            except Trouble:
                continue
            base = schedule.jumps(self.program, self.parameters) if base is None or not len(base.maps) else base
            states = self.states.copy()
            begun = self.program.begun(self.parameters)
            if begun is None:
                return
            states[self.program.begins] = begun
            taken = steps_along(
                self.tape,
                True,
                self.parameters,
                states,
                self.drive,
                self.start,
                self.times,
                self.limits,
                (trajectory, outputs),
                (self._jumps(base, schedule, values), self.switches, self.crossing),
            )
            if taken.status == stepper.REACHED and taken.done == len(self.times):
                row[:] = outputs[:, :, 0]

    def _alike(self) -> np.ndarray:
        """Which rows have the events of the first in the same order: if each happens once, and all on the way."""
        times = self.event_times
        if any(event.every is not None for event in self.program.timed):
            return np.zeros(len(times), bool)
        self.order = np.argsort(times[0], kind="stable")
        ordered = times[:, self.order]
        strictly = (ordered[:, 1:] > ordered[:, :-1]).all(axis=1)
        inside = (ordered[:, 0] >= self.start) & (ordered[:, -1] <= self.times[-1])
        return strictly & inside & (strictly & inside)[0]

    def _schedule(self, event_times: np.ndarray) -> Schedule:
        rows = np.zeros((len(event_times), self.states.shape[1]))
        rows[:, 0] = event_times
        return scheduled(self.program.timed, rows, self.start, float(self.times[-1]))

    def _jumps(self, base: Jumps, schedule: Schedule, values: np.ndarray) -> Jumps:
        """The events of one solution."""
        if not len(schedule.rows):
            return schedule.jumps(self.program, self.parameters)
        memory, moved = self.memory.copy(), schedule.rows.copy()
        memory[self.places] = values
        moved[:, 0] = 0.0
        return base._replace(
            times=schedule.rows[:, 0].copy(),
            moved=moved,
            maps=schedule.which,
            follows=schedule.follows,
            done=np.zeros(1, np.int64),
            memory=memory,
        )
