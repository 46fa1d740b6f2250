"""Budgets: parts spend of the whole, whichever limit comes first ends them, and the clock is the last resort."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet import budget
from odejet.budget import Budget, OutOfBudget


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    time = [100.0]
    monkeypatch.setattr(budget, "now", lambda: time[0])
    return time


def test_a_budget_without_limits_never_ends():
    endless = Budget()
    assert endless.spend(1e30)
    assert not endless.over
    assert endless.left == endless.seconds == inf
    assert endless.share(0.1).left == inf


def test_counted_work_ends_a_budget_and_says_so():
    whole = Budget(work=10.0)
    assert whole.spend(9.0)
    assert not whole.spend(1.0)
    assert whole.reason == "the work allotted is done"
    assert whole.left == 0.0
    with pytest.raises(OutOfBudget, match="work allotted"):
        whole.check()


def test_the_clock_ends_a_budget_whatever_work_is_left(clock):
    whole = Budget.within(5.0, work=1e6)
    clock[0] = 104.9
    assert whole.left == 1e6
    assert whole.affords(1e6)
    assert not Budget.within(0.1).affords(1e9)
    clock[0] = 105.0
    assert (whole.reason, whole.left, whole.seconds) == ("the time is over", 0.0, 0.0)
    assert not whole.affords(1.0)


def test_a_share_is_of_the_work_and_of_the_time_that_are_left(clock):
    whole = Budget.within(10.0, work=1000.0)
    whole.spend(200.0)
    clock[0] = 102.0
    half = whole.share(0.5)
    assert (half.work, half.deadline) == (400.0, 106.0)
    half.spend(300.0)
    assert (half.left, whole.left) == (100.0, 500.0)


def test_a_part_never_outlives_the_whole(clock):
    whole = Budget.within(10.0, work=100.0)
    first, second = whole.at_most(work=80.0, seconds=60.0), whole.at_most(work=80.0)
    assert first.deadline == 110.0
    first.spend(70.0)
    assert second.left == 30.0
    assert not second.spend(40.0)
    assert first.over
    assert whole.over


def test_memory_is_asked_for_before_it_is_taken():
    small = Budget(memory=1e6)
    assert small.share(0.5).fits(1e6)
    assert not small.at_most(work=1.0).fits(1.1e6)


@given(st.floats(1.0, 1e12), st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1e12)), max_size=8))
def test_whatever_parts_spend_the_whole_knows(work, parts):
    whole = Budget(work)
    spent = 0.0
    for fraction, amount in parts:
        whole.share(fraction).spend(amount)
        spent += amount
    assert whole.over == (whole.work <= 0.0)
    assert whole.work == pytest.approx(work - spent, rel=1e-9, abs=1e-6 * work)
