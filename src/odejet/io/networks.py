"""Networks: models in the formats of systems biology, as they meet data: a network has states and no outputs."""

from __future__ import annotations

from dataclasses import replace

from odejet.data import Data
from odejet.model import Model

MEASURED = "{}_measured"
"""The output that a column named like a state is data of."""


def measured(model: Model, data: Data) -> tuple[Model, Data]:
    """The model with an output for every state that has a column, and the data of these outputs.

    A network has no outputs of its own but what its rules compute.
    """
    columns = {name for one in data.experiments for name in one.outputs if name in model.states}
    name_of = {state: MEASURED.format(state) for state in model.states if state in columns}
    outputs = {**model.outputs, **{output: state for state, output in name_of.items()}}
    return model.replace(outputs=outputs, parameters=None), Data.of(
        replace(
            one,
            outputs={name_of.get(name, name): series for name, series in one.outputs.items()},
        )
        for one in data.experiments
    )
