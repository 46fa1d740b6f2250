"""Differentiators: how the rest of the Python ecosystem differentiates noisy series.

Every function takes times, values and places and returns derivatives of shape (places, orders) as high as the method
reaches: scikit-learn's Gaussian process any order (closed form in its dual coefficients), SciPy's cubic smoothing
spline with generalised cross-validation up to three, PyNumDiff's smoothing spline, with its own optimiser of
parameters, the first.
"""

from __future__ import annotations

import warnings

import numpy as np

from odejet.smooth.kernels import Kernel


def sklearn_gp(
    times: np.ndarray, values: np.ndarray, places: np.ndarray, order: int, kind: str, restarts: int
) -> np.ndarray:
    """scikit-learn's GaussianProcessRegressor, with times mapped to [-1, 1] and bounds that keep its optimiser sane."""
    fitted, x_of, scale = fit_sklearn(times, values, kind, restarts)
    parameters = fitted.kernel_.get_params()
    signal, shape = parameters["k1__k1__constant_value"], parameters["k1__k2"]
    kernel = Kernel(shape.length_scale, getattr(shape, "alpha", np.inf))
    differences = x_of(places)[:, None] - x_of(times)[None, :]
    sums = signal * np.einsum("jpn,n->pj", kernel.derivatives(differences, order), fitted.alpha_)
    out = sums * fitted._y_train_std / scale ** np.arange(order + 1)
    out[:, 0] += fitted._y_train_mean
    return out


def fit_sklearn(times: np.ndarray, values: np.ndarray, kind: str, restarts: int):
    """The fitted regressor, the map of times to [-1, 1], and half the time span."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as k

    middle, half = 0.5 * (times[0] + times[-1]), 0.5 * (times[-1] - times[0])
    bounds = (1e-2, 2e1)
    shape = k.RBF(0.3, bounds) if kind == "SE" else k.RationalQuadratic(0.3, 1.0, bounds, (1e-1, 1e3))
    kernel = k.ConstantKernel(10.0, (1e-4, 1e8)) * shape + k.WhiteKernel(1e-3, (1e-18, 1e1))
    regressor = GaussianProcessRegressor(
        kernel, alpha=1e-15, normalize_y=True, n_restarts_optimizer=restarts, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regressor.fit(((times - middle) / half)[:, None], values)
    return regressor, lambda t: (t - middle) / half, half


def scipy_spline(times: np.ndarray, values: np.ndarray, places: np.ndarray, order: int) -> np.ndarray:
    """SciPy's smoothing spline, its penalty by generalised cross-validation."""
    from scipy.interpolate import make_smoothing_spline

    spline = make_smoothing_spline(times, values)
    return np.column_stack([spline(places, j) for j in range(min(order, 3) + 1)])


def pynumdiff_spline(times: np.ndarray, values: np.ndarray, places: np.ndarray, bandlimit: float) -> np.ndarray:
    """PyNumDiff's smoothing spline with the parameters its own optimiser finds for the band limit of the signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pynumdiff
        from pynumdiff.optimize import optimize

        step = times[1] - times[0]
        scale = values.std() or 1.0
        parameters, _ = optimize(pynumdiff.splinediff, values / scale, step, bandlimit=bandlimit, parallel=False)
        smooth, slope = pynumdiff.splinediff(values / scale, step, **parameters)
    from scipy.interpolate import CubicSpline

    return scale * np.column_stack([CubicSpline(times, series)(places) for series in (smooth, slope)])


def bandlimit_of(times: np.ndarray, clean: np.ndarray) -> float:
    """Twice the rate of peaks of the noise-free signal, as PyNumDiff's guide advises; the truth helps the yardstick."""
    turns = np.count_nonzero(np.diff(np.sign(np.diff(clean))))
    return max(3.0, turns + 1.0) / (times[-1] - times[0])
