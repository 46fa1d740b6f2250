"""Outliers: the same numbers as refits without a point and as SciPy, and rarely noise taken for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from odejet.decide.outliers import deviations, far, largest_p, tails_p

TIMES = np.linspace(-1, 1, 30)
DESIGN = np.stack([np.ones(30), TIMES, TIMES**2], axis=1)


def regression(values: np.ndarray, design: np.ndarray = DESIGN) -> tuple[np.ndarray, np.ndarray, float]:
    """Residuals in units of their noise level, leverages and degrees of freedom of a parabola."""
    basis, _ = np.linalg.qr(design)
    residuals = basis @ (basis.T @ values) - values
    degrees = len(values) - design.shape[1]
    return residuals / np.sqrt(residuals @ residuals / degrees), (basis**2).sum(axis=1), degrees


@given(st.integers(0, 29), st.integers(0, 1000))
def test_a_deviation_is_that_from_a_fit_without_the_point(place, seed):
    values = np.random.default_rng(seed).standard_normal(30)
    found = deviations(*regression(values), known=False)[place]
    rest = np.delete(np.arange(30), place)
    solution, squares, *_ = np.linalg.lstsq(DESIGN[rest], values[rest], rcond=None)
    spread = np.sqrt(squares[0] / (29 - 3))
    own = DESIGN[place] @ np.linalg.solve(DESIGN[rest].T @ DESIGN[rest], DESIGN[place])
    assert found == pytest.approx((DESIGN[place] @ solution - values[place]) / (spread * np.sqrt(1 + own)), rel=1e-8)


def test_the_largest_of_many_is_judged_as_such():
    rng = np.random.default_rng(1)
    least = []
    for _ in range(400):
        residuals, leverages, degrees = regression(rng.standard_normal(30))
        least.append(largest_p(deviations(residuals, leverages, degrees, False), degrees, False).min())
    assert 0.02 < np.mean(np.array(least) < 0.05) < 0.08


def test_where_the_noise_is_known_deviations_are_normal():
    residuals = np.array([0.5, -1.0, 4.5, 0.0])
    found = largest_p(deviations(residuals, np.zeros(4), 4, True), 4, True)
    np.testing.assert_allclose(found, np.minimum(4 * 2 * stats.norm.sf(np.abs(residuals)), 1.0), rtol=1e-12)


def test_too_few_degrees_judge_nothing():
    residuals, leverages, degrees = regression(np.array([0.0, 1.0, 0.0, 5.0, 0.0]), DESIGN[[0, 7, 15, 22, 29]])
    assert degrees == 2
    assert np.all(largest_p(deviations(residuals, leverages, degrees, False), degrees, False) == 1.0)


@pytest.mark.parametrize("size", [20, 60, 750])
def test_tails_are_judged_as_scipy_does(size):
    rng = np.random.default_rng(size)
    for values in (rng.standard_normal(size), rng.standard_t(3, size), rng.uniform(size=size)):
        expected = stats.kurtosistest(values, alternative="greater").pvalue
        assert tails_p(values) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_a_few_residuals_have_no_tails():
    assert tails_p(np.array([0.0, 0.0, 100.0])) == 1.0
    assert tails_p(np.zeros(100)) == 1.0


def test_what_is_far_does_not_hide_behind_others_that_are():
    values = np.random.default_rng(2).standard_normal(100)
    values[::10] += 1000
    assert far(values).tolist() == [i % 10 == 0 for i in range(100)]


def test_the_largest_is_far_if_nothing_else_is():
    assert far(np.array([0.0, 1.0, -1.0, 2.5, -1.5])).tolist() == [False, False, False, True, False]
