"""Termination: what is spent, and when nothing is gained any more."""

from __future__ import annotations

import math

import pytest

from odejet.objective.evaluation import Evaluation
from odejet.search.termination import Allowance, Creep, Ending
from odejet.simulate.flow import Outcome


def evaluation(work: int) -> Evaluation:
    return Evaluation(None, None, Outcome.COMPLETED, "", 0.0, work=work)


def test_long_simulations_count_as_several():
    spent = Allowance(math.inf, 10)
    spent.charge(evaluation(1))
    assert (spent.evaluations, spent.used, spent.left) == (1, 1, 9) and spent.over() is None
    spent.charge(evaluation(29))
    assert spent.used == 10 and spent.over() is Ending.EVALUATION_LIMIT


def test_time_goes_before_the_count():
    assert Allowance(-math.inf, 0).over() is Ending.TIME_LIMIT


def test_another_refinement_is_charged_whole():
    spent, other = Allowance(math.inf, 100, 3, 4), Allowance(math.inf, 100, 20, 30)
    spent.charge_all(other)
    assert (spent.evaluations, spent.work) == (23, 34)


@pytest.mark.parametrize(("gain", "creeps"), [(0.0, True), (0.9e-4, True), (1.1e-4, False)])
def test_thirty_evaluations_without_gain_are_a_creep(gain, creeps):
    creep = Creep()
    for evaluations in range(0, 30, 3):
        assert not creep.creeps(evaluations, 5.0, 1.0)
    assert creep.creeps(30, 5.0 - gain, 1.0) == creeps


def test_what_is_gained_counts_beside_the_noise():
    creep = Creep()
    creep.creeps(0, 5.0, 100.0)
    assert creep.creeps(30, 5.0 - 5e-3, 100.0)
