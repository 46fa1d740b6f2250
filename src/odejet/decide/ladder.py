"""Ladder: the rungs of effort by which a fit is found, from a few shooting times to a search of the whole box.

The search ends with the first rung that earns a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from odejet.data.series import MIN_TIMES
from odejet.decide import stages
from odejet.decide.answer import Answer, answer
from odejet.decide.stages import AGREE
from odejet.decide.state import BOX, State
from odejet.decide.task import Task
from odejet.problem import Problem
from odejet.problem.stretches import stretch
from odejet.search.proposals import ALL, FEW

MORE_ROUNDS = 3
"""Further searches of the box, with other starts, while there is no certificate."""
PER_DERIVATIVE = 3
"""Times for each of an output's derivatives: with fewer, the algebra led to the optimum in 1 of 4 fits to 12 points."""

Step = Callable[[State], stages.Steps]
FEW_TIMES: Step = partial(stages.shoot, rung=FEW)
EVERY: Step = partial(stages.shoot, rung=ALL)


def search(task: Task) -> Answer:
    """The best answer that there is time for; an interruption leaves the best so far, if there is one."""
    state = State.of(task)
    try:
        for latest in climb(state):
            state = latest
    except KeyboardInterrupt:
        if not state.optima:
            raise
        return answer(state, interrupted=True)
    return answer(state)


def climb(state: State) -> Iterator[State]:
    """What is known, step by step."""
    yield (state := stages.identify(state))
    yield (state := stages.smooth(state))
    for step in rungs(state):
        state = yield from climbed(state, step)
        if is_over(state):
            break
    for _ in range(MORE_ROUNDS):
        if not wants_more(state):
            break
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


def rungs(state: State) -> list[Step]:
    """Rungs in order: where a few shooting times are not enough, the box mostly tells more than all of them, and where
    smoothing cannot work, it comes first."""
    options, box = state.task.options, stages.search_box
    if not options.refine:
        return [EVERY if options.effort == "full" else FEW_TIMES]
    if options.effort == "quick":
        return [FEW_TIMES]
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
    """Whether more starts in the box may earn a certificate, or lead to a better optimum."""
    if not state.rounds or not state.task.left or state.is_certified or state.is_exact:
        return False
    return (state.explains_data and state.is_tested) or state.optima.at_best(BOX) < AGREE


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
