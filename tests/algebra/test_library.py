"""The library of a model: found once, and never beyond its budget."""

import numpy as np
import pytest

from odejet import Model
from odejet.algebra import library as module
from odejet.algebra.library import Library
from odejet.algebra.memory import Memory
from odejet.algebra.monodromy import Fibre
from odejet.budget import Budget, OutOfBudget
from odejet.identify import msolve

DECAY = Model(states={"x": "-k*x**2"}, outputs={"y": "x**2"})


def chain(n: int, every: int = 1) -> Model:
    """Michaelis-Menten steps one after the other, every so many of their substances measured."""
    flow = [f"v{i}*x{i}/(k{i} + x{i})" for i in range(n)]
    states = {f"x{i}": f"{flow[i - 1]} - {flow[i]}" if i else f"-{flow[0]}" for i in range(n)}
    return Model(states=states, outputs={f"y{i}": f"x{i}" for i in range(0, n, every)}, name=f"chain {n}")


def test_a_fibre_is_found_once():
    own = Library(DECAY, Memory())
    found = own.fibre(1)
    assert found is not None
    assert found.complete
    assert own.fibre(1) is found
    assert own.system(1) is found.system


@pytest.mark.parametrize("small", [Budget(work=1e3), Budget.within(0.0)])
def test_what_a_small_budget_ended_is_tried_again_with_a_larger_one(small):
    own = Library(DECAY, Memory())
    assert own.fibre(1, small) is None
    assert own.reason(1)
    found = own.fibre(1, Budget.within(60.0))
    assert found is not None
    assert found.complete
    assert own.reason(1) == ""


def test_what_the_largest_budget_could_not_do_is_not_tried_again(monkeypatch):
    attempts = []
    monkeypatch.setattr(module, "least", lambda *_, **__: attempts.append(1) or _refuse())
    own = Library(DECAY, Memory())
    assert own.fibre(1) is None
    assert own.fibre(1) is None
    assert own.reason(1) == "too large"
    assert len(attempts) == 1


def _refuse() -> None:
    raise OutOfBudget("too large")


@pytest.mark.parametrize(("n", "every"), [(80, 1), (80, 3)])
def test_systems_that_are_out_of_reach_are_refused_by_an_estimate(n, every, monkeypatch):
    monkeypatch.setenv(msolve.VARIABLE, "")  # its seconds count as work, and vary
    own = Library(chain(n, every), Memory())
    budget = Budget(work=3e10)
    assert own.fibre(1, budget) is None
    assert "unknowns" in own.reason(1) or own.reason(1) == "the work allotted is done"
    # All but the ranks and the attempt to count roots was spared.
    assert budget.left > 1e10


def test_the_algebra_of_a_long_chain_with_all_states_measured_is_served():
    own = Library(chain(10))
    found = own.fibre(1)
    assert found is not None
    assert len(found) == 1


def test_too_few_outputs_for_too_many_unknowns_are_refused_at_once():
    budget = Budget(work=1e9)
    with pytest.raises(OutOfBudget, match="need too many derivatives"):
        Library(chain(80, 79), Memory()).system(1, budget)
    assert budget.left > 1e8


def test_too_few_times_for_the_derivatives_that_are_needed_are_told_at_once():
    own = Library(chain(5, 4))
    needed = own.least(1).highest
    assert own.fibre(1, highest=needed - 1) is None
    assert own.reason(1) == f"it needs derivatives of order {needed}, and there are {needed} different times"
    assert not own._systems  # nothing was counted
    assert Library(DECAY, Memory()).fibre(1, highest=1) is not None


VIRUS = Model(
    states={"x": "s - d*x - b*x*v", "y": "b*x*v - a*y", "v": "k*y - u*v"}, outputs={"cells": "x", "virus": "v"}
)


@pytest.mark.parametrize("before", [(), (1e7,), (1e9,), (1e7, 1e9, 3e7)])
@pytest.mark.parametrize("work", [1e6, 1e7, 3e7, 1e9])
def test_what_a_budget_finds_does_not_depend_on_what_was_found_before(before, work, monkeypatch):
    monkeypatch.setenv(msolve.VARIABLE, "")  # its seconds count as work, and vary
    used = Memory()
    for other in before:
        Library(VIRUS, used).fibre(1, Budget(work=other))
    (fibre, reason, left), (other_fibre, other_reason, other_left) = (_found(work, used), _found(work, Memory()))
    assert reason == other_reason
    assert left == pytest.approx(other_left)
    assert (fibre is None) == (other_fibre is None)
    if fibre is not None and other_fibre is not None:
        assert fibre.complete == other_fibre.complete
        np.testing.assert_array_equal(fibre.roots, other_fibre.roots)


def _found(work: float, known: Memory) -> tuple[Fibre | None, str, float]:
    """What is found with so much work, or why nothing, and what is left of it."""
    budget, own = Budget(work=work), Library(VIRUS, known)
    return own.fibre(1, budget), own.reason(1), budget.work
