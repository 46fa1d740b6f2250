"""Flow: the solution of a model as a function of its parameters and initial states.

`simulate` is for people; `Flow` is the same for programs that call it many times.  Taylor series on the tape carry
ordinary models; where their steps are held down by stability alone, collocation goes on from there.  Sampled inputs are
polynomials between knots, and every method stops at each knot.  A model with events or switches is analytic between
them, and `events` leads from one stretch to the next.  Whatever happens to a solution is an `Outcome` with a sentence,
never an exception or a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import DataError, ModelError, nearest
from odejet.jets import steps
from odejet.jets.collocation import collocate
from odejet.jets.compilation import now
from odejet.jets.crossings import LATE
from odejet.jets.drive import NO_DRIVE, Drive
from odejet.jets.inputs import Pieces, Sampled, merged
from odejet.jets.lanes import WIDTH, padded
from odejet.jets.radau import stages_for
from odejet.jets.roots import no_switches
from odejet.jets.taylor import steps_along
from odejet.model.tape import Tape, build
from odejet.simulate.events import Passage
from odejet.simulate.frame import Frame
from odejet.simulate.observation import Observation
from odejet.simulate.program import Busy, Endless, Irreversible, Program, Trouble, Undecided
from odejet.simulate.standing import Place
from odejet.simulate.trajectory import Outcome, Trajectory, finite_part, joined

if TYPE_CHECKING:
    from odejet.model import Model

TOLERANCE = 1e-16
"""Truncation of a Taylor step, relative to each state: at rounding level, since it costs little."""

MAX_STEPS = 20_000
STIFF_STEPS = 5000
"""Steps of collocation, of a millisecond or more each: a solution that needs more is not smooth."""

_NO_SWITCHES = no_switches()  # made once: most models have none
_GROWTH = 1e3  # a step that collapses after such growth of the states is taken for a pole
_FIRST_STEPS = 5  # a step that collapses right away is taken for a stiff initial layer
_MANY = 600  # Taylor steps still to go that collocation is worth a trial
_NEVER = 1 << 62  # steps
_ITERATIONS, _FILLED = (
    4,
    5,
)  # of Newton's method in a step of collocation; entries of a row of factors that are not zero
_ABREAST = 0.5  # the time of an operation of collocation, relative to one of a series, as measured
_HASTY, _FEW = 5, 200  # Taylor steps before a trial of collocation and still to go, where the tolerance is loose
_LOOSE = 1e-10
_BESIDE = 1e-12  # relative to a time: so much later it is another, and a step leads there
_STIFF_TOLERANCE = 1e-14


def just_after(time: float, start: float) -> float:
    """A time at which all has happened that happens at another, and that no rounding takes for the other."""
    return time + max(_BESIDE * max(abs(time), abs(start)), 1e-300)


class Flow:
    """The solution map of a model, and of the samples of those inputs that are no functions of `t`; set up once, run
    many times."""

    def __init__(self, model: Model, inputs: Mapping[str, Sampled] | None = None) -> None:
        self.model = model
        self.program = None if model.is_smooth else Program(model)
        self._tape = build(model) if self.program is None else None
        self.pieces = _pieces(model, inputs or {})
        self._steps = _steps(model, inputs or {})
        self.driven = any(expression is None for expression in model.inputs.values())
        self.observation = Observation(model)
        self._frames: dict[tuple[bool, bool, bool], Frame] = {}

    @property
    def tape(self) -> Tape:
        """The equations of a model without switches and events."""
        if self._tape is None:
            raise ModelError(
                f"{self.model.name}: the model switches or has events, so that no one set of equations holds at all "
                "times, as steady states and jets need"
            )
        return self._tape

    def drive(self, times: np.ndarray) -> Drive:
        """The sampled inputs, with their values at times."""
        if not self.driven:
            return NO_DRIVE
        values = np.ascontiguousarray(self.pieces.series(times, 0)[:, :, 0])
        for i, steps_ in self._steps:  # what is measured at a step is before it
            there = np.isin(times, steps_)
            if there.any():
                before = self.pieces.piece(np.nextafter(times[there], -np.inf))
                values[there, i] = self.pieces.series(times[there], 0, before)[:, i, 0]
        return Drive(self.pieces.knots, np.ascontiguousarray(self.pieces.coefficients), values)

    def unknowns(self, free_states: bool = False) -> tuple[str, ...]:
        """The names behind the sensitivities: unknown initial states (all of them with `free_states`), parameters."""
        return (
            *(tuple(self.model.states) if free_states else self.model.free_states),
            *self.model.parameters,
        )

    @property
    def set_by_events(self) -> tuple[str, ...]:
        """Parameters that events set."""
        return () if self.program is None else self.program.held

    def frame(self, sensitivities: bool, free_states: bool, every: bool = False) -> Frame:
        """The rows of all its problems, made once; with `every` they have tangents by what no solution feels, too."""
        key = sensitivities, free_states, every
        if key not in self._frames:
            unknowns = self.unknowns(free_states) if sensitivities else ()
            unfelt = () if every else self.observation.unfelt
            self._frames[key] = Frame.of(self.model, self.set_by_events, unknowns, unfelt)
        return self._frames[key]

    def run(
        self,
        parameters: Sequence[float] | np.ndarray,
        states: Sequence[float] | np.ndarray,
        times: Sequence[float] | np.ndarray,
        *,
        start: float | None = None,
        sensitivities: bool = True,
        free_states: bool = False,
        tangents: np.ndarray | None = None,
        held: Mapping[str, np.ndarray] | None = None,
        tolerance: float = TOLERANCE,
        max_steps: int = MAX_STEPS,
        stiff_steps: int = STIFF_STEPS,
        max_switches: float = math.inf,
        deadline: float = math.inf,
    ) -> Trajectory:
        """Integrate from `states` at `start` (by default the first time) to all `times`, forward and backward.

        Initial states that the model knows replace those given, unless `free_states` says that `start` is any time, or
        `tangents` tell the derivatives of the states there by the unknowns.  `held` are rows of parameters that events
        have set before.  The clock is looked at from event to event.
        """
        times = np.asarray(times, dtype=float)
        start = float(times.min()) if start is None else float(start)
        if self.driven and not self.pieces.cover(min(start, times.min()), max(start, times.max())):
            first, last = self.pieces.knots[[0, -1]]
            raise DataError(
                f"the inputs are sampled from t = {first:g} to {last:g}, but the simulation goes beyond; sample longer"
            )
        frame = self.frame(sensitivities, free_states)
        if tangents is not None and not frame.has([*tangents, *(row[1:] for row in (held or {}).values())]):
            frame = self.frame(sensitivities, free_states, every=True)

        def solved(times: np.ndarray) -> Trajectory:
            problem = _Problem(self, frame, parameters, states, free_states, tangents, held or {})
            problem.deadline, problem.max_switches = deadline, max_switches
            return problem.solve(start, times, tolerance, max_steps, stiff_steps)

        if start <= times[0] and (times[:-1] <= times[1:]).all():
            return solved(times)
        order = np.argsort(times, kind="stable")
        split = int(np.searchsorted(times[order], start, side="left"))
        branches = [branch for branch in (order[split:], order[:split][::-1]) if len(branch)]
        return joined(branches, [solved(times[branch]) for branch in branches])


def _pieces(model: Model, inputs: Mapping[str, Sampled]) -> Pieces:
    """The sampled inputs of a model, in its order."""
    wanted = [name for name, expression in model.inputs.items() if expression is None]
    for name in wanted:
        if name not in inputs:
            raise ModelError(f"the input '{name}' is sampled; give inputs={{'{name}': (times, values)}}")
    for name in inputs:
        if name not in wanted:
            raise ModelError(f"the model has no sampled input '{name}'{nearest(name, wanted)}")
    return merged([inputs[name] for name in wanted])


def _steps(model: Model, inputs: Mapping[str, Sampled]) -> list[tuple[int, np.ndarray]]:
    """The sampled inputs of a model that jump, by their places, and the times at which they do."""
    wanted = [name for name, expression in model.inputs.items() if expression is None]
    doubled = [inputs[name].times[1:][np.diff(inputs[name].times) == 0] for name in wanted]
    return [(i, times) for i, times in enumerate(doubled) if len(times)]


@dataclass
class _Leg(Place):
    """How far a trajectory has come, and how many steps it may still take."""

    explicit_steps: int
    implicit_steps: int
    steps: int = 0  # Taylor steps so far
    method: str = "taylor"
    done: int = 0
    parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, trajectory: np.ndarray, outputs: np.ndarray, time: float) -> None:
        self.parts.append((trajectory, outputs))
        self.done, self.time = self.done + len(trajectory), time

    def set_back(self, times: np.ndarray) -> None:
        """To the last of the times that was reached.

        Near x = 0 the series of x/(1 - exp(-x)), say, are rounding.  Steps of collocation that come from farther away
        do not notice.
        """
        states = next(part for part, _ in reversed(self.parts) if len(part))
        self.time, self.states = float(times[self.done - 1]), states[-1].copy()


_TROUBLES: dict[type[Trouble], Outcome] = {
    Endless: Outcome.ENDLESS,
    Undecided: Outcome.UNDECIDED,
    Irreversible: Outcome.IRREVERSIBLE,
    Busy: Outcome.EXHAUSTED,
}


class _Problem:
    """One initial-value problem: rows of value and tangents for all parameters and states."""

    def __init__(
        self,
        flow: Flow,
        frame: Frame,
        parameters,
        states,
        free_states: bool,
        tangents: np.ndarray | None,
        held: Mapping[str, np.ndarray],
    ) -> None:
        self.deadline, self.max_switches = math.inf, math.inf
        self.frame = frame
        self.flow, self.free_states, self.own = flow, free_states or tangents is not None, len(frame.states)
        self.used, self.lanes = frame.used, frame.states.shape[1]
        self.parameters, self.states = frame.parameters.copy(), frame.states.copy()
        self.parameters[:, 0], self.states[:, 0] = parameters, states
        if tangents is not None:
            self.states[:, 1 : self.used] = tangents[:, frame.lanes[1:] - 1]
        self.passage: Passage | None = None
        if flow.program is not None and flow.program.held:
            self.hold(flow.program, frame, held)

    def hold(self, program: Program, frame: Frame, known: Mapping[str, np.ndarray]) -> None:
        """Parameters that events set are states at rest; rows of some are known."""
        held = np.zeros((len(program.held), self.lanes))
        for row, name, place in zip(held, program.held, frame.held, strict=True):
            if name in known:
                row[: self.used] = known[name][frame.lanes]
            elif place >= 0:
                row[:] = self.parameters[place]
            else:
                row[0] = float(self.flow.model.fixed[name])
        self.states = np.concatenate([self.states, held])
        self.parameters = self.parameters[frame.free]

    @property
    def is_late(self) -> bool:
        return self.passage is not None and now() > self.deadline

    @property
    def tape(self) -> Tape:
        """The tape of the mode that the solution is in."""
        return self.flow.tape if self.passage is None else self.passage.tape

    def solve(self, start: float, times: np.ndarray, tolerance: float, max_steps: int, stiff_steps: int) -> Trajectory:
        """Along times that lead away from the start in one direction."""
        rows = self.states.copy()
        leg = _Leg(start, rows, np.abs(rows[:, 0]), max_steps + len(self.flow.pieces.knots), stiff_steps)
        asked = times
        try:
            times = self.set_out(leg, times)
            outcome = self.follow(leg, times, tolerance, max_steps, stiff_steps)
            if outcome is Outcome.COMPLETED and len(times) < len(asked):
                raise Irreversible
        except Trouble as trouble:
            outcome = _TROUBLES[type(trouble)]
            if self.passage is not None and self.passage.barrier is not None:
                leg.time = self.passage.barrier
        if not leg.parts:
            leg.add(np.zeros((0, *rows.shape)), np.zeros((0, len(self.flow.model.outputs), self.lanes)), leg.time)
        states, outputs = leg.parts[0] if len(leg.parts) == 1 else map(np.concatenate, zip(*leg.parts, strict=True))
        found = Trajectory(
            np.arange(leg.done),
            self.frame.spread(states[:, : self.own]),
            self.observed(states, outputs, asked[: leg.done]),
            outcome,
            leg.time,
            leg.steps,
            leg.method,
            {name: self.frame.spread(leg.states[self.own + i]) for i, name in enumerate(self.flow.set_by_events)},
        )
        # A sum tells in one pass that all is finite, unless it overflows.
        every = outputs if self.used == self.frame.every else found.outputs
        with np.errstate(all="ignore"):
            finite = math.isfinite(states.sum()) and math.isfinite(every.sum())
        return found if finite else finite_part(found, asked)

    def observed(self, states: np.ndarray, outputs: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Rows of the outputs with derivatives by all unknowns."""
        found = self.frame.spread(outputs)
        if self.used < self.frame.every:
            inputs = self.flow.drive(times).values if self.flow.driven else np.zeros((len(times), 0))
            self.flow.observation.differentiate(found, self.parameters[:, 0], states[:, :, 0], times, inputs)
        return found

    def set_out(self, leg: _Leg, times: np.ndarray) -> np.ndarray:
        """The first mode and the events ahead, if there are any; the times that can be reached."""
        program = self.flow.program
        if program is None:
            return times
        self.passage = Passage(program, self.parameters, self.flow.pieces, leg.time, float(times[-1]))
        self.passage.switches_left = self.max_switches
        self.passage.record = lambda place: self.record(leg, times)
        self.passage.begin(leg, not self.free_states)
        leg.explicit_steps += len(self.passage.jumps.times)
        return self.passage.reached(times)

    def record(self, leg: _Leg, times: np.ndarray) -> None:
        """Take down what is asked for where the solution is."""
        assert self.passage is not None
        count = 0
        while leg.done + count < len(times) and _is_at(times[leg.done + count], leg.time):
            count += 1
        if count:
            inputs = self.flow.drive(times[leg.done : leg.done + 1]).values
            outputs = self.passage.outputs(leg, inputs[0] if len(inputs) else None)
            leg.add(np.repeat(leg.states[None], count, axis=0), np.repeat(outputs[None], count, axis=0), leg.time)

    def follow(self, leg: _Leg, times: np.ndarray, tolerance: float, max_steps: int, stiff_steps: int) -> Outcome:
        """The solution to the last of the times, from stretch to stretch and by the method that each asks for."""
        patience, many = (_HASTY, _FEW) if tolerance >= _LOOSE else (steps.PATIENCE, _MANY)
        patience = patience if stiff_steps > 0 and not self.flow.driven else _NEVER
        many = many if stiff_steps > 0 else max_steps
        while leg.done < len(times):
            if self.is_late:
                return Outcome.OUT_OF_TIME
            status, order, step = self.explicit(leg, times[leg.done :], tolerance, many, patience)
            if self.passage is not None and status in (steps.SWITCHED, steps.PAUSED):
                self.passage.go_on(leg, status == steps.SWITCHED)
                leg.explicit_steps -= steps.SWITCHED_STEPS
                continue
            outcome = self.outcome(status, leg)
            # Steps of collocation that did not pay are better than none.
            slow = outcome is Outcome.EXHAUSTED and leg.method != "taylor"
            passing = outcome is Outcome.SINGULAR and self.passage is None and leg.done > 0
            if not (slow or passing or outcome is Outcome.STIFF_FAILURE) or leg.implicit_steps <= 0:
                return outcome
            if passing:
                leg.set_back(times)
            if leg.method == "taylor":
                leg.method = f"taylor, collocation from t = {leg.time:.6g}"
            least = self.least_step(step, order, tolerance) if status == steps.SLOW else 0.0
            if self.implicit(leg, times[leg.done :], tolerance, least):
                return Outcome.COMPLETED
            if self.is_late:
                return Outcome.OUT_OF_TIME
            if status != steps.SLOW and leg.time != times[-1]:
                return outcome
            # Taylor series go on from here, and wait longer before they ask again.
            patience = 2 * patience if leg.implicit_steps > 0 else _NEVER
        return Outcome.COMPLETED

    def explicit(
        self, leg: _Leg, times: np.ndarray, tolerance: float, many: int, patience: int
    ) -> tuple[int, int, float]:
        """Taylor steps as far as they go: how they ended, the order and the length of the last."""
        tape, passage = self.tape, self.passage
        # The known initial states of a model are those at its start; a passage has them in place.
        free = self.free_states or bool(leg.parts) or passage is not None
        crossing = None if passage is None else passage.crossing()
        taken = steps_along(
            tape,
            free,
            self.parameters,
            leg.states,
            self.flow.drive(times),
            leg.time,
            times,
            (tolerance, leg.explicit_steps, many, patience),
            None if passage is None else (passage.jumps, passage.switches, crossing),
        )
        if passage is not None and crossing is not None:
            leg.sizes = np.maximum(np.abs(leg.states[:, 0]), taken.scales)
            passage.leave(leg.time, taken.time)
            passage.crossed(crossing, taken.time)
        leg.add(taken.states, taken.outputs, taken.time)
        leg.steps, leg.explicit_steps = leg.steps + taken.steps, leg.explicit_steps - taken.steps
        return taken.status, taken.order, taken.length

    def least_step(self, step: float, order: int, tolerance: float) -> float:
        """A step of collocation that is worth so many Taylor steps of this length and order, by counting operations.

        Values alone are counted, so that the choice does not depend on whether sensitivities are asked for.
        """
        tape = self.tape
        nodes, n = stages_for(self.stiff_tolerance(tolerance)) + 1, tape.moving
        constant, linear, quadratic, _ = tape.work.tolist()
        series = constant + linear * order + quadratic * order * order
        wide, systems, filled = padded(nodes) // WIDTH, padded(nodes // 2) // WIDTH, min(n, _FILLED)
        iteration = wide * (linear + nodes * n) + 4 * systems * n * filled
        implicit = _ITERATIONS * iteration + linear * (1 + n / 4) + systems * n * filled**2
        return _ABREAST * implicit / series * step

    def stiff_tolerance(self, tolerance: float) -> float:
        return max(tolerance, _STIFF_TOLERANCE)

    def outcome(self, status: int, leg: _Leg) -> Outcome:
        """What an integration that ended with `status` has met; stiffness is a failure until solved."""
        if status == steps.REACHED:
            return Outcome.COMPLETED
        if status == steps.EXHAUSTED:
            return Outcome.EXHAUSTED
        if status in (steps.STIFF, steps.SLOW) or (leg.steps <= _FIRST_STEPS and status == steps.COLLAPSED):
            return Outcome.STIFF_FAILURE
        grown = np.abs(leg.states[:, 0]).max() > _GROWTH * max(np.abs(self.states[:, 0]).max(), 1e-300)
        return Outcome.BLOW_UP if grown or not np.all(np.isfinite(leg.states)) else Outcome.SINGULAR

    def implicit(self, leg: _Leg, times: np.ndarray, tolerance: float, least: float) -> bool:
        """Steps of collocation, from knot to knot of the inputs and from event to event: do they arrive?"""
        begun = leg.done
        while leg.done - begun < len(times):
            if times[-1] == leg.time:  # a switch at the last time: a series tells what holds after it
                return False
            origin, first, left = leg.time, leg.done, times[leg.done - begun :]
            jump = None if self.passage is None else self.passage.next_jump
            ahead = left if jump is None else _before(left, jump, origin)
            for piece, stop in self.flow.pieces.stretches(origin, times[-1] if jump is None else jump):
                arrived, crossed = self.collocated(leg, ahead[leg.done - first :], piece or 0, stop, tolerance, least)
                if crossed or not arrived:
                    break
            if not arrived or self.is_late:
                return False
            if self.passage is not None and (crossed or jump is not None):
                self.passage.go_on(leg, crossed)
        return True

    def collocated(
        self, leg: _Leg, times: np.ndarray, piece: int, stop: float, tolerance: float, least: float
    ) -> tuple[bool, bool]:
        """Steps of collocation to a stop: do they arrive there, or where a switching function loses its sign?"""
        grid, inside = times, len(times)
        if not inside or stop != times[-1]:
            inside = int(np.searchsorted(np.abs(times - leg.time), abs(stop - leg.time), side="right"))
            grid = times[:inside] if inside and stop == times[inside - 1] else np.r_[times[:inside], stop]
        limits = self.stiff_tolerance(tolerance), leg.implicit_steps, least, self.used > 1
        switches = _NO_SWITCHES if self.passage is None else self.passage.switches
        trajectory, outputs, time, count, crossed = collocate(
            self.tape, self.parameters, leg.states, self.flow.drive(grid), piece, leg.time, grid, *limits, switches
        )
        leg.implicit_steps -= count
        arrived = crossed or len(trajectory) == len(grid)
        if self.passage is not None:
            self.passage.leave(leg.time, time)
        leg.add(trajectory[:inside], outputs[:inside], time)
        leg.sizes = np.abs(leg.states[:, 0])
        return arrived, crossed


def _is_at(asked: float, time: float) -> bool:
    """Whether a time that is asked for is this one, but for rounding."""
    return abs(asked - time) <= 2 * LATE * abs(time)


def _before(times: np.ndarray, stop: float, origin: float) -> np.ndarray:
    """Those of ordered times that lie before a stop on the way there."""
    return times[np.abs(times - origin) < abs(stop - origin)]
