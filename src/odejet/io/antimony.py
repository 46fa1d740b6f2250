"""Antimony: models as people write reaction networks by hand, read and written by way of SBML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from odejet.errors import ModelError
from odejet.extras import needed
from odejet.io.files import read_text, write_all
from odejet.io.sbml import network_of_text
from odejet.io.sbml.building import model_of
from odejet.model import Model

MAX_BYTES = 2_000_000
MAX_NESTING = 200
_IMPORT = re.compile(r"(^|[;\n])\s*import\b")


def read_antimony(path: str | os.PathLike[str], free: Iterable[str] = ()) -> Model:
    """The model in an Antimony file, as `read_sbml` reads it."""
    name = "".join(c for c in Path(path).stem if c.isprintable())[:100]
    return parse(read_text(path, MAX_BYTES), str(path), free, name or None)


def parse(text: str, where: str = "model", free: Iterable[str] = (), name: str | None = None) -> Model:
    """The model in a text."""
    return model_of(network_of_text(sbml_of(text, where), where).replaced({}, free), name=name)


def write_antimony(model: Model, path: str | os.PathLike[str] | None = None) -> str:
    """The model as Antimony, also written to `path` if one is given."""
    antimony = needed("antimony")
    antimony.clearPreviousLoads()
    if antimony.loadSBMLString(model.to_sbml()) < 0:
        raise ModelError(f"{model.name} cannot be written as Antimony ({_reason(antimony)})")
    text: str = antimony.getAntimonyString(antimony.getMainModuleName())
    antimony.clearPreviousLoads()
    if path is not None:
        write_all({os.fspath(path): lambda file: file.write(text.encode())})
    return text


def sbml_of(text: str, where: str) -> str:
    """The SBML of a text in Antimony."""
    if _IMPORT.search(text):
        raise ModelError(f"{where}: import reads other files and is not supported; put everything into one file")
    if "\0" in text:
        raise ModelError(f"{where}: the file holds a NUL character, and is no text")
    depth = deepest = 0
    for mark in re.findall(r"[()]", text):
        depth += 1 if mark == "(" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        raise ModelError(f"{where}: parentheses are nested more than {MAX_NESTING} deep")
    antimony = needed("antimony")
    antimony.clearPreviousLoads()
    if antimony.loadAntimonyString(text) < 0:
        raise ModelError(f"{where}: this is not Antimony: {_reason(antimony)}")
    sbml: str = antimony.getSBMLString(antimony.getMainModuleName())
    antimony.clearPreviousLoads()
    return sbml


def _reason(antimony: Any) -> str:
    return " ".join(str(antimony.getLastError()).split())[:300]
