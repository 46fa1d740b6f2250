"""Ladder: the schedule of strategies by which a fit is found, from a few shooting times to a search of the whole box.

The search ends with the first rung that earns a certificate, or that has its answer otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from odejet import clock, interruption
from odejet.data.series import MIN_TIMES
from odejet.decide import limits, stages
from odejet.decide.answer import Answer, answer
from odejet.decide.apart import fitted_apart, groups
from odejet.decide.beginning import beginning, begun
from odejet.decide.optimality import Optimality
from odejet.decide.state import State
from odejet.decide.stretches import by_stretches
from odejet.decide.task import Task
from odejet.decide.valleys import join
from odejet.problem import Problem
from odejet.problem.stretches import stretch
from odejet.search.lags import is_lagged
from odejet.search.pieces import MultipleShooting, pieces
from odejet.search.proposals import ALL, FEW, AlgebraicStarts
from odejet.search.refine import Refined

NOWHERE = 4
"""Searches of the box after which no more follow if no start has led anywhere."""
PER_DERIVATIVE = 3
"""Times for each of an output's derivatives: with fewer, the algebra led to the optimum in 1 of 4 fits to 12 points."""

Step = Callable[[State], stages.Steps]
FEW_TIMES: Step = partial(stages.shoot, rung=FEW)
EVERY: Step = partial(stages.shoot, rung=ALL)


def search(task: Task) -> Answer:
    """The best answer that there is time for; an interruption leaves the best so far, if there is one."""
    state = State.of(task)
    with interruption.gentle():
        try:
            for latest in climb(state):
                state = latest
                task.record.progress.note(so_far(state))
                if clock.is_hurried() and state.optima:
                    break
        except KeyboardInterrupt:
            if not state.optima:
                raise
            return answer(state, interrupted=True)
        if clock.is_hurried() and not state.optima:
            raise KeyboardInterrupt
        return answer(state, interrupted=clock.is_hurried())


def so_far(state: State) -> str:
    """What a search has, in a few words."""
    count = len(state.optima.refined)
    return f"{count} {'optimum' if count == 1 else 'optima'} so far" if count else ""


def climb(state: State) -> Iterator[State]:
    """What is known, step by step."""
    plan = rungs(state)
    apart = groups(state.task.problem) if state.task.options.refine else ()
    first = beginning(state.task.problem) if state.task.options.refine and not apart else None
    if plan[:1] == [stages.search_box] and first is None:
        yield (state := stages.look(state))
    yield (state := stages.identify(state))
    yield (state := stages.smooth(state, first))
    if apart:
        yield (state := fitted_apart(state, apart, _answered))
    if first is not None:
        yield (state := begun(state, first, _answered))
    for step in plan if not ((apart or first) and is_over(state)) else ():
        state = yield from climbed(state, step)
        if is_over(state):
            break
    while wants_more(state):
        state = yield from climbed(state, stages.sweep if state.is_rough else stages.search_box)
    if state.task.options.refine:
        state = yield from stages.find_others(state)
        yield (state := join(state))
        yield limits.find(state)


def _answered(task: Task) -> tuple[Refined, Optimality]:
    """The best that a search finds, and how sure it is."""
    found = search(task)
    if found.is_interrupted:
        raise KeyboardInterrupt
    return found.best, found.certificate.search


def climbed(state: State, step: Step) -> stages.Steps:
    """One rung, and what follows from a new best optimum."""
    state = yield from step(state)
    if state.task.options.refine:
        yield (state := stages.settle(state))
        state = yield from stages.challenge(state)
    yield state
    return state


def rungs(state: State) -> list[Step]:
    """The strategies of a fit in order: where a few shooting times are not enough, the box mostly tells more than all
    of them, and where smoothing cannot work, it comes first."""
    options, box = state.task.options, stages.search_box
    plan: list[Step] = [box] if options.box else []
    if not any(condition.model.unknowns for condition in state.task.problem.conditions):
        return plan or [box]  # derivatives tell nothing of the noise
    if not options.refine:
        return [EVERY if options.effort == "full" else FEW_TIMES]
    # Derivatives at one time say nothing of equations that look back at others.
    delayed = any(condition.model.is_delayed for condition in state.task.problem.conditions)
    algebraic = options.strategy(AlgebraicStarts) is not None and not delayed
    if options.effort == "quick" and algebraic:
        return [FEW_TIMES]
    shooting = options.strategy(MultipleShooting)
    if shooting is not None and pieces(state.task.problem) is not None:
        return [partial(by_stretches, settings=shooting, search=search), *plan]
    if not algebraic:
        return [FEW_TIMES, *plan] if is_lagged(state.task.problem) else plan
    if options.effort == "full":
        return [EVERY, *plan]
    return [FEW_TIMES, *plan, EVERY] if can_smooth(state.task.problem) else [*plan, FEW_TIMES, EVERY]


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
