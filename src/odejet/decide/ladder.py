"""Ladder: the rungs of effort by which a fit is found, from a few shooting times to a search of the whole box.

The search ends with the first rung that earns a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from odejet.decide import stages
from odejet.decide.answer import Answer, answer
from odejet.decide.state import State
from odejet.decide.task import Options, Task
from odejet.search.proposals import ALL, FEW

Step = Callable[[State], stages.Steps]


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
    options = state.task.options
    yield (state := stages.identify(state))
    yield (state := stages.smooth(state))
    for step in steps(options):
        state = yield from step(state)
        if options.refine:
            yield (state := stages.settle(state))
            state = yield from stages.challenge(state)
        if is_over(state):
            break
    if options.refine:
        yield from stages.find_others(state)


def steps(options: Options) -> list[Step]:
    """The rungs in order: where a few shooting times are not enough, the box mostly tells more than the others."""
    few: Step = partial(stages.shoot, rung=FEW)
    every: Step = partial(stages.shoot, rung=ALL)
    if not options.refine:
        return [every if options.effort == "full" else few]
    if options.effort == "quick":
        return [few]
    return [every, stages.search_box] if options.effort == "full" else [few, stages.search_box, every]


def is_over(state: State) -> bool:
    """Whether further rungs would change nothing."""
    if not state.task.left or (state.is_certified and state.task.options.effort != "full"):
        return True
    # Where there are too many valleys to be sure of the best, other starts would not change it.
    return state.rounds > 0 and state.explains_data
