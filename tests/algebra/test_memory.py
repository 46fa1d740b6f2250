"""What is remembered of a model: shared by equal models, paid for again, taken only where it is what would come out."""

from math import inf

import pytest

from odejet import Model
from odejet.algebra import memory as module
from odejet.algebra.memory import AMPLE, Memory, memory
from odejet.budget import Budget, OutOfBudget

DECAY = Model(states={"x": "-k*x**2"}, outputs={"y": "x**2"})


def counting(work: float) -> tuple[list[float], object]:
    """An attempt that takes so much work, or all that there is, and how much was left each time it was made."""
    made: list[float] = []

    def find(budget: Budget) -> float:
        made.append(budget.left)
        budget.check(min(work, budget.left))
        return work

    return made, find


def test_equal_models_share_a_memory_and_others_do_not():
    again = Model(states={"x": "-k*x**2"}, outputs={"y": "x**2"})
    assert again is not DECAY
    assert memory(again) is memory(DECAY)
    assert memory(DECAY.replace(fixed={"k": 2.0})) is not memory(DECAY)
    assert memory(DECAY.replace(outputs={"y": "x"})) is not memory(DECAY)


def test_models_that_were_not_asked_for_long_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    first = memory(DECAY)
    memory(DECAY.replace(name="second"))
    assert memory(DECAY) is first
    memory(DECAY.replace(name="third"))
    assert memory(DECAY) is first
    assert len(module._MEMORIES) <= 2


def test_what_is_recalled_costs_work_again():
    known, (made, find) = Memory(), counting(1e6)
    for _ in range(2):
        budget = Budget(work=AMPLE)
        assert known.recall("thing", 1, None, find, budget) == 1e6
        assert budget.left == AMPLE - 1e6
    assert made == [AMPLE]


def test_an_attempt_that_felt_no_limit_answers_for_other_budgets_too():
    known, (made, find) = Memory(), counting(1e6)
    for work in (2 * AMPLE, AMPLE, inf):
        known.recall("thing", 1, None, find, Budget(work=work))
    assert made == [2 * AMPLE]


def test_a_small_budget_is_not_answered_by_what_a_large_one_has_found():
    known, (made, find) = Memory(), counting(1e8)
    assert known.recall("thing", 1, None, find, Budget(work=inf)) == 1e8
    with pytest.raises(OutOfBudget, match="work allotted"):
        known.recall("thing", 1, None, find, Budget(work=1e7))
    assert made == [inf, 1e7]


def test_a_large_budget_is_not_answered_by_what_a_small_one_could_not_do():
    known, (made, find) = Memory(), counting(1e8)
    for _ in range(2):
        with pytest.raises(OutOfBudget, match="work allotted"):
            known.recall("thing", 1, None, find, Budget(work=1e7))
    assert known.last("thing", 1) is None
    assert known.recall("thing", 1, None, find, Budget(work=inf)) == 1e8
    assert made == [1e7, inf]
    assert known.last("thing", 1) == 1e8


def test_what_was_made_of_something_else_is_another_thing():
    known, (made, find) = Memory(), counting(1.0)
    for source in (DECAY, counting, DECAY):
        known.recall("thing", 1, source, find, Budget())
    assert len(made) == 2
