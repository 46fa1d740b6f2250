"""Initial value: one solution of a model along times that lead away from its start, by whichever method it asks for.

Taylor series carry it while their steps are held down by the solution; where stability alone does that, collocation
goes on from there.  Both stop at each knot of the inputs and where `events` leads from one stretch to the next, and
look at the clock from time to time.  How many steps there may be follows from how much there is to follow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from odejet.clock import now
from odejet.jets import stepper, steps
from odejet.jets.collocation import collocate
from odejet.jets.crossings import LATE
from odejet.jets.drive import NO_DRIVE, Drive
from odejet.jets.lanes import WIDTH, padded
from odejet.jets.radau import stages_for
from odejet.jets.roots import Switches, no_switches
from odejet.jets.taylor import steps_along
from odejet.model.tape import Tape
from odejet.simulate.branch_points import get_past
from odejet.simulate.events import Passage
from odejet.simulate.frame import Frame
from odejet.simulate.program import Busy, Endless, Irreversible, Trouble, Undecided
from odejet.simulate.standing import Place
from odejet.simulate.trajectory import Outcome, Trajectory, finite_part

if TYPE_CHECKING:
    from odejet.simulate.flow import Flow

_NO_SWITCHES = no_switches()  # made once: most models have none
_GROWTH = 1e3  # a step that collapses after such growth of the states is taken for a pole
_FAILURES = 20  # of collocation, after which Taylor series are not asked again
_HOPS = 50  # past branch points: some take more than one
_STUCK = 1e-12  # a step as short beside the time may be one before a branch point
_OVERFLOWS = 1e250  # states as large have left what numbers can tell
_FIRST_STEPS = 5  # a step that collapses right away is taken for a stiff initial layer
_STEPS_PER_STOP, _STIFF_STEPS_PER_STOP = 40, 80  # that a fast state takes to come to rest after a knot or an event
_SLICE = 5e7  # operations between two looks at the clock, about a tenth of a second
_LEAST_SLICE = 40  # steps of collocation between two looks: it begins each slice with a short one, and no polynomial
_ORDER = 20  # of an ordinary series
_OVERHEAD, _TANGENTS = 1000.0, 4.0  # operations of any step of collocation; those of tangents, relative to values
_MANY = 600  # Taylor steps still to go that collocation is worth a trial
_NEVER = 1 << 62  # steps
_ITERATIONS, _FILLED = (
    4,
    5,
)  # of Newton's method in a step of collocation; entries of a row of factors that are not zero
_ABREAST = 0.5  # the time of an operation of collocation, relative to one of a series, as measured
_PAID = 4.0  # how much longer than worth their effort steps of collocation are that are tried again soon
_HASTY, _FEW = 5, 200  # Taylor steps before a trial of collocation and still to go, where the tolerance is loose
_LOOSE = 1e-10
_STIFF_TOLERANCE = 1e-14


class Allowance(NamedTuple):
    """How many steps a trajectory may take: of either kind, and as many more as some operations pay for."""

    steps: float
    stiff_steps: float
    operations: float

    def of(self, costs: tuple[float, float], stops: int) -> tuple[float, float]:
        """Steps by Taylor series and by collocation, of which one costs so many operations, past so many stops."""
        steps = max(self.steps, self.operations / costs[0]) + _STEPS_PER_STOP * stops
        if self.stiff_steps == 0:
            return steps, 0
        return steps, max(self.stiff_steps, self.operations / costs[1]) + _STIFF_STEPS_PER_STOP * stops


@dataclass
class Leg(Place):
    """How far a trajectory has come, and how many steps it may still take."""

    trajectory: np.ndarray  # rows of all times, of which those that are done are filled
    outputs: np.ndarray
    explicit_steps: float = 0
    implicit_steps: float = 0
    steps: int = 0  # Taylor steps so far
    stiff_steps: int = 0  # and those of collocation
    method: str = "taylor"
    done: int = 0
    tried: int = 0  # Taylor steps before the last trial of collocation

    @property
    def ahead(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the next rows are written."""
        if not self.done:
            return self.trajectory, self.outputs
        return self.trajectory[self.done :], self.outputs[self.done :]

    def add(self, count: int, time: float) -> None:
        self.done, self.time = self.done + count, time

    def set_back(self, times: np.ndarray) -> None:
        """To the last of the times that was reached.

        Near x = 0 the series of x/(1 - exp(-x)), say, are rounding.  Steps of collocation that come from farther away
        do not notice.
        """
        self.time, self.states = float(times[self.done - 1]), self.trajectory[self.done - 1].copy()


def _is_at(asked: float, time: float) -> bool:
    """Whether a time that is asked for is this one, but for rounding."""
    return abs(asked - time) <= 2 * LATE * abs(time)


_TROUBLES: dict[type[Trouble], Outcome] = {
    Endless: Outcome.ENDLESS,
    Undecided: Outcome.UNDECIDED,
    Irreversible: Outcome.IRREVERSIBLE,
    Busy: Outcome.EXHAUSTED,
}


class InitialValueProblem:
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
        self.values, self.forward, self.slices = NO_DRIVE, True, (1, 1)
        if flow.set_by_events:
            self.hold(flow.set_by_events, frame, held)

    def hold(self, names: tuple[str, ...], frame: Frame, known: Mapping[str, np.ndarray]) -> None:
        """Parameters that events set are states at rest; rows of some are known."""
        held = np.zeros((len(names), self.lanes))
        for row, name, place in zip(held, names, frame.held, strict=True):
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
        return self.deadline < math.inf and now() > self.deadline

    @property
    def tape(self) -> Tape:
        """The tape of the mode that the solution is in."""
        return self.flow.tape if self.passage is None else self.passage.tape

    def solve(self, start: float, times: np.ndarray, tolerance: float, allowance: Allowance) -> Trajectory:
        """Along times that lead away from the start in one direction."""
        rows, asked = self.states.copy(), times
        trajectory = np.empty((len(times), *rows.shape))
        outputs = np.empty((len(times), len(self.flow.model.outputs), self.lanes))
        leg = Leg(start, rows, np.abs(rows[:, 0]), trajectory, outputs)
        self.values, self.forward = self.flow.drive(times), bool(times[-1] >= start)
        try:
            times = self.set_out(leg, times)
            costs, self.slices = self.costs(tolerance)
            leg.explicit_steps, leg.implicit_steps = allowance.of(costs, self.stops(start, asked[-1]))
            outcome = self.follow(leg, times, tolerance)
            if outcome is Outcome.COMPLETED and len(times) < len(asked):
                raise Irreversible
        except Trouble as trouble:
            outcome = _TROUBLES[type(trouble)]
            if self.passage is not None and self.passage.barrier is not None:
                leg.time = self.passage.barrier
        states, outputs = leg.trajectory, leg.outputs
        if leg.done < len(asked):
            states, outputs, asked = states[: leg.done], outputs[: leg.done], asked[: leg.done]
        found = Trajectory(
            np.arange(leg.done),
            self.frame.spread(states[:, : self.own]),
            self.observed(states, outputs, asked),
            outcome,
            leg.time,
            leg.steps,
            leg.method,
            leg.stiff_steps,
            {name: self.frame.spread(leg.states[self.own + i]) for i, name in enumerate(self.flow.set_by_events)},
        )
        # A sum tells in one pass that all is finite, unless it overflows.
        every = outputs if self.used == self.frame.every else found.outputs
        with np.errstate(all="ignore"):
            finite = math.isfinite(states.sum()) and math.isfinite(every.sum())
        return found if finite else finite_part(found, asked)

    def stops(self, start: float, end: float) -> int:
        """The knots of inputs and the events at known times on the way."""
        if self.passage is None and not self.flow.driven:
            return 0
        events = 0 if self.passage is None else len(self.passage.jumps.times)
        first, last = self.flow.pieces.knots.searchsorted([min(start, end), max(start, end)]).tolist()
        return int(last - first) + events

    def observed(self, states: np.ndarray, outputs: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Rows of the outputs with derivatives by all unknowns."""
        found = self.frame.spread(outputs)
        if self.used < self.frame.every:
            inputs = self.flow.drive(times).values if self.flow.driven else np.zeros((len(times), 0))
            self.flow.observation.differentiate(found, self.parameters[:, 0], states[:, :, 0], times, inputs)
        return found

    def set_out(self, leg: Leg, times: np.ndarray) -> np.ndarray:
        """The first mode and the events ahead, if there are any; the times that can be reached."""
        program = self.flow.program
        if program is None:
            return times
        self.passage = Passage(program, self.parameters, self.flow.pieces, leg.time, float(times[-1]))
        self.passage.switches_left = self.max_switches
        self.passage.record = lambda place: self.record(leg, times)
        self.passage.begin(leg, not self.free_states)
        return self.passage.reached(times)

    def record(self, leg: Leg, times: np.ndarray) -> None:
        """Take down what is asked for where the solution is."""
        assert self.passage is not None
        count = 0
        while leg.done + count < len(times) and _is_at(times[leg.done + count], leg.time):
            count += 1
        if count:
            inputs = self.values.values[leg.done : leg.done + 1]
            outputs = self.passage.outputs(leg, inputs[0] if len(inputs) else None)
            trajectory, shown = leg.ahead
            trajectory[:count], shown[:count] = leg.states, outputs
            leg.add(count, leg.time)

    def follow(self, leg: Leg, times: np.ndarray, tolerance: float) -> Outcome:
        """The solution to the last of the times, from stretch to stretch and by the method that each asks for."""
        patience, many = (_HASTY, _FEW) if tolerance >= _LOOSE else (steps.PATIENCE, _MANY)
        patience = patience if leg.implicit_steps > 0 and not self.flow.driven else _NEVER
        many, hasty = (many if leg.implicit_steps > 0 else _NEVER), patience
        barred, hops = math.nan, 0  # where no step leads on; how many led past branch points
        failures = 0  # how often collocation has not arrived
        while leg.done < len(times):
            # The first slice is short, and often all: it is not refused, with events or without.
            if leg.steps > 0 and self.is_late:
                return Outcome.OUT_OF_TIME
            status, order, step = self.explicit(leg, times[leg.done :], tolerance, many, patience)
            if self.passage is not None and status in (stepper.SWITCHED, stepper.PAUSED):
                self.passage.go_on(leg, status == stepper.SWITCHED)
                leg.explicit_steps -= steps.SWITCHED_STEPS
                continue
            if status == stepper.EXHAUSTED and leg.explicit_steps >= 1:
                continue
            outcome = self.outcome(status, leg)
            stuck = status in (stepper.NONFINITE, stepper.COLLAPSED) or (
                status == stepper.STIFF and step <= _STUCK * abs(leg.time)
            )
            if stuck and leg.time != barred and hops < _HOPS:
                barred, hops = leg.time, hops + 1
                if get_past(self, leg, times[leg.done :]):
                    continue
            # Steps of collocation that did not pay are better than none.
            slow = outcome is Outcome.EXHAUSTED and leg.method != "taylor"
            passing = outcome is Outcome.SINGULAR and self.passage is None and leg.done > 0
            if not (slow or passing or outcome is Outcome.STIFF_FAILURE) or leg.implicit_steps < 1:
                return outcome
            if passing:
                leg.set_back(times)
            if leg.method == "taylor":
                leg.method = f"taylor, collocation from t = {leg.time:.6g}"
            least = self.least_step(step, order, tolerance) if status == stepper.SLOW else 0.0
            origin, before, leg.tried = leg.time, leg.stiff_steps, leg.steps
            if self.implicit(leg, times[leg.done :], tolerance, least):
                return Outcome.COMPLETED
            if self.is_late:
                return Outcome.OUT_OF_TIME
            if status != stepper.SLOW and leg.time != times[-1]:
                failures += 1
                if passing or leg.implicit_steps < 1 or leg.time == origin or failures > _FAILURES:
                    return Outcome.EXHAUSTED if leg.implicit_steps < 1 else outcome
            # Taylor series go on from here, and wait longer before they ask again where that did not pay.
            paid = abs(leg.time - origin) > _PAID * least * (leg.stiff_steps - before)
            patience = _NEVER if leg.implicit_steps < 1 else hasty if paid else 2 * patience
        return Outcome.COMPLETED

    def explicit(
        self, leg: Leg, times: np.ndarray, tolerance: float, many: int, patience: int
    ) -> tuple[int, int, float]:
        """Taylor steps as far as they go, or until it is time for a look at the clock: how they ended, the order and
        the length of the last."""
        tape, passage = self.tape, self.passage
        most = max(self.slices[0], (steps.PATIENCE if patience == _NEVER else _HASTY) + 1)
        if most <= patience < _NEVER:  # what is counted does not outlast a look at the clock
            patience = most - 1 if leg.steps + most - leg.tried > patience else _NEVER
        # The known initial states of a model are those at its start; a passage has them in place.
        free = self.free_states or leg.steps > 0 or leg.stiff_steps > 0 or passage is not None
        crossing = None if passage is None else passage.crossing()
        taken = steps_along(
            tape,
            free,
            self.parameters,
            leg.states,
            self.values._replace(values=self.values.values[leg.done :]) if self.flow.driven else NO_DRIVE,
            leg.time,
            times,
            (tolerance, int(min(leg.explicit_steps, most)), many, patience),
            leg.ahead,
            None if passage is None else (passage.jumps, passage.switches, crossing),
        )
        if passage is not None and crossing is not None:
            leg.sizes = np.maximum(np.abs(leg.states[:, 0]), taken.scales)
            passage.leave(leg.time, taken.time)
            passage.crossed(crossing, taken.time)
        leg.add(taken.done, taken.time)
        leg.steps, leg.explicit_steps = leg.steps + taken.steps, leg.explicit_steps - taken.steps
        return taken.status, taken.order, taken.length

    def costs(self, tolerance: float) -> tuple[tuple[float, float], tuple[int, int]]:
        """About how many operations a step takes, by an ordinary series and by collocation, and how many steps of each
        there are between two looks at the clock; counted once."""
        known, key = self.tape.layouts, (self.used, tolerance)
        if key not in known:
            constant, linear, quadratic, _ = self.tape.work.tolist()
            wide = self.lanes / WIDTH
            explicit = constant + wide * _ORDER * (linear + quadratic * _ORDER)
            implicit = _OVERHEAD + _ABREAST * self.implicit_operations(tolerance)
            implicit *= 1 + _TANGENTS * wide if self.used > 1 else 1
            known[key] = (
                (explicit, implicit),
                (max(1, int(_SLICE / explicit)), max(_LEAST_SLICE, int(_SLICE / implicit))),
            )
        found: tuple[tuple[float, float], tuple[int, int]] = known[key]
        return found

    def least_step(self, step: float, order: int, tolerance: float) -> float:
        """A step of collocation that is worth so many Taylor steps of this length and order, by counting operations.

        Values alone are counted, so that the choice does not depend on whether sensitivities are asked for.
        """
        constant, linear, quadratic, _ = self.tape.work.tolist()
        series = constant + linear * order + quadratic * order * order
        return _ABREAST * self.implicit_operations(tolerance) / series * step

    def implicit_operations(self, tolerance: float) -> float:
        """Those of a step of collocation, without tangents."""
        nodes, n = stages_for(self.stiff_tolerance(tolerance)) + 1, self.tape.moving
        linear = float(self.tape.work[1])
        wide, systems, filled = padded(nodes) // WIDTH, padded(nodes // 2) // WIDTH, min(n, _FILLED)
        iteration = wide * (linear + nodes * n) + 4 * systems * n * filled
        return _ITERATIONS * iteration + linear * (1 + n / 4) + systems * n * filled**2

    def stiff_tolerance(self, tolerance: float) -> float:
        return max(tolerance, _STIFF_TOLERANCE)

    def outcome(self, status: int, leg: Leg) -> Outcome:
        """What an integration that ended with `status` has met; stiffness is a failure until solved."""
        if status == stepper.REACHED:
            return Outcome.COMPLETED
        if status == stepper.EXHAUSTED:
            return Outcome.EXHAUSTED
        if np.abs(leg.states[:, 0]).max() > _OVERFLOWS:
            return Outcome.BLOW_UP
        if status in (stepper.STIFF, stepper.SLOW) or (leg.steps <= _FIRST_STEPS and status == stepper.COLLAPSED):
            return Outcome.STIFF_FAILURE
        first = leg.trajectory[0, :, 0] if leg.done else self.states[:, 0]
        if leg.steps == 0 and np.all(np.isfinite(leg.states[:, 0])):
            return Outcome.SINGULAR
        grown = np.abs(leg.states[:, 0]).max() > _GROWTH * max(np.abs(first).max(), 1e-300)
        return Outcome.BLOW_UP if grown or not np.all(np.isfinite(leg.states[:, 0])) else Outcome.SINGULAR

    def implicit(self, leg: Leg, times: np.ndarray, tolerance: float, least: float) -> bool:
        """Steps of collocation, from knot to knot of the inputs and from event to event: do they arrive?"""
        begun = leg.done
        while leg.done - begun < len(times):
            if times[-1] == leg.time:  # a switch at the last time: a series tells what holds after it
                return False
            origin, first, left = leg.time, leg.done, times[leg.done - begun :]
            jump = None if self.passage is None else self.passage.next_jump
            ahead = left if jump is None else left[: self.passed(left, jump, False)]
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
        self, leg: Leg, times: np.ndarray, piece: int, stop: float, tolerance: float, least: float
    ) -> tuple[bool, bool]:
        """Steps of collocation to a stop: do they arrive there, or where a switching function loses its sign?"""
        while True:
            arrived, crossed, taken = self.collocated_slice(leg, times, piece, stop, tolerance, least)
            if arrived or taken < self.slices[1] or leg.implicit_steps < 1 or self.is_late:
                return arrived, crossed
            times = times[self.passed(times, leg.time) :]

    def collocated_slice(
        self, leg: Leg, times: np.ndarray, piece: int, stop: float, tolerance: float, least: float
    ) -> tuple[bool, bool, int]:
        """Steps of collocation, until it is time for a look at the clock; and how many there were."""
        inside = self.passed(times, stop)
        direct = inside > 0 and stop == times[inside - 1]
        grid = times[:inside] if direct else np.r_[times[:inside], stop]
        limits = self.stiff_tolerance(tolerance), int(min(leg.implicit_steps, self.slices[1])), least, self.used > 1
        switches = _NO_SWITCHES if self.passage is None else self.passage.switches
        drive, start = self.flow.drive(grid), leg.time
        trajectory, outputs, time, count, crossed = self.collocate(
            leg, drive, piece, grid, limits, switches, leg.ahead if direct else None
        )
        reached = min(len(trajectory), inside)
        if not direct:
            leg.ahead[0][:reached], leg.ahead[1][:reached] = trajectory[:reached], outputs[:reached]
        leg.implicit_steps, leg.stiff_steps = leg.implicit_steps - count, leg.stiff_steps + count
        if self.passage is not None:
            self.passage.leave(start, time)
        leg.add(reached, time)
        leg.sizes = np.abs(leg.states[:, 0])
        return crossed or len(trajectory) == len(grid), crossed, count

    def collocate(
        self,
        leg: Leg,
        drive: Drive,
        piece: int,
        grid: np.ndarray,
        limits: tuple[float, int, float, bool],
        switches: Switches,
        found: tuple[np.ndarray, np.ndarray] | None,
    ) -> tuple[np.ndarray, np.ndarray, float, int, bool]:
        """Take steps of collocation from where the leg is."""
        return collocate(
            self.tape, self.parameters, leg.states, drive, piece, leg.time, grid, *limits, switches, None, found
        )

    def passed(self, times: np.ndarray, stop: float, inclusive: bool = True) -> int:
        """How many of the times ahead come before a stop, or not after it."""
        if self.forward:
            return int(np.searchsorted(times, stop, side="right" if inclusive else "left"))
        return len(times) - int(np.searchsorted(times[::-1], stop, side="left" if inclusive else "right"))
