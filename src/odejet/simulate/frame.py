"""Frame: the rows of value and tangents in which all solutions of a flow begin, made once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from odejet.jets.lanes import padded

if TYPE_CHECKING:
    from odejet.model import Model


class Frame(NamedTuple):
    """Rows of value and tangents for parameters and states, without their values."""

    used: int  # lanes: the value, and one for each unknown
    parameters: np.ndarray
    states: np.ndarray
    free: np.ndarray  # parameters that no event sets
    held: tuple[int, ...]  # of those that events set, the positions among all, or -1

    @classmethod
    def of(cls, model: Model, held: tuple[str, ...], unknowns: tuple[str, ...]) -> Frame:
        """Of a model some of whose parameters are `held` by events."""
        lane = {name: 1 + i for i, name in enumerate(unknowns)}
        lanes = padded(1 + len(unknowns))
        every = {name: i for i, name in enumerate(model.parameters)}
        return cls(
            1 + len(unknowns),
            _rows(model.parameters, lane, lanes),
            _rows(tuple(model.states), lane, lanes),
            np.array([i for name, i in every.items() if name not in held], dtype=np.int64),
            tuple(every.get(name, -1) for name in held),
        )


def _rows(names: tuple[str, ...], lane: Mapping[str, int], lanes: int) -> np.ndarray:
    """Rows of names that have a lane among the unknowns, or none."""
    rows = np.zeros((len(names), lanes))
    for i, name in enumerate(names):
        if name in lane:
            rows[i, lane[name]] = 1.0
    return rows
