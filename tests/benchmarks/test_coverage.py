"""The statistics of the coverage tables, on numbers whose answer is known."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.coverage import share, whitened, wilks


def test_a_joint_test_is_fair():
    """P-values of draws that have the covariance are uniform."""
    rng = np.random.default_rng(1)
    values = [wilks(rng.normal(size=(200, 4))) for _ in range(300)]
    assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("change", [np.diag([1.3, 1, 1]), np.array([[1, 0.3, 0], [0, 1, 0], [0, 0, 1]])])
def test_a_joint_test_sees_what_is_not_so(change):
    draws = np.random.default_rng(2).normal(size=(500, 3))
    assert wilks(draws @ change) < 1e-4


def test_whitening_undoes_sensitivity_and_covariance():
    class Law:
        sensitivity = np.array([[1e6, 2.0], [3.0, 1e-4]])
        covariance_of_derivatives = np.array([[4.0, 1e-3], [1e-3, 1e-6]])

    draws = np.random.default_rng(3).normal(size=(20, 2))
    root = np.linalg.cholesky(Law.covariance_of_derivatives)
    np.testing.assert_allclose(whitened(draws @ root.T @ Law.sensitivity.T, Law), draws, rtol=1e-6, atol=1e-8)


def test_standard_errors_are_over_trials():
    """Quantities of one fit that all hit or all miss count as one."""
    lines = [{"n": 5, "hits": 5}] * 9 + [{"n": 5, "hits": 0}]
    mean, error, count = share(lines, "n", "hits")
    assert (mean, count) == (pytest.approx(90), 50)
    assert error == pytest.approx(100 * np.sqrt(0.9 * 0.1 / 10))
