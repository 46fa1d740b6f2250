"""Kernels against mpmath: derivatives, spectral densities and the constants kappa_j."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet.smooth import Kernel
from tests.smooth.error_law import kappa

KERNELS = [Kernel(0.7), Kernel(0.7, 0.5), Kernel(1.3, 2.0), Kernel(0.2, 30.0)]


def exact_kernel(kernel: Kernel):
    """The kernel in mpmath, as a function of r."""
    length = mpmath.mpf(kernel.length)
    if np.isinf(kernel.alpha):
        return lambda r: mpmath.exp(-(r**2) / (2 * length**2))
    alpha = mpmath.mpf(kernel.alpha)
    return lambda r: (1 + r**2 / (2 * alpha * length**2)) ** (-alpha)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("r", [0.0, 0.3, -1.1, 2.5])
def test_derivatives_equal_mpmath(kernel: Kernel, r: float) -> None:
    with mpmath.workdps(40):
        taylor = mpmath.taylor(exact_kernel(kernel), mpmath.mpf(r), 12)
        expected = np.array([float(c * mpmath.factorial(j)) for j, c in enumerate(taylor)])
    found = kernel.derivatives(np.array([r]), 12)[:, 0]
    sizes = np.array([kappa(kernel, j) / kernel.length**0 for j in range(13)])
    assert np.all(np.abs(found - expected) <= 1e-11 * np.abs(expected) + 1e-13 * sizes)


@pytest.mark.parametrize("kernel", KERNELS)
def test_spectral_density_integrates_to_the_kernel(kernel: Kernel) -> None:
    u = np.arange(-60.0, 30.0, 0.02)
    omega = np.exp(u) / (1 + np.exp(u) / 400)
    weights = 0.02 * np.exp(u) / (1 + np.exp(u) / 400) ** 2
    density = kernel.spectral_density(omega) * weights
    for r in (0.0, 0.1, 0.9):
        assert np.sum(density * np.cos(omega * r)) == pytest.approx(float(kernel(np.array(r))), abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [0, 1, 4, 9])
def test_kappa_is_the_mixed_derivative_on_the_diagonal(kernel: Kernel, order: int) -> None:
    with mpmath.workdps(40):
        coefficient = mpmath.taylor(exact_kernel(kernel), 0, 2 * order)[-1] * mpmath.factorial(2 * order)
        expected = float(mpmath.sqrt((-1) ** order * coefficient))
    assert kappa(kernel, order) == pytest.approx(expected, rel=1e-12)


@given(st.floats(0.05, 20), st.integers(0, 12))
def test_kappa_of_rational_quadratic_falls_to_squared_exponential(length: float, order: int) -> None:
    limit = kappa(Kernel(length), order)
    values = [kappa(Kernel(length, alpha), order) for alpha in (1.0, 10.0, 1e3, 1e6, 1e10)]
    assert all(a >= b * (1 - 1e-12) for a, b in pairwise(values))
    assert values[-1] == pytest.approx(limit, rel=1e-8)
