"""Curvature: what steps teach of second derivatives, and when it is used."""

from __future__ import annotations

import numpy as np

from odejet.objective.trust import Solver
from odejet.search.curvature import Curvature

BOUNDS = np.full(2, -np.inf), np.full(2, np.inf)


def solver(residual: tuple[float, float] = (1.0, 1.0)) -> Solver:
    return Solver(np.eye(2), np.array(residual), *BOUNDS)


def test_a_step_of_the_curved_model_is_newtons():
    """With J = 1 and S = 1 the Hessian is 2: half the step of Gauss and Newton."""
    curvature = Curvature(np.eye(2), used=True)
    np.testing.assert_allclose(curvature.step(solver(), 10.0).move, [-0.5, -0.5], rtol=1e-9)
    curvature.used = False
    np.testing.assert_allclose(curvature.step(solver(), 10.0).move, [-1.0, -1.0], rtol=1e-9)


def test_the_model_that_knew_better_is_used():
    curvature = Curvature(np.eye(2))
    step = curvature.step(solver(), 10.0)
    curvature.judge(solver(), step, actual=0.0)  # the linear model predicts 1, the curved one nothing
    assert curvature.used
    curvature.judge(solver(), step, actual=1.0)
    assert not curvature.used


def test_learning_satisfies_the_secant_equation():
    curvature, move = Curvature.of_size(2), np.array([1.0, -2.0])
    change = np.array([3.0, 1.0])
    curvature.learn(move, change + move, change)
    np.testing.assert_allclose(curvature.matrix @ move, change, rtol=1e-12)
    np.testing.assert_allclose(curvature.matrix, curvature.matrix.T)
    curvature.forget()
    assert not curvature.matrix.any() and not curvature.used


def test_none_is_kept_for_blocks():
    empty = Curvature.of_size(0)
    assert not empty
    empty.judge(solver(), empty.step(solver(), 1.0), 0.0)
    assert not empty.used
