"""Flow: the solution of a model as a function of its parameters and initial states.

`simulate` is for people; `Flow` is the same for programs that call it many times.  Taylor series on the tape carry
ordinary models; where their steps are held down by stability alone, collocation goes on from there (CVODE, for models
with many states).  Sampled inputs are polynomials between knots, and every method stops at each knot.  Whatever happens
to a solution is an `Outcome` with a sentence, never an exception or a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from odejet import sundials
from odejet.errors import DataError
from odejet.expressions import ModelError, nearest
from odejet.jets import steps
from odejet.jets.collocation import collocate
from odejet.jets.inputs import Pieces, Sampled, merged
from odejet.jets.kernel import MAX_ORDER, TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.registers import expand_points
from odejet.tape import Tape, build

if TYPE_CHECKING:
    from odejet.model import Model

TOLERANCE = 1e-16
"""Truncation of a Taylor step, relative to each state: at rounding level, since it costs little."""

MAX_STEPS = 20_000
STIFF_STEPS = 5000
"""Steps of collocation, of a millisecond or more each: a solution that needs more is not smooth."""

COLLOCATION_STATES = 40
"""Beyond this many states the dense linear algebra of collocation costs more than the small steps of CVODE."""

_Method = Callable[..., tuple[np.ndarray, np.ndarray, bool]]

_GROWTH = 1e3  # a step that collapses after such growth of the states is taken for a pole
_FIRST_STEPS = 5  # a step that collapses right away is taken for a stiff initial layer
_STIFF_TOLERANCE = 1e-12
_SUNDIALS_TOLERANCE = 1e-10


class Outcome(Enum):
    """How a simulation ended, as a sentence with the time to be filled in."""

    COMPLETED = "every requested time was reached"
    BLOW_UP = "the solution grows without bound near t = {t:.6g}; other values, or fewer times, are needed"
    SINGULAR = (
        "the equations are not finite near t = {t:.6g} "
        "(a division by zero, or a logarithm or root of a negative number)"
    )
    UNDEFINED_OUTPUT = (
        "an output or a sensitivity is not finite at t = {t:.6g} "
        "(a division by zero, a logarithm or root of a negative number, or a number too large)"
    )
    EXHAUSTED = (
        "the solution needs more than {steps} steps, used up at t = {t:.6g}; raise max_steps or shorten the times"
    )
    STIFF_FAILURE = "the solution becomes too stiff to follow near t = {t:.6g}"


@dataclass(frozen=True)
class Trajectory:
    """States and outputs at the times that were reached, in rows of value and sensitivities."""

    reached: np.ndarray  # positions of those times in the request
    states: np.ndarray  # (times, states, 1 + unknowns)
    outputs: np.ndarray  # (times, outputs, 1 + unknowns)
    outcome: Outcome
    time: float  # the last time reached
    steps: int
    method: str

    @property
    def message(self) -> str:
        return self.outcome.value.format(t=self.time, steps=self.steps)


class Flow:
    """The solution map of a model, and of the samples of those inputs that are no functions of `t`; set up once, run
    many times."""

    def __init__(self, model: Model, inputs: Mapping[str, Sampled] | None = None) -> None:
        self.model = model
        self.tape: Tape = build(model)
        self.pieces = _pieces(model, inputs or {})
        self.driven = bool(len(self.tape.inputs))

    def drive(self, times: np.ndarray) -> steps.Drive:
        """The sampled inputs, with their values at times."""
        if not self.driven:
            return steps.NO_DRIVE
        values = np.ascontiguousarray(self.pieces.series(times, 0)[:, :, 0])
        return steps.Drive(self.pieces.knots, self.pieces.coefficients, values)

    def unknowns(self, free_states: bool = False) -> tuple[str, ...]:
        """The names behind the sensitivities: unknown initial states (all of them with `free_states`), parameters."""
        states = tuple(self.model.states)
        return (
            *(states if free_states else (s for s in states if s not in self.model.initial)),
            *self.model.parameters,
        )

    def run(
        self,
        parameters: Sequence[float] | np.ndarray,
        states: Sequence[float] | np.ndarray,
        times: Sequence[float] | np.ndarray,
        *,
        start: float | None = None,
        sensitivities: bool = True,
        free_states: bool = False,
        tolerance: float = TOLERANCE,
        max_steps: int = MAX_STEPS,
        stiff_steps: int = STIFF_STEPS,
    ) -> Trajectory:
        """Integrate from `states` at `start` (by default the first time) to all `times`, forward and backward.

        Initial states that the model knows replace those given, unless `free_states` says that `start` is any time.
        """
        times = np.asarray(times, dtype=float)
        start = float(times.min()) if start is None else float(start)
        if self.driven and not self.pieces.cover(min(start, times.min()), max(start, times.max())):
            first, last = self.pieces.knots[[0, -1]]
            raise DataError(
                f"the inputs are sampled from t = {first:g} to {last:g}, but the simulation goes beyond; sample longer"
            )
        unknowns = self.unknowns(free_states) if sensitivities else ()
        order = np.argsort(times, kind="stable")
        split = int(np.searchsorted(times[order], start, side="left"))
        branches = [branch for branch in (order[split:], order[:split][::-1]) if len(branch)]
        parts = []
        for branch in branches:
            problem = _Problem(self, parameters, states, unknowns, free_states)
            parts.append(problem.solve(start, times[branch], tolerance, max_steps, stiff_steps))
        return _joined(branches, parts)


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


def _joined(branches: list[np.ndarray], parts: list[Trajectory]) -> Trajectory:
    """Branches put together in the order in which their times were requested."""
    positions = np.concatenate([branch[: len(part.states)] for branch, part in zip(branches, parts, strict=True)])
    if len(parts) == 1 and np.all(np.diff(positions) > 0):
        return replace(parts[0], reached=positions)
    arranged = np.argsort(positions, kind="stable")
    last = next((part for part in parts if part.outcome is not Outcome.COMPLETED), parts[0])
    return replace(
        last,
        reached=positions[arranged],
        states=np.concatenate([part.states for part in parts])[arranged],
        outputs=np.concatenate([part.outputs for part in parts])[arranged],
        steps=sum(part.steps for part in parts),
    )


class _Problem:
    """One initial-value problem: rows of value and tangents for all parameters and states."""

    def __init__(self, flow: Flow, parameters, states, unknowns: tuple[str, ...], free_states: bool) -> None:
        self.flow, self.free_states = flow, free_states
        self.used = 1 + len(unknowns)
        self.lanes = padded(self.used)
        lane = {name: 1 + i for i, name in enumerate(unknowns)}
        self.parameters = _rows(parameters, flow.model.parameters, lane, self.lanes)
        self.states = _rows(states, tuple(flow.model.states), lane, self.lanes)

    def solve(self, start: float, times: np.ndarray, tolerance: float, max_steps: int, stiff_steps: int) -> Trajectory:
        """Along times that lead away from the start in one direction."""
        tape, states = self.flow.tape, self.states.copy()
        series, point = (lay_out(tape, self.lanes, orders, self.free_states) for orders in (MAX_ORDER + 1, 1))
        limit = max_steps + len(self.flow.pieces.knots)
        arguments = (self.flow.drive(times), start, np.ascontiguousarray(times), tolerance, limit, tape.work, TABLES)
        status, done, reached, count, _, trajectory, outputs = steps.integrate(
            series, point, tape.constant_values, self.parameters, states, *arguments
        )
        result = Trajectory(
            np.arange(done),
            trajectory[:, :, : self.used],
            outputs[:, :, : self.used],
            self.outcome(status, states, count),
            reached,
            count,
            "taylor",
        )
        if result.outcome is Outcome.STIFF_FAILURE:
            result = self.go_on(result, states, times, tolerance, max_steps, stiff_steps)
        return _finite_part(result, times)

    def outcome(self, status: int, states: np.ndarray, count: int) -> Outcome:
        """What an integration that ended with `status` at `states` has met; stiffness is a failure until solved."""
        if status == steps.REACHED:
            return Outcome.COMPLETED
        if status == steps.EXHAUSTED:
            return Outcome.EXHAUSTED
        if status == steps.STIFF or (count <= _FIRST_STEPS and status == steps.COLLAPSED):
            return Outcome.STIFF_FAILURE
        grown = np.abs(states[:, 0]).max() > _GROWTH * max(np.abs(self.states[:, 0]).max(), 1e-300)
        return Outcome.BLOW_UP if grown or not np.all(np.isfinite(states)) else Outcome.SINGULAR

    def go_on(
        self,
        before: Trajectory,
        states: np.ndarray,
        times: np.ndarray,
        tolerance: float,
        max_steps: int,
        stiff_steps: int,
    ) -> Trajectory:
        """The rest of a stiff trajectory, by collocation or, for a large model, by CVODE."""
        rest = times[len(before.states) :]
        if len(states) <= COLLOCATION_STATES:
            name, limit, max_steps = "collocation", _STIFF_TOLERANCE, min(max_steps, stiff_steps)
        else:
            name, limit = "cvode", _SUNDIALS_TOLERANCE
        method = self.collocation if name == "collocation" else self.cvode
        parts, complete = self.implicit(method, before.time, states, rest, max(tolerance, limit), max_steps)
        trajectory, outputs = (np.concatenate(part) for part in zip(*parts, strict=True))
        last = rest[len(trajectory) - 1] if len(trajectory) else before.time
        return Trajectory(
            np.arange(len(before.states) + len(trajectory)),
            np.concatenate([before.states, trajectory]),
            np.concatenate([before.outputs, outputs]),
            Outcome.COMPLETED if complete else Outcome.STIFF_FAILURE,
            float(last),
            before.steps,
            f"taylor, {name} from t = {before.time:.6g}",
        )

    def implicit(
        self, method: _Method, start: float, states: np.ndarray, times: np.ndarray, tolerance: float, max_steps: int
    ) -> tuple[list[tuple[np.ndarray, np.ndarray]], bool]:
        """Implicit steps from knot to knot of the inputs: states and outputs; False when the last time was not reached.

        The states are left at the last time.
        """
        parts, done, origin = [], 0, start
        for piece, stop in self.flow.pieces.stretches(start, times[-1]):
            inside = int(np.searchsorted(np.abs(times - origin), abs(stop - origin), side="right"))
            grid = times[done:inside] if stop == times[-1] else np.r_[times[done:inside], stop]
            trajectory, outputs, complete = method(piece, start, states, grid, tolerance, max_steps)
            parts.append((trajectory[: inside - done, :, : self.used], outputs[: inside - done, :, : self.used]))
            if not complete:
                break
            start, done = stop, inside
        return parts, complete

    def collocation(self, piece, start, states, times, tolerance, max_steps):
        drive = self.flow.drive(times)
        limits = tolerance, max_steps, self.used > 1
        return collocate(self.flow.tape, self.parameters, states, drive, piece or 0, start, times, *limits)

    def cvode(self, piece, start, states, times, tolerance, max_steps):
        slopes = self.slopes(self.parameters, piece), self.jacobian(piece)
        rows = states[:, : self.used].copy()
        trajectory, complete = sundials.integrate(*slopes, start, rows, times, tolerance, max_steps)
        if complete:
            states[:, : self.used] = trajectory[-1]
        return trajectory, self.outputs(times[: len(trajectory)], trajectory), complete

    def evaluate(
        self, times: np.ndarray, rows: np.ndarray, parameters: np.ndarray, piece: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Series to first order of states and outputs at points given by rows of value and tangents.

        Sampled inputs are those of one piece or, without it, what holds from each time on.
        """
        points, n, used = rows.shape
        tape, lanes = self.flow.tape, parameters.shape[1]
        states = np.zeros((points, n, lanes))
        states[:, :, :used] = rows
        inputs, nothing = self.flow.pieces.series(times, 1, piece), np.zeros((points, 0))
        repeated = np.repeat(parameters[None], points, axis=0)
        arguments = (np.ascontiguousarray(times), inputs, nothing, 1, TABLES, 0)
        series = expand_points(lay_out(tape, lanes, 3, True), tape.constant_values, repeated, states, *arguments)
        return series[0][:, :, :, :used], series[1][:, :, :, :used]

    def slopes(self, parameters: np.ndarray, piece: int | None) -> sundials.Slopes:
        return lambda times, rows: self.evaluate(times, rows, parameters, piece)[0][:, :, 1]

    def jacobian(self, piece: int | None) -> sundials.Slopes:
        """Slopes with one lane per state and none for the parameters."""
        parameters = np.zeros((len(self.parameters), padded(1 + len(self.states))))
        parameters[:, 0] = self.parameters[:, 0]
        return self.slopes(parameters, piece)

    def outputs(self, times: np.ndarray, trajectory: np.ndarray) -> np.ndarray:
        return self.evaluate(times, trajectory, self.parameters)[1][:, :, 0]


def _finite_part(trajectory: Trajectory, times: np.ndarray) -> Trajectory:
    """The trajectory up to the first time at which something is not finite."""
    rows = trajectory.outputs, trajectory.states
    if all(np.isfinite(part).all() for part in rows):
        return trajectory
    bad = ~np.logical_and(*(np.isfinite(part).all(axis=(1, 2)) for part in rows))
    first = int(np.argmax(bad))
    return replace(
        trajectory,
        reached=trajectory.reached[:first],
        states=trajectory.states[:first],
        outputs=trajectory.outputs[:first],
        outcome=Outcome.UNDEFINED_OUTPUT,
        time=float(times[first]),
    )


def _rows(values, names: tuple[str, ...], lane: Mapping[str, int], lanes: int) -> np.ndarray:
    rows = np.zeros((len(names), lanes))
    rows[:, 0] = values
    for i, name in enumerate(names):
        if name in lane:
            rows[i, lane[name]] = 1.0
    return rows
