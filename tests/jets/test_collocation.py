"""The linear systems of collocation against NumPy."""

import numpy as np
import pytest

from odejet.jets.collocation import eliminate, radau


@pytest.mark.parametrize("states", [1, 3, 6])
def test_elimination_agrees_with_numpy(states):
    rng = np.random.default_rng(states)
    rule, h = radau(), 0.7
    jacobians = rng.standard_normal((9, states, states)) * np.geomspace(1, 1e8, states)[:, None]
    scales = np.geomspace(1e-6, 1, states)
    right = rng.standard_normal((9, states, 4))
    solution, regular = eliminate(rule.matrix, h, jacobians, scales, right)
    blocks = rule.matrix[:, None, :, None] * jacobians.transpose(1, 0, 2)[None]
    whole = np.eye(9 * states) - h * blocks.reshape(9 * states, 9 * states)
    assert regular
    left = (whole @ solution.reshape(9 * states, 4)).reshape(right.shape)
    size = (np.abs(whole) @ np.abs(solution.reshape(9 * states, 4))).reshape(right.shape)
    assert np.all(np.abs(left - right) <= 1e-12 * size)


def test_what_has_no_solution_is_told():
    rule = radau()
    for jacobians in (np.full((9, 2, 2), np.inf), np.full((9, 2, 2), np.nan)):
        assert not eliminate(rule.matrix, 1.0, jacobians, np.ones(2), np.ones((9, 2, 1)))[1]
    assert not eliminate(np.eye(9), 1.0, np.repeat(np.eye(2)[None], 9, 0), np.ones(2), np.ones((9, 2, 1)))[1]
