"""Reduced: an objective as a function of fewer unknowns, all others following from them.

An `Embedding` says how: some are eliminated since they are best for all others (`projection`), or one follows from a
quantity that is held (`uncertainty.likelihood`).  The noise model is that of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from odejet.objective.courses import Course
from odejet.objective.evaluation import Aim, Evaluation
from odejet.objective.misfit import Misfit
from odejet.objective.noise_model import NoiseModel, Simulator
from odejet.problem.coordinates import Coordinates
from odejet.problem.measurements import Measurements
from odejet.problem.priors import Truncated
from odejet.problem.unknowns import Unknown


class Embedding(Protocol):
    """How all unknowns follow from some of them."""

    @property
    def kept(self) -> np.ndarray:
        """The entries of z that are left."""

    @property
    def frame(self) -> Coordinates:
        """The coordinates of all unknowns."""

    @property
    def streams(self) -> bool:
        """Whether rows may be reduced as they come."""

    def evaluate(self, whole: Misfit, z: np.ndarray, jacobian: bool, deadline: float, aim: Aim | None) -> Evaluation:
        """Return the evaluation as a function of the unknowns that are left."""

    def tuned(self, whole: Misfit, z: np.ndarray, found: Evaluation) -> tuple[np.ndarray, Evaluation]:
        """Return both with what only the noise depends on at its most likely values."""

    def on(self, whole: Misfit) -> Embedding:
        """Return the embedding for other measurements."""


E = TypeVar("E", bound=Embedding)


@dataclass(frozen=True, eq=False)
class Reduced(NoiseModel, Generic[E]):
    """An objective of all unknowns as a function of those that an embedding leaves."""

    whole: Misfit
    embedding: E

    # --- of the whole ---

    @property
    def simulator(self) -> Simulator:  # type: ignore[override]
        return self.whole.simulator

    @property
    def measurements(self) -> Measurements:  # type: ignore[override]
        return self.whole.measurements

    @property
    def known(self) -> np.ndarray:  # type: ignore[override]
        return self.whole.known

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return self.whole.weighted

    @property
    def priors(self) -> tuple[Truncated, ...]:  # type: ignore[override]
        return self.whole.priors

    @property
    def courses(self) -> tuple[Course, ...]:
        return self.whole.courses

    @property
    def in_blocks(self) -> bool:
        return self.whole.in_blocks

    @property
    def large(self) -> bool:
        return self.embedding.streams and self.whole.large

    # --- as a function of what is left ---

    @property
    def kept(self) -> np.ndarray:
        return self.embedding.kept

    @property
    def unknowns(self) -> Sequence[Unknown]:
        return tuple(self.whole.unknowns[i] for i in self.kept)

    @property
    def frame(self) -> Coordinates:
        """The coordinates of the unknowns that are left."""
        every = self.embedding.frame
        return Coordinates(*(side[self.kept] for side in (every.low, every.high, every.signs, every.units)))

    def evaluate(
        self, z: np.ndarray, jacobian: bool = True, deadline: float = math.inf, aim: Aim | None = None
    ) -> Evaluation:
        """Return residuals at z and, unless it is not wanted, their derivative."""
        return self.embedding.evaluate(self.whole, z, jacobian, deadline, aim)

    def tuned(
        self, z: np.ndarray, found: Evaluation, box: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, Evaluation]:
        """Return z and its evaluation with noise of the size that the residuals have."""
        return self.embedding.tuned(self.whole, z, found)

    @cached_property
    def brief(self) -> Reduced[E]:
        """The objective whose simulations break off where they take many times as long as most do."""
        return Reduced(self.whole.brief, self.embedding)

    def window(self, *arguments: Any, **options: Any) -> Reduced[Any]:
        """Return the same for a part of the measurements."""
        whole = self.whole.window(*arguments, **options)
        return Reduced(whole, self.embedding.on(whole))


AnyMisfit = Misfit | Reduced[Any]
"""What can be minimised: of all unknowns, or of some."""
