"""Networks: models in the formats of systems biology, as commands meet them with data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odejet.errors import ModelError

if TYPE_CHECKING:
    from odejet.data import Data
    from odejet.model import Model

MEASURED = "{}_measured"
"""The output that a column named like a state is data of."""


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


def measured(model: Model, data: Data) -> tuple[Model, Data]:
    """The model with an output for every state that has a column, and the data of these outputs.

    A network has no outputs of its own but what its rules compute; its initial values hold at the time zero.
    """
    from odejet.data import Data
    from odejet.io.sbml.network import START

    columns = {name for one in data.experiments for name in one.outputs if name in model.states}
    name_of = {state: MEASURED.format(state) for state in model.states if state in columns}
    outputs = {**model.outputs, **{output: state for state, output in name_of.items()}}
    return model.replace(outputs=outputs, parameters=None), Data.of(
        replace(
            one,
            outputs={name_of.get(name, name): series for name, series in one.outputs.items()},
            start=min(one.start, START),
        )
        for one in data.experiments
    )
