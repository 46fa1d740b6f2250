"""The library of a model: found once, shared by equal models, and never beyond its budget."""

import pytest

from odejet import Model
from odejet.algebra import library as module
from odejet.algebra.library import Library, library
from odejet.budget import Budget, OutOfBudget
from odejet.identify import msolve

DECAY = Model(states={"x": "-k*x**2"}, outputs={"y": "x**2"})


def chain(n: int, every: int = 1) -> Model:
    """Michaelis-Menten steps one after the other, every so many of their substances measured."""
    flow = [f"v{i}*x{i}/(k{i} + x{i})" for i in range(n)]
    states = {f"x{i}": f"{flow[i - 1]} - {flow[i]}" if i else f"-{flow[0]}" for i in range(n)}
    return Model(states=states, outputs={f"y{i}": f"x{i}" for i in range(0, n, every)}, name=f"chain {n}")


def test_equal_models_share_a_library_and_others_do_not():
    again = Model(states={"x": "-k*x**2"}, outputs={"y": "x**2"})
    assert again is not DECAY
    assert library(again) is library(DECAY)
    assert library(DECAY.replace(fixed={"k": 2.0})) is not library(DECAY)
    assert library(DECAY.replace(outputs={"y": "x"})) is not library(DECAY)


def test_libraries_that_were_not_used_for_long_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    first = library(DECAY)
    library(DECAY.replace(name="second"))
    assert library(DECAY) is first
    library(DECAY.replace(name="third"))
    assert library(DECAY) is first
    assert len(module._LIBRARIES) <= 2


def test_a_fibre_is_found_once():
    own = Library(DECAY)
    found = own.fibre(1)
    assert found is not None
    assert found.complete
    assert own.fibre(1) is found
    assert own.system(1) is found.system


@pytest.mark.parametrize("small", [Budget(work=1e3), Budget.within(0.0)])
def test_what_a_small_budget_ended_is_tried_again_with_a_larger_one(small):
    own = Library(DECAY)
    assert own.fibre(1, small) is None
    assert own.reason(1)
    found = own.fibre(1, Budget.within(60.0))
    assert found is not None
    assert found.complete
    assert own.reason(1) == ""


def test_what_the_largest_budget_could_not_do_is_not_tried_again(monkeypatch):
    attempts = []
    monkeypatch.setattr(module, "least", lambda *_, **__: attempts.append(1) or _refuse())
    own = Library(DECAY)
    assert own.fibre(1) is None
    assert own.fibre(1) is None
    assert own.reason(1) == "too large"
    assert len(attempts) == 1


def _refuse() -> None:
    raise OutOfBudget("too large")


@pytest.mark.parametrize(("n", "every"), [(80, 1), (80, 3)])
def test_systems_that_are_out_of_reach_are_refused_by_an_estimate(n, every, monkeypatch):
    monkeypatch.setenv(msolve.VARIABLE, "")  # its seconds count as work, and vary
    own = Library(chain(n, every))
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
        Library(chain(80, 79)).system(1, budget)
    assert budget.left > 1e8


def test_too_few_times_for_the_derivatives_that_are_needed_are_told_at_once():
    own = Library(chain(5, 4))
    needed = own.least(1).highest
    assert own.fibre(1, highest=needed - 1) is None
    assert own.reason(1) == f"it needs derivatives of order {needed}, and there are {needed} different times"
    assert not own._systems  # nothing was counted
    assert Library(DECAY).fibre(1, highest=1) is not None
