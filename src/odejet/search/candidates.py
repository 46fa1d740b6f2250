"""Candidates: values of all unknowns that the algebra proposes, ranked by how well they explain the data.

Steps 6 and 7 of the paper.  Roots at shooting times are real or nearly so; each is integrated back to the first
observation, held against the user's bounds, and scored by the noise-weighted misfit of its whole trajectory.  Roots
that agree count as one, and medians of the best are candidates too.  Whatever is dropped is counted with its reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odejet.algebra import monodromy
from odejet.algebra.monodromy import Fibre
from odejet.algebra.solve import solve
from odejet.algebra.system import Targets
from odejet.budget import Budget
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.shooting import Shot
from odejet.simulate.flow import Flow, Outcome

NEARLY_REAL = 0.2
"""Noise turns pairs of real roots into complex ones: below this share of imaginary parts the real parts count."""

SLACK = 1.5
"""A root outside the bounds by less than this factor is moved onto them, not dropped: noise moves roots."""

ALIKE = 0.02
"""Candidates that agree to this, relative to each unknown, are one."""

IMAGE = 1e-7
"""Roots of one target whose misfits differ by no more, relatively, have the same trajectory."""

BRIEF: dict[str, Any] = {"max_steps": 1000, "stiff_steps": 0}
"""What a trajectory back to the first observation may cost: backward in time, a stiff one leads nowhere."""

MEDIANS = (5, 15)
"""Componentwise medians are taken over so many of the best candidates."""


@dataclass(frozen=True)
class Root:
    """What the algebra says of one experiment by itself: its states at the start and its parameters, by name."""

    values: Mapping[str, float]
    shot: Shot


@dataclass(frozen=True)
class Candidate:
    """Values of all unknowns, and where they come from."""

    z: np.ndarray
    shot: Shot
    start: str = "algebra"
    cost: float = float("inf")
    part: str = ""  # of the measurements that led to it, if not all did


@dataclass
class Census:
    """What became of everything that was proposed, by stage and reason."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, stage: str, reason: str, count: int = 1) -> None:
        if count:
            self.counts.setdefault(stage, Counter())[reason] += count

    def table(self) -> dict[str, dict[str, int]]:
        return {stage: dict(reasons) for stage, reasons in self.counts.items()}


def roots(
    fibre: Fibre,
    shots: Sequence[Shot],
    targets: Targets,
    flow: Flow,
    start: float,
    census: Census,
    seed: int,
    hubs: int,
    budget: Budget | None = None,
    known: Mapping[str, float] | None = None,
) -> list[Root]:
    """States at `start` and parameters from all roots of all targets that the budget allows to be found.

    `known` are values of parameters that the equations do not have.
    """
    if not shots:
        return []
    single = fibre.system.points == 1
    times = np.array([shot.times[0] for shot in shots]) if single else None
    carrier = flow if single else None
    found = solve(fibre, targets, times=times, flow=carrier, known=known, seed=seed, hubs=hubs, budget=budget)
    for outcome, count in found.census.items():
        census.add("paths", outcome, count)
    result = []
    for shot, solution in zip(shots, found, strict=True):
        for root in solution.roots:
            size = np.maximum(np.abs(root), 1e-300)
            if np.any(np.abs(root.imag) > NEARLY_REAL * size):
                census.add("roots", "complex")
                continue
            everything = fibre.system.everything(root.real[None], targets.fixed)[0]
            values = _back(fibre, everything, shot, flow, start, known or {})
            if values is None:
                census.add("roots", "no trajectory back to the start")
                continue
            census.add("roots", "candidate")
            result.append(Root(values, shot))
    return result


def _back(
    fibre: Fibre, everything: np.ndarray, shot: Shot, flow: Flow, start: float, others: Mapping[str, float]
) -> dict[str, float] | None:
    """All states at the start and the parameters, by name; None where the solution does not reach it."""
    joined = fibre.system.joined
    states = everything[: len(joined.model.states)]
    found = zip(joined.together.parameters, everything[len(joined.together.states) :].tolist(), strict=True)
    known = {**others, **dict(found)}
    if shot.times[0] != start:
        # What only an initial value depends on does not matter on the way.
        parameters = [known.get(name, 0.0) for name in flow.model.parameters]
        run = flow.run(parameters, states, [start], start=shot.times[0], sensitivities=False, free_states=True, **BRIEF)
        if run.outcome is not Outcome.COMPLETED or not len(run.states):
            return None
        states = run.states[0, :, 0]
    values = dict(zip(joined.model.states, np.asarray(states).tolist(), strict=True)) | known
    return values if all(map(math.isfinite, values.values())) else None


def within(
    candidates: Sequence[Candidate], frame: Coordinates, census: Census
) -> tuple[list[Candidate], list[Candidate]]:
    """Candidates inside the bounds, or so little outside that noise explains it; and the others, moved onto them."""
    low = np.where(frame.low > 0, frame.low / SLACK, frame.low - (SLACK - 1) * np.abs(frame.low))
    high = np.where(frame.high > 0, frame.high * SLACK, frame.high + (SLACK - 1) * np.abs(frame.high))
    # A lower bound near zero stands for a sign: noise may carry a small quantity across it.
    small = (frame.low >= 0) & (frame.low <= 1e-3 * np.minimum(frame.high, 1.0))
    low = np.where(small, -0.05 * np.minimum(frame.high, 1.0), low)
    inside: list[Candidate] = []
    outside: list[Candidate] = []
    for candidate in candidates:
        fits = bool(np.all((candidate.z >= low) & (candidate.z <= high)))
        moved = replace(candidate, z=frame.inside(candidate.z))
        (inside if fits else outside).append(moved)
    census.add("candidates", "outside the bounds", len(outside))
    return inside, outside


def ranked(
    candidates: Sequence[Candidate],
    misfit: Misfit,
    frame: Coordinates,
    levels: np.ndarray,
    census: Census,
    deadline: float = math.inf,
) -> list[Candidate]:
    """One of each kind by rising misfit, with medians of the best among them.

    The best is followed by one like it from another time, or by those from parts of the measurements, if there are any:
    to see that all lead to the same end.
    """
    scored = _scored(candidates, misfit, levels, census, deadline)
    medians = []
    for count in MEDIANS:
        if len(scored) >= min(MEDIANS):
            middle = frame.back(np.median(frame.to(np.array([c.z for c in scored[:count]])), axis=0))
            medians.append(Candidate(middle, Shot((), ""), "median"))
    census.add("candidates", "median", len(medians))
    everything = sorted([*scored, *_scored(medians, misfit, levels, census, deadline)], key=lambda c: c.cost)
    kept: list[Candidate] = []
    twins: list[Candidate] = []
    for candidate in everything:
        if not any(distance(candidate.z, other.z) <= ALIKE for other in kept):
            kept.append(candidate)
        elif distance(candidate.z, kept[0].z) <= ALIKE and _tells(candidate, kept[0], twins):
            twins.append(candidate)
        else:
            census.add("candidates", "like a better one")
    census.add("candidates", "ranked", len(kept))
    census.add("candidates", "from elsewhere like the best", len(twins))
    return [*kept[:1], *twins, *kept[1:]]


def _tells(candidate: Candidate, best: Candidate, twins: Sequence[Candidate]) -> bool:
    """Whether it is news that a candidate is like the best: it comes from another time, or other measurements."""
    if candidate.part:
        return all(candidate.part != other.part for other in (best, *twins))
    return not twins and bool(candidate.shot.times and best.shot.times) and candidate.shot.times != best.shot.times


def originals(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Without images: roots that a symmetry of the model takes to a better one lead to the same end."""
    kept: list[Candidate] = []
    for candidate in ranked:
        same = [c for c in kept if (c.shot, c.part) == (candidate.shot, candidate.part)]
        alike = [c for c in same if math.isclose(c.cost, candidate.cost, rel_tol=IMAGE)]
        if not any(distance(c.z, candidate.z) > ALIKE for c in alike):
            kept.append(candidate)
    return kept


def _scored(
    candidates: Sequence[Candidate], misfit: Misfit, levels: np.ndarray, census: Census, deadline: float
) -> list[Candidate]:
    costs = misfit.screen([c.z for c in candidates], levels, deadline) if candidates else np.zeros(0)
    lost = ~np.isfinite(costs)
    census.add("candidates", "no trajectory to the last observation", int(lost.sum()))
    order = [i for i in np.argsort(costs, kind="stable") if not lost[i]]
    return [replace(candidates[i], cost=float(costs[i])) for i in order]


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of two candidates, relative to each unknown."""
    return monodromy.distance(one, other, least=1e-12)
