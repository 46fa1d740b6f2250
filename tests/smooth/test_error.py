"""The law of the error: Monte Carlo, the a-priori bound, bias and radius (paper, Section 4)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet.smooth import Kernel, covariance, fit_output, fixed, radius, standardise
from tests.smooth.error_law import bias, derivative_error, gain_bounds
from tests.smooth.exact_process import exact


def truth(times: np.ndarray, order: int) -> np.ndarray:
    """sin(2 t) and its derivatives."""
    t = np.atleast_1d(times)
    return np.column_stack([(2.0**j) * np.sin(2 * t + j * np.pi / 2) for j in range(order + 1)])


@pytest.mark.parametrize("known", [False, True])
def test_monte_carlo_reproduces_the_covariance(known: bool) -> None:
    """2,000 draws through the fixed fit: every entry of Sigma_d within its sampling error, and the mean is the bias."""
    rng = np.random.default_rng(11)
    times = np.sort(rng.uniform(0, 5, 90))
    sds = 0.05 + 0.1 * rng.random(90) if known else np.full(90, 0.1)
    clean = truth(times, 0)[:, 0]
    data = standardise(times, clean + sds * rng.standard_normal(90), sds if known else None)
    smoother = fixed(data, Kernel(0.8), 1.0, 1.0 if known else 0.1)
    jets = [smoother.jet(1.5, 4), smoother.jet(2.0, 4)]
    draws = 2000
    noise = sds * rng.standard_normal((draws, 90))
    rows = np.vstack([jet.weights for jet in jets])
    found = np.array([rows @ (clean + eps - data.center) for eps in noise])
    found[:, [0, 5]] += data.center
    expected = covariance(jets)
    sampled = np.cov(found.T)
    spread = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / draws)
    assert np.all(np.abs(sampled - expected) < 5.0 * spread)
    law = derivative_error(jets, [truth, truth])
    exact_values = np.concatenate([truth(np.array([t]), 4)[0] for t in (1.5, 2.0)])
    assert np.all(np.abs(found.mean(axis=0) - exact_values - law.bias) < 5.0 * np.sqrt(np.diag(expected) / draws))
    off = np.abs(found - exact_values).max(axis=1)
    assert np.mean(off <= law.radius(0.05)) >= 0.95


@given(
    st.integers(3, 40),
    st.floats(0.05, 5.0),
    st.one_of(st.none(), st.floats(0.1, 50.0)),
    st.floats(1e-3, 10.0),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_gains_never_exceed_the_kernel_bound(
    n: int, length: float, alpha: float | None, noise: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    data = standardise(np.append(rng.uniform(0, 3, n), [0.0, 1.0, 2.0, 3.0]), rng.standard_normal(n + 4))
    kernel = Kernel(length) if alpha is None else Kernel(length, alpha)
    process = exact(data, kernel, 1.7, noise)
    gains = process.jet(float(rng.uniform(0, 3)), 6).gains
    assert np.all(gains <= gain_bounds(process, 6) * (1 + 1e-9))


def test_bound_holds_for_fitted_processes_with_known_sds() -> None:
    rng = np.random.default_rng(1)
    times = np.linspace(0, 5, 200)
    sds = 0.02 + 0.1 * rng.random(200)
    smoothed = fit_output(times, truth(times, 0)[:, 0] + sds * rng.standard_normal(200), sds)
    for name in ("gp_se", "gp_rq"):
        process = smoothed.smoothers[name]
        for t in (0.0, 1.3, 2.5, 5.0):
            assert np.all(process.jet(t, 6).gains <= gain_bounds(process, 6) * (1 + 1e-9))


def test_covariance_of_other_forms_of_noise() -> None:
    rng = np.random.default_rng(5)
    times = np.linspace(0, 5, 60)
    data = standardise(times, truth(times, 0)[:, 0] + 0.1 * rng.standard_normal(60))
    jet = fixed(data, Kernel(0.8), 1.0, 0.1).jet(2.0, 3)
    one = jet.covariance(0.2)
    assert jet.covariance(np.full(60, 0.2)) == pytest.approx(one, rel=1e-9)
    assert jet.covariance(0.04 * np.eye(60)) == pytest.approx(one, rel=1e-9)
    assert jet.covariance() == pytest.approx(one / 4, rel=1e-9)
    assert jet.sd == pytest.approx(np.sqrt(np.diag(jet.covariance())))


def test_jets_of_different_outputs_are_independent_and_of_one_output_are_not() -> None:
    rng = np.random.default_rng(6)
    times = np.linspace(0, 5, 80)
    one, other = (fit_output(times, truth(times, 0)[:, 0] + 0.1 * rng.standard_normal(80)) for _ in range(2))
    jets = [one.jet(2.0, 1), other.jet(2.0, 2), one.jet(2.1, 1, "gp_se")]
    whole = covariance(jets)
    assert whole.shape == (7, 7)
    assert np.all(whole[:2, 2:5] == 0)
    assert abs(whole[0, 5]) > 0.1 * whole[0, 0]
    assert whole[2:5, 2:5] == pytest.approx(other.jet(2.0, 2).covariance())
    weights = np.vstack([jets[0].weights, jets[2].weights])
    assert whole[np.ix_([0, 1, 5, 6], [0, 1, 5, 6])] == pytest.approx(one.noise**2 * weights @ weights.T, rel=1e-6)


def test_bias_of_an_interpolating_fit_is_small_and_of_an_oversmoothing_one_is_not() -> None:
    times = np.linspace(0, 5, 100)
    data = standardise(times, truth(times, 0)[:, 0])
    fine, coarse = fixed(data, Kernel(0.8), 1.0, 1e-4), fixed(data, Kernel(0.8), 1.0, 3.0)
    assert np.abs(bias(fine.jet(2.5, 2), truth)).max() < 1e-2
    assert np.abs(bias(coarse.jet(2.5, 2), truth)).max() > 0.5
    assert bias(fine.jet(2.5, 2), truth) == pytest.approx(
        fine.jet(2.5, 2).mean - truth(np.array([2.5]), 2)[0], abs=1e-9
    )


def test_radius_is_the_formula() -> None:
    expected = max(0.5 + np.sqrt(2 * 4.0 * np.log(40.0)), 1.0 + np.sqrt(2 * 0.25 * np.log(40.0)))
    assert radius(np.array([-0.5, 1.0]), np.diag([4.0, 0.25]), 0.1) == pytest.approx(expected)
    with pytest.raises(ValueError, match="delta must be between 0 and 1"):
        radius(np.zeros(1), np.eye(1), 1.5)


def test_nonlinear_estimators_say_that_they_have_no_covariance() -> None:
    times = np.linspace(0, 5, 100)
    jet = fit_output(times, truth(times, 0)[:, 0]).jet(2.0, 2, "aaa")
    assert not jet.linear
    assert np.isnan(jet.sd).all()
    with pytest.raises(ValueError, match="not linear"):
        jet.covariance()
    with pytest.raises(ValueError, match="not linear"):
        covariance([jet])
    with pytest.raises(ValueError, match="only a linear estimator"):
        bias(jet, truth)
