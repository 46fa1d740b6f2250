"""Knots: a model whose unknown inputs have knots where the data are, and what is told of all values of such a curve."""

from __future__ import annotations

from typing import Any

from odejet.data import Data, Experiment
from odejet.model import Model
from odejet.model.curves import spread


def with_knots(model: Model, data: Data) -> Model:
    """Return the model with the knots of all its curves; one that every experiment has recorded is a curve no more."""
    if not model.curves:
        return model
    recorded = [name for name in model.curves if all(_records(one, name) for one in data.experiments)]
    starts = [
        one.start if one.started or model.start is None else min(one.start, model.start) for one in data.experiments
    ]
    first, last = min(starts), max(one.end for one in data.experiments)
    curves = {name: one.over(name, first, last) for name, one in model.curves.items() if name not in recorded}
    inputs: dict[str, Any] = {**model.to_dict()["inputs"], **dict.fromkeys(recorded), **curves}
    told = {"bounds": model.bounds, "priors": model.priors, "local": model.local}
    kept = {key: spread(curves, _without(table, recorded), model.fixed) for key, table in told.items()}
    return model.replace(inputs=inputs, **kept, parameters=_declared(model, recorded))


def _records(experiment: Experiment, name: str) -> bool:
    return any(name in table for table in (experiment.inputs, experiment.outputs, experiment.covariates))


def _without(table: Any, recorded: list[str]) -> Any:
    if isinstance(table, tuple):
        return tuple(name for name in table if name not in recorded)
    return {name: value for name, value in table.items() if name not in recorded}


def _declared(model: Model, recorded: list[str]) -> list[str] | None:
    """The parameters that were listed, less the values of curves that are none any more."""
    listed = model.to_dict()["parameters"]
    gone = {own for name in recorded for own in model.curves[name].names(name)}
    return None if listed is None else [name for name in listed if name not in gone]
