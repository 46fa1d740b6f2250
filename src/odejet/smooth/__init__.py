"""Smoothing: derivatives of any order from noisy data, with the law of their error (step 3 of the method)."""

from odejet.data.series import DataError, Series, series
from odejet.smooth.error import DerivativeError, bias, covariance, derivative_error, gain_bounds, kappa, radius
from odejet.smooth.gp import exact, fixed
from odejet.smooth.kernels import Kernel
from odejet.smooth.output import Smoothed, fit_output
from odejet.smooth.plots import plot_output
from odejet.smooth.smoother import Jet, Linear, Smoother

__all__ = [
    "DataError",
    "DerivativeError",
    "Jet",
    "Kernel",
    "Linear",
    "Series",
    "Smoothed",
    "Smoother",
    "bias",
    "covariance",
    "derivative_error",
    "exact",
    "fit_output",
    "fixed",
    "gain_bounds",
    "kappa",
    "plot_output",
    "radius",
    "series",
]
