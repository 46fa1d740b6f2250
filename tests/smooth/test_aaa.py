"""AAA: rational functions are found exactly, and derivatives hold at, near and between support points."""

import mpmath
import numpy as np
import pytest
from scipy.interpolate import AAA

from odejet.smooth import standardise
from odejet.smooth.aaa import approximate, interpolate


def test_agrees_with_scipy() -> None:
    x = np.linspace(-1, 1, 300)
    values = np.tan(1.3 * x) + np.exp(-x)
    support, heights, weights, error = approximate(x, values, 1e-12)
    assert error <= 1e-12
    places = np.linspace(-0.99, 0.99, 57)
    cauchy = 1.0 / (places[:, None] - support)
    ours = (cauchy @ (weights * heights)) / (cauchy @ weights)
    assert np.abs(ours - AAA(x, values, rtol=1e-12)(places)).max() < 1e-10


def test_derivatives_equal_mpmath_everywhere() -> None:
    times = np.linspace(0, 2, 81)
    data = standardise(times, 1.0 / (1.0 + times**2) + 0.5)
    fit = interpolate(data, 1e-14)
    support = data.middle + data.half_width * fit.support
    inner = support[(support > 0.1) & (support < 1.9)][0]
    places = [*support, inner + 1e-9, inner + 1e-4, 0.777, 1.9]
    with mpmath.workdps(60):
        for t in places:
            taylor = mpmath.taylor(lambda s: 1 / (1 + s**2) + mpmath.mpf("0.5"), mpmath.mpf(float(t)), 6)
            expected = np.array([float(c * mpmath.factorial(j)) for j, c in enumerate(taylor)])
            sizes = np.array([float(mpmath.factorial(j)) for j in range(7)])
            assert np.abs((fit.jet(float(t), 6).mean - expected) / sizes).max() < 1e-10


def test_taylor_series_is_exact_for_the_representation() -> None:
    """The derivative of the barycentric form itself, in 60 digits, whatever function it approximates."""
    rng = np.random.default_rng(0)
    times = np.linspace(0, 1, 60)
    fit = interpolate(standardise(times, np.exp(np.sin(7 * times)) + 1e-3 * rng.standard_normal(60)), 1e-2)
    data = fit.data
    with mpmath.workdps(60):
        nodes = [
            (mpmath.mpf(s), mpmath.mpf(v), mpmath.mpf(w))
            for s, v, w in zip(fit.support, fit.values, fit.weights, strict=True)
        ]

        def form(x):
            return sum(w * v / (x - s) for s, v, w in nodes) / sum(w / (x - s) for s, v, w in nodes)

        for t in (0.123, 0.5, 0.871):
            taylor = mpmath.taylor(form, mpmath.mpf(float(data.x(t))), 8)
            expected = np.array([float(c * mpmath.factorial(j)) for j, c in enumerate(taylor)])
            expected *= data.scale / data.half_width ** np.arange(9)
            expected[0] += data.center
            assert fit.jet(t, 8).mean == pytest.approx(expected, rel=1e-9)


def test_replicates_are_averaged_and_poles_are_found() -> None:
    times = np.repeat(np.linspace(-1, 1, 40), 2)
    fit = interpolate(standardise(times, np.exp(times)), 1e-12)
    assert not fit.has_real_pole()
    assert fit(0.3) == pytest.approx(np.exp(0.3), rel=1e-11)
    spoiled = interpolate(standardise(np.linspace(-1, 1, 40), 1.0 / (np.linspace(-1, 1, 40) - 0.0123)), 1e-10)
    assert spoiled.has_real_pole()
    assert np.abs(spoiled.poles() - 0.0123).min() < 1e-8


@pytest.mark.parametrize("function", [np.sin, np.cos, lambda t: np.exp(-0.3 * t), lambda t: 1.0 / (1.0 + t)])
@pytest.mark.parametrize("seed", range(6))
def test_rounding_brings_no_pole_between_the_data(function, seed: int) -> None:
    """Other machines round differently: here the last bits are drawn at random."""
    rng = np.random.default_rng(seed)
    times = np.linspace(0, 10, 300 + 20 * seed)
    values = function(times) * (1.0 + np.finfo(float).eps * rng.integers(-1, 2, len(times)))
    fit = interpolate(standardise(times, values), 1e-15)
    assert not fit.has_real_pole()
    assert fit.error < 1e-13
    places = rng.uniform(0, 10, 50)
    assert np.abs(fit(places) - function(places)).max() < 1e-12
