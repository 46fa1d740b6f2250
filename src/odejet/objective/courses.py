"""Courses: the experiments of a problem as simulations, from z to residuals with their exact derivatives.

Every experiment is simulated from its start over the union of its measured times, together with all others that differ
from it only in what was measured.  The derivative of its residuals is dense in the unknowns that the experiment feels
and zero in all others, so that the Jacobian of many experiments is kept in blocks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from odejet.jets.inputs import Sampled
from odejet.model import Model
from odejet.problem.conditions import Condition
from odejet.problem.measurements import Block, Measurements
from odejet.problem.unknowns import Unknowns
from odejet.simulate.backward import Solution, can_be_kept, keep
from odejet.simulate.flow import TOLERANCE, Flow, Outcome, Trajectory
from odejet.simulate.initial_value import Allowance
from odejet.simulate.rest import Rest
from odejet.simulate.steady import RestingFlow
from odejet.simulate.trajectory import defined_part
from odejet.simulate.windows import Window, over_windows, windows_of

_AHEAD = 2
"""Simulations per core that are begun before they are asked for."""


@dataclass(frozen=True)
class Effort:
    """What a simulation may cost."""

    tolerance: float
    max_steps: float  # whatever they cost
    stiff_steps: float
    max_switches: float = math.inf  # that states cause
    operations: float = 0.0  # of about two nanoseconds, that steps may come to if that is more
    per_time: int = 0  # steps of either kind that a measured time adds, whether it is looked at or not

    @property
    def brief(self) -> Effort:
        """As many steps as nearly all trajectories near the data take, however many a small model could afford."""
        return replace(self, operations=0.0, per_time=0)


THOROUGH = Effort(TOLERANCE, 5000, 500, operations=2.5e8, per_time=20)
"""To rounding; what takes a small model longer than half a second, or more steps than data resolve that have several
times in each turn of a solution, is likely far from the data."""

ROUGH = Effort(1e-8, 3000, 500, 200, 3e7, 20)
"""For a first look; what switches more often is likely far from the data, and a switch takes as long as dozens of
steps."""

GLANCE = Effort(1e-6, 1000, 25, 60, 3e6, 2)
"""For a first look at hundreds."""

PATIENT = Effort(TOLERANCE, math.inf, math.inf)
"""For a single look, which only the clock ends."""

FEWEST_FOR_THREADS = 4
"""Experiments that are worth the time of handing them to threads."""

ORDINARY_STEPS, STIFF_WORK = 250, 2
"""Steps beyond which a simulation counts as more than one, and what stiffness adds."""


@dataclass(frozen=True, eq=False)
class Course:
    """One experiment as a simulation: where it starts, which unknowns it takes and which rows it fills."""

    flow: Flow
    start: float
    end: float
    times: np.ndarray
    recorded: int  # times at which the experiment was measured, of which these may be some
    parameters: np.ndarray  # entries of z
    states: np.ndarray  # positions of unknown initial states among all
    entries: np.ndarray  # their entries of z
    lanes: np.ndarray  # the sensitivities of the flow
    columns: np.ndarray  # and the entries of z that they belong to
    series: tuple[tuple[slice, int, Any], ...]  # rows, output, positions in `times`
    shown: int  # states that the model has, without those of integrals
    windows: tuple[Window, ...] = ()  # outputs that tell what happened since the last measurement

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that experiments share which one simulation serves: they differ only in what was measured."""
        windows = tuple(window.grid.tobytes() for window in self.windows)
        return id(self.flow), self.start, self.parameters.tobytes(), self.entries.tobytes(), windows

    def at(self, times: np.ndarray) -> Course:
        """Return the simulation at other times, which were not measured; windows go on beyond their last."""
        windows = tuple(window.beyond(times) for window in self.windows)
        return replace(self, times=times, end=float(times.max()), series=(), windows=windows)

    def run(self, z: np.ndarray, effort: Effort, sensitivities: bool, deadline: float = math.inf) -> Trajectory:
        states = np.zeros(len(self.flow.model.states))
        states[self.states] = z[self.entries]
        more = effort.per_time * self.recorded

        def solved(times: np.ndarray) -> Trajectory:
            return self.flow.run(
                z[self.parameters],
                states,
                times,
                start=self.start,
                sensitivities=sensitivities,
                tolerance=effort.tolerance,
                max_steps=effort.max_steps + more,
                stiff_steps=effort.stiff_steps + more,
                operations=effort.operations,
                max_switches=effort.max_switches,
                deadline=deadline,
            )

        found = over_windows(self.windows, self.times, self.start, solved) if self.windows else solved(self.times)
        # Outputs that are not compared may be anything.
        return defined_part(found, self.times, [output for _, output, _ in self.series] or None)

    @property
    def leads_back(self) -> bool:
        """Whether its solutions may be followed backward."""
        return not self.windows and can_be_kept(self.flow)

    def keep(self, z: np.ndarray, effort: Effort, deadline: float = math.inf) -> Solution | None:
        """Simulate as `run` does, and keep the steps for a way back; None where they would not lead back."""
        states = np.zeros(len(self.flow.model.states))
        states[self.states] = z[self.entries]
        steps = effort.max_steps + effort.per_time * self.recorded
        allowance = Allowance(steps, steps, effort.operations)
        kept = keep(
            self.flow, z[self.parameters], states, self.times, self.start, effort.tolerance, allowance, deadline
        )
        if kept is None:
            return None
        return kept._replace(
            found=defined_part(kept.found, self.times, [output for _, output, _ in self.series] or None)
        )

    def reached(self, run: Trajectory) -> float:
        """The fraction of the time span that was simulated."""
        return float(min(max((run.time - self.start) / max(self.end - self.start, 1e-300), 0.0), 1.0))


def together(courses: Sequence[Course]) -> tuple[Course, ...]:
    """Experiments that are one simulation put together, over the times of all."""
    groups: dict[tuple[Any, ...], list[Course]] = {}
    for course in courses:
        groups.setdefault(course.key, []).append(course)
    return tuple(group[0] if len(group) == 1 else _together(group) for group in groups.values())


def _together(group: Sequence[Course]) -> Course:
    times = np.unique(np.concatenate([course.times for course in group]))
    series = tuple(
        (rows, output, np.searchsorted(times, course.times[positions]))
        for course in group
        for rows, output, positions in course.series
    )
    end, recorded = max(course.end for course in group), max(course.recorded for course in group)
    return replace(group[0], end=end, times=times, recorded=recorded, series=series)


def runs(
    courses: Sequence[Course], z: np.ndarray, effort: Effort, sensitivities: bool, jobs: int, deadline: float
) -> Iterator[tuple[Course, Trajectory]]:
    """The simulations of experiments in their order, on so many cores; the numbers are the same for any."""
    if jobs == 1 or len(courses) < FEWEST_FOR_THREADS:
        yield from ((course, course.run(z, effort, sensitivities, deadline)) for course in courses)
    else:
        yield from _in_turn(_threads(jobs), courses, jobs, (z, effort, sensitivities, deadline))


def _in_turn(
    threads: ThreadPoolExecutor, courses: Sequence[Course], jobs: int, arguments: tuple[Any, ...]
) -> Iterator[tuple[Course, Trajectory]]:
    """Simulations in their order, never more than a few ahead of what is asked for: each may be large."""
    waiting: deque[tuple[Course, Future[Trajectory]]] = deque()
    try:
        for course in courses:
            waiting.append((course, threads.submit(course.run, *arguments)))
            if len(waiting) > _AHEAD * jobs:
                first, found = waiting.popleft()
                yield first, found.result()
        while waiting:
            first, found = waiting.popleft()
            yield first, found.result()
    finally:
        for _, found in waiting:
            found.cancel()


@cache
def _threads(jobs: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(jobs)


def work(run: Trajectory) -> int:
    """What a simulation cost, in units of an ordinary one."""
    return run.steps // ORDINARY_STEPS + (STIFF_WORK if run.method != "taylor" else 0)


def completed(run: Trajectory) -> bool:
    return run.outcome is Outcome.COMPLETED


def flows(conditions: Sequence[Condition]) -> tuple[Flow, ...]:
    """The solution map of every experiment; experiments with the same model and samples share one."""
    return _flows([(one.model, one.driven.sampled) for one in conditions])


def measuring_flows(conditions: Sequence[Condition]) -> tuple[Flow, ...]:
    """The solution map of every experiment with outputs as they are cumulated between measurements."""
    return _flows([(one.cumulated.model, one.driven.sampled) for one in conditions])


def _flows(models: Sequence[tuple[Model, dict[str, Sampled]]]) -> tuple[Flow, ...]:
    made: dict[tuple[int, tuple[int, ...]], Flow] = {}
    rests: dict[tuple[Any, ...], Rest] = {}

    def made_once(model: Model, samples: dict[str, Sampled]) -> Flow:
        key = (id(model), tuple(id(one) for one in samples.values()))
        if key not in made:
            made[key] = RestingFlow(model, samples, rests)
        return made[key]

    return tuple(made_once(*one) for one in models)


def courses(
    conditions: Sequence[Condition], flows: Sequence[Flow], unknowns: Unknowns, measurements: Measurements
) -> tuple[Course, ...]:
    """Return the simulations that these measurements need, one per experiment."""
    blocks: list[list[tuple[slice, Block]]] = [[] for _ in flows]
    for rows, block in zip(measurements.rows, measurements.blocks, strict=True):
        blocks[block.experiment].append((rows, block))
    return tuple(map(_course, conditions, flows, unknowns.places, blocks))


def _course(condition: Condition, flow: Flow, places: Mapping[str, int], mine: Sequence[tuple[slice, Block]]) -> Course:
    own, start = condition.model, float(condition.experiment.start)
    times = np.unique(np.concatenate([block.times for _, block in mine])) if mine else np.array([start])
    names, outputs, states = flow.unknowns(), list(own.outputs), list(own.states)
    free = [name for name in states if name in places]
    # Columns in the order of z, as a Jacobian has them.
    lanes = sorted(range(len(names)), key=lambda i: places[names[i]])
    return Course(
        flow=flow,
        start=start,
        end=max(float(times[np.isfinite(times)].max(initial=start)), start),
        times=times,
        recorded=max((len(one.times) for one in condition.experiment.outputs.values()), default=1),
        parameters=np.array([places[name] for name in own.parameters], dtype=int),
        states=np.array([states.index(name) for name in free], dtype=int),
        entries=np.array([places[name] for name in free], dtype=int),
        lanes=1 + np.array(lanes, dtype=int),
        columns=np.array([places[names[i]] for i in lanes], dtype=int),
        series=tuple((rows, outputs.index(block.output), _positions(times, block.times)) for rows, block in mine),
        shown=condition.cumulated.shown,
        windows=windows_of(condition.cumulated, {n: one.times for n, one in condition.experiment.outputs.items()}),
    )


def _positions(times: np.ndarray, own: np.ndarray) -> Any:
    """Where an output's times are among all; a slice if they are all of them."""
    return slice(None) if len(own) == len(times) and np.array_equal(own, times) else np.searchsorted(times, own)
