"""Task: what is to be fitted, with which options, within which time, and the record of what was done."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odejet.budget import Budget
from odejet.data import Data
from odejet.jets import compilation
from odejet.jets.compilation import now
from odejet.model import Model
from odejet.problem import coordinates
from odejet.problem.coordinates import Bounds, Coordinates
from odejet.problem.misfit import Misfit
from odejet.progress import Progress
from odejet.search.candidates import Census
from odejet.simulate.flow import Flow

LIMITS = {"quick": 60.0, "auto": 120.0, "full": 1200.0}
"""Seconds after which a fit gives up, unless told otherwise; what it tries is counted and mostly ends long before."""

NOTABLE = 0.1
"""Seconds of compiling kernels that are told; below, they were only loaded."""


@dataclass(frozen=True)
class Options:
    """How a fit is searched for."""

    seed: int = 0
    effort: str = "auto"
    refine: bool = True
    weights: str = "likelihood"
    estimators: tuple[str, ...] | None = None
    time_limit: float = LIMITS["auto"]


@dataclass
class Record:
    """What became of everything that was tried, and how long it took; written by all stages, read by none."""

    progress: Progress
    census: Census = field(default_factory=Census)
    stages: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=now)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.progress.stage(name)
        begin, compiled = now(), compilation.seconds()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + now() - begin
            if (compiling := compilation.seconds() - compiled) > NOTABLE:
                self.stages["compile"] = self.stages.get("compile", 0.0) + compiling

    @property
    def seconds(self) -> float:
        return now() - self.began + self.stages.get("compile", 0.0)


@dataclass(frozen=True, eq=False)
class Task:
    """A question to the search; nothing of it changes but the record and what is left of the budget."""

    data: Data
    misfit: Misfit
    bounds: Bounds
    positive: bool | Collection[str]
    options: Options
    budget: Budget
    record: Record

    @property
    def model(self) -> Model:
        return self.misfit.model

    @property
    def left(self) -> float:
        """Seconds before the fit gives up; compiling kernels does not count."""
        return self.budget.seconds

    @property
    def bounded(self) -> bool:
        """Whether anything is known of where the unknowns are."""
        return bool(self.bounds) or bool(self.positive) or bool(self.model.bounds)

    @cached_property
    def flows(self) -> dict[str, Flow]:
        return {experiment.name: experiment.flow(self.model) for experiment in self.data.experiments}

    @cached_property
    def observed(self) -> Model:
        """The model with the outputs that were measured: what the others would tell is not known."""
        outputs = {name: self.model.outputs[name] for name in self.misfit.outputs}
        observed = self.model.replace(outputs=outputs) if len(outputs) < len(self.model.outputs) else self.model
        # A parameter of an output that nobody measured stays an unknown of the fit, if not one of the algebra.
        return observed if observed.parameters == self.model.parameters else self.model

    def coordinates(self, scale: np.ndarray) -> Coordinates:
        """Coordinates within the bounds, for unknowns of about this size."""
        return coordinates.choose(self.misfit.unknowns, scale, self.bounds, self.positive, self.model.bounds)
