"""Intervals by curvature beside bounds, against profiles and against a quadratic program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from odejet import Data, Model, fit
from odejet.uncertainty.bounded import Bounded
from odejet.uncertainty.samples import laplace

LINE = Model({"x": "b"}, {"y": "x"}, initial={"x": "a"}, parameters=["a", "b"])
TIMES = np.linspace(0, 2, 15)


def line(seed, low=0.05, noise=0.3):
    """A straight line whose beginning a bound keeps from where the data would have it."""
    values = 0.02 + TIMES + 0.3 * np.random.default_rng(seed).standard_normal(15)
    return fit(LINE, Data(TIMES, {"y": values}), bounds={"a": (low, 10)}, noise=noise)


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
@pytest.mark.parametrize("noise", [0.3, None])
def test_of_a_linear_model_on_a_bound_the_intervals_are_those_of_profiles(seed, noise):
    found = line(seed, noise=noise)
    assert found.held == ("a",)
    for quantity in ("a", "b", "a + 2*b"):
        reach = found.interval(quantity)
        assert reach == pytest.approx(found.profile(quantity).interval(), abs=0.01 * (reach[1] - reach[0]))


def test_an_unknown_far_beyond_its_bound_is_as_good_as_known():
    found, known = (
        line(2, low=0.6),
        fit(
            LINE,
            Data(TIMES, {"y": 0.02 + TIMES + 0.3 * np.random.default_rng(2).standard_normal(15)}),
            fixed={"a": 0.6},
            noise=0.3,
        ),
    )
    assert found.held == ("a",)
    assert found.interval("b") == pytest.approx(known.interval("b"), rel=2e-3)
    assert found.stderr["b"] == pytest.approx(known.stderr["b"], rel=1e-6)


def test_draws_on_a_bound_are_those_of_the_posterior():
    found = line(2)
    draws = found.likelihood.frame.back(laplace(found.likelihood, 4000, 1, seed=0)[0])
    a, b = np.meshgrid(np.linspace(0.05, 0.8, 300), np.linspace(0.4, 1.6, 300), indexing="ij")
    values = found.data.experiments[0].outputs["y"].values
    cost = ((a[..., None] + b[..., None] * TIMES - values) ** 2).sum(axis=-1) / (2 * 0.3**2)
    weights = np.exp(cost.min() - cost)
    weights /= weights.sum()
    for column, grid in ((0, a), (1, b)):
        mean = float((weights * grid).sum())
        sd = float(np.sqrt((weights * (grid - mean) ** 2).sum()))
        assert draws[:, column].mean() == pytest.approx(mean, abs=0.08 * sd)
        assert draws[:, column].std() == pytest.approx(sd, rel=0.08)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_ends_are_those_of_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    jacobian = rng.standard_normal((12, n)) * np.exp(rng.uniform(-2, 1, n))
    held = rng.random(n) < 0.5
    low, high = -np.exp(rng.uniform(-2, 2, n)), np.exp(rng.uniform(-2, 2, n))
    slopes = np.where(held, rng.choice([-1.0, 1.0], n) * np.exp(rng.uniform(-2, 1, n)), 0.0)
    low, high = np.where(slopes > 0, 0.0, low), np.where(slopes < 0, 0.0, high)
    bounded = Bounded(jacobian, slopes, low, high, np.ones(n))
    gradient, quantile = rng.standard_normal(n), 2.0
    sd = np.linalg.norm(np.linalg.solve(bounded.triangle.T, gradient))
    far = ~bounded.near  # whose bounds are out of reach, and not looked at
    ends = np.where(far, -np.inf, low), np.where(far, np.inf, high)

    def pulled(m):
        """The move that is best for a multiplier, and its deviance."""
        right = np.linalg.solve(bounded.triangle.T, m * gradient - slopes)
        h = lsq_linear(bounded.triangle, right, tuple(ends), tol=1e-13, method="bvls").x
        return float(gradient @ h), float(np.sum((bounded.triangle @ h) ** 2) + 2 * slopes @ h)

    for sign, reach in zip((-1, 1), bounded.reach(gradient, quantile), strict=True):
        low_m, high_m = 0.0, 1e6
        for _ in range(80):
            middle = 0.5 * (low_m + high_m)
            low_m, high_m = (middle, high_m) if pulled(sign * middle)[1] < quantile**2 else (low_m, middle)
        assert reach * quantile * sd == pytest.approx(abs(pulled(sign * low_m)[0]), rel=1e-3, abs=1e-5 * sd)
