"""Trajectory: what a simulation has come to, at the times that it reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np


class Outcome(Enum):
    """How a simulation ended, as a sentence with the time to be filled in."""

    COMPLETED = "every requested time was reached"
    BLOW_UP = "the solution grows without bound near t = {t:.6g}; other values, or fewer times, are needed"
    SINGULAR = (
        "the equations are not finite near t = {t:.6g} "
        "(a division by zero, a logarithm or root of a negative number, or a number too large)"
    )
    UNDEFINED_OUTPUT = (
        "an output or a sensitivity is not finite at t = {t:.6g} "
        "(a division by zero, a logarithm or root of a negative number, or a number too large)"
    )
    EXHAUSTED = (
        "the solution needs more than {steps} steps, used up at t = {t:.6g}; raise max_steps or shorten the times"
    )
    STIFF_FAILURE = "the solution becomes too stiff to follow near t = {t:.6g}"
    ENDLESS = "events or switches follow each other without end near t = {t:.6g}; the solution stops there"
    UNDECIDED = "the equations do not tell how the solution goes on after the switch at t = {t:.6g}"
    IRREVERSIBLE = "the event at t = {t:.6g} cannot be undone, so that times before it are not reached from after it"
    RESTLESS = "no steady state is reached at t = {t:.6g}: the solution oscillates, drifts or grows"
    UNSTABLE = "the steady state at t = {t:.6g} is unstable, so that nothing comes to rest there"
    BACKWARD = "the equations look back in time, so that times before the start at t = {t:.6g} are not reached"
    AHEAD = "a delay is negative or no number at t = {t:.6g}; the equations would look ahead in time"
    VANISHING = "a delay of a state vanishes at t = {t:.6g}; write the state itself where there is none"
    OUT_OF_TIME = "the time was over before everything was simulated"


@dataclass(frozen=True)
class Trajectory:
    """States and outputs at the times that were reached, in rows of value and sensitivities."""

    reached: np.ndarray  # positions of those times in the request
    states: np.ndarray  # (times, states, 1 + unknowns)
    outputs: np.ndarray  # (times, outputs, 1 + unknowns)
    outcome: Outcome
    time: float  # the last time reached
    steps: int  # by Taylor series
    method: str
    stiff_steps: int = 0  # by collocation
    held: Mapping[str, np.ndarray] = field(default_factory=dict)  # rows of parameters that events set, at the end
    defined: bool = True  # whether every output is finite at the times that were reached

    @property
    def message(self) -> str:
        return self.outcome.value.format(t=self.time, steps=self.steps + self.stiff_steps)


def joined(branches: list[np.ndarray], parts: list[Trajectory]) -> Trajectory:
    """Branches put together in the order in which their times were requested."""
    positions = np.concatenate([branch[: len(part.states)] for branch, part in zip(branches, parts, strict=True)])
    arranged = np.argsort(positions, kind="stable")
    last = next((part for part in parts if part.outcome is not Outcome.COMPLETED), parts[0])
    return replace(
        last,
        reached=positions[arranged],
        states=np.concatenate([part.states for part in parts])[arranged],
        outputs=np.concatenate([part.outputs for part in parts])[arranged],
        steps=sum(part.steps for part in parts),
        stiff_steps=sum(part.stiff_steps for part in parts),
        defined=all(part.defined for part in parts),
    )


def finite_part(trajectory: Trajectory, times: np.ndarray) -> Trajectory:
    """The trajectory up to the first time at which a state or a sensitivity of one is not finite; an output that is not
    is NaN there."""
    bad = ~np.isfinite(trajectory.states).all(axis=(1, 2))
    found = _until(trajectory, times, bad) if bad.any() else trajectory
    outputs = np.where(np.isfinite(found.outputs), found.outputs, np.nan)
    outputs[np.isnan(outputs[:, :, 0])] = np.nan
    return replace(found, outputs=outputs, defined=not np.isnan(outputs).any())


def defined_part(trajectory: Trajectory, times: np.ndarray, outputs: Sequence[int] | None = None) -> Trajectory:
    """The trajectory up to the first of its times at which one of these outputs, or one of all, is not finite."""
    if trajectory.defined:
        return trajectory
    own = trajectory.outputs if outputs is None else trajectory.outputs[:, list(outputs)]
    bad = ~np.isfinite(own).all(axis=(1, 2))
    return _until(trajectory, times, bad) if bad.any() else trajectory


def _until(trajectory: Trajectory, times: np.ndarray, bad: np.ndarray) -> Trajectory:
    first = int(np.argmax(bad))
    return replace(
        trajectory,
        reached=trajectory.reached[:first],
        states=trajectory.states[:first],
        outputs=trajectory.outputs[:first],
        outcome=Outcome.UNDEFINED_OUTPUT,
        time=float(times[trajectory.reached[first]]),
    )
