"""Memory: what algebra has found of a model in this process, and the work that it took.

A fit must not depend on what its process has fitted before.  So what is known already is paid for again, in counted
work though not in time, and is only taken where an attempt with the budget at hand would have ended in the same way:
one that was cut short by a small budget is no answer for a large one, nor the other way round.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from odejet.budget import Budget, OutOfBudget
from odejet.errors import ModelError
from odejet.identify import Verdict
from odejet.model import Model

FREE, AMPLE = 0.1, 1e9
"""Of its budget, the part below which an attempt has felt none of the limits that follow from it; and the operations
that it must have had, since what seems too much for a budget is not even begun."""

MORE = 2.0
"""Times the seconds of an attempt that the clock has ended, beyond which another one is worth it."""

ATTEMPTS = 4
"""Attempts at one thing that are kept, with budgets that differ."""

KEPT = 32
"""Models that are remembered."""

T = TypeVar("T")


@dataclass(frozen=True)
class Attempt:
    """What was made of something with a budget, or why nothing was."""

    source: object
    result: Any
    refused: ModelError | OutOfBudget | None
    left: float  # work that it might have taken
    seconds: float  # and time
    most: float  # operations, by both
    spent: float  # work

    def answers(self, budget: Budget) -> bool:
        """Whether another attempt with this budget would end in the same way."""
        if self.left == budget.left and self.seconds / MORE <= budget.seconds <= MORE * self.seconds:
            return True
        return self.refused is None and self.spent <= FREE * min(self.most, budget.most) and self.most >= AMPLE


@dataclass
class Memory:
    """What was found of one model."""

    verdict: Verdict | None = None
    judged: float = 0.0  # seconds with which the verdict was found
    attempts: dict[tuple[str, int], list[Attempt]] = field(default_factory=lambda: defaultdict(list))

    def recall(self, name: str, points: int, source: object, find: Callable[[Budget], T], budget: Budget) -> T:
        """What `find` makes of a source within a budget, from memory if it is known."""
        known = self.attempts[name, points]
        one = next((one for one in known if one.source is source and one.answers(budget)), None)
        if one is None:
            one = _attempt(source, find, budget)
            known[:] = [one, *known][:ATTEMPTS]
        else:
            budget.spend(one.spent)
        if one.refused is not None:
            raise type(one.refused)(*one.refused.args)
        return one.result

    def last(self, name: str, points: int) -> Any:
        """What was found last; None where nothing was."""
        return next((one.result for one in self.attempts[name, points] if one.refused is None), None)


def _attempt(source: object, find: Callable[[Budget], T], budget: Budget) -> Attempt:
    part, result, refused = budget.at_most(), None, None
    given = budget.left, budget.seconds, budget.most
    try:
        result = find(part)
    except (ModelError, OutOfBudget) as error:
        refused = error
    return Attempt(source, result, refused, *given, part.spent)


_MEMORIES: OrderedDict[tuple, Memory] = OrderedDict()


def memory(model: Model) -> Memory:
    """The memory of a model; models that are equal share one."""
    key = model.key
    if key not in _MEMORIES:
        _MEMORIES[key] = Memory()
        while len(_MEMORIES) > KEPT:
            _MEMORIES.popitem(last=False)
    _MEMORIES.move_to_end(key)
    return _MEMORIES[key]
