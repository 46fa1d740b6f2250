"""Model files: a model as TOML, with tables named like the arguments of `Model`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odejet.attach import attach
from odejet.io import toml
from odejet.model import Event, Model
from odejet.model.entries import SAMPLED
from odejet.model.expressions import Expression, Number, Sum, number


@attach(Model.from_toml)
def read(kind: type[Model], path: str | os.PathLike[str]) -> Model:
    document = toml.loads(toml.read_text(path), str(path))
    # How subjects differ is no matter of the model: see io/populations.
    document.pop("population", None)
    stem = "".join(c for c in Path(path).stem if c.isprintable())[:100]
    return kind.from_dict({"name": stem or "model", **document}, str(path))


@attach(Model.from_toml_text)
def parse(kind: type[Model], text: str, where: str = "model") -> Model:
    return kind.from_dict(toml.loads(text, where), where)


@attach(Model.to_toml)
def dumps(model: Model, path: str | os.PathLike[str] | None = None) -> str:
    plain: dict[str, Any] = model.to_dict()
    if plain["parameters"] is None:
        del plain["parameters"]
    plain["local"] = list(model.local)
    if not model.local:
        del plain["local"]
    plain["events"] = _written(model.events)
    if not model.events:
        del plain["events"]
    for table in ("states", "outputs", "inputs", "expressions"):
        plain[table] = {key: SAMPLED if value is None else str(value) for key, value in plain[table].items()}
    for table in ("initial", "before", "history"):
        plain[table] = _written(plain[table])
    plain["fixed"] = {key: _literal(number(value)) for key, value in plain["fixed"].items()}
    plain["experiments"] = _written(model.experiments)
    text = toml.dumps(plain)
    if path is not None:
        toml.write_text(path, text)
    return text


def _written(told: Any) -> Any:
    """Known values as text and numbers, in tables as deep as they are."""
    if isinstance(told, Mapping):
        return {key: _written(value) for key, value in told.items()}
    if isinstance(told, list | tuple):
        return [_written(one) for one in told]
    if isinstance(told, Event):
        return _written(told.to_dict())
    return told if isinstance(told, str | int) else _literal(told)


def _literal(value: Expression) -> str:
    """Decimal numbers are written as TOML numbers, anything else as text."""
    match value:
        case Number() | Sum(((-1, Number()),)):
            return toml.Literal(value)
        case _:
            return str(value)
