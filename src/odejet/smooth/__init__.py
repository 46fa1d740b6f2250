"""Smoothing: derivatives of any order from noisy data, with the law of their error (step 3 of the method).

The method is that of O. Bassik, A. Demin and A. Ovchinnikov, "Practical Algebraic Parameter Estimation for Noisy Data
via Gaussian Process Regression", called the paper from here on; equations are cited by their labels in it.

    standardised, compressed    the data as all estimators see them
    estimator                   what an estimator is; each registers itself
    blend, decay, gp, chebyshev, aaa        the estimators
    output                      all of them fitted to one output, and which to trust where
"""

from odejet.data.series import Series, series
from odejet.errors import DataError
from odejet.smooth.error import covariance, radius
from odejet.smooth.gp import fixed
from odejet.smooth.kernels import Kernel
from odejet.smooth.output import Smoothed, fit_output, fit_series
from odejet.smooth.plots import plot_output
from odejet.smooth.smoother import Jet, Linear, Smoother
from odejet.smooth.standardised import Standardised, standardise

__all__ = [
    "DataError",
    "Jet",
    "Kernel",
    "Linear",
    "Series",
    "Smoothed",
    "Smoother",
    "Standardised",
    "covariance",
    "fit_output",
    "fit_series",
    "fixed",
    "plot_output",
    "radius",
    "series",
    "standardise",
]
