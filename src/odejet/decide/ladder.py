"""Ladder: the rungs of effort by which a fit is found, from a few shooting times to a search of the whole box.

The search ends with the first rung that earns a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from odejet.budget import Budget
from odejet.data.series import MIN_TIMES
from odejet.decide import stages
from odejet.decide.answer import Answer, answer
from odejet.decide.apart import fitted_apart, groups
from odejet.decide.optima import Provenance
from odejet.decide.optimality import Optimality
from odejet.decide.state import State
from odejet.decide.task import Record, Task
from odejet.problem import Problem
from odejet.problem.stretches import stretch
from odejet.search.pieces import MOST, Pieces, pieces, start
from odejet.search.proposals import ALL, FEW
from odejet.search.refine import Refined, refine
from odejet.search.ties import tied

NOWHERE = 4
"""Searches of the box after which no more follow if no start has led anywhere."""
PER_DERIVATIVE = 3
"""Times for each of an output's derivatives: with fewer, the algebra led to the optimum in 1 of 4 fits to 12 points."""

PER_START = 0.25
"""The part of the time of a rung that one fit of stretches may take."""

PLAN = ((MOST, "quick"), (MOST // 2, "quick"), (2, "quick"), (MOST, "auto"))
"""How many stretches of an experiment are fitted, and with how much effort: where the last ones hide events, fewer do
better."""

NEARBY, MOST_NEARBY, FARTHEST = 10, 32, 0.5
"""Starts within the errors of an optimum, these many if they end in one valley and up to so many if there are several,
and how many logarithmic units they go at most in a direction."""

FROM_STRETCHES = Provenance("stretches", start="algebra")

ALONE = 4
"""Stretches that are fitted alone, the longest ones."""

Step = Callable[[State], stages.Steps]
FEW_TIMES: Step = partial(stages.shoot, rung=FEW)
EVERY: Step = partial(stages.shoot, rung=ALL)


def search(task: Task) -> Answer:
    """The best answer that there is time for; an interruption leaves the best so far, if there is one."""
    state = State.of(task)
    try:
        for latest in climb(state):
            state = latest
            task.record.progress.note(so_far(state))
    except KeyboardInterrupt:
        if not state.optima:
            raise
        return answer(state, interrupted=True)
    return answer(state)


def so_far(state: State) -> str:
    """What a search has, in a few words."""
    count = len(state.optima.refined)
    return f"{count} {'optimum' if count == 1 else 'optima'} so far" if count else ""


def climb(state: State) -> Iterator[State]:
    """What is known, step by step."""
    plan = rungs(state)
    if plan[0] is stages.search_box:
        yield (state := stages.look(state))
    yield (state := stages.identify(state))
    yield (state := stages.smooth(state))
    if state.task.options.refine and (found := groups(state.task.problem)):
        yield (state := fitted_apart(state, found, _answered))
    for step in plan if not is_over(state) else ():
        state = yield from climbed(state, step)
        if is_over(state):
            break
    while wants_more(state):
        state = yield from climbed(state, stages.sweep if state.is_rough else stages.search_box)
    if state.task.options.refine:
        yield from stages.find_others(state)


def _answered(task: Task) -> tuple[Refined, Optimality]:
    """The best that a search finds, and how sure it is."""
    found = search(task)
    return found.best, found.certificate.search


def climbed(state: State, step: Step) -> stages.Steps:
    """One rung, and what follows from a new best optimum."""
    state = yield from step(state)
    if state.task.options.refine:
        yield (state := stages.settle(state))
        state = yield from stages.challenge(state)
    yield state
    return state


def by_pieces(state: State) -> stages.Steps:
    """Starts from the stretches between events that the data show, tied together.

    All stretches are fitted together, and the longest ones alone, from which all others follow; the best of these fits
    lead to the whole.
    """
    task, before = state.task, set[tuple[int, str]]()
    with task.stage("stretches") as budget:
        for most, effort in PLAN:
            parts = pieces(task.problem, most)
            if parts is None or (len(parts.owners), effort) in before:
                continue
            before.add((len(parts.owners), effort))
            fits = [one for one in _fits_of_stretches(task, parts, effort, budget) if math.isfinite(one.cost)]
            if not fits or budget.over:
                continue
            one = min(fits, key=lambda one: one.cost)
            if parts.problem.misfit.outputs == task.misfit.outputs:
                # What fits of all stretches leave is known better than what smoothing leaves of one.
                state = replace(state, levels=np.where(task.misfit.estimated, one.levels, state.levels))
            z = _whole(state, parts, one.z, budget)
            yield (state := stages.refined(state, z, FROM_STRETCHES, budget))
            if state.explains_data and state.optima.at_best(FROM_STRETCHES.rung) == 1:
                state = yield from _nearby(state, budget)
            if state.is_enough or budget.over:
                break
    return state


def _nearby(state: State, budget: Budget) -> stages.Steps:
    """Other starts within the errors of the best optimum.

    A misfit has a kink, if not a jump, wherever an event passes a measurement, and so small valleys side by side.
    How many starts end in how many of them tells whether there may be a better one.
    """
    best = state.best
    assert best is not None
    _, sizes, directions = np.linalg.svd(
        best.refined.jacobian * state.frame.slopes(best.refined.z), full_matrices=False
    )
    steps = directions.T / np.maximum(sizes, 1.0 / FARTHEST)
    rng = np.random.default_rng([state.task.options.seed, len(state.tried)])
    for number, draw in enumerate(rng.standard_normal((MOST_NEARBY, len(sizes)))):
        if budget.over or (number >= NEARBY and state.is_certified):
            break
        z = state.frame.inside(state.frame.back(state.frame.to(best.refined.z) + steps @ draw))
        yield (state := stages.refined(state, z, FROM_STRETCHES, budget))
    return state


def _fits_of_stretches(task: Task, parts: Pieces, effort: str, budget: Budget) -> Iterator[Refined]:
    """Fits of all stretches: from all of them at once, and from the longest ones alone."""
    everything = list(range(len(parts.owners)))
    longest = sorted(everything, key=lambda i: -parts.problem.experiments[i].points)[:ALONE]
    for chosen in (everything, *([one] for one in longest)):
        some = parts if chosen == everything else parts.only(chosen)
        if some is None or budget.over:
            continue
        options = replace(task.options, effort=effort, time_limit=PER_START * budget.seconds)
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


def rungs(state: State) -> list[Step]:
    """Rungs in order: where a few shooting times are not enough, the box mostly tells more than all of them, and where
    smoothing cannot work, it comes first."""
    options, box = state.task.options, stages.search_box
    if not any(condition.model.unknowns for condition in state.task.problem.conditions):
        return [box]  # derivatives tell nothing of the noise
    if not options.refine:
        return [EVERY if options.effort == "full" else FEW_TIMES]
    if options.effort == "quick":
        return [FEW_TIMES]
    if pieces(state.task.problem) is not None:
        return [by_pieces, box]
    if options.effort == "full":
        return [EVERY, box]
    return [FEW_TIMES, box, EVERY] if can_smooth(state.task.problem) else [box, FEW_TIMES, EVERY]


def is_over(state: State) -> bool:
    """Whether further rungs would change nothing."""
    if not state.task.left or (state.is_certified and state.task.options.effort != "full"):
        return True
    if state.task.options.effort != "full" and state.is_answered:
        return True
    # What explains the data lacks other starts, not better derivatives.
    return state.rounds > 0 and (state.explains_data or (state.is_exact and not state.blunt))


def wants_more(state: State) -> bool:
    """Whether to search the box on: as long as there is time and the question is open whether this is the best fit,
    whatever the model explains.  Where no start has led anywhere, thousands more will not."""
    if not state.rounds or not state.task.left or state.is_certified or state.is_exact:
        return False
    return not state.is_answered if state.optima else state.rounds < NOWHERE


def can_smooth(problem: Problem) -> bool:
    """Whether an experiment has times enough for the derivatives that its unknowns ask for.

    Each of m outputs with its derivatives up to order k gives k + 1 equations for n unknowns, so that k is at least
    n/m - 1.
    """
    for condition in problem.conditions:
        own, series = condition.model, stretch(condition).values()
        equations = math.ceil(len(own.unknowns) / max(len(series), 1))
        if series and min(one.distinct for one in series) >= max(MIN_TIMES, PER_DERIVATIVE * equations):
            return True
    return False
