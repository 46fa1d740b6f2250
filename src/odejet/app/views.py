"""Views: what the page is told of a draft, as plain values: unknowns with their sliders, data, curves, verdicts.

A draft with data is a problem, one without is a model alone; both have unknowns, and curves for values of these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from odejet.app import posing
from odejet.app.drafts import Draft
from odejet.data import Experiment
from odejet.errors import ModelError
from odejet.identifying import identify
from odejet.model import Model
from odejet.model.cumulated import of_rates
from odejet.model.expressions import constant
from odejet.objective.courses import Effort
from odejet.problem import Problem, joint
from odejet.problem.unknowns import Unknown
from odejet.simulate.flow import Outcome
from odejet.simulate.steady import RestingFlow
from odejet.simulate.trajectory import defined_part

CURVE = 240
"""Times of a curve."""

MOST_POINTS = 1200
"""Points of a series that are drawn at most; a longer one is thinned evenly to about this many."""

MOST_PANELS = 48
"""Pictures on a page."""

LIMITS: dict[str, Any] = {"tolerance": 1e-8, "max_steps": 3000, "stiff_steps": 200, "operations": 5e7}
"""What a curve under a slider may cost: no hand waits for more."""

IDENTIFY_SECONDS = 4.0
"""What the live verdict may take."""


class Posed(Protocol):
    """What has unknowns, and curves for values of them."""

    @property
    def labels(self) -> Sequence[str]: ...

    def curves(self, values: Mapping[str, float]) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, eq=False)
class Alone:
    """A model without data, over a span of time."""

    model: Model
    flow: RestingFlow
    span: float

    @property
    def labels(self) -> Sequence[str]:
        return [f"{name}(0)" if name in self.model.states else name for name in self.model.unknowns]

    def curves(self, values: Mapping[str, float]) -> list[dict[str, Any]]:
        given = {label: values.get(label, _any(place)) for place, label in enumerate(self.labels)}
        states = [given.get(f"{name}(0)", 0.0) for name in self.model.states]
        parameters = [given[name] for name in self.model.parameters]
        times = np.linspace(0.0, self.span, CURVE)
        run = self.flow.run(parameters, states, times, start=0.0, **LIMITS)
        return [_curve("", self.model, times, defined_part(run, times))]


@dataclass(frozen=True, eq=False)
class Measured:
    """A problem: every experiment over its own time."""

    problem: Problem

    @property
    def labels(self) -> Sequence[str]:
        return self.problem.unknowns

    def curves(self, values: Mapping[str, float]) -> list[dict[str, Any]]:
        z = self.problem.layout.vector({label: values.get(label, 1.0) for label in self.labels})
        return [self._curve(number, z) for number in range(len(self.problem.experiments[:MOST_PANELS]))]

    def _curve(self, number: int, z: np.ndarray) -> dict[str, Any]:
        experiment, condition = self.problem.experiments[number], self.problem.conditions[number]
        model = condition.model
        grid = times_of(experiment)
        own = {name: series.finite.times for name, series in experiment.outputs.items()}
        times = np.unique(np.concatenate([grid, *own.values()]))
        run = self.problem.misfit.courses[number].at(times).run(z, Effort(**LIMITS), sensitivities=False)
        shown = _curve(experiment.name, model, times, run)
        reached = times[run.reached]
        for i, name in enumerate(model.outputs):
            if name in experiment.outputs:
                shown["explained"][name] = _explained(experiment, name, reached, run.outputs[:, i, 0])
        # The page draws the grid; measured times were only needed to compare.
        keep = np.isin(reached, grid)
        shown["times"] = _plain(reached[keep])
        for kind in ("outputs", "states"):
            shown[kind] = {name: _plain(np.asarray(line)[keep]) for name, line in shown[kind].items()}
        return shown


def times_of(experiment: Experiment) -> np.ndarray:
    """The times of the curve of an experiment."""
    end = experiment.end if experiment.end > experiment.start else experiment.start + 1.0
    return np.linspace(experiment.start, end, CURVE)


def _curve(name: str, model: Model, times: np.ndarray, run: Any) -> dict[str, Any]:
    complete = run.outcome is Outcome.COMPLETED
    return {
        "experiment": name,
        "times": times[run.reached].tolist(),
        "outputs": {one: run.outputs[:, i, 0].tolist() for i, one in enumerate(model.outputs)},
        "states": {one: run.states[:, i, 0].tolist() for i, one in enumerate(model.states)},
        "explained": {},
        "message": "" if complete else run.message,
    }


def _explained(experiment: Experiment, name: str, times: np.ndarray, values: np.ndarray) -> float | None:
    """The part of the variation of an output that a curve explains; None where it does not reach all of it."""
    series = experiment.outputs[name].finite
    places = np.searchsorted(times, series.times)
    if not len(series.times) or places.max() >= len(times):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        left = float(np.sum((values[places] - series.values) ** 2))
        whole = float(np.sum((series.values - series.values.mean()) ** 2))
    return 1 - left / whole if whole > 0 and math.isfinite(left) else None


def _plain(values: np.ndarray) -> list[float]:
    """Numbers with as many digits as a picture shows."""
    return [float(f"{value:.7g}") for value in np.asarray(values, dtype=float)]


# --- a look at a draft ------------------------------------------------------------------------------------------------


def pose(draft: Draft, folder: Path, name: str) -> Posed:
    """What the draft poses: a problem if it has data, or else the model alone."""
    if draft.data or draft.language == "petab":
        return Measured(posing.problem_of(draft, folder, name))
    return alone(draft, folder, name)


def alone(draft: Draft, folder: Path, name: str) -> Alone:
    """The model of a draft without its data."""
    model = posing.model_of(draft, name, folder)
    sampled = [one for one, value in model.inputs.items() if value is None]
    if sampled:
        raise ModelError(f"the input {sampled[0]} is sampled; drop a table with its samples to see curves")
    fixed = {
        key: value
        for key, told in draft.fixed.items()
        if key in (*model.parameters, *model.states) and isinstance(value := posing.number_or_text(told), float)
    }
    changes = {
        "fixed": {**model.fixed, **{key: value for key, value in fixed.items() if key in model.parameters}},
        "initial": {**model.initial, **{key: value for key, value in fixed.items() if key in model.states}},
    }
    known = model.replace(**changes) if fixed and not model.steady else model
    known = of_rates(known)  # nothing tells when windows would end
    return Alone(known, RestingFlow(known), draft.span)


def unknowns(posed: Posed, draft: Draft) -> list[dict[str, Any]]:
    """Every unknown: its name and label, its bounds, and the range and the scale of its slider."""
    if isinstance(posed, Alone):
        names = posed.model.unknowns
        return [
            _unknown(name, label, posed.model.bounds.get(name, (-math.inf, math.inf)), _any(place), draft)
            | {"state": name in posed.model.states}
            for place, (name, label) in enumerate(zip(names, posed.labels, strict=True))
        ]
    assert isinstance(posed, Measured)
    problem = posed.problem
    sizes, bounds = problem.sizes, problem.bounds
    rows = []
    for place, one in enumerate(problem.layout):
        row = _unknown(one.name, one.label, bounds[one.label], float(sizes[place]), draft)
        known = problem.nominal.get(one.label, _first(problem, one))
        if known is not None and one.label not in draft.values:
            row["value"] = float(f"{known:.4g}")
        rows.append(row | {"state": one.is_state, "experiment": one.experiment})
    return rows


def _any(place: int) -> float:
    """A value for a first look at a model without data: of size one, and no two alike, since that is often at rest."""
    return round(0.4 + 0.6 * (0.618034 * (place + 1) % 1), 2)


def _first(problem: Problem, unknown: Unknown) -> float | None:
    """Where a state begins that is measured as it is: its first measurement."""
    if not unknown.is_state:
        return None
    for experiment in problem.experiments:
        for output, one in experiment.outputs.items():
            own = unknown.experiment in (None, experiment.name) and str(problem.model.outputs[output]) == unknown.name
            if own and len(one.finite):
                return float(one.finite.values[0])
    return None


def _unknown(name: str, label: str, bounds: tuple[float, float], size: float, draft: Draft) -> dict[str, Any]:
    low, high = bounds
    size = abs(size) if math.isfinite(size) and size else 1.0
    if low >= 0:
        ends = (low or min(size, high) / 1000, high if math.isfinite(high) else max(size, low) * 100)
        scale = "log"
    else:
        ends = (low if math.isfinite(low) else -10 * size, high if math.isfinite(high) else 10 * size)
        scale = "linear"
    start = min(max(size, ends[0]), ends[1])
    return {
        "name": name,
        "label": label,
        "bounds": [low if math.isfinite(low) else None, high if math.isfinite(high) else None],
        "range": list(ends),
        "scale": scale,
        "value": draft.values.get(label, float(f"{start:.3g}")),
    }


def look(draft: Draft, folder: Path, name: str) -> dict[str, Any]:
    """The model of a draft: its parts, and what in it has a number."""
    if draft.language == "petab":
        problem = posing.problem_of(draft, folder, name)
        return _parts(problem.model) | {"shown": problem.model.to_toml(), "known": {}}
    whole = posing.plain_model(draft, name)
    numbers: dict[str, tuple[str, Fraction | None]] = {name: (name, exact) for name, exact in whole.fixed.items()}
    numbers |= {f"{name}(0)": (name, constant(value)) for name, value in whole.initial.items()}
    known = {
        label: {"name": name, "value": float(exact), "free": name in draft.free}
        for label, (name, exact) in numbers.items()
        if exact is not None
    }
    return _parts(posing.freed_of(draft, whole)) | {"known": known}


def _parts(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "states": list(model.states),
        "outputs": {name: str(value) for name, value in model.outputs.items()},
        "inputs": list(model.inputs),
        "parameters": [*model.parameters, *model.fixed],
        "noise": {name: str(value) for name, value in model.noise.items()},
        "local": list(model.local),
    }


def series(posed: Posed) -> list[dict[str, Any]]:
    """The measurements, as they are drawn."""
    if not isinstance(posed, Measured):
        return []
    found = []
    for experiment in posed.problem.experiments[:MOST_PANELS]:
        for name, one in experiment.outputs.items():
            finite = one.finite
            every = max(1, math.ceil(len(finite.times) / MOST_POINTS))
            sds = finite.sds
            found.append(
                {
                    "experiment": experiment.name,
                    "output": name,
                    "count": len(one.times),
                    "times": _plain(finite.times[::every]),
                    "values": _plain(finite.values[::every]),
                    "sds": None if sds is None else _plain(np.broadcast_to(sds, finite.values.shape)[::every]),
                }
            )
    return found


def experiments(posed: Posed) -> list[dict[str, Any]]:
    if not isinstance(posed, Measured):
        return []
    return [
        {"name": one.name, "start": one.start, "end": one.end, "points": one.points}
        for one in posed.problem.experiments
    ]


def file_of(draft: Draft, folder: Path) -> dict[str, Any]:
    """A glance at the file of the measurements."""
    glance = posing.glance_of(folder / draft.data)
    rows = [list(row) for row in glance.first]
    return {"kind": glance.kind, "names": list(glance.names), "rows": glance.rows, "first": rows}


# --- what can be known ------------------------------------------------------------------------------------------------


def verdict(posed: Posed) -> dict[str, Any]:
    """What can be known of a model or a problem, by label."""
    note = ""
    if isinstance(posed, Measured):
        together, count = joint(posed.problem), len(posed.problem.experiments)
        found, name_of = identify(posed.problem, time_limit=IDENTIFY_SECONDS), together.names
        if together.experiments < count:
            note = f"Looked at with {together.experiments} of the {count} experiments."
    else:
        assert isinstance(posed, Alone)
        found = identify(posed.model, time_limit=IDENTIFY_SECONDS)
        name_of = dict(zip(posed.labels, posed.model.unknowns, strict=True))
    label_of = {name: label for label, name in reversed(list(name_of.items()))}
    quantities = {label: found[name] for label, name in name_of.items() if name in found}
    return {
        "message": found.message,
        "note": note,
        "quantities": {
            label: {"kind": one.kind, "sentence": one.sentence, "reason": one.reason, "tested": one.tested}
            for label, one in quantities.items()
        },
        "combinations": _told_once(found.combinations, name_of),
        "fix": [label_of.get(name, name) for name in found.fix],
        "reason": found.reason,
        "seconds": round(found.seconds, 3),
    }


def _told_once(combinations: Iterable[str], name_of: Mapping[str, str]) -> list[str]:
    """Combinations of one experiment in the names of the model, which are the same for many experiments."""
    own = {name: label.split(" in ", 1) for label, name in name_of.items() if " in " in label}
    told: dict[str, None] = {}
    for one in combinations:
        used = {name for name in re.findall(r"[^\W\d]\w*", one) if name in own}
        if len({own[name][1] for name in used}) == 1:
            one = re.sub(r"[^\W\d]\w*", lambda found: own[found[0]][0] if found[0] in own else found[0], one)
        told[one] = None
    return list(told)
