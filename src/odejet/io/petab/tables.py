"""Tables: what the tables of a problem say, the same for both versions of PEtab.

Version 2 is the measure: experiments are periods with changes, placeholders are named, laws of noise and priors carry
odejet's names.  Version 1 is read in these words:

- a pair of conditions is an experiment: the one before at t = -inf, the other at 0.  What the second leaves open is the
  model's value for a parameter, and whatever it has come to for a species;
- a transformation of the observable belongs to the law of its noise; priors on the scale of a parameter are priors of
  its logarithm.  As in version 2 all are densities of the quantity itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from odejet.errors import ModelError, clipped, nearest
from odejet.io.petab.files import Listed, Row, rows
from odejet.problem.priors import KINDS

BEFORE = -math.inf
"""When a period begins in which the system comes to rest."""

ONLY = "experiment1"
"""The experiment of measurements that name none."""


@dataclass(frozen=True)
class Parameter:
    id: str
    estimated: bool
    nominal: float | None = None
    bounds: tuple[float, float] | None = None
    prior: str = ""  # in odejet's words


@dataclass(frozen=True)
class Observable:
    where: str
    id: str
    formula: str
    law: str  # in odejet's words
    noise: str  # the formula of its scale
    placeholders: tuple[str, ...] = ()
    noise_placeholders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measurement:
    where: str
    observable: str
    experiment: str
    time: float
    value: float
    overrides: tuple[str, ...] = ()
    noise_overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Period:
    """From `time` on; `changes` are formulas by id, and what is in `reset` has the model's value again."""

    time: float
    changes: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tables:
    parameters: Mapping[str, Parameter]
    observables: Mapping[str, Observable]
    experiments: Mapping[str, tuple[Period, ...]]  # in the order of time
    measurements: tuple[Measurement, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)  # ids that stand for others in the model


Given = Mapping[str, float | None]
"""Values of parameters by id in place of what the table says; None where a parameter is estimated."""


def read(files: Listed, given: Given | None = None) -> Tables:
    """The tables of a problem, checked by themselves."""
    given = given or {}
    parameters = _unique(_parameter(row, files.version, given) for row in rows(files.tables["parameter"], _PARAMETER))
    for id_ in given:
        if id_ not in parameters:
            raise ModelError(f"{files.tables['parameter'][0]}: there is no parameter '{id_}'{nearest(id_, parameters)}")
    observables = _unique(_observable(row, files.version) for row in rows(files.tables["observable"], _OBSERVABLE))
    if files.version == 1:
        experiments, measurements = _pairs(files)
    else:
        experiments, measurements = _timed(files)
    if not measurements:
        raise ModelError(f"{files.tables['measurement'][0]}: there are no measurements")
    for one in measurements:
        _check(one, observables)
    aliases = {
        row.text("petabEntityId"): row.get("modelEntityId")
        for row in rows(files.tables.get("mapping", ()), ("petabEntityId", "modelEntityId"))
        if row.get("modelEntityId")
    }
    return Tables(parameters, observables, experiments, tuple(measurements), aliases)


_PARAMETER = ("parameterId", "estimate")
_OBSERVABLE = ("observableId", "observableFormula", "noiseFormula")


def _unique(found: Iterator[tuple[str, Parameter]] | Iterator[tuple[str, Observable]]) -> dict:
    """By id; one that is there twice is refused."""
    table: dict = {}
    for where, one in found:
        if one.id in table:
            raise ModelError(f"{where}: '{one.id}' is there twice")
        table[one.id] = one
    return table


def _check(one: Measurement, observables: Mapping[str, Observable]) -> None:
    if one.observable not in observables:
        raise ModelError(
            f"{one.where}: there is no observable '{one.observable}'{nearest(one.observable, observables)}"
        )
    told = observables[one.observable]
    for given, wanted, column in (
        (one.overrides, told.placeholders, "observableParameters"),
        (one.noise_overrides, told.noise_placeholders, "noiseParameters"),
    ):
        if len(given) != len(wanted):
            raise ModelError(f"{one.where}: the formulas need {len(wanted)} {column}, and {len(given)} are given")
    if not math.isfinite(one.value) or math.isnan(one.time) or one.time == -math.inf:
        raise ModelError(f"{one.where}: the measurement and its time must be numbers")


def _id(row: Row, column: str) -> str:
    text = row.text(column)
    if not re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) or len(text) > 200:
        raise ModelError(f"{row.where}: {clipped(text)} is no id; use letters, digits and underscores")
    return text


# --- parameters and their priors --------------------------------------------------------------------------------------


def _parameter(row: Row, version: int, given: Given) -> tuple[str, Parameter]:
    id_, told = _id(row, "parameterId"), row.text("estimate").lower()
    if told not in ("0", "1", "0.0", "1.0", "true", "false"):
        raise ModelError(f"{row.where}: estimate must be {'0 or 1' if version == 1 else 'true or false'}, not {told}")
    estimated = told in ("1", "1.0", "true")
    nominal = row.number("nominalValue") if row.get("nominalValue") else None
    if id_ in given:
        estimated = given[id_] is None
        nominal = nominal if estimated else given[id_]
    if not estimated:
        if nominal is None or not math.isfinite(nominal):
            raise ModelError(f"{row.where}: '{id_}' is not estimated and needs a nominalValue")
        return row.where, Parameter(id_, False, nominal)
    low, high = row.number("lowerBound"), row.number("upperBound")
    if not low < high:
        raise ModelError(f"{row.where}: the lowerBound {low:g} of '{id_}' must be below the upperBound {high:g}")
    prior = _first_prior(row) if version == 1 else _prior(row, row.get("priorDistribution"), "priorParameters")
    if prior == _call("uniform", (low, high)):
        prior = ""
    return row.where, Parameter(id_, True, nominal, (low, high), prior)


def _call(kind: str, arguments: tuple[float, ...]) -> str:
    return f"{kind}({', '.join(repr(value) for value in arguments)})"


def _prior(row: Row, kind: str, column: str) -> str:
    """A prior of version 2: the same names without hyphens."""
    if not kind:
        return ""
    name = kind.replace("-", "")
    if name not in KINDS:
        raise ModelError(f"{row.where}: there is no prior {clipped(kind)}{nearest(kind, KINDS)}")
    return _call(name, tuple(row.read_number(part, column) for part in row.parts(column)))


_SCALES = {"lin": "", "log": "_log", "log10": "_log10"}
_FIRST_PRIORS = ("uniform", "normal", "laplace", "logNormal", "logLaplace")
_SCALE_PRIORS = {f"parameterScale{kind.capitalize()}": kind for kind in ("uniform", "normal", "laplace")}


def _first_prior(row: Row) -> str:
    """A prior of version 1, some of which are densities of the parameter on its scale."""
    kind, column = row.get("objectivePriorType"), "objectivePriorParameters"
    if not kind or not row.get(column):
        return ""
    scale = row.get("parameterScale") or "lin"
    if scale not in _SCALES:
        raise ModelError(f"{row.where}: the parameterScale must be lin, log or log10, not {clipped(scale)}")
    if kind in _SCALE_PRIORS:
        name = _SCALE_PRIORS[kind] + _SCALES[scale]
    elif kind in _FIRST_PRIORS:
        name = kind.lower()
    else:
        known = (*_FIRST_PRIORS, *_SCALE_PRIORS)
        raise ModelError(f"{row.where}: there is no prior {clipped(kind)}{nearest(kind, known)}")
    return _call(name, tuple(row.read_number(part, column) for part in row.parts(column)))


# --- observables ------------------------------------------------------------------------------------------------------

_LAWS = {"normal": "normal", "laplace": "laplace", "log-normal": "lognormal", "log-laplace": "loglaplace"}
_TRANSFORMED = {"lin": "", "log": "log", "log10": "log10"}


def _observable(row: Row, version: int) -> tuple[str, Observable]:
    id_, formula, noise = _id(row, "observableId"), row.text("observableFormula"), row.text("noiseFormula")
    told = row.get("noiseDistribution") or "normal"
    law = _LAWS.get(told)
    if law is None or (version == 1 and "-" in told):
        raise ModelError(f"{row.where}: there is no noiseDistribution {clipped(told)}{nearest(told, _LAWS)}")
    if version == 2:
        own = row.parts("observablePlaceholders"), row.parts("noisePlaceholders")
        return row.where, Observable(row.where, id_, formula, law, noise, *own)
    scale = row.get("observableTransformation") or "lin"
    if scale not in _TRANSFORMED:
        raise ModelError(f"{row.where}: the observableTransformation must be lin, log or log10, not {clipped(scale)}")
    own = _placeholders("observable", id_, formula), _placeholders("noise", id_, noise)
    return row.where, Observable(row.where, id_, formula, _TRANSFORMED[scale] + law, noise, *own)


def _placeholders(kind: str, id_: str, formula: str) -> tuple[str, ...]:
    """The names that version 1 gives to what measurements override, by number."""
    found = {int(number) for number in re.findall(rf"\b{kind}Parameter(\d+)_{re.escape(id_)}\b", formula, re.ASCII)}
    return tuple(f"{kind}Parameter{number}_{id_}" for number in range(1, max(found, default=0) + 1))


# --- experiments ------------------------------------------------------------------------------------------------------

Measured = tuple[dict[str, tuple[Period, ...]], list[Measurement]]


def _measurement(row: Row, experiment: str) -> Measurement:
    overrides = row.parts("observableParameters"), row.parts("noiseParameters")
    observable = _id(row, "observableId")
    return Measurement(row.where, observable, experiment, row.number("time"), row.number("measurement"), *overrides)


def _timed(files: Listed) -> Measured:
    """The experiments of version 2 and what was measured in them."""
    conditions: dict[str, dict[str, str]] = {}
    for row in rows(files.tables["condition"], ("conditionId", "targetId", "targetValue")):
        changes, target = conditions.setdefault(_id(row, "conditionId"), {}), _id(row, "targetId")
        if target in changes:
            raise ModelError(f"{row.where}: the condition sets '{target}' twice")
        changes[target] = row.text("targetValue")
    periods: dict[str, dict[float, dict[str, str]]] = {}
    for row in rows(files.tables["experiment"], ("experimentId", "time", "conditionId")):
        time, condition = row.number("time"), row.get("conditionId")
        if math.isnan(time) or time == math.inf:
            raise ModelError(f"{row.where}: a period begins at a number or at -inf, not at {time}")
        if condition and condition not in conditions:
            raise ModelError(f"{row.where}: there is no condition '{condition}'{nearest(condition, conditions)}")
        told = periods.setdefault(_id(row, "experimentId"), {}).setdefault(time, {})
        for target, value in conditions.get(condition, {}).items():
            if target in told:
                raise ModelError(f"{row.where}: '{target}' is set twice at one time")
            told[target] = value
    experiments = {
        id_: tuple(Period(time, told) for time, told in sorted(own.items(), key=lambda item: item[0]))
        for id_, own in periods.items()
    }
    measurements, models = [], set()
    for row in rows(files.tables["measurement"], ("observableId", "time", "measurement")):
        experiment = row.get("experimentId")
        if experiment and experiment not in experiments:
            raise ModelError(f"{row.where}: there is no experiment '{experiment}'{nearest(experiment, experiments)}")
        models.add(row.get("modelId"))
        measurements.append(_measurement(row, experiment or ONLY))
    if len(models - {""}) > 1:
        raise ModelError(f"{files.path}: measurements are of several models; only problems with one can be read")
    return {ONLY: (Period(0.0),), **experiments}, measurements


def _pairs(files: Listed) -> Measured:
    """The experiments of version 1, which are pairs of conditions, and what was measured in them."""
    conditions = {
        _id(row, "conditionId"): {
            column: text for column in row.cells if column not in _NO_TARGET and (text := row.get(column))
        }
        for row in rows(files.tables["condition"], ("conditionId",))
    }
    found: list[tuple[Row, tuple[str, str]]] = []
    for row in rows(files.tables["measurement"], ("observableId", "simulationConditionId", "time", "measurement")):
        pair = row.get("preequilibrationConditionId"), row.text("simulationConditionId")
        for condition in filter(None, pair):
            if condition not in conditions:
                raise ModelError(f"{row.where}: there is no condition '{condition}'{nearest(condition, conditions)}")
        found.append((row, pair))
    pairs = dict.fromkeys(pair for _, pair in found)
    several = len({simulated for _, simulated in pairs}) < len(pairs)
    names = {pair: f"{pair[1]}_after_{pair[0]}" if several and pair[0] else pair[1] for pair in pairs}
    experiments: dict[str, tuple[Period, ...]] = {}
    for (before, simulated), name in names.items():
        changes = conditions[simulated]
        main = Period(0.0, changes, tuple(id_ for id_ in conditions.get(before, ()) if id_ not in changes))
        experiments[name] = (Period(BEFORE, conditions[before]), main) if before else (main,)
    return experiments, [_measurement(row, names[pair]) for row, pair in found]


_NO_TARGET = ("conditionId", "conditionName", "")
