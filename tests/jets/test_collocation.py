"""The linear algebra and the rule of collocation against NumPy, and its trajectories against closed forms."""

import numpy as np
import pytest
from numba import njit

from odejet.jets.collocation import factor, radau, solve
from odejet.model import Model
from odejet.simulate.flow import Flow, Outcome


@njit
def solved(matrix, pivots, right):
    regular = factor(matrix, pivots)
    if regular:
        solve(matrix, pivots, right)
    return regular


@pytest.mark.parametrize(("size", "columns"), [(1, 1), (9, 4), (39, 8)])
def test_linear_systems_agree_with_numpy(size, columns):
    rng = np.random.default_rng(size)
    matrix = rng.standard_normal((size, size)) * np.geomspace(1, 1e8, size)
    right = rng.standard_normal((size, columns))
    solution = right.copy()
    assert solved(matrix.copy(), np.empty(size, np.int64), solution)
    assert np.all(np.abs(matrix @ solution - right) <= 1e-12 * (np.abs(matrix) @ np.abs(solution)))


@pytest.mark.parametrize("matrix", [np.ones((2, 2)), np.full((2, 2), np.inf), np.full((2, 2), np.nan)])
def test_what_has_no_solution_is_told(matrix):
    assert not solved(matrix.copy(), np.empty(2, np.int64), np.ones((2, 1)))


@pytest.mark.parametrize("stages", [5, 9, 13])
def test_the_rule_integrates_polynomials_of_its_degree_exactly(stages):
    rule = radau(stages)
    powers = np.arange(stages)
    np.testing.assert_allclose(
        rule.matrix @ rule.points[:, None] ** powers, rule.points[:, None] ** (powers + 1) / (powers + 1), atol=1e-14
    )
    # The last row is the quadrature of Radau, exact to degree 2 s - 2.
    for power in range(2 * stages - 1):
        assert rule.matrix[-1] @ rule.points**power == pytest.approx(1 / (power + 1), abs=1e-14)


def test_states_at_rest_drive_stiff_ones_and_pass_on_their_sensitivity():
    """x' = -k (x - z) with z' = 0: x = z + (x0 - z) exp(-k t), and every derivative of it."""
    times = np.linspace(0, 3, 7)[1:]
    found = Flow(Model({"x": "-k*(x - z)", "z": "0"}, {"y": "x*z"})).run([1e5], [2.0, 0.7], times, start=0.0)
    assert found.outcome is Outcome.COMPLETED
    assert "collocation" in found.method
    np.testing.assert_allclose(found.outputs[:, 0, 0], 0.49, rtol=1e-12)
    np.testing.assert_allclose(found.states[:, 0, 1:], [[0, 1, 0]] * 6, atol=1e-12)
    np.testing.assert_allclose(found.outputs[:, 0, 2], 1.4, rtol=1e-12)


def test_series_take_over_again_where_implicit_steps_do_not_pay():
    """A fast oscillation needs short steps of any method: a trial of collocation is given up soon."""
    times = np.linspace(0, 30, 41)
    found = Flow(Model({"p": "w*q", "q": "-w*p"}, {"y": "p"})).run([400.0], [0.0, 1.0], times)
    assert found.outcome is Outcome.COMPLETED
    assert "collocation" in found.method
    assert found.steps > 500
    np.testing.assert_allclose(found.states[:, 0, 0], np.sin(400 * times), atol=1e-9)
    np.testing.assert_allclose(found.states[:, 0, -1], times * np.cos(400 * times), atol=1e-7)
