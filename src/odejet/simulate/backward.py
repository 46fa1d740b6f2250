"""Backward: solutions whose steps are kept, so that the gradient of a function of their outputs follows from one way
back.

All of such a solution is carried by collocation (see `jets.adjoint`), which costs a small model more than Taylor
series do, and a large one with many unknowns a fraction of its sensitivities.  What switches, has events or looks back
in time is not followed backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from odejet.jets.adjoint import lanes_of, places_of, pull_back, room_for_bars
from odejet.jets.collocation import collocate
from odejet.jets.drive import Drive
from odejet.jets.kept import Kept
from odejet.jets.roots import Switches
from odejet.jets.sparsity import sparse_order
from odejet.model.tape import Tape
from odejet.simulate.flow import TOLERANCE, Flow
from odejet.simulate.initial_value import Allowance, InitialValueProblem, Leg
from odejet.simulate.steady import RestingFlow
from odejet.simulate.trajectory import Outcome, Trajectory

_ROOM, _FEWEST, _MOST = 1 << 25, 40, 500  # bytes, and steps, for which there is room until the next look at the clock
MEMORY = 5e8
"""Bytes of steps that one solution may keep."""


ENDLESS = Allowance(math.inf, math.inf, 0.0)


class Stretch(NamedTuple):
    """Steps of collocation without a stop, with what is asked for along them."""

    tape: Tape
    states: np.ndarray  # rows at the start
    drive: Drive
    piece: int
    start: float
    first: int  # the position of the first of its times
    times: np.ndarray
    kept: Kept


class KeptSolution:
    """A solution from rows of states, known or given, whose steps are kept."""

    def __init__(
        self,
        flow: Flow,
        parameters: np.ndarray,
        states: np.ndarray,
        times: np.ndarray,
        start: float,
        tolerance: float,
        allowance: Allowance,
        deadline: float,
        tangents: np.ndarray | None,
    ) -> None:
        self.tangents = tangents
        self.problem = _Keeping(flow, flow.frame(False, False), parameters, states, tangents is not None, None, {})
        self.problem.deadline = deadline
        self.found = self.problem.solve(start, times, tolerance, allowance)

    def gradient(self, seeds: np.ndarray) -> np.ndarray | None:
        """Return the derivatives by all unknowns of a function that has the derivatives `seeds` (times, outputs) by
        outputs; None where the way back is lost."""
        problem, model = self.problem, self.problem.flow.model
        bars = dict[int, np.ndarray]()
        by_states, by_parameters = np.zeros(len(problem.states)), np.zeros(len(problem.parameters))
        for number, one in reversed(list(enumerate(problem.stretches))):
            tape, here = one.tape, slice(one.first, one.first + len(one.times))
            own = bars.setdefault(id(tape), room_for_bars(tape, problem.tolerance))
            moving, places = sparse_order(tape), places_of(tape, problem.tolerance, tape.states)
            static = np.flatnonzero(places >= 0)
            initial = places_of(tape, problem.tolerance, tape.initial)
            known = number == 0 and self.tangents is None
            pulled = by_states[moving]
            own[places[static]] = by_states[static]
            if not pull_back(
                tape,
                problem.parameters,
                one.states,
                one.drive,
                one.piece,
                one.start,
                one.times,
                one.kept,
                problem.tolerance,
                self.found.states[here],
                seeds[here],
                pulled,
                own,
                initial if known else np.full(len(initial), -1),
            ):
                return None
            by_states[moving], by_states[static] = pulled, own[places[static]]
            own[places[static]] = 0.0
            felt = places_of(tape, problem.tolerance, tape.parameters)
            by_parameters[felt >= 0] += own[felt[felt >= 0]]
            own[felt[felt >= 0]] = 0.0
        if self.tangents is not None:
            found = self.tangents.T @ by_states
            found[len(found) - len(by_parameters) :] += by_parameters
        else:
            free = [i for i, name in enumerate(model.states) if name in set(model.free_states)]
            found = np.concatenate([by_states[free], by_parameters])
        return found if np.isfinite(found).all() else None


class _Keeping(InitialValueProblem):
    """An initial-value problem that is solved by collocation alone, whose steps are kept."""

    def solve(self, start: float, times: np.ndarray, tolerance: float, allowance: Allowance) -> Trajectory:
        self.stretches: list[Stretch] = []
        self.tolerance, self.bytes = self.stiff_tolerance(tolerance), 0
        return super().solve(start, times, tolerance, allowance)

    def follow(self, leg: Leg, times: np.ndarray, tolerance: float) -> Outcome:
        room = _ROOM // (8 * max(self.tape.moving, 1) * lanes_of(self.tape, self.tolerance))
        self.slices = 1, min(max(room, _FEWEST), _MOST)
        if self.passage is None:
            self.begin(leg, times, tolerance)
        if leg.done == len(times) or self.implicit(leg, times[leg.done :], tolerance, 0.0):
            return Outcome.COMPLETED
        return Outcome.OUT_OF_TIME if self.is_late else Outcome.STIFF_FAILURE

    def begin(self, leg: Leg, times: np.ndarray, tolerance: float) -> None:
        """Put known initial states in place, and take down what is asked for at the start."""
        now = times[: int(np.searchsorted(times, leg.time, side="right"))]
        place = leg if len(now) else replace(leg, trajectory=leg.trajectory[:1].copy(), outputs=leg.outputs[:1].copy())
        self.explicit(place, now if len(now) else np.array([leg.time]), tolerance, 1 << 62, 1 << 62)
        if len(now):
            self.keep_instant(leg, 0, now)

    def record(self, leg: Leg, times: np.ndarray) -> None:
        first = leg.done
        super().record(leg, times)
        if leg.done > first:
            self.keep_instant(leg, first, times[first : leg.done])

    def keep_instant(self, leg: Leg, first: int, times: np.ndarray) -> None:
        """Keep what is asked for where the solution is."""
        nothing = Kept.room(0, self.tape.moving, lanes_of(self.tape, self.tolerance))
        drive = self.flow.drive(times)
        self.stretches.append(Stretch(self.tape, leg.states.copy(), drive, 0, leg.time, first, times, nothing))

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
        states, start, first = leg.states.copy(), leg.time, leg.done
        kept = Kept.room(limits[1], self.tape.moving, lanes_of(self.tape, self.tolerance))
        done = collocate(
            self.tape,
            self.parameters,
            leg.states,
            drive,
            piece,
            start,
            grid,
            *limits,
            switches,
            None,
            found,
            kept,
        )
        count = int(kept.taken[0])
        kept = Kept(kept.taken, kept.times[:count].copy(), kept.lengths[:count].copy(), kept.values[:count].copy())
        self.bytes += kept.values.nbytes
        if self.bytes > MEMORY:
            self.deadline = -math.inf
        reached = min(len(done[0]), len(grid) - (found is None))
        self.stretches.append(Stretch(self.tape, states, drive, piece, start, first, grid[:reached], kept))
        return done


def can_be_kept(flow: Flow) -> bool:
    """Whether solutions of a flow can be followed backward: nothing happens to them but that equations switch at known
    times, which leaves states as they are."""
    if flow.lookback is not None or (flow.program is not None and not flow.switches_by_the_clock):
        return False
    return not (isinstance(flow, RestingFlow) and (flow.model.regimens or flow.set_before))


class Solution(NamedTuple):
    """A trajectory without sensitivities, and how derivatives of a function by outputs become those by unknowns."""

    found: Trajectory
    gradient: Callable[[np.ndarray], np.ndarray | None]
    bytes: int  # that are kept


def keep(
    flow: Flow,
    parameters: np.ndarray,
    states: np.ndarray,
    times: np.ndarray,
    start: float,
    tolerance: float = TOLERANCE,
    allowance: Allowance = ENDLESS,
    deadline: float = math.inf,
) -> Solution | None:
    """Solve along times that lead forward from a start, and keep the steps; None where they would not lead back."""
    if not can_be_kept(flow) or not np.isfinite(times).all() or not (times >= start).all():
        return None
    if isinstance(flow, RestingFlow) and flow.lean is not None:
        return _kept_lean(flow, parameters, states, times, start, tolerance, allowance, deadline)
    tangents = None
    if isinstance(flow, RestingFlow) and flow.model.steady:
        if flow.still(start) is not None:
            return None
        rest = flow.before(start).known(parameters, 1 + len(flow.unknowns()))
        if rest.outcome is not Outcome.COMPLETED:
            return None
        rows = rest.rows[: len(flow.model.states)]
        states, tangents = rows[:, 0], rows[:, 1:]
    elif flow.program is not None:
        rows = _begun(flow, parameters, states, start, float(times[-1]))
        states, tangents = rows[:, 0], rows[:, 1:]
    kept = KeptSolution(flow, parameters, states, times, start, tolerance, allowance, deadline, tangents)
    return Solution(kept.found, kept.gradient, kept.problem.bytes)


def _begun(flow: Flow, parameters: np.ndarray, states: np.ndarray, start: float, end: float) -> np.ndarray:
    """Rows of value and derivatives of states at the start, where a program tells them."""
    frame = flow.frame(True, False)
    problem = InitialValueProblem(flow, frame, parameters, states, False, None, {})
    leg = Leg(start, problem.states.copy(), np.abs(problem.states[:, 0]), np.empty((0, 0, 0)), np.empty((0, 0, 0)))
    problem.set_out(leg, np.array([end]) if end > start else np.array([np.nextafter(start, np.inf)]))
    return frame.spread(leg.states)


def _kept_lean(flow: RestingFlow, parameters: np.ndarray, states: np.ndarray, *others: Any) -> Solution | None:
    """The solution of a model without what stays zero."""
    lean = flow.lean
    assert lean is not None and flow.leaner is not None
    own = keep(flow.leaner, parameters[lean.parameters], states[lean.states], *others)
    if own is None:
        return None

    def gradient(seeds: np.ndarray) -> np.ndarray | None:
        found, whole = own.gradient(seeds), np.zeros(len(flow.unknowns()))
        if found is None:
            return None
        whole[lean.lanes[1:] - 1] = found
        return whole

    return Solution(lean.whole(own.found, len(flow.model.states), 1), gradient, own.bytes)
