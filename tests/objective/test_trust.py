"""Steps of bounded least squares against SciPy and their own optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from odejet.objective.triangles import triangle
from odejet.objective.trust import Solver, secant


def problem(seed, n=6, condition=1e3):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((40, n)) * np.geomspace(1, 1 / condition, n)
    right = rng.standard_normal(40)
    reduced = triangle(np.column_stack([matrix, right]))
    return matrix, right, reduced[:, :-1], reduced[:, -1]


@pytest.mark.parametrize("seed", range(5))
def test_without_limits_it_is_least_squares(seed):
    matrix, right, r, c = problem(seed)
    step = Solver(r, c, np.full(6, -np.inf), np.full(6, np.inf)).step(1e9)
    expected = np.linalg.lstsq(matrix, -right)[0]
    np.testing.assert_allclose(step.move, expected, rtol=1e-9)
    before, after = right @ right, np.sum((right + matrix @ expected) ** 2)
    assert step.decrease == pytest.approx(0.5 * (before - after), rel=1e-9)
    assert step.damping == 0


def test_condition_beyond_that_of_normal_equations():
    rng = np.random.default_rng(3)
    u, _ = np.linalg.qr(rng.standard_normal((30, 4)))
    v, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    matrix = u @ np.diag([1, 1e-4, 1e-8, 1e-11]) @ v.T
    solution = np.array([1.0, -2, 3, -4])
    r = triangle(np.column_stack([matrix, -matrix @ solution]))
    step = Solver(r[:, :-1], r[:, -1], np.full(4, -np.inf), np.full(4, np.inf)).step(1e9)
    np.testing.assert_allclose(step.move, solution, rtol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_radius_is_met_by_damping(seed):
    _, _, r, c = problem(seed)
    step = Solver(r, c, np.full(6, -np.inf), np.full(6, np.inf)).step(0.3)
    assert step.length == pytest.approx(0.3, rel=0.11)
    stationary = r.T @ (r @ step.move + c) + step.damping * step.move
    np.testing.assert_allclose(stationary, 0, atol=1e-9 * np.abs(r.T @ c).max())


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_kept_and_steps_go_down(seed):
    matrix, right, r, c = problem(seed)
    rng = np.random.default_rng(seed)
    low, high = -rng.uniform(0, 1, 6) * (rng.random(6) < 0.7), rng.uniform(0.01, 1, 6)
    step = Solver(r, c, low, high).step(5.0)
    assert np.all(step.move >= low) and np.all(step.move <= high)
    assert step.decrease >= 0
    best = lsq_linear(matrix, -right, (low - 1e-300, high))
    assert step.decrease <= 0.5 * right @ right - best.cost + 1e-9
    if best.cost < 0.5 * right @ right - 1e-9:
        assert step.decrease > 0


def test_repeated_bounded_steps_end_at_the_bounded_optimum():
    matrix, right, r, c = problem(7)
    low, high = np.full(6, -0.2), np.full(6, 0.3)
    at = np.zeros(6)
    for _ in range(50):
        at = at + Solver(r, c + r @ at, low - at, high - at).step(1.0).move
    expected = lsq_linear(matrix, -right, (low, high), tol=1e-14)
    np.testing.assert_allclose(np.sum((matrix @ at + right) ** 2) / 2, expected.cost, rtol=1e-9)


def test_what_nothing_depends_on_does_not_move():
    _, _, r, c = problem(1)
    r = r.copy()
    r[:, 2] = 0
    step = Solver(r, c, np.full(6, -np.inf), np.full(6, np.inf)).step(1e9)
    assert abs(step.move[2]) < 1e-12 and np.all(np.isfinite(step.move))


def test_the_secant_update_is_symmetric_and_meets_its_equation():
    rng = np.random.default_rng(2)
    half = rng.standard_normal((5, 5))
    move, structured = rng.standard_normal(5), rng.standard_normal(5)
    change = structured + (half @ half.T + 5 * np.eye(5)) @ move
    first = secant(np.zeros((5, 5)), move, change, structured)
    np.testing.assert_allclose(first @ move, structured, rtol=1e-10)
    np.testing.assert_allclose(first, first.T, rtol=1e-12)


def test_the_curved_model_steps_to_the_minimum_of_its_quadratic():
    _, _, r, c = problem(4, condition=10)
    extra = np.diag(np.linspace(-0.1, 3, 6))
    step = Solver(r, c, np.full(6, -np.inf), np.full(6, np.inf)).curved(extra).step(1e9)
    np.testing.assert_allclose((r.T @ r + extra) @ step.move, -r.T @ c, rtol=1e-8)


def test_where_squares_are_too_large_the_linear_model_is_left():
    _, _, r, c = problem(2)
    solver = Solver(1e200 * r, c, np.full(6, -np.inf), np.full(6, np.inf))
    assert solver.curved(np.zeros((6, 6))) is solver
    assert solver.curved(np.full((6, 6), np.nan)) is solver


@pytest.mark.parametrize("unit", [1e-170, 1e170])
def test_the_radius_is_met_where_squares_of_singular_values_are_no_numbers(unit):
    _, _, r, c = problem(0)
    plain = Solver(r, c, np.full(6, -np.inf), np.full(6, np.inf)).step(0.3)
    with np.errstate(over="ignore", under="ignore"):
        step = Solver(unit * r, unit * c, np.full(6, -np.inf), np.full(6, np.inf)).step(0.3)
    np.testing.assert_allclose(step.move, plain.move, rtol=1e-9)


def test_a_radius_below_what_numbers_resolve_leaves_no_step():
    step = Solver(np.eye(2), np.ones(2), np.full(2, -np.inf), np.full(2, np.inf)).step(1e-320)
    np.testing.assert_array_equal(step.move, 0.0)
