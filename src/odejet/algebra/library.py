"""Library: what algebra knows of a model before any data: its verdict, its square systems and their fibres.

All of it depends on the model alone, so it is found once per process and model.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from odejet.algebra.monodromy import Fibre, fibre
from odejet.algebra.select import select
from odejet.algebra.system import SquareSystem
from odejet.errors import ModelError
from odejet.identify import Verdict, identify
from odejet.model import Model

IDENTIFY_SECONDS = 10.0
COUNT_SECONDS = {1: 10.0, 2: 0.5}
FIBRE_SECONDS = {1: 20.0, 2: 2.0}
"""What counting the roots of a system, and then finding its fibre, may take: a pair is a second opinion only."""
MOST_PAIR_ROOTS = 8
"""Two-point systems with more roots cost more than they tell."""


class Library:
    """The algebra of one model; every part is found when it is first asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._reasons: dict[int, str] = {}
        self._fibres: dict[int, Fibre | None] = {}

    @cached_property
    def verdict(self) -> Verdict:
        return identify(self.model, budget=IDENTIFY_SECONDS)

    def judged(self, seconds: float) -> Verdict:
        """The verdict that so many seconds allow; one that they leave undecided is not kept."""
        if seconds >= IDENTIFY_SECONDS or "verdict" in self.__dict__:
            return self.verdict
        found = identify(self.model, budget=seconds)
        if not found.reason:
            self.__dict__["verdict"] = found
        return found

    def fibre(self, points: int) -> Fibre | None:
        """The fibre of the square system of one point or two; None for a reason."""
        if points not in self._fibres:
            self._fibres[points] = self._attempt(points)
        return self._fibres[points]

    def reason(self, points: int) -> str:
        return self._reasons.get(points, "")

    def _attempt(self, points: int) -> Fibre | None:
        try:
            system = select(self.model, points, budget=COUNT_SECONDS[points])
            if points == 2 and not self._worthwhile(system):
                return None
            found = fibre(system, fixed=np.ones(len(system.fixed)), seconds=FIBRE_SECONDS[points])
        except ModelError as error:
            self._reasons[points] = str(error)
            return None
        return found

    def _worthwhile(self, pair: SquareSystem) -> bool:
        """Whether two points need lower derivatives than one, at a bearable number of roots."""
        one = self.fibre(1)
        if one is not None and pair.highest >= one.system.highest:
            self._reasons[2] = "two points need no lower derivatives than one"
        elif pair.roots is None or pair.roots > MOST_PAIR_ROOTS:
            self._reasons[2] = "two points have too many roots"
        return 2 not in self._reasons


@lru_cache(maxsize=32)
def _library(text: str) -> Library:
    return Library(Model.from_toml_text(text))


def library(model: Model) -> Library:
    """The library of a model; models that read the same share one."""
    return _library(model.to_toml())
