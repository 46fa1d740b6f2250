"""Uncertainty: how far to trust each number of a fit.

fisher        the curvature of the likelihood at its optimum: covariances, standard errors, quick intervals
quantities    what one may ask about: an unknown, or an expression in the unknowns
likelihood    the likelihood around the optimum of a fit, with some quantity held if wanted
profile       the likelihood along a quantity, everything else adapted: intervals that need no curvature
practical     what the data determine, and which products of powers where single unknowns are not determined
budget        from the noise over derivatives to the raw algebraic estimate (the paper's Section 4)
design        expected standard errors before an experiment is done
samples       draws for Bayesian tools
"""

from odejet.uncertainty.fisher import (
    ByName,
    Information,
    Matrix,
    Uncertainty,
    covariance,
    find,
    fisher,
    held_labels,
    information,
    interval,
    noise_inflation,
    quantile,
)

__all__ = [
    "ByName",
    "Information",
    "Matrix",
    "Uncertainty",
    "covariance",
    "find",
    "fisher",
    "held_labels",
    "information",
    "interval",
    "noise_inflation",
    "quantile",
]
