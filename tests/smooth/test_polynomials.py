"""Chebyshev least squares, decaying coordinates and their blend: known polynomials and exact derivatives."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Chebyshev

from odejet.budget import Budget
from odejet.smooth import chebyshev, decay, standardise
from odejet.smooth.average import average
from odejet.smooth.smoother import chebyshev_derivatives


@given(st.integers(1, 40), st.floats(-1, 1), st.integers(0, 8))
def test_derivatives_of_the_basis_equal_numpy(size: int, x: float, order: int) -> None:
    found = chebyshev_derivatives(np.array([x]), size, order)[0]
    for k in range(size):
        basis = Chebyshev.basis(k)
        for j in range(order + 1):
            expected = basis.deriv(j)(x) if j else basis(x)
            assert found[j, k] == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(1, k) ** (2 * j))


@pytest.mark.parametrize("x", [-0.83, 0.1, 0.7])
def test_high_derivatives_of_high_degrees_equal_mpmath(x: float) -> None:
    found = chebyshev_derivatives(np.array([x]), 121, 12)[0, :, 120]
    with mpmath.workdps(60):
        taylor = mpmath.taylor(lambda s: mpmath.cos(120 * mpmath.acos(s)), mpmath.mpf(x), 12)
        expected = np.array([float(c * mpmath.factorial(j)) for j, c in enumerate(taylor)])
    sizes = (120 / np.sqrt(1 - x * x)) ** np.arange(13)
    assert np.abs((found - expected) / sizes).max() < 1e-9


@pytest.mark.parametrize("criterion", ["aicc", "bic"])
def test_a_polynomial_is_recognised(criterion: str) -> None:
    rng = np.random.default_rng(2)
    times = np.sort(rng.uniform(2, 5, 200))
    truth = np.polynomial.Polynomial([1.0, -2.0, 0.5, 0.3])
    data = standardise(times, truth(times) + 1e-3 * rng.standard_normal(200))
    fit = chebyshev.fit(data, chebyshev.needed_size(data, Budget())[0], criterion)
    assert fit.degree == 3
    assert fit.noise == pytest.approx(1e-3, rel=0.2)
    jet = fit.jet(3.3, 4)
    for j in range(4):
        assert abs(jet.mean[j] - (truth.deriv(j)(3.3) if j else truth(3.3))) < 5 * jet.sd[j]
    assert jet.mean[4] == 0.0


def test_degree_grows_as_far_as_the_data_need() -> None:
    times = np.linspace(0, 1, 1500)
    data = standardise(times, np.sin(2 * np.pi * 50 * times))
    size, degree = chebyshev.needed_size(data, Budget())
    assert size > 160
    assert degree > 157
    fit = chebyshev.fit(data, size, "bic")
    assert np.abs(fit(np.linspace(0.1, 0.9, 50)) - np.sin(2 * np.pi * 50 * np.linspace(0.1, 0.9, 50))).max() < 1e-6


def test_many_noise_free_points_do_not_ask_for_more_degrees() -> None:
    degrees = []
    for n in (300, 30_000):
        times = np.linspace(0, 10, n)
        degrees.append(chebyshev.needed_size(standardise(times, np.sin(times)), Budget())[1])
    assert max(degrees) < 60


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-2])
def test_decaying_coordinates_follow_an_analytic_function(noise: float) -> None:
    rng = np.random.default_rng(4)
    times = np.linspace(0, 3, 300)
    data = standardise(times, np.exp(-times) + noise * rng.standard_normal(300))
    parts = decay.fit(data, 60)
    whole = average(parts, "decay")
    jet = whole.jet(1.5, 3)
    allowed = 5 * jet.sd + 1e-9
    assert np.all(np.abs(jet.mean - np.exp(-1.5) * np.array([1, -1, 1, -1])) < allowed)
    assert whole.noise == pytest.approx(noise, rel=0.1) if noise else whole.noise < 1e-14
    best = max(part.evidence for part in parts)
    assert best - np.log(len(parts)) <= whole.evidence <= best + 1e-12


def test_white_noise_is_not_called_a_signal() -> None:
    rng = np.random.default_rng(8)
    times = np.linspace(0, 1, 40)
    data = standardise(times, rng.standard_normal(40))
    whole = average(decay.fit(data, 60), "decay")
    assert whole.noise > 0.6
    assert np.abs(whole(np.linspace(0.1, 0.9, 20))).max() < 1.5


def test_a_fit_of_high_degree_leaves_what_it_says() -> None:
    """Polynomials of half as many terms as points are nearly dependent; coefficients must not lose their digits."""
    times = np.linspace(-1, 1, 750)
    data = standardise(times, 1.0 / (1.0 + (times / 0.055) ** 2))
    size, degree = chebyshev.needed_size(data, Budget())
    assert degree > 350
    for fit in (chebyshev.fit(data, size, "bic"), average(decay.fit(data, size), "decay")):
        inner = np.abs(times) < 0.8
        assert np.abs(fit(times) - data.values)[inner].max() < 10 * fit.noise
        assert fit.noise < 1e-8
