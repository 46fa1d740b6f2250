"""Answer: what a search hands over, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from odejet.decide.certificate import Certificate
from odejet.decide.optima import Optimum, Provenance
from odejet.decide.state import State
from odejet.decide.task import Options
from odejet.decide.verdict import Identifiability
from odejet.problem import Problem
from odejet.problem.coordinates import Coordinates
from odejet.search.refine import Refined, refine
from odejet.smooth import Smoothed

NO_SEARCH = Provenance("none")
"""Of values that no search has led to."""

NO_TRAJECTORY = "no trajectory of the model reaches the last observation; bounds or other data may help"
INTERRUPTED = "the fit was interrupted"
OUT_OF_TIME = "the time limit was reached"


@dataclass(frozen=True, eq=False)
class Candidates:
    """The cloud of candidates: one row of unknowns each, with its misfit and who proposed it."""

    values: np.ndarray
    costs: np.ndarray
    sources: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """The best optimum, what speaks for and against it, and what was tried on the way."""

    problem: Problem
    frame: Coordinates
    best: Refined
    others: tuple[Refined, ...]  # as good, but elsewhere
    certificate: Certificate
    provenance: Provenance
    message: str
    verdict: Identifiability | None
    census: Mapping[str, Mapping[str, int]]  # stage -> what became of it -> count
    stages: Mapping[str, float]  # stage -> seconds
    seconds: float
    candidates: Candidates | None
    smoothed: Mapping[tuple[str, str], Smoothed]
    options: Options


def answer(state: State, interrupted: bool = False) -> Answer:
    """The answer that a state gives."""
    task = state.task
    best, certificate = state.best, state.certificate
    if best is None:
        start = state.frame.inside(np.ones(len(task.misfit.unknowns)))
        best = Optimum(task.misfit, refine(task.misfit, start, levels=state.levels, frame=state.frame), NO_SEARCH)
    if interrupted:
        certificate = replace(certificate, granted=False, reasons=(INTERRUPTED,))
    elif not certificate.granted and not task.left:
        certificate = replace(certificate, reasons=(OUT_OF_TIME, *certificate.reasons))
    verdict = state.verdict
    return Answer(
        problem=task.problem,
        frame=state.frame,
        best=best.refined,
        others=tuple(state.optima.others(state.frame, None if verdict is None else verdict.solutions)),
        certificate=certificate,
        provenance=best.provenance,
        message=certificate.message if math.isfinite(best.cost) else NO_TRAJECTORY,
        verdict=verdict,
        census=task.record.census.table(),
        stages=dict(task.record.stages),
        seconds=task.record.seconds,
        candidates=_cloud(state),
        smoothed=state.smoothed,
        options=task.options,
    )


def _cloud(state: State) -> Candidates | None:
    if not state.cloud:
        return None
    sources = tuple(c.shot.estimator or c.start for c in state.cloud)
    return Candidates(np.array([c.z for c in state.cloud]), np.array([c.cost for c in state.cloud]), sources)
