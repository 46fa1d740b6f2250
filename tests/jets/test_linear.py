"""Factors and solutions of several complex systems at once, against NumPy."""

import numpy as np
import pytest
from numba import njit

from odejet.jets.lanes import padded, pointer
from odejet.jets.linear import factor, factor_in_order, solve, solve_many, solve_many_complex, systems_of


@njit
def solved(matrices, pivots, filled, counts, right, one):
    """The solutions of the systems in all lanes for many right-hand sides each, in place, and for one."""
    systems, columns = systems_of(matrices, pivots, filled, counts), right.shape[3]
    regular = factor(systems)
    if regular:
        solve(systems, pointer(one))
        solve_many(systems, pointer(right[0, 0]), columns)
        for q in range(1, len(right)):
            solve_many_complex(systems, q, pointer(right[q, 0]), pointer(right[q, 1]), columns)
    return regular


def lists(size):
    return np.zeros(size, np.int64), np.zeros((size, size), np.int64), np.zeros((size, 2), np.int64)


@pytest.mark.parametrize(("size", "systems"), [(1, 2), (9, 3), (39, 5)])
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_linear_systems_agree_with_numpy(size, systems, density):
    rng = np.random.default_rng(size)
    matrix = rng.standard_normal((size, size)) * np.geomspace(1, 1e8, size) * (rng.random((size, size)) < density)
    rates = np.r_[3.0, rng.standard_normal(systems - 1) + 1j * rng.standard_normal(systems - 1)]
    lanes, columns = padded(systems), 8
    matrices = np.zeros((size, size, 2, lanes))
    matrices[:, :, 0], shifts = matrix[:, :, None], np.r_[rates, np.full(lanes - systems, 3.0)]
    matrices[np.arange(size), np.arange(size)] += np.stack([shifts.real, shifts.imag])
    right = rng.standard_normal((systems, 2, size, columns))
    right[0, 1] = 0
    found, one = right.copy(), np.zeros((size, 2, lanes))
    one[:, :, :systems] = right[:, :, :, 0].transpose(2, 1, 0)
    assert solved(matrices, *lists(size), found, one)
    for q in range(systems):
        whole = matrix + rates[q] * np.eye(size)
        for solution in (found[q, 0] + 1j * found[q, 1], (one[:, 0, q] + 1j * one[:, 1, q])[:, None]):
            asked = (right[q, 0] + 1j * right[q, 1])[:, : solution.shape[1]]
            assert np.all(np.abs(whole @ solution - asked) <= 1e-11 * (np.abs(whole) @ np.abs(solution)))


@njit
def solved_in_order(matrices, pivots, filled, counts, rows, below, one):
    systems = systems_of(matrices, pivots, filled, counts)
    regular = factor_in_order(systems, pointer(rows), pointer(below))
    if regular:
        solve(systems, pointer(one))
    return regular


@pytest.mark.parametrize("weight", [1.0, 1e7])
def test_factors_by_lists_of_entries_agree_with_numpy_while_the_diagonal_serves(weight):
    """An arrow: its last row and column and its diagonal; a last row that is much larger asks for other pivots."""
    size, rng = 7, np.random.default_rng(0)
    matrix = np.diag(rng.uniform(1, 2, size))
    matrix[-1, :-1], matrix[:-1, -1] = weight * rng.uniform(1, 2, size - 1), rng.uniform(1, 2, size - 1)
    pivots, filled, counts = lists(size)
    _, rows, _ = lists(size)
    pivots[:], filled[:-1, 0], filled[-1, :-1] = np.arange(size), size - 1, np.arange(size - 1)
    counts[:-1], counts[-1] = (0, 1), (size - 1, size - 1)
    rows[:-1, 0], below = size - 1, np.r_[np.ones(size - 1, np.int64), 0]
    matrices, one = np.zeros((size, size, 2, 4)), rng.standard_normal((size, 2, 4))
    matrices[:, :, 0], right = matrix[:, :, None], one[:, 0, 0] + 1j * one[:, 1, 0]
    assert solved_in_order(matrices, pivots, filled, counts, rows, below, one) == (weight == 1)
    if weight == 1:
        np.testing.assert_allclose(matrix @ (one[:, 0, 0] + 1j * one[:, 1, 0]), right, rtol=1e-12)


@pytest.mark.parametrize("entry", [1.0, np.inf, np.nan])
def test_what_has_no_solution_is_told(entry):
    matrices = np.full((2, 2, 2, 4), entry)
    assert not solved(matrices, *lists(2), np.ones((2, 2, 2, 4)), np.ones((2, 2, 4)))


@pytest.mark.parametrize("sizes", [(1.0, 1.0), (1e-12, 1.0), (1.0, 1e-12)])
def test_pivots_beside_the_diagonal_are_taken_where_that_is_small(sizes):
    """Two states of which each drives the other, with a diagonal that may nearly vanish."""
    matrix = np.array([[sizes[0], 2.0], [3.0, sizes[1]]])
    matrices, one = np.zeros((2, 2, 2, 4)), np.zeros((2, 2, 4))
    matrices[:, :, 0], one[:, 0] = matrix[:, :, None], np.array([[1.0], [2.0]])
    assert solved(matrices, *lists(2), np.zeros((1, 2, 2, 4)), one)
    np.testing.assert_allclose(one[:, 0, 0], np.linalg.solve(matrix, [1.0, 2.0]), rtol=1e-12)
    np.testing.assert_array_equal(one[:, 1], 0)
