"""Frame: the rows of value and tangents in which all solutions of a flow begin, made once.

Unknowns that move no state have no tangents there; trajectories have one for each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from odejet.jets.lanes import padded

if TYPE_CHECKING:
    from odejet.model import Model


class Frame(NamedTuple):
    """Rows of value and tangents for parameters and states, without their values."""

    lanes: np.ndarray  # of the value and of all unknowns, those that the rows have
    every: int  # how many there are
    parameters: np.ndarray
    states: np.ndarray
    free: np.ndarray  # parameters that no event sets
    held: tuple[int, ...]  # of those that events set, the positions among all, or -1

    @classmethod
    def of(cls, model: Model, held: tuple[str, ...], unknowns: tuple[str, ...], unfelt: Collection[str]) -> Frame:
        """Of a model some of whose parameters are `held` by events, and some are not felt by solutions."""
        felt = [i for i, name in enumerate(unknowns) if name not in unfelt]
        lane = {unknowns[i]: 1 + place for place, i in enumerate(felt)}
        lanes = padded(1 + len(felt))
        every = {name: i for i, name in enumerate(model.parameters)}
        return cls(
            np.array([0, *(1 + i for i in felt)]),
            1 + len(unknowns),
            _rows(model.parameters, lane, lanes),
            _rows(tuple(model.states), lane, lanes),
            np.array([i for name, i in every.items() if name not in held], dtype=np.int64),
            tuple(every.get(name, -1) for name in held),
        )

    @property
    def used(self) -> int:
        return len(self.lanes)

    def has(self, tangents: Sequence[np.ndarray]) -> bool:
        """Whether rows of tangents by all unknowns are zero by those that are missing here."""
        return self.used == self.every or not np.delete(tangents, self.lanes[1:] - 1, axis=1).any()

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """Rows of these lanes, padded, as rows of all."""
        rows = rows[..., : self.used]
        if self.used == self.every:
            return rows
        found = np.zeros((*rows.shape[:-1], self.every))
        found[..., self.lanes] = rows
        return found


def _rows(names: tuple[str, ...], lane: Mapping[str, int], lanes: int) -> np.ndarray:
    """Rows of names that have a lane among the unknowns, or none."""
    rows = np.zeros((len(names), lanes))
    for i, name in enumerate(names):
        if name in lane:
            rows[i, lane[name]] = 1.0
    return rows
