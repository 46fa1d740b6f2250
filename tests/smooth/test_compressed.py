"""Standardised data and their compressed form, against a plain QR."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.smooth import DataError, standardise
from odejet.smooth.compressed import BLOCK_ROWS, chebyshev_rows


@pytest.mark.parametrize(("times", "distinct"), [([0, 1, 1, 1], 2), ([], 0)])
def test_too_few_times_are_refused(times: list[float], distinct: int) -> None:
    with pytest.raises(
        DataError, match=f"only {distinct} different times have a measurement; smoothing needs at least 4"
    ):
        standardise(times, times)


def test_blocks_give_the_factor_of_the_whole_design() -> None:
    rng = np.random.default_rng(0)
    n, size = 2 * BLOCK_ROWS + 137, 20
    times = np.sort(rng.uniform(0, 5, n))
    data = standardise(times, np.sin(times) + 0.1 * rng.standard_normal(n))
    compressed = data.compressed(size)
    basis = data.orthonormal(size)
    design = chebyshev_rows(data.x(data.times), size)
    assert np.allclose(basis.T @ basis, np.eye(size), atol=1e-13)
    assert np.allclose(basis @ compressed.factor, design, atol=1e-12)
    assert np.allclose(basis.T @ data.standardised, compressed.coordinates, atol=1e-11)
    left = np.linalg.norm(data.standardised - basis @ compressed.coordinates)
    assert compressed.residual == pytest.approx(left, rel=1e-10)


def test_leading_parts_are_the_factors_of_smaller_bases() -> None:
    times = np.linspace(0, 1, 100)
    data = standardise(times, np.exp(times))
    factor, coordinates, tail = data.compressed(30).leading(10)
    smaller = standardise(times, np.exp(times)).compressed(10)
    assert np.allclose(np.abs(factor), np.abs(smaller.factor), atol=1e-12)
    assert np.allclose(np.abs(coordinates), np.abs(smaller.coordinates), atol=1e-12)
    assert tail == pytest.approx(smaller.residual**2, abs=1e-12)


@pytest.mark.parametrize("n", [750, 751])
def test_the_inverse_holds_for_an_ill_conditioned_factor(n: int) -> None:
    """Polynomials of degrees far above the root of the number of equispaced points are nearly dependent."""
    compressed = standardise(np.linspace(0, 1, n), np.sin(np.linspace(0, 40, n))).compressed(380)
    assert np.linalg.cond(compressed.factor) > 1e10
    left = np.abs(compressed.factor @ compressed.inverse - np.eye(380)).max()
    assert left < 1e-13 * np.abs(compressed.inverse).max()


@given(st.floats(-0.999, 0.999), st.integers(1, 300))
def test_basis_equals_cosines(x: float, size: int) -> None:
    expected = np.cos(np.arange(size) * np.arccos(x))
    whole = chebyshev_rows(np.array([x]), size)[0]
    assert np.abs(whole - expected).max() < 1e-12
    for parity in (0, 1):
        assert np.abs(chebyshev_rows(np.array([x]), size, parity)[0] - expected[parity::2]).max(initial=0) < 1e-12


@given(st.integers(4, 30), st.integers(0, 2**32 - 1), st.booleans())
def test_symmetric_times_give_the_factor_of_the_whole_design(n: int, seed: int, known: bool) -> None:
    rng = np.random.default_rng(seed)
    half = np.sort(rng.uniform(0.01, 1, n))
    times = np.concatenate([-half[::-1], [0.0] * (seed % 3), half])
    sds = None if not known else 1.0 + np.cos(times)
    data = standardise(times, rng.standard_normal(len(times)), sds)
    assert data.symmetric
    size = min(8, n)
    compressed, basis = data.compressed(size), data.orthonormal(size)
    design = chebyshev_rows(data.x(data.times), size) * np.broadcast_to(data.weights, times.shape)[:, None]
    assert np.allclose(basis.T @ basis, np.eye(size), atol=1e-12)
    assert np.allclose(basis @ compressed.factor, design, atol=1e-11 * np.abs(design).max())
    assert np.allclose(basis.T @ data.standardised, compressed.coordinates, atol=1e-10)
    assert np.all(compressed.factor[0::2, 1::2] == 0)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.floats(0.1, 10))
def test_standardising_removes_units(offset: float, scale: float, start: float, span: float) -> None:
    x = np.linspace(-1, 1, 40)
    plain = standardise(x, np.cos(3 * x)).compressed(8)
    moved = standardise(start + span * x, offset + scale * np.cos(3 * x)).compressed(8)
    assert np.allclose(plain.coordinates, moved.coordinates, atol=1e-4 * max(1.0, abs(offset) / scale / 1e6))
