"""Scales and offsets of an output: the best within bounds, beside SciPy's."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from odejet.objective.line import LinearOutput, bounded


@pytest.mark.parametrize("seed", range(30))
def test_bounded_least_squares_as_scipy_has_them(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    matrix, right = rng.normal(size=(12, size)), 3 * rng.normal(size=12)
    low = rng.normal(size=size) - 0.3
    high = low + rng.uniform(0.05, 1.0, size)
    ours, theirs = bounded(matrix, right, low, high), lsq_linear(matrix, right, (low, high), method="bvls", tol=1e-14).x
    assert np.all((ours >= low) & (ours <= high))
    squares = [float(np.sum((matrix @ c - right) ** 2)) for c in (ours, theirs)]
    assert squares[0] == pytest.approx(squares[1], rel=1e-9)


def test_columns_that_say_the_same():
    matrix = np.ones((5, 2))
    found = bounded(matrix, np.full(5, 3.0), np.array([0.0, 0.0]), np.array([1.0, 9.0]))
    np.testing.assert_allclose(matrix @ found, 3.0)


def test_a_scale_of_logarithms_that_its_bound_holds_is_exactly_there():
    rng = np.random.default_rng(5)
    for _ in range(300):
        plain = rng.uniform(0.5, 2.0, 8)
        values = 30 * plain * np.exp(rng.normal(size=8))
        # Relative residuals are least for a lower scale, so that the way leads to the bound from within.
        lower, best = (plain / values).sum() / ((plain / values) ** 2).sum(), np.exp(np.log(values / plain).mean())
        low, high = np.array([1e-9]), np.array([rng.uniform(lower, best)])
        numbers = np.zeros(8, dtype=int), np.zeros((8, 0)), np.log(values), values
        line = LinearOutput(slice(0, 8), np.arange(1), *numbers, 1.0, low, high)
        assert line.best(plain, 1.0) == high
