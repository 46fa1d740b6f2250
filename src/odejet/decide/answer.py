"""Answer: what a search hands over, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from odejet.clock import now
from odejet.decide.advice import advise
from odejet.decide.certificate import Certificate
from odejet.decide.optima import Attempt, Optimum, Provenance
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
NO_TIME = "the time limit was reached before any trajectory reached the last observation; a longer one may help"
UNREFINED = "the time limit was reached before any refinement had begun; a longer one may help"
IMPOSSIBLE = (
    "trajectories reach the last observation, but none was found that the noise allows{reason}; look at what the model "
    "and its events make of the outputs there, or give another noise: one in proportion to what is zero needs a part "
    "of its own, as normal(a + b*y) has"
)
LOOK = 1.0
"""Seconds for a last look at values without a likelihood."""
INTERRUPTED = "the fit was interrupted"
OUT_OF_TIME = "the time limit was reached"
UNSEARCHED = "no search led to these values, only a single start"


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
    rivals: tuple[Refined, ...]  # nearly as likely, and elsewhere
    attempts: tuple[Attempt, ...]  # every start, and where it has led
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

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody ended the search."""
        return INTERRUPTED in self.certificate.reasons


def answer(state: State, interrupted: bool = False) -> Answer:
    """The answer that a state gives."""
    task, best = state.task, state.best
    rivals = state.rivals
    certificate = _certificate(state, len(rivals), interrupted)
    if best is not None and best.is_settled:
        certificate = replace(certificate, adequacy=advise(task.misfit, best.refined, certificate.adequacy))
    if best is None:
        start = state.frame.inside(task.problem.sizes)
        end = refine(task.misfit, start, levels=state.levels, frame=state.frame, time_limit=task.left)
        best = Optimum(task.misfit, end, NO_SEARCH)
        certificate = replace(certificate, reasons=(UNSEARCHED, *certificate.reasons))
    return Answer(
        problem=task.problem,
        frame=state.frame,
        best=best.refined,
        others=tuple(state.others),
        rivals=tuple(rivals),
        attempts=tuple(one.attempt for one in state.optima.found or (best,)),
        certificate=certificate,
        provenance=best.provenance,
        message=certificate.message if math.isfinite(best.cost) else _unlikely(state, best.refined.z),
        verdict=state.verdict,
        census=task.record.census.table(),
        stages=dict(task.record.stages),
        seconds=task.record.seconds,
        candidates=_cloud(state),
        smoothed=state.smoothed,
        options=task.options,
    )


def _unlikely(state: State, z: np.ndarray) -> str:
    """Why no values have a likelihood, as far as those tell with which the search ends."""
    misfit = state.task.misfit
    if not misfit.predicted(z, jacobian=False, deadline=now() + LOOK).complete:
        return NO_TRAJECTORY if state.task.left else NO_TIME
    found = misfit.evaluate(z, jacobian=False, deadline=now() + LOOK)
    if found.residuals is not None and not state.task.left:
        return UNREFINED
    return IMPOSSIBLE.format(reason=f": {found.message}" if found.residuals is None else "")


def _certificate(state: State, rivals: int, interrupted: bool) -> Certificate:
    """The certificate of the last state, with what ended the search and what else there is."""
    certificate = state.certificate
    if interrupted:
        return replace(certificate, granted=False, reasons=(INTERRUPTED,))
    reasons = list(certificate.reasons)
    if not certificate.granted and not state.task.left:
        reasons.insert(0, OUT_OF_TIME)
    if rivals:
        which = "another optimum is" if rivals == 1 else f"{rivals} other optima are"
        reasons.append(f"{which} nearly as likely")
    reasons += state.limits
    if (state.is_exact or state.explains_data) and state.missing > 0:
        found = f"{state.counted - state.missing} of {state.counted}"
        reasons.append(f"{found} solutions of the model were found; the others may be complex")
    return replace(certificate, reasons=tuple(reasons))


def _cloud(state: State) -> Candidates | None:
    if not state.cloud:
        return None
    sources = tuple(c.shot.estimator or c.start for c in state.cloud)
    return Candidates(np.array([c.z for c in state.cloud]), np.array([c.cost for c in state.cloud]), sources)
