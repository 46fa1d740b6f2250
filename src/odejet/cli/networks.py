"""Networks: models in the formats of systems biology, as commands meet them with data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odejet.errors import ModelError

if TYPE_CHECKING:
    from odejet.model import Model


def is_network(path: str) -> bool:
    from odejet.io.formats import ANTIMONY, SBML

    return Path(path).suffix.lower() in (*SBML, *ANTIMONY)


def is_problem(path: str) -> bool:
    """Whether a file is one of PEtab, which describes a problem and not a model alone."""
    return Path(path).suffix.lower() in (".yaml", ".yml")


def check_unknowns(model: Model, path: str) -> None:
    """Networks come with a number for everything; a fit needs something to find."""
    if not model.unknowns:
        some = next(iter((*list(model.fixed)[::-1], *model.initial)), "k1")
        raise ModelError(f"{path}: all numbers in this file are taken as known; say what to find, as in --free {some}")
