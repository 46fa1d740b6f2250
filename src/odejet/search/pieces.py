"""Pieces: stretches of experiments as experiments of their own, where nobody knows when events happen.

A condition such as v > 30 happens when the solution says so, and a solution that is a little wrong is soon wrong
altogether.  Where the data show by jumps when something has happened, the stretches between are fitted first, each
from a start of its own, by a model without events.  The parameters are then known, and so are the states just before
and just after each jump, which tell what only the events depend on.  This is multiple shooting (Bock 1983), with the
nodes where the events are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.data import Data, Experiment
from odejet.errors import DataError, ModelError
from odejet.model import Event, Model
from odejet.model.expressions import names
from odejet.problem import Problem
from odejet.problem.stretches import stretches
from odejet.problem.unknowns import find
from odejet.search.proposals import solved
from odejet.simulate.flow import Outcome

MOST = 8
"""Stretches of an experiment, the first ones: more cost time and tell a start no better."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """A problem whose experiments are stretches of another's, in the order of its experiments and of time."""

    problem: Problem
    owners: tuple[int, ...]  # the experiment of which each is a part

    def fractions(self, whole: Problem) -> list[float]:
        """How much of an experiment has passed when a stretch ends, in order."""
        found = []
        for part, owner in zip(self.problem.experiments, self.owners, strict=True):
            own = whole.experiments[owner]
            found.append((part.end - own.start) / (own.end - own.start))
        return sorted(fraction for fraction in found if fraction < 1)


def pieces(problem: Problem, most: int = MOST) -> Pieces | None:
    """The first stretches of a problem as a problem; None where they tell nothing."""
    events = [event for condition in problem.conditions for event in condition.model.events]
    if not any(event.when is not None for event in events) or problem.model.steady:
        return None
    if any(name not in problem.model.states for event in events for name in event.set):
        return None
    parts: list[Experiment] = []
    owners: list[int] = []
    for number, condition in enumerate(problem.conditions):
        own = condition.experiment
        for k, series in enumerate(stretches(condition)[:most]):
            first = own.start if not k else min(float(one.times[0]) for one in series.values())
            initial = {} if k else {**problem.model.initial, **own.initial}
            known: dict[str, Any] = {"initial": initial, "events": (), "doses": ()}
            name = f"{own.name}, stretch {k + 1}"
            parts.append(replace(own, name=name, outputs=series, start=first, **known))
            owners.append(number)
    if len(parts) < 2:
        return None
    model = _without_events(problem.model)
    try:
        posed = Problem(
            model,
            Data.of(parts),
            bounds=_bounds(problem, model),
            positive=[name for name in model.parameters if _is_positive(problem, name)],
            noise=problem.noise,
            local=[name for name in problem.local if name in model.parameters],
        )
    except (DataError, ModelError):
        return None  # too few measurements between events, or a stretch that tells nothing
    return Pieces(posed, tuple(owners))


def _without_events(model: Model) -> Model:
    tables = (model.states, model.outputs)
    used = {name for table in tables for value in table.values() for name in names(value)}
    return model.replace(
        events=(),
        initial={},
        experiments={},
        parameters=[name for name in (*model.parameters, *model.fixed) if name in used],
        fixed={name: value for name, value in model.fixed.items() if name in used},
        bounds={name: pair for name, pair in model.bounds.items() if name in used and name not in model.states},
        local=[name for name in model.local if name in used],
        priors={},
    )


def _bounds(problem: Problem, model: Model) -> dict[str, tuple[float, float]] | None:
    """Bounds of parameters; those of initial states are of the start of the whole."""
    places = {name: _place(problem, name) for name in model.parameters}
    pairs = list(problem.bounds.values())
    found = {name: pairs[place] for name, place in places.items() if place is not None}
    return {name: pair for name, pair in found.items() if np.isfinite(pair).any()} or None


def _is_positive(problem: Problem, name: str) -> bool:
    place = _place(problem, name)
    return place is not None and problem.bounds[problem.unknowns[place]][0] >= 0


def _place(problem: Problem, name: str) -> int | None:
    """Where an unknown stands, if there is just one of the name."""
    try:
        return find(problem.layout, name)
    except KeyError:
        return None


# --- a start for the whole ---


def start(whole: Problem, parts: Pieces, z: np.ndarray) -> np.ndarray:
    """Values of all unknowns of a problem from those of its stretches."""
    told: list[dict[str, float]] = []
    for number, condition in enumerate(whole.conditions):
        mine = [i for i, owner in enumerate(parts.owners) if owner == number]
        values: dict[str, float] = {name: float(value) for name, value in condition.model.fixed.items()}
        for i in mine[::-1]:  # the first stretch has the states of the start
            parameters, states = parts.problem.values_in(i, z)
            values |= parameters | states
        missing = [name for name in condition.model.parameters if name not in values]
        jumps = [_jump(parts.problem, one, other, z) for one, other in itertools.pairwise(mine)]
        found: dict[str, list[float]] = {}
        for event in condition.model.events:
            for before, after in (jump for jump in jumps if jump is not None):
                for name, value in _solved(event, before, after, values, missing).items():
                    found.setdefault(name, []).append(value)
        told.append({**values, **{name: float(np.median(several)) for name, several in found.items()}})
    entries = whole.layout.scatter(told)
    return np.where(np.isnan(entries), whole.sizes, entries)


Jump = tuple[Mapping[str, float], Mapping[str, float]]


def _jump(problem: Problem, one: int, other: int, z: np.ndarray) -> Jump | None:
    """The states at the end of a stretch and at the start of the next."""
    condition, layout = problem.conditions[one], problem.layout
    own, experiment = condition.model, condition.experiment
    parameters, states = (layout.gather(one, z, table) for table in (own.parameters, own.states))
    run = problem.flows[one].run(parameters, states, [experiment.end], start=experiment.start, sensitivities=False)
    if run.outcome is not Outcome.COMPLETED:
        return None
    after = problem.values_in(other, z)[1]
    return dict(zip(own.states, run.states[0, :, 0].tolist(), strict=True)), after


def _solved(
    event: Event,
    before: Mapping[str, float],
    after: Mapping[str, float],
    known: Mapping[str, float],
    missing: Sequence[str],
) -> dict[str, float]:
    """What an event depends on alone, from the states before and after it."""
    found = {}
    for name, value in event.set.items():
        asked = [other for other in dict.fromkeys(names(value)) if other in missing]
        if len(asked) == 1 and name in after:
            answer = solved(value, asked[0], after[name], {**known, **before})
            if answer is not None and math.isfinite(answer):
                found[asked[0]] = answer
    return found
