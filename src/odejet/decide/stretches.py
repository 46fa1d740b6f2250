"""Stretches: multiple shooting where events reset states at times that the data show.

A fit of the stretches between events tells the parameters, one solution through all of them a start for the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from odejet.budget import Budget
from odejet.decide import stages
from odejet.decide.answer import Answer
from odejet.decide.optima import Provenance
from odejet.decide.state import State
from odejet.decide.task import Record, Task
from odejet.search.pieces import MultipleShooting, Pieces, pieces, start
from odejet.search.refine import Refined, refine
from odejet.search.ties import tied

FROM_STRETCHES = Provenance("stretches", start="algebra")

Search = Callable[[Task], Answer]
"""A whole fit, of stretches as a problem of their own."""


def by_stretches(state: State, settings: MultipleShooting, search: Search) -> stages.Steps:
    """Starts from the stretches between events that the data show, tied together.

    All stretches are fitted together, and the longest ones alone, from which all others follow; the best of these fits
    lead to the whole.
    """
    task, before = state.task, set[tuple[int, str]]()
    with task.stage("stretches") as budget:
        for most, effort in settings.plan:
            parts = pieces(task.problem, most)
            if parts is None or (len(parts.owners), effort) in before:
                continue
            before.add((len(parts.owners), effort))
            fits = [
                one
                for one in _fits_of_stretches(task, parts, effort, budget, settings, search)
                if math.isfinite(one.cost)
            ]
            if not fits or budget.over:
                continue
            one = min(fits, key=lambda one: one.cost)
            if parts.problem.misfit.outputs == task.misfit.outputs:
                # What fits of all stretches leave is known better than what smoothing leaves of one.
                state = replace(state, levels=np.where(task.misfit.estimated, one.levels, state.levels))
            z = _whole(state, parts, one.z, budget)
            yield (state := stages.refined(state, z, FROM_STRETCHES, budget))
            if state.explains_data and state.optima.at_best(FROM_STRETCHES.rung) == 1:
                state = yield from _nearby(state, budget, settings)
            if state.is_enough or budget.over:
                break
    return state


def _nearby(state: State, budget: Budget, settings: MultipleShooting) -> stages.Steps:
    """Other starts within the errors of the best optimum.

    A misfit has a kink, if not a jump, wherever an event passes a measurement, and so small valleys side by side.
    How many starts end in how many of them tells whether there may be a better one.
    """
    best = state.best
    assert best is not None
    _, sizes, directions = np.linalg.svd(
        best.refined.jacobian * state.frame.slopes(best.refined.z), full_matrices=False
    )
    steps = directions.T / np.maximum(sizes, 1.0 / settings.farthest)
    rng = np.random.default_rng([state.task.options.seed, len(state.tried)])
    for number, draw in enumerate(rng.standard_normal((settings.most_nearby, len(sizes)))):
        if budget.over or (number >= settings.nearby and state.is_certified):
            break
        z = state.frame.inside(state.frame.back(state.frame.to(best.refined.z) + steps @ draw))
        yield (state := stages.refined(state, z, FROM_STRETCHES, budget))
    return state


def _fits_of_stretches(
    task: Task, parts: Pieces, effort: str, budget: Budget, settings: MultipleShooting, search: Search
) -> Iterator[Refined]:
    """Fits of all stretches: from all of them at once, and from the longest ones alone."""
    everything = list(range(len(parts.owners)))
    longest = sorted(everything, key=lambda i: -parts.problem.experiments[i].points)[: settings.alone]
    for chosen in (everything, *([one] for one in longest)):
        some = parts if chosen == everything else parts.only(chosen)
        if some is None or budget.over:
            continue
        options = replace(task.options, effort=effort, time_limit=settings.per_start * budget.seconds)
        share = budget.at_most(seconds=options.time_limit)
        best = search(Task(some.problem, options, share, Record(task.record.progress))).best
        if some is not parts and math.isfinite(best.cost):
            begin = parts.spread(some, best.z)
            best = refine(parts.problem.misfit, begin, frame=parts.problem.frame(begin), time_limit=budget.seconds)
        yield best


def _whole(state: State, parts: Pieces, z: np.ndarray, budget: Budget) -> np.ndarray:
    """From a fit of stretches to a start for the whole: one solution through all of them, and what comes after.

    An event that moves past a measurement makes a jump in the misfit, which no descent crosses, and what comes before
    it tells its time better than the sampling does.
    """
    task, begin = state.task, start(state.task.problem, parts, z)
    found = tied(task.problem, parts, z, begin, state.levels, state.frame, budget, task.options.seed)
    found = state.frame.inside(found)
    for fraction in parts.ahead(task.problem):
        if not budget.over:
            part = task.misfit.window(fraction)
            found = refine(part, found, levels=state.levels, frame=state.frame, time_limit=budget.seconds).z
    return found
