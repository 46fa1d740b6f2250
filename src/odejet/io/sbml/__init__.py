"""SBML: reaction networks as systems biology writes them, read as models and written again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from odejet.io.sbml.building import model_of
from odejet.io.sbml.document import read_document, understood
from odejet.io.sbml.network import Network
from odejet.io.sbml.semantics import network
from odejet.model import Model


def read_network(path: str | os.PathLike[str]) -> Network:
    """What an SBML file says, before it is decided what is known and what is to be found."""
    document = read_document(path)
    return network(document, str(path), _title(document, Path(path).stem))


def network_of_text(text: str, where: str = "model") -> Network:
    """As `read_network`, of a document that is already in memory."""
    document = understood(text.encode(), where)
    return network(document, where, _title(document, where))


def read_sbml(path: str | os.PathLike[str], free: Iterable[str] = ()) -> Model:
    """The model in an SBML file; numbers in it are known, besides those of the ids in `free`.

    States carry the ids of species (their concentrations, or amounts where the file says so) and of whatever else
    moves; parameters with a number are fixed.  What assignment rules determine are the outputs.
    """
    return model_of(read_network(path).replaced({}, free))


def _title(document: object, stem: str) -> str:
    model = document.getModel()  # type: ignore[attr-defined]
    name = model.getName() or model.getId() or stem
    return "".join(c for c in name if c.isprintable())[:100].strip() or "model"
