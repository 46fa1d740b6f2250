"""Apart: a fit of many experiments that have nothing in common but their noise, experiment by experiment.

Where every unknown belongs to one experiment, or to a few that share it, the likelihood of all is that of each given
the noise: its optimum is where each has its own.  So every group of experiments that hangs together is searched by
itself, which takes as long as one after the other, and the values of all begin one last refinement.  A search of all
together would have to find every one of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.data import Data
from odejet.decide.optima import Provenance
from odejet.decide.optimality import CONFIRMED, LIKELY, OPEN, Optimality
from odejet.decide.state import State
from odejet.decide.task import Record, Task
from odejet.problem import Problem
from odejet.search.refine import Refined, refine

APART = Provenance("apart", start="multistart")

LEAST_SECONDS = 0.05
"""What a group needs of the time, at least."""


@dataclass(frozen=True)
class Group:
    """Experiments that hang together, as a problem of their own, and where its unknowns stand among all."""

    problem: Problem
    entries: np.ndarray


def groups(problem: Problem) -> tuple[Group, ...]:
    """The experiments that share unknowns other than those of the noise, group by group; none where all hang together,
    or where priors tie them."""
    if len(problem.experiments) < 2 or problem.priors:
        return ()
    noise = set(problem.misfit.noise_entries.tolist())
    members = list[tuple[set[int], list[int]]]()  # entries, experiments
    for number, places in enumerate(problem.layout.places):
        own, experiments = set(places.values()) - noise, [number]
        for other in [one for one in members if one[0] & own]:
            members.remove(other)
            own, experiments = own | other[0], other[1] + experiments
        members.append((own, experiments))
    if len(members) < 2 or any(not own for own, _ in members):
        return ()
    found = [_group(problem, experiments) for _, experiments in sorted(members, key=lambda one: min(one[1]))]
    return tuple(one for one in found if one is not None) if all(found) else ()


def _group(problem: Problem, numbers: Sequence[int]) -> Group | None:
    """Some experiments as a problem; None where they have fewer measurements than unknowns."""
    data = Data.of(problem.experiments[number] for number in sorted(numbers))
    fixed = {name: str(value) for name, value in problem.fixed.items()}
    own = Problem(problem.model, data, None, problem.positive, problem.noise, fixed, problem.local, problem.weights)
    entries = np.zeros(len(own.layout), dtype=int)
    for number, places in zip(sorted(numbers), own.layout.places, strict=True):
        for name, entry in places.items():
            entries[entry] = problem.layout.places[number][name]
    if problem.given_bounds is not None:
        labels, bounds = problem.unknowns, problem.bounds
        given = {label: bounds[labels[entry]] for label, entry in zip(own.unknowns, entries, strict=True)}
        own = own.bounded({label: pair for label, pair in given.items() if any(map(math.isfinite, pair))} or None)
    return Group(own, entries) if sum(one.points for one in own.experiments) > len(own.unknowns) else None


@dataclass(frozen=True)
class Part:
    """What the search of one group has found."""

    group: Group
    best: Refined
    search: Optimality


def fitted_apart(state: State, found: Sequence[Group], search: Callable[[Task], tuple[Refined, Optimality]]) -> State:
    """With the optimum to which the best values of every group lead together."""
    task, parts = state.task, list[Part]()
    with task.stage("apart") as budget:
        for number, group in enumerate(found):
            options = replace(task.options, time_limit=max(budget.seconds / (len(found) - number), LEAST_SECONDS))
            share = task.budget.at_most(seconds=options.time_limit)
            part = Part(group, *search(Task(group.problem, options, share, Record(task.record.progress))))
            if not math.isfinite(part.best.cost):
                return state
            parts.append(part)
        together = _refined(state, parts)
    task.record.census.add("refinements", "of experiments apart")
    answers = {part.group.problem.experiments[0].name: part.search for part in parts}
    return replace(state.adding(together, APART), apart=(together.cost, least(answers)), rounds=1)


def _refined(state: State, parts: Sequence[Part]) -> Refined:
    """All values together, refined with the noise that they share."""
    task = state.task
    z, told = np.zeros(len(task.misfit.unknowns)), dict[int, list[float]]()
    for part in parts:
        for entry, value in zip(part.group.entries.tolist(), part.best.z.tolist(), strict=True):
            told.setdefault(entry, []).append(value)
    for entry, values in told.items():
        z[entry] = float(np.median(values))
    return refine(task.misfit, z, frame=state.frame, time_limit=task.left)


def least(answers: Mapping[str, Optimality]) -> Optimality:
    """How sure all are together: as the one that is least so."""
    order = (OPEN, LIKELY, CONFIRMED)
    name, worst = min(answers.items(), key=lambda one: (order.index(str(one[1])), one[1].agreeing))
    told = (
        f"{len(answers)} parts without common unknowns were searched one by one; least sure is {name}: {worst.sentence}"
    )
    starts, optima = (sum(getattr(one, count) for one in answers.values()) for count in ("starts", "optima"))
    return Optimality(str(worst), starts, worst.agreeing, optima, max(one.unseen for one in answers.values()), [told])
