"""Misfit: how far a model with given values is from the data, with the exact derivative of every residual.

The unknowns are one vector z: the unknown initial states of the first experiment, of the second and so on, then the
parameters that all experiments share.  A residual is model minus measurement, in units of the *shape* of its noise: one
for noise of constant size, the measurement itself for relative noise, the known sd where the data have one.  What is
left to know of the noise is one *level* per output, given or estimated: the sd of a residual is the level.

    cost(z) = sum_j N_j log(level_j) + SSE_j / (2 level_j^2) + constants

is the negative logarithm of the likelihood; with `weights="none"` it is half the sum of squares, as plain least squares
has it.  A model that cannot be simulated to the last measurement is an evaluation that says how far it got.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data.data import checked
from odejet.errors import DataError, ModelError
from odejet.simulate.flow import TOLERANCE, Flow, Outcome

if TYPE_CHECKING:
    from odejet.data import Data, Experiment, Series
    from odejet.model import Model


@dataclass(frozen=True)
class Effort:
    """What a simulation may cost."""

    tolerance: float
    max_steps: int
    stiff_steps: int


THOROUGH = Effort(TOLERANCE, 5000, 500)
"""To rounding; no smooth trajectory of a plausible model needs more steps, and no single one takes seconds."""

ROUGH = Effort(1e-8, 3000, 100)
"""For a first look."""

GLANCE = Effort(1e-6, 1000, 25)
"""For a first look at hundreds."""

FEWEST = 10
"""Points of an output that tell the level of its noise."""

ROUGH_POINTS = 30
"""Measurements per series that are compared at a glance."""

_ORDINARY_STEPS, _STIFF_WORK = 250, 4  # steps beyond which a simulation counts as more, and what stiffness adds
_FLOOR = 16 * float(np.finfo(float).eps)  # of the largest value: what rounding leaves in a simulated output
_DECADES = 1e3  # the largest value beside the median of an output that spans decades
_NEARBY, _DIP = 50, 0.1  # rounding is relative to the largest values of such a part of a series, times this
_RELATIVE_FLOOR = 1e-3  # of the largest value: relative noise does not vanish where the signal crosses zero


@dataclass(frozen=True)
class Unknown:
    """One entry of z: a parameter, or the initial state of an experiment."""

    name: str
    label: str
    experiment: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """Residuals in units of their noise's shape and their derivative by z; None where the simulation broke off."""

    residuals: np.ndarray | None
    jacobian: np.ndarray | None
    outcome: Outcome
    message: str
    reached: float  # the fraction of the time span that was simulated, the least of all experiments
    work: int = 1  # in units of an ordinary simulation

    @property
    def complete(self) -> bool:
        return self.residuals is not None


@dataclass(frozen=True)
class _Block:
    """The measurements of one output in one experiment."""

    experiment: int
    output: int  # position in the model's outputs
    times: np.ndarray
    values: np.ndarray
    shapes: np.ndarray


@dataclass(frozen=True)
class _Course:
    """One experiment as a simulation: where it starts, which values it takes and which rows it fills."""

    flow: Flow
    start: float
    end: float
    times: np.ndarray
    states: np.ndarray  # zeros, to be filled; known initial values are the flow's
    places: np.ndarray  # positions of the unknown ones among them
    entries: np.ndarray  # their positions in z
    lanes: np.ndarray  # the sensitivities of these and of the parameters among those of the flow
    columns: np.ndarray  # where those sensitivities go in the Jacobian
    rows: tuple[tuple[slice, int, Any], ...]  # rows of the misfit, output, positions in `times`


class Misfit:
    """Residuals, their Jacobian and the likelihood of all experiments as functions of z."""

    def __init__(
        self,
        model: Model,
        data: Data,
        noise: float | str | Mapping[str, float | str] | None = None,
        weights: str = "likelihood",
        effort: Effort = THOROUGH,
    ) -> None:
        """`noise` per output, or one for all: a number is a known sd, "2%" a known relative sd, "relative" an unknown
        one; without it sds come from the data, and where these have none a constant sd is estimated."""
        if weights not in ("likelihood", "none"):
            raise ModelError(f"weights must be 'likelihood' or 'none', not {weights!r}")
        self.model, self.effort, self.weighted = model, effort, weights == "likelihood"
        self.noise = noise
        self._experiments = checked(data, model).experiments
        observed = {name for experiment in self._experiments for name in experiment.outputs}
        self.outputs = tuple(name for name in model.outputs if name in observed)
        self._starts = tuple(float(experiment.start) for experiment in self._experiments)
        self.unknowns = _unknowns(model, self._experiments)
        kinds = {name: _noise_kind(name, noise if self.weighted else 1.0) for name in self.outputs}
        self.known = np.array([self._known_level(name, *kinds[name]) for name in self.outputs])
        alike = [experiment for experiment in self._experiments if not experiment.inputs and not experiment.initial]
        shared = Flow(model) if alike else None
        self._flows = tuple(
            shared if shared and experiment in alike else experiment.flow(model) for experiment in self._experiments
        )
        self._assemble(
            [
                _Block(
                    number, list(model.outputs).index(name), series.times, series.values, _shapes(series, *kinds[name])
                )
                for name in self.outputs
                for number, series in self._series(name)
            ]
        )

    def _series(self, name: str) -> list[tuple[int, Series]]:
        """The series of one output, with the numbers of their experiments."""
        return [(i, e.outputs[name]) for i, e in enumerate(self._experiments) if name in e.outputs]

    def _known_level(self, name: str, kind: str, level: float | None) -> float:
        """The noise level of an output, NaN if it is to be estimated; one where the data hold the sds themselves."""
        with_sds = {series.sds is not None for _, series in self._series(name)}
        if kind == "data" and len(with_sds) > 1:
            raise DataError(f"only some of the measurements of '{name}' have a known sd; give it for all or for none")
        if kind == "data" and with_sds == {True}:
            return 1.0
        return math.nan if level is None else level

    def _assemble(self, blocks: list[_Block]) -> None:
        """Rows in the order of outputs, then experiments; simulations over the union of each experiment's times."""
        self._blocks = blocks
        self.values = np.concatenate([block.values for block in blocks])
        self.times = np.concatenate([block.times for block in blocks])
        self.shapes = np.concatenate([block.shapes for block in blocks])
        ends = np.cumsum([0] + [len(block.times) for block in blocks])
        slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        names = list(self.model.outputs)
        groups = []
        for name in self.outputs:
            own = [rows for rows, block in zip(slices, blocks, strict=True) if names[block.output] == name]
            groups.append(slice(own[0].start, own[-1].stop) if own else slice(0, 0))
        self.groups = tuple(groups)
        self.counts = np.array([rows.stop - rows.start for rows in groups])
        largest = np.array([np.abs(self.values[rows] / self.shapes[rows]).max(initial=0.0) for rows in groups])
        self.floors = _FLOOR * np.where(largest > 0, largest, largest.max() or 1.0)
        self.scales = np.maximum([_scale(self.values[rows] / self.shapes[rows]) for rows in groups], self.floors)
        self._pool = self._pooled()
        self._courses = tuple(self._course(number, slices) for number in range(len(self._experiments)))
        self._plain = bool(np.all(self.shapes == 1.0))

    def _pooled(self) -> np.ndarray:
        """Outputs with too few points for a noise level of their own, with the one that has most; none, mostly."""
        few = self.estimated & (self.counts < FEWEST)
        if not few.any():
            return few
        most = np.argmax(np.where(self.estimated, self.counts, -1))
        return few | (np.arange(len(self.outputs)) == most)

    def _course(self, number: int, slices: list[slice]) -> _Course:
        experiment, flow = self._experiments[number], self._flows[number]
        own = [(rows, block) for rows, block in zip(slices, self._blocks, strict=True) if block.experiment == number]
        start = self._starts[number]
        times = np.unique(np.concatenate([block.times for _, block in own])) if own else np.array([start])
        rows = tuple((rows, block.output, _positions(times, block.times)) for rows, block in own)
        states = list(self.model.states)
        entries = [i for i, unknown in enumerate(self.unknowns) if unknown.experiment == experiment.name]
        shared = [i for i, unknown in enumerate(self.unknowns) if unknown.experiment is None]
        lane = {name: i for i, name in enumerate(flow.unknowns())}
        return _Course(
            flow=flow,
            start=start,
            end=float(times[-1]),
            times=times,
            states=np.zeros(len(states)),
            places=np.array([states.index(self.unknowns[i].name) for i in entries], dtype=int),
            entries=np.array(entries, dtype=int),
            lanes=1 + np.array([lane[self.unknowns[i].name] for i in entries + shared], dtype=int),
            columns=np.array(entries + shared, dtype=int),
            rows=rows,
        )

    # --- what it is a function of ---

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.unknowns)

    @property
    def points(self) -> int:
        return len(self.values)

    @property
    def estimated(self) -> np.ndarray:
        """Which outputs have a noise level that is to be estimated."""
        return np.isnan(self.known)

    def courses_of(self, output: str) -> list[tuple[str, slice]]:
        """The rows of an output's measurements by experiment; within one they follow each other in time."""
        courses, first = [], 0
        for block in self._blocks:
            rows = slice(first, first + len(block.times))
            first = rows.stop
            if list(self.model.outputs)[block.output] == output:
                courses.append((self._experiments[block.experiment].name, rows))
        return courses

    # --- evaluation ---

    def evaluate(self, z: np.ndarray, jacobian: bool = True) -> Evaluation:
        """Residuals at z and, unless it is not wanted, their derivative."""
        residuals, size = np.empty(len(self.values)), len(z)
        derivative = np.zeros((len(self.values), size)) if jacobian else None
        first, work = size - len(self.model.parameters), 1
        for course in self._courses:
            states = course.states.copy()
            states[course.places] = z[course.entries]
            run = course.flow.run(
                z[first:],
                states,
                course.times,
                start=course.start,
                sensitivities=jacobian,
                tolerance=self.effort.tolerance,
                max_steps=self.effort.max_steps,
                stiff_steps=self.effort.stiff_steps,
            )
            work += run.steps // _ORDINARY_STEPS + (_STIFF_WORK if run.method != "taylor" else 0)
            if run.outcome is not Outcome.COMPLETED:
                reached = (run.time - course.start) / max(course.end - course.start, 1e-300)
                return Evaluation(None, None, run.outcome, run.message, float(min(max(reached, 0.0), 1.0)), work)
            for rows, output, positions in course.rows:
                residuals[rows] = run.outputs[positions, output, 0]
                if derivative is not None:
                    derivative[rows, course.columns] = run.outputs[positions, output][:, course.lanes]
        residuals -= self.values
        if not self._plain:
            residuals /= self.shapes
            if derivative is not None:
                derivative /= self.shapes[:, None]
        return Evaluation(residuals, derivative, Outcome.COMPLETED, Outcome.COMPLETED.value, 1.0, work)

    # --- noise and likelihood ---

    def squares(self, residuals: np.ndarray) -> np.ndarray:
        """The sum of squares per output, safe against overflow."""
        with np.errstate(over="ignore"):
            return np.array([float(residuals[rows] @ residuals[rows]) for rows in self.groups])

    def levels(self, residuals: np.ndarray) -> np.ndarray:
        """The most likely noise level per output: its rms residual where it is not known, never below rounding.

        A few points can be fitted exactly, which says nothing of their noise: outputs that have no more share one
        level, relative to their spread, with the output that has most.
        """
        squares = self.squares(residuals)
        rms = np.sqrt(squares / np.maximum(self.counts, 1))
        if self._pool.any():
            spreads, counts = self.scales[self._pool], self.counts[self._pool]
            rms[self._pool] = spreads * math.sqrt(float((squares[self._pool] / spreads**2).sum()) / counts.sum())
        return np.where(self.estimated, np.maximum(rms, self.floors), self.known)

    def cost(self, residuals: np.ndarray, levels: np.ndarray | None = None) -> float:
        """The negative log-likelihood (half the sum of squares with weights "none"); levels as likely as possible."""
        squares = self.squares(residuals)
        if not self.weighted:
            return 0.5 * float(squares.sum())
        levels = self.levels(residuals) if levels is None else levels
        # Below rounding all residuals are as good.
        squares = np.where(self.estimated, np.maximum(squares, self.counts * self.floors**2), squares)
        constant = 0.5 * self.points * math.log(2 * math.pi) + float(np.log(self.shapes).sum())
        with np.errstate(over="ignore"):
            return float(self.counts @ np.log(levels) + 0.5 * (squares / levels**2).sum()) + constant

    def row_levels(self, levels: np.ndarray) -> np.ndarray:
        """A level per output, repeated for every residual."""
        return np.repeat(levels, self.counts)

    def score(self, z: np.ndarray, levels: np.ndarray | None = None) -> float:
        """The cost of a candidate, without derivatives; infinite where it cannot be simulated."""
        evaluation = self.evaluate(z, jacobian=False)
        if evaluation.residuals is None or not np.all(np.isfinite(evaluation.residuals)):
            return math.inf
        return self.cost(evaluation.residuals, levels)

    def screen(self, candidates: Sequence[np.ndarray], levels: np.ndarray | None = None) -> np.ndarray:
        """The costs of many candidates on a few of the times, simulated roughly: for ranking, at 0.1 ms each.

        A stiff one may need a second look, which finds out that it is stiff.
        """
        glance, rough = (self.window(1.0, ROUGH_POINTS, effort=effort) for effort in (GLANCE, ROUGH))
        costs = np.array([glance.score(z, levels) for z in candidates])
        for i in np.flatnonzero(~np.isfinite(costs)).tolist():
            costs[i] = rough.score(candidates[i], levels)
        return costs

    # --- parts ---

    def window(
        self,
        fraction: float,
        points: int | None = None,
        levels: np.ndarray | None = None,
        effort: Effort | None = None,
    ) -> Misfit:
        """The misfit of the first part of every experiment, thinned to so many points per series, with these noise
        levels taken as known and with this effort; all as they are, if not given."""
        blocks = []
        for block in self._blocks:
            course = self._courses[block.experiment]
            last = course.start + fraction * (course.end - course.start)
            size = max(int(np.searchsorted(block.times, last, side="right")), 1)
            chosen = np.arange(size)
            if points is not None and size > points:
                chosen = np.unique(np.linspace(0, size - 1, points).round().astype(int))
            parts = {name: getattr(block, name)[chosen] for name in ("times", "values", "shapes")}
            blocks.append(replace(block, **parts))
        return self._of(blocks, levels, effort)

    def by_rounding(self) -> Misfit | None:
        """The misfit with residuals relative to the output at the time, as rounding is; None where this is no other."""
        if not self._plain or not self.weighted or not any(_spans_decades(self.values[rows]) for rows in self.groups):
            return None
        unknown = np.full(len(self.outputs), math.nan)
        return self._of([replace(block, shapes=_sizes_nearby(block.values)) for block in self._blocks], unknown, None)

    def _of(self, blocks: list[_Block], levels: np.ndarray | None, effort: Effort | None) -> Misfit:
        part = object.__new__(Misfit)
        part.__dict__.update(self.__dict__)
        if effort is not None:
            part.effort = effort
        if levels is not None:
            part.known = np.array(levels, dtype=float)
        part._assemble(blocks)
        return part


def _spans_decades(values: np.ndarray) -> bool:
    sizes = np.abs(values)
    return bool(len(sizes) and sizes.max() > _DECADES * np.median(sizes))


def _sizes_nearby(values: np.ndarray) -> np.ndarray:
    """How large an output is around each of its measurements: what crosses zero there is rounded like the rest."""
    sizes, reach = np.abs(values), max(len(values) // _NEARBY, 1)
    padded = np.pad(sizes, reach, mode="edge")
    nearby = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)
    return np.where(nearby > 0, np.maximum(sizes, _DIP * nearby), sizes.max(initial=0.0) or 1.0)


def _unknowns(model: Model, experiments: Sequence[Experiment]) -> tuple[Unknown, ...]:
    unknowns = []
    for experiment in experiments:
        where = f" in {experiment.name}" if len(experiments) > 1 else ""
        for state in model.states:
            if state not in model.initial and state not in experiment.initial:
                unknowns.append(Unknown(state, f"{state}(0){where}", experiment.name))
    return (*unknowns, *(Unknown(name, name) for name in model.parameters))


def _positions(times: np.ndarray, own: np.ndarray) -> Any:
    """Where an output's times are among all; a slice if they are all of them."""
    return slice(None) if len(own) == len(times) and np.array_equal(own, times) else np.searchsorted(times, own)


def _scale(values: np.ndarray) -> float:
    """The spread of an output, or its size if it does not vary."""
    if not len(values):
        return 1.0
    spread = float(values.std())
    return spread if spread > 1e-6 * float(np.abs(values).max()) else float(np.abs(values).max()) or 1.0


def _noise_kind(name: str, noise: Any) -> tuple[str, float | None]:
    """What is known of an output's noise: its shape ("data", "constant", "relative") and its level, if known."""
    if isinstance(noise, Mapping):
        noise = noise.get(name)
    if noise is None:
        return "data", None
    if isinstance(noise, str):
        text = noise.strip()
        if text == "relative":
            return "relative", None
        if text.endswith("%"):
            return "relative", _positive(name, text[:-1], 0.01)
    else:
        return "constant", _positive(name, noise, 1.0)
    raise ModelError(f"the noise of '{name}' must be a positive number, 'relative' or a percentage, not {noise!r}")


def _positive(name: str, value: Any, unit: float) -> float:
    try:
        level = float(value) * unit
    except (TypeError, ValueError):
        level = math.nan
    if isinstance(value, bool) or not (math.isfinite(level) and level > 0):
        raise ModelError(f"the noise of '{name}' must be a positive number, 'relative' or a percentage, not {value!r}")
    return level


def _shapes(series: Series, kind: str, _: float | None) -> np.ndarray:
    """The shape of the noise of a series."""
    if kind == "data" and series.sds is not None:
        return np.broadcast_to(np.asarray(series.sds, dtype=float), series.values.shape)
    sizes = np.abs(series.values)
    if kind == "relative" and sizes.max() > 0:
        return np.maximum(sizes, _RELATIVE_FLOOR * sizes.max())
    return np.ones(len(series.values))
