"""Simulation: what a model does for given values, with names on everything."""

from __future__ import annotations

import math
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.attach import attached
from odejet.clock import now
from odejet.errors import ModelError, nearest
from odejet.extras import needed
from odejet.jets.curves import expanded
from odejet.jets.inputs import Sampled, sampled
from odejet.model.cumulated import Cumulated, cumulated, has_windows
from odejet.model.expressions import spelled, spelled_keys
from odejet.model.transform import with_named
from odejet.progress import doing
from odejet.simulate.flow import TOLERANCE, Flow, Outcome, Trajectory
from odejet.simulate.outputs import Outputs
from odejet.simulate.steady import RestingFlow
from odejet.simulate.windows import over_windows, windows_of
from odejet.tables import html_table

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

    from odejet.model import Model

TIME_LIMIT = 60.0
"""Seconds that a simulation may take."""


@dataclass(frozen=True, eq=False)
class Simulation(Outputs[np.ndarray]):
    """Outputs by name, over the times that were reached.

    `sim["y1"]` and `sim.states["w"]` are arrays over `sim.times`; `sim.sensitivity("y1", "k2")` is the derivative of an
    output or state with respect to a parameter or, by the name of its state, an initial state.
    """

    called = "sim"

    model: Model
    times: np.ndarray
    states: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    unknowns: tuple[str, ...]
    trajectory: Trajectory

    @property
    def outcome(self) -> Outcome:
        return self.trajectory.outcome

    @property
    def message(self) -> str:
        undefined = [name for name, series in self.outputs.items() if np.isnan(series).any()]
        if not undefined:
            return self.trajectory.message
        when = min(self.times[np.isnan(self.outputs[name])][0] for name in undefined)
        names = f"{', '.join(undefined)} {'is' if len(undefined) == 1 else 'are'}"
        return f"{self.trajectory.message}; {names} not finite at t = {when:.6g}, and NaN there"

    @property
    def method(self) -> str:
        return self.trajectory.method

    def sensitivity(self, of: str, to: str) -> np.ndarray:
        """The derivative of an output or state with respect to a parameter or an initial state, over the times."""
        of, to = spelled(of), spelled(to)
        if not self.unknowns:
            raise ModelError("the simulation has no sensitivities; ask for them with sensitivities=True")
        if to not in self.unknowns:
            raise ModelError(f"no sensitivity to '{to}': it is not an unknown of the model{nearest(to, self.unknowns)}")
        lane = 1 + self.unknowns.index(to)
        for names, rows in ((self.outputs, self.trajectory.outputs), (self.states, self.trajectory.states)):
            if of in names:
                return rows[:, list(names).index(of), lane]
        known = [*self.outputs, *self.states]
        raise ModelError(f"no sensitivity of '{of}': it is not an output or state{nearest(of, known)}")

    def to_dataframe(self, states: bool = False) -> pandas.DataFrame:
        """A table with a column `time` and one per output (and per state, if asked for)."""
        pandas = needed("pandas")
        return pandas.DataFrame({"time": self.times, **self.outputs, **(self.states if states else {})})

    @attached
    def plot(
        self, path: str | os.PathLike[str] | None = None, *, measured: Mapping[str, np.ndarray] | None = None
    ) -> matplotlib.figure.Figure:
        """Every output over time (states, if the model has none), with `measured` values of them if there are any;
        `path` is a file to write (PNG, PDF or SVG)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        lines = [self._title(), *(f"  {words}" for words in self._said())]
        lines += [f"  {kind:6} {name}: {low} to {high}" for kind, name, low, high in self._ranges()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [("", "name", "least", "largest"), *self._ranges()]
        return html_table(rows, (2, 3), self._title(), self._said())

    def _title(self) -> str:
        return f"Simulation of {self.model.name}: {self.span} ({self.method})"

    def _said(self) -> list[str]:
        if not self.success:
            return [f"stopped: {self.message}"]
        return [self.message] if self.message != self.trajectory.message else []

    def _ranges(self) -> list[tuple[str, str, str, str]]:
        """Kind, name, least and largest value of every output and state that has any."""
        named = [("output", *one) for one in self.outputs.items()] + [("state", *one) for one in self.states.items()]
        return [
            (kind, name, f"{np.nanmin(series):.6g}", f"{np.nanmax(series):.6g}")
            for kind, name, series in named
            if not np.isnan(series).all()
        ]


def simulate(
    model: Model,
    parameters: Mapping[str, float] | None = None,
    initial_state: Mapping[str, float] | None = None,
    times: Sequence[float] | np.ndarray = (),
    sensitivities: bool = False,
    *,
    start: float | None = None,
    inputs: Mapping[str, Any] | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int | None = None,
    time_limit: float = TIME_LIMIT,
) -> Simulation:
    """Solve the model for given values at any times, with exact sensitivities if asked for.

    The initial state holds at `start`, by default that of the model or the first of the times; times before it are
    reached by integrating backward.  `inputs` replaces inputs for this simulation, by expressions in `t` or by samples
    `(times, values)` where a time that stands twice is a jump.  A solution that ends early (blow-up, singularity) is no
    error: the result holds the times that were reached and says in `message` what happened; an output that is
    not finite at a time is NaN there.  It may take as many seconds as `time_limit` says, and any number of steps unless
    `max_steps` limits those of either method, beside the steps that knots of sampled inputs and events take.

    What an output tells of the time since the last measurement is since the last of the times, or since the start.
    """
    limits: dict[str, Any] = {
        "sensitivities": sensitivities,
        "tolerance": tolerance,
        "max_steps": max_steps,
        "time_limit": time_limit,
    }
    first = model.start if start is None else start
    if model.curves:
        model, functions = _without_curves(model, inputs or {}, times, first)
        inputs = {**functions, **(inputs or {})}
    with doing("simulating", limit=time_limit):
        return simulated(_cumulated(model), {}, parameters, initial_state, times, start=first, inputs=inputs, **limits)


def _without_curves(
    model: Model, inputs: Mapping[str, Any], times: Sequence[float] | np.ndarray, start: float | None
) -> tuple[Model, dict[str, Sampled]]:
    """The model with known functions in the place of its curves, with knots from the start to the last of the times."""
    asked = checked_times(times)
    asked = asked[np.isfinite(asked)]
    first = float(asked.min(initial=math.inf) if start is None else start)
    last = float(asked.max(initial=first))
    curves = {name: one.over(name, first, last) if one.every else one for name, one in model.curves.items()}
    return expanded(model.replace(inputs={**model.to_dict()["inputs"], **curves}), inputs)


def simulated(
    whole: Cumulated,
    grids: Mapping[str, np.ndarray],
    parameters: Mapping[str, float] | None,
    initial_state: Mapping[str, float] | None,
    times: Sequence[float] | np.ndarray,
    *,
    start: float | None,
    inputs: Mapping[str, Any] | None,
    sensitivities: bool = False,
    tolerance: float = TOLERANCE,
    max_steps: int | None = None,
    time_limit: float = TIME_LIMIT,
) -> Simulation:
    """Solve a model whose outputs are cumulated, and measured at the times of these grids."""
    model, shown = whole.model, whole.shown
    flow = _flow(model) if inputs is None else _driven(model, inputs)
    values = _values(parameters, model.parameters, "parameter", model.fixed)
    unknown = model.free_states
    known = [state for state in model.states if state not in unknown]
    given = dict(zip(unknown, _values(initial_state, unknown, "initial state", known), strict=True))
    requested, deadline = checked_times(times), now() + time_limit

    def solved(times: np.ndarray) -> Trajectory:
        return flow.run(
            values,
            [given.get(state, 0.0) for state in model.states],
            times,
            start=start,
            sensitivities=sensitivities,
            tolerance=tolerance,
            max_steps=math.inf if max_steps is None else max_steps,
            stiff_steps=math.inf if max_steps is None else max_steps,
            deadline=deadline,
        )

    if whole.outputs:
        windows = tuple(one.beyond(requested) for one in windows_of(whole, grids))
        first = float(requested.min()) if start is None else start
        trajectory = over_windows(windows, requested, first, solved)
    else:
        trajectory = solved(requested)
    return Simulation(
        flow.model,
        requested[trajectory.reached],
        {name: trajectory.states[:, i, 0] for i, name in enumerate(model.states) if i < shown},
        {name: trajectory.outputs[:, i, 0] for i, name in enumerate(model.outputs)},
        flow.unknowns() if sensitivities else (),
        trajectory,
    )


_FLOWS: dict[int, tuple[Model, Flow]] = {}
_CUMULATED: dict[int, tuple[Model, Cumulated]] = {}
_KEPT = 64


def _cumulated(model: Model) -> Cumulated:
    """The model with what its outputs cumulate, made once; the last few are kept."""
    if not has_windows(model) and not model.expressions:
        return Cumulated(model, {}, len(model.states))
    found = _CUMULATED.get(id(model))
    if found is None or found[0] is not model:
        while len(_CUMULATED) >= _KEPT:
            del _CUMULATED[next(iter(_CUMULATED))]
        found = _CUMULATED[id(model)] = model, cumulated(with_named(model))
    return found[1]


def _flow(model: Model) -> Flow:
    """The flow of a model, set up once; the last few are kept."""
    known, flow = _FLOWS.get(id(model), (None, None))
    if flow is None or known is not model:
        flow = RestingFlow(model)
        while len(_FLOWS) >= _KEPT:
            del _FLOWS[next(iter(_FLOWS))]
        _FLOWS[id(model)] = model, flow
    return flow


def _driven(model: Model, inputs: Mapping[str, Any]) -> Flow:
    """The flow of a model with other inputs: expressions, or samples as `Sampled` or pairs (times, values)."""
    samples: dict[str, Sampled] = {}
    inputs = spelled_keys(inputs, "inputs")
    for name, value in inputs.items():
        if name not in model.inputs:
            raise ModelError(f"the model has no input '{name}'{nearest(name, model.inputs)}")
        if isinstance(value, Sampled):
            samples[name] = value
        elif isinstance(value, tuple) and len(value) == 2:
            times, values = value
            samples[name] = sampled(times, values, f"input '{name}'")
        if name in samples and name in model.sampling:
            samples[name] = replace(samples[name], joined=model.sampling[name])
    return RestingFlow(model.replace(inputs={**model.inputs, **inputs, **dict.fromkeys(samples)}), samples)


def _values(given: Mapping[str, float] | None, names: tuple[str, ...], kind: str, known: Container[str]) -> list[float]:
    """One finite number per name, in order."""
    given = {} if given is None else spelled_keys(given, kind)
    for name in given:
        if name in known:
            raise ModelError(f"the {kind} '{name}' is known in the model; use model.replace to change it")
        if name not in names:
            raise ModelError(f"the model has no {kind} '{name}'{nearest(name, names)}")
    missing = [name for name in names if name not in given]
    if missing:
        raise ModelError(f"no value is given for the {kind} {', '.join(missing)}")
    for name in names:
        if isinstance(given[name], bool) or not _is_finite(given[name]):
            raise ModelError(f"the {kind} '{name}' must be a finite number, not {given[name]!r}")
    return [float(given[name]) for name in names]


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except TypeError:
        return False


def checked_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """Times as one array of finite numbers."""
    try:
        array = np.asarray(times, dtype=float)
    except (TypeError, ValueError):
        raise ModelError("times must be numbers") from None
    if array.ndim != 1 or not len(array):
        raise ModelError("times must be a non-empty list of numbers")
    if np.isnan(array).any() or np.any(array == -np.inf):
        raise ModelError("times must be finite numbers, or inf for the steady state in the end")
    return array
