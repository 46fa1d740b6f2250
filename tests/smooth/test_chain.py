"""The chain: determinants and quadratic forms for any noise, against dense linear algebra in many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.smooth.chain import Chain, chain, links
from odejet.smooth.evidence import _maximise, best_ratio


def likelihood(factors: list[np.ndarray], data: list[np.ndarray], ratio: float, outside: float, points: int) -> float:
    """Minus twice the log marginal likelihood, maximised over the signal variance, in 60 digits."""
    with mpmath.workdps(60):
        total, determinant, rows = mpmath.mpf(outside) / mpmath.mpf(ratio), mpmath.mpf(0), 0
        for factor, z in zip(factors, data, strict=True):
            a, vector = mpmath.matrix(factor.tolist()), mpmath.matrix(z.tolist())
            matrix = a * a.T + mpmath.mpf(ratio) * mpmath.eye(len(z))
            total += (vector.T * mpmath.lu_solve(matrix, vector))[0]
            determinant += mpmath.log(mpmath.det(matrix))
            rows += len(z)
        determinant += (points - rows) * mpmath.log(mpmath.mpf(ratio))
        return float(determinant + points * (mpmath.log(2 * mpmath.pi * total / points) + 1))


def deviance(log_ratio: float, reduced: Chain, outside: float, points: int) -> float:
    """The same by the kernel: the best of a grid of one."""
    return -2.0 * _maximise(*reduced, outside, points, False, 1, np.full((6, 1), log_ratio))[2]


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.floats(-70, 5), st.integers(0, 2**32 - 1))
def test_deviance_equals_mpmath(rows: int, columns: int, other: int, log_ratio: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((rows, columns)), rng.standard_normal((other, other))]
    data = [rng.standard_normal(rows), rng.standard_normal(other)]
    points, outside = rows + other + 3, 0.7
    reduced = chain(list(zip(factors, data, strict=True)))
    found = deviance(log_ratio, reduced, outside, points)
    expected = likelihood(factors, data, float(np.exp(log_ratio)), outside, points)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_priors_of_very_different_sizes_keep_their_digits() -> None:
    """Variances over thirty decades, as those of a smooth kernel: squaring the factor would lose half of them."""
    rng = np.random.default_rng(1)
    factor = np.linalg.qr(rng.standard_normal((12, 12)))[0] * 10.0 ** -np.linspace(0, 15, 12)
    z = factor @ rng.standard_normal(12)
    for log_ratio in (-72.0, -50.0, -20.0, 0.0):
        found = deviance(log_ratio, chain([(factor, z)]), 1e-28, 20)
        assert found == pytest.approx(likelihood([factor], [z], float(np.exp(log_ratio)), 1e-28, 20), abs=1.0)


def test_links_are_a_chain_of_a_diagonal_factor() -> None:
    rng = np.random.default_rng(2)
    variances, data = rng.random(9), rng.standard_normal(9)
    direct = best_ratio(links(variances, data), 0.3, 14, False)
    reduced = best_ratio(chain([(np.diag(np.sqrt(variances)), data)]), 0.3, 14, False)
    assert reduced.evidence == pytest.approx(direct.evidence, abs=1e-9)
    assert reduced.noise == pytest.approx(direct.noise, rel=1e-2)
