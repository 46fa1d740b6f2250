"""Factors of arrows beside those of the same matrices as a whole."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odejet as oj
from odejet.decide.certificate import is_vague
from odejet.decide.statistics import check
from odejet.objective.factor import ArrowFactor, count_below
from odejet.objective.jacobian import Block
from odejet.search.refine import refine
from odejet.uncertainty.fisher import fisher


def arrow(seed: int, blocks: int, local: int, shared: int, rows: int) -> tuple[np.ndarray, list[Block], np.ndarray]:
    """A random matrix, shared columns first, with columns of very different sizes."""
    rng = np.random.default_rng(seed)
    whole, layout = np.zeros((blocks * rows, shared + blocks * local)), []
    border = np.arange(shared)
    for e in range(blocks):
        here, own = np.arange(e * rows, (e + 1) * rows), shared + e * local + np.arange(local)
        columns = np.concatenate([border, own])
        whole[np.ix_(here, columns)] = rng.standard_normal((rows, shared + local))
        layout.append(Block(here, columns, rows, columns))
    return whole * 10 ** rng.uniform(-3, 3, whole.shape[1]), layout, border


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3), st.integers(0, 3))
def test_an_arrow_has_the_projector_and_the_covariance_of_the_whole(seed, blocks, local, shared):
    whole, layout, border = arrow(seed, blocks, local, shared, 7)
    found = ArrowFactor.of(whole, layout, border)
    assert found is not None and found.rank == whole.shape[1]
    q = np.linalg.qr(whole / np.sqrt((whole**2).sum(axis=0)))[0]
    leverages = np.zeros(len(whole))
    for block in found.blocks:
        leverages[block.rows] = (block.own**2).sum(axis=1) + (block.border**2).sum(axis=1)
    np.testing.assert_allclose(leverages, (q**2).sum(axis=1), rtol=1e-9, atol=1e-12)
    half = len(whole) // 2
    first, second = found.root(slice(0, half), 2.0), found.root(slice(half, len(whole)), 1.0)
    inverse = np.linalg.pinv(whole, rcond=1e-14)
    noise = np.diag(np.where(np.arange(len(whole)) < half, 4.0, 1.0))
    sds = np.sqrt(np.diag(inverse @ noise @ inverse.T))
    scale = np.outer(sds, sds)
    np.testing.assert_allclose(
        (first.T @ first + second.T @ second) / scale, inverse @ noise @ inverse.T / scale, atol=1e-6
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3), st.integers(0, 3), st.floats(0.05, 20))
def test_small_singular_values_are_counted_by_blocks(seed, blocks, local, shared, least):
    whole, layout, border = arrow(seed, blocks, local, shared, 7)
    whole /= np.sqrt((whole**2).sum(axis=0)) / 3
    values = np.linalg.svd(whole, compute_uv=False)
    if np.abs(values / least - 1).min() > 1e-6:
        assert count_below(whole, layout, border, least) == np.count_nonzero(values < least)


def test_a_matrix_that_lacks_rank_is_left_to_singular_values():
    whole, layout, border = arrow(1, 4, 2, 2, 7)
    whole[:, border[1]] = whole[:, border[0]]
    assert ArrowFactor.of(whole, layout, border) is None
    whole, layout, border = arrow(1, 4, 2, 2, 7)
    whole[:, 4] = 0
    assert ArrowFactor.of(whole, layout, border) is None
    free = np.ones(whole.shape[1], dtype=bool)
    free[4] = False
    found = ArrowFactor.of(whole, layout, border, free)
    assert found is not None and found.rank == whole.shape[1] - 1


@pytest.mark.parametrize("noise", [None, "lognormal"])
def test_a_fit_of_many_experiments_is_judged_as_the_same_without_blocks(noise):
    rng, times = np.random.default_rng(3), np.linspace(0, 4, 9)
    model = oj.Model({"x": "-k*x", "w": "k*x - r*w"}, {"y": "x", "z": "w"}, initial={"w": 0.1})
    experiments = []
    for i in range(25):
        x, k = rng.uniform(1, 3), rng.uniform(0.4, 0.8)
        shown = oj.simulate(model, {"k": k, "r": 0.3}, {"x": x}, times).outputs
        noisy = {name: values * np.exp(0.03 * rng.standard_normal(9)) for name, values in shown.items()}
        experiments.append(oj.Data(times, noisy, name=f"e{i}").experiments[0])
    options = {} if noise is None else {"noise": noise}
    problem = oj.Problem(model, oj.Data.of(experiments), local=["k"], **options)
    misfit, frame = problem.misfit, problem.frame()
    assert misfit.in_blocks
    start = np.array([0.3 if label == "r" else 0.6 if label.startswith("k") else 2.0 for label in misfit.labels])
    best = refine(misfit, start, frame=frame)
    whole = problem.misfit.window(1.0)
    whole.__dict__["in_blocks"] = False
    by_blocks, as_whole = check(misfit, best), check(whole, best)
    assert by_blocks.rank == as_whole.rank and math.isclose(by_blocks.aic, as_whole.aic)
    for one, other in zip(by_blocks.outputs, as_whole.outputs, strict=True):
        assert math.isclose(one.degrees_of_freedom, other.degrees_of_freedom, rel_tol=1e-9)
        assert math.isclose(one.autocorrelation_z, other.autocorrelation_z, rel_tol=1e-6, abs_tol=1e-9)
        assert math.isclose(one.outlier_p, other.outlier_p, rel_tol=1e-6)
    assert is_vague(misfit, best, frame) == is_vague(whole, best, frame)
    found, expected = fisher(misfit, best, by_blocks), fisher(whole, best, as_whole)
    np.testing.assert_allclose(list(found.stderr.values()), list(expected.stderr.values()), rtol=1e-7)
    np.testing.assert_allclose(
        list(found.degrees_of_freedom.values()), list(expected.degrees_of_freedom.values()), rtol=1e-7
    )
