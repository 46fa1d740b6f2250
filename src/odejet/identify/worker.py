"""Worker: elimination in a process of its own, which can be ended.

Computer algebra in C cannot be interrupted, and how long it takes cannot be known beforehand.  Where little work was
not enough, it goes on in another process, which ends with the budget and whose memory is limited.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from odejet import processes
from odejet.budget import Budget, OutOfBudget
from odejet.identify import elimination, local, orders, partial
from odejet.identify.globally import Count, Engine
from odejet.identify.local import Local
from odejet.identify.projection import NotRational
from odejet.identify.quotient import Infinite
from odejet.jets.modular import Unlucky

MEMORY = 1_200_000_000
"""Bytes that the process may take."""


def count(ranks: Local, seed: int, budget: Budget) -> Count:
    """`elimination.count` in a process of its own."""
    try:
        # Points are drawn again there, which is quicker than to send them.
        answer = processes.run(_answer, ranks.problem, seed, budget.seconds, seconds=budget.seconds, memory=MEMORY)
    except processes.TimedOut:
        raise OutOfBudget("the time is over") from None
    except processes.NotStarted as error:
        raise NotRational(f"no further process could be started: {error}") from None
    except processes.Ended:
        raise OutOfBudget("the input-output equations do not fit into memory") from None
    if "budget" in answer:
        raise OutOfBudget(answer["budget"])
    if "refused" in answer:
        raise NotRational(answer["refused"])
    return Count(**answer)


def _answer(problem: local.Problem, seed: int, seconds: float) -> dict[str, Any]:
    budget = Budget.within(seconds)
    ranks = local.analyse(problem, seed)
    try:
        return asdict(counted(ranks, Engine(None, budget), seed))
    except OutOfBudget as end:
        return {"budget": str(end)}
    except (NotRational, Infinite, Unlucky) as reason:
        return {"refused": str(reason) or "functions of unknowns leave the equations underdetermined"}


def counted(ranks: Local, engine: Engine, seed: int) -> Count:
    """By a whole elimination, or where that is too long by what comes out of it."""
    square = orders.choose(ranks)
    try:
        return elimination.count(ranks, square, engine, seed)
    except OutOfBudget:
        if not partial.applies(ranks.problem):
            raise
        engine.budget.check()
        return elimination.count(ranks, square, engine, seed, partial.Partial)
