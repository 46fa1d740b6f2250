"""Gaussian processes against scikit-learn and mpmath, and what they find in data of known noise."""

import mpmath
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, RationalQuadratic, WhiteKernel

from odejet.smooth import DataError, Kernel, fixed, standardise
from odejet.smooth.compressed import chebyshev_rows
from odejet.smooth.gp import ReducedData, fit_rq, fit_se, likeliest, prior_factors, see, shortened
from tests.smooth.exact_process import exact, truncation
from tests.smooth.test_kernels import exact_kernel


def sample(n: int = 150, noise: float = 0.05, seed: int = 3, regular: bool = False):
    rng = np.random.default_rng(seed)
    times = np.linspace(0, 6, n) if regular else np.sort(rng.uniform(0, 6, n))
    return standardise(times, 2.0 + np.sin(2 * times) * np.exp(-0.2 * times) + noise * rng.standard_normal(n))


def sklearn_mean(data, kernel: Kernel, signal: float, noise: float, places: np.ndarray):
    shape = RBF(kernel.length) if np.isinf(kernel.alpha) else RationalQuadratic(kernel.length, kernel.alpha)
    regressor = GaussianProcessRegressor(ConstantKernel(signal**2) * shape, alpha=noise**2, optimizer=None)
    regressor.fit(data.times[:, None], data.values - data.center)
    return regressor.predict(places[:, None]) + data.center


@pytest.mark.parametrize("kernel", [Kernel(0.9), Kernel(1.4, 0.8), Kernel(0.4, 5.0)])
@pytest.mark.parametrize("noise", [1e-3, 0.05, 2.0])
def test_posterior_mean_equals_scikit_learn(kernel: Kernel, noise: float) -> None:
    data = sample()
    places = np.linspace(data.times[0], data.times[-1], 57)
    expected = sklearn_mean(data, kernel, 1.5, noise, places)
    assert np.abs(exact(data, kernel, 1.5, noise)(places) - expected).max() < 1e-8
    assert np.abs(fixed(data, kernel, 1.5, noise)(places) - expected).max() < 1e-8


@pytest.mark.parametrize("kernel", [Kernel(0.9), Kernel(1.4, 0.8)])
def test_derivatives_equal_mpmath(kernel: Kernel) -> None:
    """The posterior mean for given hyper-parameters, derived term by term in 60 digits."""
    data, t, order, signal, noise = sample(12), 2.345, 12, 1.3, 0.05
    with mpmath.workdps(60):
        k = exact_kernel(kernel)
        x = [mpmath.mpf(v) for v in data.times]
        matrix = mpmath.matrix(len(x), len(x))
        for i in range(len(x)):
            for j in range(len(x)):
                matrix[i, j] = mpmath.mpf(signal) ** 2 * k(x[i] - x[j]) + (mpmath.mpf(noise) ** 2 if i == j else 0)
        dual = mpmath.lu_solve(matrix, mpmath.matrix([mpmath.mpf(v) - mpmath.mpf(data.center) for v in data.values]))
        sums = [mpmath.mpf(0)] * (order + 1)
        for place, weight in zip(x, dual, strict=True):
            for j, c in enumerate(mpmath.taylor(lambda s, p=place: k(s - p), mpmath.mpf(t), order)):
                sums[j] += weight * mpmath.mpf(signal) ** 2 * c * mpmath.factorial(j)
        expected = np.array([float(s) for s in sums])
    expected[0] += data.center
    assert exact(data, kernel, signal, noise).jet(t, order).mean == pytest.approx(expected, rel=1e-9)
    projected = fixed(data, kernel, signal, noise).jet(t, 8).mean
    assert projected == pytest.approx(expected[:9], rel=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_projected_rows_equal_exact_rows(known: bool) -> None:
    data = sample()
    if known:
        sds = 0.02 + 0.1 * np.random.default_rng(0).random(len(data))
        data = standardise(data.times, data.values, sds)
    kernel, noise = Kernel(0.9), 1.2 if known else 0.05
    dense, projected = exact(data, kernel, 1.5, noise).jet(2.2, 4), fixed(data, kernel, 1.5, noise).jet(2.2, 4)
    scale = np.abs(dense.weights).max(axis=1, keepdims=True)
    assert np.abs((projected.weights - dense.weights) / scale).max() < 1e-7
    assert projected.gains == pytest.approx(dense.gains, rel=1e-7)
    assert projected.covariance() == pytest.approx(dense.covariance(), rel=1e-6)
    restored = projected.weights @ (data.values - data.center)
    restored[0] += data.center
    assert restored == pytest.approx(projected.mean, rel=1e-8)


@pytest.mark.parametrize(("noise", "within"), [(1e-8, 0.1), (1e-5, 0.1), (1e-2, 0.1), (1.0, 0.1)])
def test_noise_is_found_over_eight_decades(noise: float, within: float) -> None:
    data = sample(600, noise, regular=True)
    design = ReducedData.of(data, 80)
    se = fit_se(design)
    assert se.noise == pytest.approx(noise, rel=within)
    assert fit_rq(design, se.kernel).noise == pytest.approx(noise, rel=within)


def test_noise_free_data_leave_rounding_and_exact_derivatives() -> None:
    data = sample(600, 0.0, regular=True)
    se = fit_se(ReducedData.of(data, 80))
    assert se.noise < 1e-13
    t = np.linspace(1, 5, 9)
    a, b = -0.2 + 2j, np.exp((-0.2 + 2j) * t)
    expected = np.column_stack([(a**j * b).imag for j in range(4)])
    expected[:, 0] += 2.0
    assert np.abs(se.derivatives(t, 3) - expected).max() < 1e-8


@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_likelihood_is_at_least_that_of_scikit_learn(noise: float) -> None:
    data = sample(120, noise)
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(1.0, (0.05, 50)) + WhiteKernel(0.1, (1e-8, 10))
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0, alpha=0.0)
    theirs.fit(data.x(data.times)[:, None], data.standardised)
    ours = fit_se(ReducedData.of(data, 80))
    assert ours.evidence > theirs.log_marginal_likelihood_value_ - 0.02
    assert ours.kernel.length == pytest.approx(theirs.kernel_.k1.k2.length_scale * data.half_width, rel=0.1)
    assert ours.noise == pytest.approx(np.sqrt(theirs.kernel_.k2.noise_level) * data.scale, rel=0.02)


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("kernel", [Kernel(0.3), Kernel(0.5, 1.5)])
def test_evidence_is_that_of_the_dense_covariance(kernel: Kernel, regular: bool) -> None:
    data = sample(90, 0.1, regular=regular)
    assert data.symmetric == regular
    design = ReducedData.of(data, 100)
    found = likeliest(design, see(design, kernel))
    x = data.x(data.times)
    covariance = found.signal * (kernel(x[:, None] - x) + found.ratio * np.eye(len(x)))
    expected = multivariate_normal(np.zeros(len(x)), covariance).logpdf(data.standardised)
    assert found.evidence == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("length", [0.1, 0.3, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("alpha", [0.4, 1.0, 10.0, np.inf])
def test_prior_factors_give_the_kernel(length: float, alpha: float) -> None:
    kernel, size = Kernel(length, alpha), 320
    x = np.linspace(-1, 1, 41)
    basis = chebyshev_rows(x, size)
    values = np.hstack([basis[:, parity::2] @ factor for parity, factor in enumerate(prior_factors(kernel, size))])
    assert np.abs(values @ values.T - kernel(x[:, None] - x)).max() < 1e-9


@pytest.mark.parametrize("points", [60, 61])
@pytest.mark.parametrize("known", [False, True])
def test_parts_of_symmetric_times_are_the_whole(points: int, known: bool) -> None:
    """Moving one time by less than the noise can tell makes the times asymmetric, and nothing else."""
    data = sample(points, 0.1, regular=True)
    sds = 0.1 + 0.05 * np.cos(data.x(data.times)) if known else None
    sds = None if sds is None else 0.5 * (sds + sds[::-1])
    moved = data.times.copy()
    moved[7] += 1e-12
    halves, whole = standardise(data.times, data.values, sds), standardise(moved, data.values, sds)
    assert halves.symmetric
    assert not whole.symmetric
    ours, theirs = (fixed(d, Kernel(0.9), 1.5, 1.0 if known else 0.1).jet(2.2, 4) for d in (halves, whole))
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-7)
    assert ours.gains == pytest.approx(theirs.gains, rel=1e-7)
    assert np.abs(ours.weights - theirs.weights).max() < 1e-7 * np.abs(theirs.weights).max()


def test_shortened_keeps_the_kernel_and_shortens_it() -> None:
    design = ReducedData.of(sample(), 80)
    se = fit_se(design)
    short = shortened(design, se)
    assert short.kernel.length == pytest.approx(0.6 * se.kernel.length)
    assert short.evidence < se.evidence
    assert np.all(short.jet(3.0, 4).gains > se.jet(3.0, 4).gains)


def test_outside_the_data_the_projected_form_refuses() -> None:
    with pytest.raises(DataError, match="t = 7 is outside the data"):
        fixed(sample(), Kernel(0.9), 1.0, 0.1)(7.0)


def test_truncation_of_the_basis_is_small_where_it_is_used() -> None:
    assert truncation(Kernel(0.2), 80) < 1e-12
    assert truncation(Kernel(0.01), 40) > 0.1
