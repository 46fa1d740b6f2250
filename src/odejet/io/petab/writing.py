"""Writing: problems as PEtab, version 2.

The model goes into an SBML file, without its outputs, which are observables.  What an experiment knows is set by a
condition when it begins; rest is a period from -inf on, and what happens later are periods too.  Unknowns that belong
to one experiment are parameters of their own, which its condition sets.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from odejet.attach import attach
from odejet.data import Experiment, Series
from odejet.errors import ModelError, clipped
from odejet.io.files import write_all
from odejet.io.petab.formulas import written
from odejet.io.sbml.writing import written as sbml
from odejet.model import Event, Model
from odejet.model.calls import parse_call
from odejet.model.cumulated import refuse_windows
from odejet.model.dual import differentiated
from odejet.model.expressions import Expression, Product, Symbol, constant, fresh, names, number, substituted
from odejet.model.transform import rewritten, written_out
from odejet.problem import Problem
from odejet.problem.noise import Noise
from odejet.problem.priors import SCALES
from odejet.problem.unknowns import Unknown

YAML = "problem.yaml"

MAX_PERIODS = 1000
"""Repetitions of one event, which PEtab must have one by one."""

_AFTER = 1e-12  # relative to times: a period that begins after a measurement at the same time begins so much later

LOOSE = (1e-6, 1e3)
"""Beside the size of what is measured: the bounds of a noise level that odejet has no need of bounds for."""

_LAWS = {
    "normal": ("normal", 1.0),
    "laplace": ("laplace", 1.0),
    "lognormal": ("log-normal", 1.0),
    "loglaplace": ("log-laplace", 1.0),
    "log10normal": ("log-normal", math.log(10)),
    "log10laplace": ("log-laplace", math.log(10)),
}
"""Laws that PEtab has, and the factor of their scale there."""

PRIORS = (
    *("normal", "lognormal", "laplace", "loglaplace", "uniform", "loguniform"),
    *("cauchy", "gamma", "exponential", "chisquare", "rayleigh"),
)
"""That PEtab has, without hyphens."""

Table = list[dict[str, Any]]


@attach(Problem.to_petab)
def write(problem: Problem, folder: str | os.PathLike[str]) -> Path:
    folder = Path(folder)
    refuse_windows(problem.model, "PEtab")
    contents = _Writer(problem).files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise ModelError(f"{folder}: the folder cannot be made ({reason})") from None
    write_all(
        {
            str(folder / name): lambda file, text=text: file.write(text.encode())  # type: ignore[misc]
            for name, text in contents.items()
        }
    )
    return folder / YAML


@dataclass
class _Changes:
    """What one experiment sets, by name, in each of its periods."""

    before: dict[str, Expression] | None
    first: dict[str, Expression]
    later: dict[float, dict[str, Expression]] = field(default_factory=dict)


class _Writer:
    """One problem, with an id for every name in it."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.model = problem, written_out(problem.model)
        if any(one.inputs for one in problem.experiments):
            raise ModelError("PEtab has no inputs of single experiments; write them into the model as functions of t")
        self.text, self.ids = sbml(self._plain())
        inputs = self.model.inputs.items()
        self.inputs = {name: value for name, value in inputs if value is not None}
        self.taken = set(self.ids.values())
        for name in (*self.model.outputs, *self.model.fixed, *(one.name for one in problem.layout)):
            if name not in self.ids:
                self.ids[name] = self.own(name)
        self.experiments = {one.name: self.own(one.name) for one in problem.experiments}
        self.parameters: Table = []
        self.changes = {one.name: self._changes(one) for one in problem.experiments}
        self._tell_unknowns()

    def own(self, name: str) -> str:
        """An id that nobody else has."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return fresh(plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}", self.taken)

    def _plain(self) -> Model:
        """The model as SBML has it: no outputs, and no numbers that only these need."""
        model = self.model
        return rewritten(
            model, outputs={}, inputs=dict(model.inputs), initial=dict(model.initial), before={}, ordered=False
        )

    def formula(self, expression: Expression) -> str:
        return written(substituted(expression, self.inputs), self.ids)

    def value(self, expression: Expression) -> str:
        """What a condition sets, in which numbers of the model have no place."""
        return self.formula(substituted(expression, {name: number(one) for name, one in self.model.fixed.items()}))

    # --- experiments

    def _changes(self, one: Experiment) -> _Changes:
        first = {**one.values, **({} if one.steady else one.initial)}
        found = _Changes(None, first)
        if one.steady:
            begun = {name: value for name, value in one.before.items() if self.model.initial.get(name) != value}
            found.before = {**one.values, **begun}
            found.first = {name: one.values[name] for name in one.before if name in one.values}
            found.first |= {
                name: number(self.model.fixed[name])
                for name in one.before
                if name in self.model.fixed and name not in one.values
            }
        for time, told in self._events(one):
            if time == one.start:
                known = {**one.values, **({} if one.steady else {**self.model.initial, **one.initial})}
                found.first |= {name: substituted(value, known) for name, value in told.items()}
                continue
            there = found.later.setdefault(time, {})
            read = {name for value in told.values() for name in names(value)}
            if there.keys() & (read | told.keys()):
                raise ModelError(f"{one.name}: events at t = {time:g} follow on each other, which PEtab cannot say")
            there |= told
        return found

    def _events(self, one: Experiment) -> Iterable[tuple[float, Mapping[str, Expression]]]:
        states = list(self.model.states)
        doses = []
        for dose in one.doses:
            if dose.steady:
                raise ModelError(f"{one.name}: PEtab has no doses at steady state; write the doses before out")
            if dose.duration is not None:
                raise ModelError(f"{one.name}: PEtab has no infusions; write the rate into the model")
            doses.append(dose.event(states, states[int(dose.state) - 1] if dose.state.isdecimal() else dose.state))
        found = [
            (_begins(time, event, one), event.set) for event in (*one.events, *doses) for time in _times(event, one)
        ]
        return sorted(found, key=lambda pair: pair[0])

    def _tell_unknowns(self) -> None:
        """The parameter table, and what conditions say of unknowns that are no parameters of the SBML file as such."""
        targets = {name for one in self.changes.values() for name in (*(one.before or ()), *one.first)}
        targets |= {name for one in self.changes.values() for told in one.later.values() for name in told}
        for unknown in self.problem.layout:
            if unknown.experiment is None and unknown.name not in targets:
                self._parameter(unknown, self.ids[unknown.name])
                continue
            label = unknown.name if unknown.experiment is None else f"{unknown.name}_{unknown.experiment}"
            id_ = self.own(f"{label}_0" if unknown.is_state else f"{label}_value")
            self.ids[id_] = id_
            self._parameter(unknown, id_)
            for name, one in self.changes.items():
                if unknown.experiment in (None, name):
                    one.first.setdefault(unknown.name, Symbol(id_))
                    if one.before is not None:
                        one.before.setdefault(unknown.name, Symbol(id_))
        for name, value in self.model.fixed.items():
            if name not in self._plain().fixed:
                self.parameters.append({"parameterId": self.ids[name], "estimate": "false", "nominalValue": value})

    def _parameter(self, unknown: Unknown, id_: str) -> None:
        low, high = self.problem.bounds[unknown.label]
        row: dict[str, Any] = {"parameterId": id_, "estimate": "true", "lowerBound": low, "upperBound": high}
        if unknown.label in self.problem.nominal:
            row["nominalValue"] = self.problem.nominal[unknown.label]
        prior = self.problem.priors.get(unknown.label) or self.problem.priors.get(unknown.name)
        if prior:
            kind, values = _petab_prior(unknown.label, str(prior))
            row["priorDistribution"] = re.sub("^log(?=.)", "log-", kind)
            row["priorParameters"] = ";".join(repr(value) for value in values)
        self.parameters.append(row)

    # --- tables

    def files(self) -> dict[str, str]:
        """The text of every file by name."""
        conditions, periods = self._conditions()
        observables, measurements = self._measured()
        tables = {
            "parameters": (self.parameters, _PARAMETERS),
            "conditions": (conditions, ("conditionId", "targetId", "targetValue")),
            "experiments": (periods, ("experimentId", "time", "conditionId")),
            "observables": (observables, _OBSERVABLES),
            "measurements": (measurements, _MEASUREMENTS),
        }
        kinds = "".join(f"{name[:-1]}_files:\n- {name}.tsv\n" for name in tables)
        model = "model_files:\n  model:\n    language: sbml\n    location: model.xml\n"
        found = {f"{name}.tsv": _tsv(rows, columns) for name, (rows, columns) in tables.items()}
        return {YAML: f"format_version: 2.0.0\n{model}{kinds}", "model.xml": self.text, **found}

    def _conditions(self) -> tuple[Table, Table]:
        conditions: Table = []
        periods: Table = []
        for one in self.problem.experiments:
            told, id_ = self.changes[one.name], self.experiments[one.name]
            rest = [] if told.before is None else [(-math.inf, told.before)]
            for place, (time, changes) in enumerate([*rest, (one.start, told.first), *sorted(told.later.items())]):
                condition = self.own(f"{id_}_{place}") if changes else ""
                periods.append({"experimentId": id_, "time": time, "conditionId": condition})
                for name, value in changes.items():
                    target, text = self.ids.get(name, name), self.value(value)
                    conditions.append({"conditionId": condition, "targetId": target, "targetValue": text})
        return conditions, periods

    def _measured(self) -> tuple[Table, Table]:
        observables: Table = []
        measurements: Table = []
        for output, noise in self.problem.noises.items():
            series = {one.name: one.outputs[output] for one in self.problem.experiments if output in one.outputs}
            if any(one.limits is not None for one in series.values()):
                raise ModelError(
                    f"'{output}' has censored values, which PEtab cannot hold; leave them out before writing"
                )
            law, formula, shapes = self._noise(output, noise, list(series.values()))
            placeholder = f"noiseParameter1_{self.ids[output]}" if shapes else ""
            observables.append(
                {
                    "observableId": self.ids[output],
                    "observableFormula": self.formula(self.model.outputs[output]),
                    "noiseFormula": formula,
                    "noiseDistribution": law,
                    "noisePlaceholders": placeholder,
                }
            )
            for name, one in series.items():
                sds = noise.shapes(one) if shapes else np.full(len(one.times), math.nan)
                for time, value, sd in zip(one.times, one.values, sds, strict=True):
                    row: dict[str, Any] = {"observableId": self.ids[output], "experimentId": self.experiments[name]}
                    row |= {"time": float(time), "measurement": float(value)}
                    measurements.append(row | ({"noiseParameters": float(sd)} if shapes else {}))
        return observables, measurements

    def _noise(self, output: str, noise: Noise, series: list[Series]) -> tuple[str, str, bool]:
        """The law of an output, the formula of its scale, and whether a factor of it stands with each measurement."""
        name = parse_call(noise.text)[0] if noise.text else "normal"
        if name not in _LAWS:
            raise ModelError(f"the noise of '{output}' is {name}, which PEtab does not have")
        law, factor = _LAWS[name]
        if noise.scale is not None:
            scale = noise.scale if factor == 1 else Product(((1, number(factor)), (1, noise.scale)))
            return law, self.formula(scale), False
        shapes = noise.kind == "relative" or (noise.kind == "data" and series[0].sds is not None)
        level = repr(noise.level * factor)
        if math.isnan(noise.level):
            level = self._level(output, noise, series)
            level = level if factor == 1 else f"{factor!r} * {level}"
        if not shapes:
            return law, level, False
        placeholder = f"noiseParameter1_{self.ids[output]}"
        return law, placeholder if noise.level == 1 else f"{level} * {placeholder}", True

    def _level(self, output: str, noise: Noise, series: list[Series]) -> str:
        """The parameter of a noise level that is to be estimated."""
        size = max((noise.typical(one) for one in series), default=1.0) if noise.kind != "relative" else 1.0
        id_ = self.own(f"sd_{self.ids[output]}")
        bounds = {"lowerBound": LOOSE[0] * size, "upperBound": LOOSE[1] * size}
        self.parameters.append({"parameterId": id_, "estimate": "true", **bounds})
        return id_


_PARAMETERS = (
    "parameterId",
    "lowerBound",
    "upperBound",
    "nominalValue",
    "estimate",
    "priorDistribution",
    "priorParameters",
)
_OBSERVABLES = ("observableId", "observableFormula", "noiseFormula", "noiseDistribution", "noisePlaceholders")
_MEASUREMENTS = ("observableId", "experimentId", "time", "measurement", "noiseParameters")


def _tsv(rows: Table, columns: tuple[str, ...]) -> str:
    lines = [columns, *(tuple(_cell(row.get(column, "")) for column in columns) for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else repr(float(value))


def _begins(time: float, event: Event, one: Experiment) -> float:
    """When a period begins with an event: in PEtab what is measured then belongs to it."""
    measured = not event.seen and any(time in series.times for series in one.outputs.values())
    return time + _AFTER * max(abs(time), abs(one.end)) if measured else time


def _times(event: Event, one: Experiment) -> list[float]:
    """When an event happens, as numbers."""
    if event.when is not None:
        raise ModelError(f"{one.name}: PEtab has no events of single experiments that wait for a condition")
    found = [constant(time) for time in (*event.at, *(() if event.every is None else (event.every,)))]
    if None in found:
        raise ModelError(f"{one.name}: an event happens at a time that is no number, which PEtab cannot say")
    times = [float(time) for time in found if time is not None]
    if event.every is None:
        return times
    count = event.count or max(int((one.end - times[0]) / times[1]) + 1, 0)
    if count > MAX_PERIODS:
        raise ModelError(f"{one.name}: an event happens more than {MAX_PERIODS} times, which is too much for PEtab")
    return [times[0] + i * times[1] for i in range(count)]


def _petab_prior(label: str, text: str) -> tuple[str, list[float]]:
    """The prior by the law of the number itself, which is all that version 2 has: for one of the logarithm the same law
    of draws, of which the maximum lies elsewhere."""
    plain, _, scale = text.partition("(")[0].strip().partition("_")
    kind = f"log{plain}" if scale else plain
    if kind not in PRIORS:
        raise ModelError(f"PEtab has no prior such as {clipped(text)}, that of '{label}'; it has {', '.join(PRIORS)}")
    values = [float(differentiated(one, {}, {}, 0).value) for one in parse_call(text).arguments or ()]
    if scale:
        values = [value * SCALES[scale] for value in values]
    return kind, [math.exp(value) for value in values] if scale and plain == "uniform" else values
