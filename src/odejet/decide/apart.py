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

from odejet.budget import Budget
from odejet.data import Data
from odejet.decide.optima import Provenance
from odejet.decide.optimality import CONFIRMED, LIKELY, OPEN, Optimality
from odejet.decide.state import State
from odejet.decide.task import Record, Task
from odejet.errors import DataError, ModelError
from odejet.problem import Problem
from odejet.search.refine import Refined, refine

APART = Provenance("apart", start="multistart")

LEAST_SECONDS = 0.05
"""What a group needs of the time, at least."""

TOGETHER = 0.3
"""The share of the time that is left for the refinement of all together: with 500 experiments it takes as long as 20 to
30 searches."""

UNSEARCHED = "there was no time to search it by itself"


@dataclass(frozen=True, eq=False)
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
    fixed, model = {name: str(value) for name, value in problem.fixed.items()}, problem.model
    names = {experiment.name for experiment in data.experiments}
    if model.experiments:
        model = model.replace(experiments={name: own for name, own in model.experiments.items() if name in names})
    try:
        own = Problem(model, data, None, problem.positive, problem.noise, fixed, problem.local, problem.weights)
    except (DataError, ModelError):
        return None  # some of them say nothing of a parameter
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
    """Values of one group, and how sure they are the best."""

    group: Group
    z: np.ndarray
    search: Optimality


def fitted_apart(state: State, found: Sequence[Group], search: Callable[[Task], tuple[Refined, Optimality]]) -> State:
    """With the optimum to which the best values of every group lead together.

    Groups that there is no time to search begin the last refinement where those that were searched have ended.
    """
    task = state.task
    with task.stage("apart") as budget:
        parts = _searched(task, found, budget.share(1 - TOGETHER), search)
        parts += _borrowed([group for group in found if group not in {part.group for part in parts}], parts)
        if len(parts) < len(found):
            return state
        together = _refined(state, parts)
    task.record.census.add("refinements", "of experiments apart")
    answers = {part.group.problem.experiments[0].name: part.search for part in parts}
    return replace(state.adding(together, APART), apart=(together.cost, least(answers)), rounds=1)


def _searched(
    task: Task, found: Sequence[Group], budget: Budget, search: Callable[[Task], tuple[Refined, Optimality]]
) -> list[Part]:
    """Groups searched one by one; those whose share of the time was too short get what the others have left over."""
    parts, waiting = dict[Group, Part](), list(found)
    while waiting and not budget.over:
        short = []
        for number, group in enumerate(waiting):
            if budget.over:
                break
            options = replace(task.options, time_limit=max(budget.seconds / (len(waiting) - number), LEAST_SECONDS))
            share = task.budget.at_most(seconds=options.time_limit)
            best, answer = search(Task(group.problem, options, share, Record(task.record.progress)))
            if math.isfinite(best.cost):
                parts[group] = Part(group, best.z, answer)
            if share.over:
                short.append(group)
        waiting = short
    return list(parts.values())


def _borrowed(groups: Sequence[Group], parts: Sequence[Part]) -> list[Part]:
    """Groups with the median of what each of their unknowns is elsewhere, if every one of them is found elsewhere."""
    values = dict[str, list[float]]()
    for part in parts:
        for label, value in zip(part.group.problem.unknowns, part.z.tolist(), strict=True):
            values.setdefault(label, []).append(value)
    medians = {label: float(np.median(found)) for label, found in values.items()}
    answer = Optimality(OPEN, reasons=[UNSEARCHED])
    return [
        Part(group, np.array([medians[label] for label in group.problem.unknowns]), answer)
        for group in groups
        if medians.keys() >= set(group.problem.unknowns)
    ]


def _refined(state: State, parts: Sequence[Part]) -> Refined:
    """All values together, refined with the noise that they share."""
    task = state.task
    z, told = np.zeros(len(task.misfit.unknowns)), dict[int, list[float]]()
    for part in parts:
        for entry, value in zip(part.group.entries.tolist(), part.z.tolist(), strict=True):
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
