"""Experiments in a fit file: what was measured, what drove it, what is known of it and what happened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from odejet.data import Data, Experiment, Series
from odejet.data.arrays import known
from odejet.data.censored import written
from odejet.data.covariate import Covariate
from odejet.data.doses import Dose
from odejet.io.plain import array, count, real, text
from odejet.jets.inputs import Sampled, sampled
from odejet.model import Event
from odejet.model.entries import STEADY
from odejet.model.expressions import Expression, constant


def encode(experiment: Experiment, sds: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "outputs": {
            name: {"times": series.times, "values": series.values, "known_sds": series.sds, "sds": sds[name]}
            | _limits(series)
            for name, series in experiment.outputs.items()
        },
        "inputs": {
            name: {"times": value.times, "values": value.values} if isinstance(value, Sampled) else value
            for name, value in experiment.inputs.items()
        },
        "initial": STEADY if experiment.steady else {name: _known(v) for name, v in experiment.initial.items()},
        "before": {name: _known(value) for name, value in experiment.before.items()},
        "values": {name: _known(value) for name, value in experiment.values.items()},
        "events": [_event(event) for event in experiment.events],
        "doses": [_dose(dose) for dose in experiment.doses],
        "start": experiment.start,
        "covariates": {
            name: {"times": own.times, "values": own.values.tolist()} for name, own in experiment.covariates.items()
        },
    }


def _limits(series: Series) -> dict[str, Any]:
    """The limits of what is censored, as text by position."""
    if series.limits is None:
        return {}
    pairs = zip(series.limits.lower.tolist(), series.limits.upper.tolist(), strict=True)
    return {"censored": {str(i): written(*pair) for i, pair in enumerate(pairs) if pair[0] < pair[1]}}


def _measured(times: np.ndarray, told: Mapping[str, Any]) -> list[Any] | np.ndarray:
    """Values with limits as text where they are censored."""
    values = array(told["values"], (len(times),))
    if "censored" not in told:
        return values
    cells: list[Any] = values.tolist()
    for place, limits in told["censored"].items():
        cells[int(text(place))] = text(limits)
    return cells


def _event(event: Event) -> dict[str, Any]:
    """The arguments of an event, in text."""
    fields = event.to_dict()
    several = [str(time) for time in event.at]
    as_is = ("count", "seen")
    told = {key: value if key in as_is else str(value) for key, value in fields.items() if key not in ("at", "set")}
    told["set"] = {name: str(value) for name, value in event.set.items()}
    return told | ({"at": several} if several else {})


def _dose(dose: Dose) -> dict[str, Any]:
    """The cells of a dose; without an amount the system is emptied."""
    fields = {key: getattr(dose, key) for key in ("time", "amount", "duration", "every")}
    told: dict[str, Any] = {key: None if value is None else _known(value) for key, value in fields.items()}
    return told | {"state": dose.state, "count": dose.count, "steady": dose.steady, "seen": dose.seen}


def _known(expression: Expression) -> float | str:
    """A known value: a number where it is one that comes back the same, or else its text."""
    exact = constant(expression)
    return str(expression) if exact is None else float(exact)


def decode(told: Mapping[str, Any]) -> Experiment:
    outputs, noise = {}, {}
    for name, series in told["outputs"].items():
        times = array(series["times"], (-1,), math.inf)
        outputs[name] = (times, _measured(times, series))
        if series["known_sds"] is not None:
            noise[name] = array(series["known_sds"], (len(times),))
    inputs = {
        name: text(value) if isinstance(value, str) else _samples(name, value) for name, value in told["inputs"].items()
    }
    stated: dict[str, Any] = {key: _table(told.get(key, {})) for key in ("initial", "values", "before")}
    start = real(told["start"]) if "start" in told else None  # older files have none: the first measurement
    stated["events"] = told.get("events", [])
    found = Data(None, outputs, noise, inputs, text(told["name"]), start=start, **stated).experiments[0]
    covariates = {text(name): _covariate(own) for name, own in told.get("covariates", {}).items()}
    return replace(found, doses=tuple(map(_read_dose, told.get("doses", []))), covariates=covariates)


def _covariate(told: Mapping[str, Any]) -> Covariate:
    times, values = array(told["times"], (-1,)), told["values"]
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        if len(values) != len(times):
            raise ValueError("not of this length")
        return Covariate(times, np.array(values))
    return Covariate(times, array(values, (len(times),)))


def _read_dose(told: Mapping[str, Any]) -> Dose:
    time, amount, duration, every = (
        None if told[key] is None else known(key, _stated(told[key]), "the dose's")
        for key in ("time", "amount", "duration", "every")
    )
    repeats = None if told["count"] is None else count(told["count"])
    if time is None or (every is None and repeats is not None):
        raise ValueError("no dose")
    steady = None if told.get("steady") is None else count(told["steady"])
    if steady not in (None, 0, 1, 2) or (steady and every is None):
        raise ValueError("no dose")
    return Dose(time, text(told["state"]), amount, duration, every, repeats, steady, bool(told.get("seen", False)))


def _table(told: Any) -> Any:
    """Known values by name, or the word that stands for them."""
    return told if told == STEADY else {text(name): _stated(value) for name, value in told.items()}


def _stated(value: Any) -> float | str:
    return value if isinstance(value, str) else real(value)


def _samples(name: str, told: Mapping[str, Any]) -> Sampled:
    times = array(told["times"], (-1,))
    return sampled(times, array(told["values"], (len(times),)), f"input '{name}'")
