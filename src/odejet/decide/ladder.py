"""Ladder: the rungs of effort by which a fit is found, from a few shooting times to a search of the whole box.

The search ends with the first rung that earns a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from odejet.data.series import MIN_TIMES
from odejet.decide import stages
from odejet.decide.answer import Answer, answer
from odejet.decide.optima import Provenance
from odejet.decide.stages import AGREE
from odejet.decide.state import BOX, State
from odejet.decide.task import Record, Task
from odejet.problem import Problem
from odejet.problem.stretches import stretch
from odejet.search.pieces import MOST, pieces, start
from odejet.search.proposals import ALL, FEW
from odejet.search.refine import refine

MORE_ROUNDS = 3
"""Further searches of the box, with other starts, once enough of them agree on an optimum that has no certificate."""
PER_DERIVATIVE = 3
"""Times for each of an output's derivatives: with fewer, the algebra led to the optimum in 1 of 4 fits to 12 points."""

PER_START = 0.25
"""The part of the time of a rung that one fit of stretches may take."""

PER_UNKNOWN = 3
"""Measurements for each unknown in the first part of an experiment that is fitted as a whole."""

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
    yield (state := stages.identify(state))
    yield (state := stages.smooth(state))
    for step in rungs(state):
        state = yield from climbed(state, step)
        if is_over(state):
            break
    while wants_more(state):
        state = yield from climbed(state, stages.search_box)
    if state.task.options.refine:
        yield from stages.find_others(state)


def climbed(state: State, step: Step) -> stages.Steps:
    """One rung, and what follows from a new best optimum."""
    state = yield from step(state)
    if state.task.options.refine:
        yield (state := stages.settle(state))
        state = yield from stages.challenge(state)
    yield state
    return state


def by_pieces(state: State) -> stages.Steps:
    """Starts from the stretches between events that the data show: from all of them, and from fewer.

    From such a start the whole is followed from event to event: an event that moves past a measurement makes a jump in
    the misfit, which no descent crosses, and what comes before it tells its time better than the sampling does.
    """
    task, count = state.task, 0
    with task.stage("stretches") as budget:
        for most in range(MOST, 1, -1):
            parts = pieces(task.problem, most)
            if parts is None or budget.over or state.is_enough:
                break
            if len(parts.owners) == count:
                continue  # there are no more
            count = len(parts.owners)
            options = replace(task.options, effort="auto", time_limit=PER_START * budget.seconds)
            share = budget.at_most(seconds=options.time_limit)
            found = search(Task(parts.problem, options, share, Record(task.record.progress)))
            if parts.problem.misfit.outputs == task.misfit.outputs and np.isfinite(found.best.cost):
                # What fits of all stretches leave is known better than what smoothing leaves of one.
                state = replace(state, levels=np.where(task.misfit.estimated, found.best.levels, state.levels))
            z = state.frame.inside(start(task.problem, parts, found.best.z))
            for fraction in parts.fractions(task.problem):
                part = task.misfit.window(fraction)
                if part.points >= PER_UNKNOWN * len(z) and not budget.over:
                    z = refine(part, z, levels=state.levels, frame=state.frame, time_limit=budget.seconds).z
            yield (state := stages.refined(state, z, Provenance("stretches", start="algebra"), budget))
    return state


def rungs(state: State) -> list[Step]:
    """Rungs in order: where a few shooting times are not enough, the box mostly tells more than all of them, and where
    smoothing cannot work, it comes first."""
    options, box = state.task.options, stages.search_box
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
    # What explains the data lacks other starts, not better derivatives.
    return state.rounds > 0 and (state.explains_data or (state.is_exact and not state.blunt))


def wants_more(state: State) -> bool:
    """Whether more starts in the box may earn a certificate, or lead to a better optimum.

    As long as few starts agree on the best one there may be a better, and the search goes on while there is time.
    """
    if not state.rounds or not state.task.left or state.is_certified or state.is_exact:
        return False
    if state.optima.at_best(BOX) < AGREE:
        return True
    return state.explains_data and state.is_tested and state.rounds <= MORE_ROUNDS


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
