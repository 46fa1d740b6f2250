"""Ways down by gradients alone, and where least squares take over."""

import math
from dataclasses import replace

import numpy as np
import pytest

from odejet.objective import backward
from odejet.problem import coordinates
from odejet.search import quasi_newton
from odejet.search.refine import refine
from problems.chains import drawn_chain


@pytest.fixture
def chain():
    """A chain of 15 reactions with 45 unknowns, and values near the true ones."""
    subject, truth = drawn_chain(15, 1)
    misfit = subject.problem.misfit
    z = np.array([truth[unknown.name] for unknown in misfit.unknowns])
    return misfit, z, z * np.random.default_rng(2).uniform(0.9, 1.1, len(z))


def test_gradients_lead_where_there_are_many_unknowns_and_a_way_back(chain, monkeypatch):
    misfit, _, _ = chain
    assert backward.pays(misfit) and not quasi_newton.serves(misfit)
    monkeypatch.setattr(quasi_newton, "SETTINGS", replace(quasi_newton.SETTINGS, unknowns=40))
    assert quasi_newton.serves(misfit)
    assert not quasi_newton.serves(drawn_chain(5, 1)[0].problem.misfit)


def test_the_end_is_the_optimum_of_least_squares(chain, monkeypatch):
    misfit, truth, start = chain
    frame = coordinates.choose(misfit.unknowns, start, None, True, {})
    exact = refine(misfit, truth, frame=frame)
    monkeypatch.setattr(quasi_newton, "SETTINGS", replace(quasi_newton.SETTINGS, unknowns=40))
    z, spent = quasi_newton.descend(misfit, frame, start, math.inf, 60)
    value = backward.value_and_gradient(misfit, z, math.inf)
    begun = backward.value_and_gradient(misfit, start, math.inf)
    assert value[0] < exact.cost + 0.05 * (begun[0] - exact.cost) and 0 < spent <= 60
    found = refine(misfit, start, frame=frame)
    assert found.cost == pytest.approx(exact.cost, abs=1e-3) and found.ending.settled
    assert found.start == pytest.approx(start)


def test_limits_of_time_and_evaluations_hold(chain):
    misfit, _, start = chain
    frame = coordinates.choose(misfit.unknowns, start, None, True, {})
    z, spent = quasi_newton.descend(misfit, frame, start, 0.0, 60)
    assert z == pytest.approx(start) and spent == 0
    _, spent = quasi_newton.descend(misfit, frame, start, math.inf, 1)
    assert spent == 1


def test_a_start_without_a_simulation_is_left_as_it_is(chain, monkeypatch):
    misfit, _, start = chain
    frame = coordinates.choose(misfit.unknowns, start, None, True, {})
    monkeypatch.setattr(backward, "value_and_gradient", lambda *_: None)
    z, spent = quasi_newton.descend(misfit, frame, start, math.inf, 60)
    assert z == pytest.approx(start) and spent == 1
