"""Pieces: stretches of experiments as experiments of their own, where nobody knows when events happen.

A condition such as v > 30 happens when the solution says so, and a solution that is a little wrong is soon wrong
altogether.  Where the data show by jumps when something has happened, the stretches between are fitted first, each
from a start of its own, by a model without events.  The parameters are then known, and so are the states just before
and just after each jump, which tell what only the events depend on.  This is multiple shooting (Bock 1983), with the
nodes where the events are; `ties` makes one solution of the pieces.
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
from odejet.model.cumulated import has_windows
from odejet.model.expressions import Comparison, Symbol, evaluate, names
from odejet.model.modes import difference
from odejet.model.transform import rewritten
from odejet.problem import Problem
from odejet.problem.conditions import Condition
from odejet.problem.stretches import stretches
from odejet.problem.unknowns import find
from odejet.search.proposals import solved
from odejet.simulate.flow import Outcome

MOST = 8
"""Stretches of an experiment, the first ones: more cost time and tell a start no better."""


@dataclass(frozen=True)
class MultipleShooting:
    """Fits of the stretches between events that the data show, from which one solution through all of them follows.

    The plan has how many stretches of an experiment are fitted, and with how much effort, one after the other: where
    the last ones hide events, fewer do better.  Around an optimum other starts are drawn within its errors: a misfit
    has a kink, if not a jump, wherever an event passes a measurement, and so small valleys side by side.
    """

    plan: tuple[tuple[int, str], ...] = ((MOST, "quick"), (MOST // 2, "quick"), (2, "quick"), (MOST, "auto"))
    per_start: float = 0.25  # the part of the time of a rung that one fit of stretches may take
    alone: int = 4  # stretches that are fitted alone, the longest ones
    nearby: int = 10  # starts around an optimum, if they end in one valley
    most_nearby: int = 32  # and if there are several
    farthest: float = 0.5  # logarithmic units that these go at most in a direction
    name: str = "multiple shooting"


TINY = 1e-300
"""What a change of nothing is compared with."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """A problem whose experiments are stretches of another's, in the order of its experiments and of time."""

    problem: Problem
    owners: tuple[int, ...]  # the experiment of which each is a part

    @property
    def later(self) -> tuple[int, ...]:
        """Stretches that follow on another of the same experiment."""
        return tuple(i for i, owner in enumerate(self.owners) if i and self.owners[i - 1] == owner)

    def only(self, chosen: Sequence[int]) -> Pieces | None:
        """Some of the stretches alone; None where these tell nothing of some parameter."""
        problem = self.problem
        try:
            posed = Problem(
                problem.model,
                Data.of(problem.experiments[i] for i in chosen),
                bounds=problem.given_bounds,
                positive=problem.positive,
                noise=problem.noise,
                local=problem.local,
            )
            posed.check_points()
        except (DataError, ModelError):
            return None
        return Pieces(posed, tuple(self.owners[i] for i in chosen))

    def spread(self, some: Pieces, z: np.ndarray) -> np.ndarray:
        """Values for all stretches from those of some: states begin alike after every event, but what is measured."""
        known = [some.problem.values_in(i, z) for i in range(len(some.owners))]
        parameters = {name: value for values, _ in known[::-1] for name, value in values.items()}
        states = {name: value for _, values in known[::-1] for name, value in values.items()}
        names_of = [experiment.name for experiment in some.problem.experiments]
        told = []
        for condition in self.problem.conditions:
            own = condition.experiment
            if own.name in names_of:
                values, exact = known[names_of.index(own.name)]
                told.append({**parameters, **values, **exact})
            else:
                told.append({**parameters, **states, **_measured(condition)})
        entries = self.problem.layout.scatter(told)
        return np.where(np.isnan(entries), self.problem.sizes, entries)

    def ahead(self, whole: Problem) -> list[float]:
        """How much of an experiment has passed when further stretches end that these do not have, in order."""
        found = []
        for number, condition in enumerate(whole.conditions):
            own = condition.experiment
            last = max(
                (self.problem.experiments[i].end for i, owner in enumerate(self.owners) if owner == number),
                default=own.end,
            )
            further = [max(float(one.times[-1]) for one in series.values()) for series in stretches(condition)]
            found += [(end - own.start) / (own.end - own.start) for end in further if last < end < own.end]
        return sorted(set(found))


def pieces(problem: Problem, most: int = MOST) -> Pieces | None:
    """The first stretches of a problem as a problem; None where they tell nothing."""
    events = [event for condition in problem.conditions for event in condition.model.events]
    if not any(event.when is not None for event in events) or problem.model.steady:
        return None
    if any(name not in problem.model.states for event in events for name in event.set):
        return None
    if has_windows(problem.model):  # which may begin in one stretch and end in the next
        return None
    parts: list[Experiment] = []
    owners: list[int] = []
    model = _without_events(problem.model)
    if model is None:
        return None
    used = {*model.parameters, *model.fixed}
    for number, condition in enumerate(problem.conditions):
        own = condition.experiment
        for k, series in enumerate(stretches(condition)[:most]):
            first = own.start if not k else min(float(one.times[0]) for one in series.values())
            initial = {} if k else {**problem.model.initial, **own.initial}
            known: dict[str, Any] = {
                "initial": {name: value for name, value in initial.items() if name in model.states},
                "values": {name: value for name, value in own.values.items() if name in used},
                "inputs": {name: value for name, value in own.inputs.items() if name in model.inputs},
                "events": (),
                "doses": (),
            }
            name = f"{own.name}, stretch {k + 1}"
            parts.append(replace(own, name=name, outputs=series, start=first, **known))
            owners.append(number)
    if len(parts) < 2:
        return None
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


def _measured(condition: Condition) -> dict[str, float]:
    """States that an output shows as they are, at the start."""
    own, found = condition.model, {}
    for name, series in condition.experiment.outputs.items():
        if isinstance(shown := own.outputs[name], Symbol) and shown.name in own.states:
            found[shown.name] = float(series.values[0])
    return found


def _without_events(model: Model) -> Model | None:
    """What outputs depend on between events, if there is anything; whatever acts through events alone is left out."""
    seen, waiting = set[str](), [name for value in model.outputs.values() for name in names(value)]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += names(model.states[name]) if name in model.states else ()
    if not seen & model.states.keys():
        return None
    return rewritten(
        model,
        states={name: value for name, value in model.states.items() if name in seen},
        inputs={name: value for name, value in model.to_dict()["inputs"].items() if name in seen},
        initial={},
        before={},
        events=(),
        bounds={name: pair for name, pair in model.bounds.items() if name not in model.states},
        local=model.local,
        noise=model.noise,
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
    """Values of the unknowns of a problem from those of its stretches; NaN where these do not tell them."""
    told: list[dict[str, float]] = []
    for number, condition in enumerate(whole.conditions):
        mine = [i for i, owner in enumerate(parts.owners) if owner == number]
        values: dict[str, float] = {name: float(value) for name, value in condition.model.fixed.items()}
        for i in mine[::-1]:  # the first stretch has the states of the start
            parameters, states = parts.problem.values_in(i, z)
            values |= parameters | states
        missing = [name for name in condition.model.parameters if name not in values]
        pairs = [jump_between(parts.problem, one, other, z) for one, other in itertools.pairwise(mine)]
        jumps = [pair for pair in pairs if pair is not None]
        told.append({**values, **_told_by_events(condition.model.events, jumps, values, missing)})
    return whole.layout.scatter(told)


Jump = tuple[Mapping[str, float], Mapping[str, float]]


def jump_between(problem: Problem, one: int, other: int, z: np.ndarray) -> Jump | None:
    """The states at the end of a stretch and at the start of the next."""
    found = ends(problem, one, z)
    return None if found is None else (found[1], problem.values_in(other, z)[1])


def ends(problem: Problem, number: int, z: np.ndarray) -> Jump | None:
    """The states at the start and at the end of a stretch; None where no solution goes through it."""
    experiment = problem.experiments[number]
    found = states_at(problem, number, z, [experiment.start, experiment.end])
    return None if found is None else (found[0], found[1])


def states_at(problem: Problem, number: int, z: np.ndarray, times: Sequence[float]) -> list[dict[str, float]] | None:
    """The states of a stretch at times, also after its end; None where no solution gets there."""
    condition, layout = problem.conditions[number], problem.layout
    own, experiment = condition.model, condition.experiment
    parameters, states = (layout.gather(number, z, table) for table in (own.parameters, own.states))
    run = problem.flows[number].run(parameters, states, times, start=experiment.start, sensitivities=False)
    if run.outcome is not Outcome.COMPLETED:
        return None
    return [dict(zip(own.states, row.tolist(), strict=True)) for row in run.states[:, :, 0]]


def _told_by_events(
    events: Sequence[Event], jumps: Sequence[Jump], known: Mapping[str, float], missing: Sequence[str]
) -> dict[str, float]:
    """What only events depend on, from the states before and after each."""
    happened: dict[Event, list[Jump]] = {}
    for jump in jumps:
        if (event := likeliest(events, jump, known)) is not None:
            happened.setdefault(event, []).append(jump)
    found: dict[str, list[float]] = {}
    for event, own in happened.items():
        for before, after in own:
            for name, value in _solved(event, before, after, known, missing).items():
                found.setdefault(name, []).append(value)
    told = {name: float(np.median(several)) for name, several in found.items()}
    for event, own in happened.items():
        told |= _threshold(event, [before for before, _ in own], {**known, **told}, missing)
    return told


def likeliest(events: Sequence[Event], jump: Jump, known: Mapping[str, float]) -> Event | None:
    """The event that explains a jump best, of those that nobody knows the time of."""
    unforeseen = [event for event in events if event.when is not None]
    return min(unforeseen, key=lambda event: _strangeness(event, jump, known), default=None)


def _strangeness(event: Event, jump: Jump, known: Mapping[str, float]) -> float:
    """How far the states after a jump are from what an event makes of those before it, as far as that is known."""
    before, after = jump
    total = 0.0
    for name, value in after.items():
        expected = before.get(name, value)
        if name in event.set:
            try:
                expected = float(evaluate(event.set[name], {**known, **before}, math))
            except (ArithmeticError, ValueError, KeyError):
                continue  # it depends on what only events tell
        total += abs(value - expected) / max(abs(value), abs(before.get(name, 0.0)), TINY)
    return total


def _solved(
    event: Event,
    before: Mapping[str, float],
    after: Mapping[str, float],
    known: Mapping[str, float],
    missing: Sequence[str],
) -> dict[str, float]:
    """What an event sets depends on alone, from the states before and after it."""
    found = {}
    for name, value in event.set.items():
        asked = [other for other in dict.fromkeys(names(value)) if other in missing]
        if len(asked) == 1 and name in after:
            answer = solved(value, asked[0], after[name], {**known, **before})
            if answer is not None and math.isfinite(answer):
                found[asked[0]] = answer
    return found


def _threshold(
    event: Event, befores: Sequence[Mapping[str, float]], known: Mapping[str, float], missing: Sequence[str]
) -> dict[str, float]:
    """What a condition alone depends on: the value at which it comes true next, wherever it was not yet true."""
    if not isinstance(event.when, Comparison):
        return {}
    asked = [name for name in dict.fromkeys(names(event.when)) if name in missing and name not in known]
    if len(asked) != 1:
        return {}
    lacking = difference(event.when.left, event.when.right)
    values = [solved(lacking, asked[0], 0.0, {**known, **before}) for before in befores]
    found = [value for value in values if value is not None and math.isfinite(value)]
    if not found:
        return {}

    def early(value: float) -> int:
        """How often the condition would have been true before."""
        given = [{**known, **before, asked[0]: value} for before in befores]
        return sum(bool(evaluate(event.when, one, math)) for one in given)  # type: ignore[arg-type]

    return {asked[0]: min((min(found), max(found)), key=early)}
