"""Flow: the solution of a model as a function of its parameters and initial states.

`simulate` is for people; `Flow` is the same for programs that call it many times.  Taylor series on the tape carry
ordinary models; where their steps are held down by stability alone, collocation goes on from there.  Sampled inputs are
polynomials between knots, and every method stops at each knot.  Whatever happens to a solution is an `Outcome` with a
sentence, never an exception or a NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import DataError, ModelError, nearest
from odejet.jets import steps
from odejet.jets.collocation import collocate
from odejet.jets.inputs import Pieces, Sampled, merged
from odejet.jets.kernel import MAX_ORDER, TABLES, lay_out
from odejet.jets.lanes import padded
from odejet.jets.radau import stages_for
from odejet.model.tape import Tape, build

if TYPE_CHECKING:
    from odejet.model import Model

TOLERANCE = 1e-16
"""Truncation of a Taylor step, relative to each state: at rounding level, since it costs little."""

MAX_STEPS = 20_000
STIFF_STEPS = 5000
"""Steps of collocation, of a millisecond or more each: a solution that needs more is not smooth."""

_GROWTH = 1e3  # a step that collapses after such growth of the states is taken for a pole
_FIRST_STEPS = 5  # a step that collapses right away is taken for a stiff initial layer
_MANY = 600  # Taylor steps still to go that collocation is worth a trial
_NEVER = 1 << 62  # steps
_ITERATIONS, _CALL = 6, 30  # of Newton's method in a step of collocation; the cost of a call in vector operations
_STIFF_TOLERANCE = 1e-12


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
    RESTLESS = "no steady state is reached at t = {t:.6g}: the solution oscillates, drifts or grows"
    UNSTABLE = "the steady state at t = {t:.6g} is unstable, so that nothing comes to rest there"


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
        if model.events:
            raise ModelError("the model has events, which are not simulated")
        self.model = model
        self.tape: Tape = build(model)
        self.pieces = _pieces(model, inputs or {})
        self.driven = bool(len(self.tape.inputs))

    def drive(self, times: np.ndarray) -> steps.Drive:
        """The sampled inputs, with their values at times."""
        if not self.driven:
            return steps.NO_DRIVE
        values = np.ascontiguousarray(self.pieces.series(times, 0)[:, :, 0])
        return steps.Drive(self.pieces.knots, np.ascontiguousarray(self.pieces.coefficients), values)

    def unknowns(self, free_states: bool = False) -> tuple[str, ...]:
        """The names behind the sensitivities: unknown initial states (all of them with `free_states`), parameters."""
        return (
            *(tuple(self.model.states) if free_states else self.model.free_states),
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
        tangents: np.ndarray | None = None,
        tolerance: float = TOLERANCE,
        max_steps: int = MAX_STEPS,
        stiff_steps: int = STIFF_STEPS,
    ) -> Trajectory:
        """Integrate from `states` at `start` (by default the first time) to all `times`, forward and backward.

        Initial states that the model knows replace those given, unless `free_states` says that `start` is any time, or
        `tangents` tell the derivatives of the states there by the unknowns.
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
            problem = _Problem(self, parameters, states, unknowns, free_states, tangents)
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


@dataclass
class _Leg:
    """How far a trajectory has come, and how many steps it may still take."""

    time: float
    states: np.ndarray  # rows of value and tangents at that time
    explicit_steps: int
    implicit_steps: int
    steps: int = 0  # Taylor steps so far
    done: int = 0
    parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, trajectory: np.ndarray, outputs: np.ndarray, used: int, time: float) -> None:
        self.parts.append((trajectory[:, :, :used], outputs[:, :, :used]))
        self.done, self.time = self.done + len(trajectory), time


class _Problem:
    """One initial-value problem: rows of value and tangents for all parameters and states."""

    def __init__(
        self, flow: Flow, parameters, states, unknowns: tuple[str, ...], free_states: bool, tangents: np.ndarray | None
    ) -> None:
        self.flow, self.free_states = flow, free_states or tangents is not None
        self.used = 1 + len(unknowns)
        self.lanes = padded(self.used)
        lane = {name: 1 + i for i, name in enumerate(unknowns)}
        self.parameters = _rows(parameters, flow.model.parameters, lane, self.lanes)
        self.states = _rows(states, tuple(flow.model.states), lane, self.lanes)
        if tangents is not None:
            self.states[:, 1 : self.used] = tangents

    def solve(self, start: float, times: np.ndarray, tolerance: float, max_steps: int, stiff_steps: int) -> Trajectory:
        """Along times that lead away from the start in one direction."""
        leg = _Leg(start, self.states.copy(), max_steps + len(self.flow.pieces.knots), stiff_steps)
        method, patience = "taylor", steps.PATIENCE if stiff_steps > 0 and not self.flow.driven else _NEVER
        many = _MANY if stiff_steps > 0 else max_steps
        while True:
            status, order, step = self.explicit(leg, times[leg.done :], tolerance, many, patience)
            outcome = self.outcome(status, leg)
            if outcome is not Outcome.STIFF_FAILURE or leg.implicit_steps <= 0:
                break
            if method == "taylor":
                method = f"taylor, collocation from t = {leg.time:.6g}"
            least = self.least_step(step, order, tolerance) if status == steps.SLOW else 0.0
            if self.implicit(leg, times[leg.done :], tolerance, least):
                outcome = Outcome.COMPLETED
                break
            if status != steps.SLOW:
                break
            # Taylor series go on from here, and wait longer before they ask again.
            patience = 2 * patience if leg.implicit_steps > 0 else _NEVER
        trajectory, outputs = (np.concatenate(rows) for rows in zip(*leg.parts, strict=True))
        result = Trajectory(np.arange(leg.done), trajectory, outputs, outcome, leg.time, leg.steps, method)
        return _finite_part(result, times)

    def explicit(
        self, leg: _Leg, times: np.ndarray, tolerance: float, many: int, patience: int
    ) -> tuple[int, int, float]:
        """Taylor steps as far as they go: how they ended, the order and the length of the last."""
        tape, resumed = self.flow.tape, bool(leg.parts)
        free = self.free_states or resumed  # the known initial states of a model are those at its start
        series, point = (lay_out(tape, self.lanes, orders, free) for orders in (MAX_ORDER + 1, 2))
        arrays = steps.Arrays.allot(series, point, len(times))
        status, done, time, count, order, step = steps.integrate(
            series,
            point,
            tape.constant_values,
            self.parameters,
            leg.states,
            self.flow.drive(times),
            leg.time,
            np.ascontiguousarray(times),
            (tolerance, leg.explicit_steps, many, patience),
            tape.work,
            TABLES,
            arrays,
        )
        leg.add(arrays.trajectory[:done], arrays.outputs[:done], self.used, time)
        leg.steps, leg.explicit_steps = leg.steps + count, leg.explicit_steps - count
        return status, order, step

    def least_step(self, step: float, order: int, tolerance: float) -> float:
        """A step of collocation that is worth so many Taylor steps of this length and order, by counting operations.

        Values alone are counted, so that the choice does not depend on whether sensitivities are asked for.
        """
        tape = self.flow.tape
        stages, n = stages_for(self.stiff_tolerance(tolerance)), int(np.sum(tape.states >= tape.statics))
        constant, linear, quadratic, _ = tape.work
        series = constant + linear * order + quadratic * order * order
        systems = 1 + 2 * (stages - 1)  # a complex one counts four times
        implicit = systems * n**3 / 6 + _ITERATIONS * (stages * (linear + _CALL) + systems * n**2) + linear * n / 4
        return implicit / series * step

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
        """Steps of collocation, from knot to knot of the inputs: do they arrive?"""
        done, origin = 0, leg.time
        for piece, stop in self.flow.pieces.stretches(origin, times[-1]):
            inside = int(np.searchsorted(np.abs(times - origin), abs(stop - origin), side="right"))
            grid = times[done:inside] if stop == times[-1] else np.r_[times[done:inside], stop]
            limits = self.stiff_tolerance(tolerance), leg.implicit_steps, least, self.used > 1
            trajectory, outputs, time, count = collocate(
                self.flow.tape, self.parameters, leg.states, self.flow.drive(grid), piece or 0, leg.time, grid, *limits
            )
            leg.implicit_steps -= count
            leg.add(trajectory[: inside - done], outputs[: inside - done], self.used, time)
            if len(trajectory) < len(grid):
                return False
            done = inside
        return True


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
