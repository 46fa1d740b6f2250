"""Outputs: what is known of a model over time, by the names of its outputs, with the states beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from odejet.errors import nearest
from odejet.model.expressions import spelled
from odejet.simulate.flow import Outcome

V = TypeVar("V")


class Outputs(Mapping[str, V]):
    """A mapping of the outputs; states are in `states`, times that were reached in `times`."""

    called: ClassVar[str] = "it"  # in messages
    outputs: Mapping[str, V]
    states: Mapping[str, V]
    times: np.ndarray
    outcome: Any  # an Outcome: a field of some, and what the trajectory of others says

    def __getitem__(self, name: str) -> V:
        name = spelled(name)
        if name in self.outputs:
            return self.outputs[name]
        hint = f"; states are in {self.called}.states" if name in self.states else nearest(name, self.outputs)
        raise KeyError(f"no output '{name}'{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def success(self) -> bool:
        """Whether every time was reached."""
        return self.outcome is Outcome.COMPLETED

    @property
    def span(self) -> str:
        """The times in words."""
        if not len(self.times):
            return "0 times"
        return f"{len(self.times)} times, t = {self.times.min():.6g} to {self.times.max():.6g}"
