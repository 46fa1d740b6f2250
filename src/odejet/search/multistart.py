"""Multistart: starts in the box, refined on all of the data.

All of them go to their ends, or only those that stay among the best (see `halving`).  What fits best of several points
at once leads to the optimum of some problems, and on others, where an output that vanishes fits better than a wrong
one, away from it: so a start is in turn any point, and the best of few or of many.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odejet.search.ground import Ground
from odejet.search.halving import HALVING, Halving
from odejet.search.refine import Refined
from odejet.search.strategy import Evidence

PLAIN_GROUPS = (1,)
"""Every point is a start."""


@dataclass(frozen=True)
class Multistart:
    """Starts in the box, refined on all of the data."""

    groups: tuple[int, ...] = (1, 4, 1, 12, 1, 45)  # points of which the best is a start, in turn
    halving: Halving = HALVING
    name: str = "multistart"

    def explore(self, ground: Ground, evidence: Evidence, starts: Iterator[np.ndarray]) -> Iterator[Refined | None]:
        """The ends of starts, the best of each group; a pause after each."""
        race = evidence.race(self.halving)
        for batch in starts:
            entrants = evidence.workers.ahead(self.begun, self.grouped(batch))
            for entrant in entrants:
                if entrant is not None:
                    evidence.foresee(self.name, race, [entrant, *entrants.upcoming])
                    yield from race.enter(*entrant)
                yield None

    def grouped(self, batch: np.ndarray) -> list[np.ndarray]:
        """A batch in groups of which the best is a start."""
        ends = itertools.accumulate(itertools.cycle(self.groups))
        return np.split(batch, list(itertools.takewhile(lambda end: int(end) < len(batch), ends)))

    def begun(self, ground: Ground, group: np.ndarray) -> tuple[np.ndarray, Refined] | None:
        """The best start of a group, and where its first lap ends."""
        start = ground.screen.best(list(group), ground.deadline)
        return None if start is None else (start, ground.roughly(start, self.halving.laps[0]))
