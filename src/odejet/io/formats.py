"""Formats: files of models by the suffix of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from odejet.errors import ModelError, nearest
from odejet.io.antimony import read_antimony, write_antimony
from odejet.io.sbml import read_sbml
from odejet.model import Model

SBML = (".xml", ".sbml")
ANTIMONY = (".ant",)
SUFFIXES = (".toml", *SBML, *ANTIMONY)
INSTEAD = dict.fromkeys(
    (".yaml", ".yml"), "a PEtab problem is taken by odejet fit and odejet convert; here name the model file inside it"
) | {
    ".csv": "this is a table of data; name the model file (.toml, .xml or .ant), and data after it",
    ".json": "this is a saved fit; odejet report, predict, compare and convert read it",
}
"""What is no model, by suffix, and what to do with it."""


def read_model(path: str | os.PathLike[str], free: Iterable[str] = ()) -> Model:
    """The model in a file; numbers of what is in `free` are not believed.  What has no other suffix is TOML."""
    suffix = Path(path).suffix.lower()
    if suffix in INSTEAD and Path(path).is_file():
        raise ModelError(f"{path}: {INSTEAD[suffix]}")
    if suffix in SBML:
        return read_sbml(path, free)
    if suffix in ANTIMONY:
        return read_antimony(path, free)
    return freed(Model.from_toml(path), free)


def write_model(model: Model, path: str | os.PathLike[str]) -> str:
    """The text of the file that a model becomes, which is written."""
    suffix = Path(path).suffix.lower()
    writers: dict[str, Callable[..., str]] = dict.fromkeys(SBML, Model.to_sbml)
    writers |= dict.fromkeys(ANTIMONY, write_antimony) | {".toml": Model.to_toml}
    if suffix not in writers:
        raise ModelError(f"{path}: the name must end in one of {', '.join(SUFFIXES)}")
    return writers[suffix](model, path)


def freed(model: Model, free: Iterable[str]) -> Model:
    """The model without its numbers for some parameters and initial states."""
    names = tuple(free)
    known: dict[str, Any] = {**model.fixed, **model.initial}
    for name in names:
        if name not in known:
            told = nearest(name, known) or (f"; known are {', '.join(known)}" if known else "; leave it out")
            raise ModelError(f"'{name}' has no number in the model that could be freed{told}")
    if not names:
        return model
    changes: dict[str, Any] = {"parameters": None}
    for table in ("fixed", "initial"):
        kept = {name: value for name, value in getattr(model, table).items() if name not in names}
        changes |= {table: kept} if len(kept) < len(getattr(model, table)) else {}
    return model.replace(**changes)
