"""Uncertainty: how far to trust each number of a fit.

fisher        the curvature of the likelihood at its optimum: covariances, standard errors, quick intervals
bounded       the same where unknowns sit on bounds, or have bounds within reach
names         numbers by the labels of the unknowns
derived       what one may ask about: an unknown, or an expression in the unknowns
likelihood    the likelihood around the optimum of a fit, with some quantity held if wanted
profile       the likelihood along a quantity, everything else adapted: intervals that need no curvature
parabola      whether the likelihood is what curvature takes it for
doubts        intervals by curvature that are not to be trusted
predicted     outputs and states at any time, as functions of the unknowns
bands         how far they may be from their predictions
practical     what the data determine, and which compounds where single unknowns are not determined
forms         products of powers and sums that the data may determine, by curvature
valley        the same from farther away: what hardly changes along the profiles
error_budget  from the noise over derivatives to the raw algebraic estimate (the paper's Section 4)
design        expected standard errors before an experiment is done
samples       draws for Bayesian tools
tables        rows of text in columns
"""

from odejet.uncertainty.fisher import (
    Information,
    Uncertainty,
    covariance,
    fisher,
    held_labels,
    information,
    interval,
    noise_inflation,
    quantile,
)
from odejet.uncertainty.names import ByName, Matrix

__all__ = [
    "ByName",
    "Information",
    "Matrix",
    "Uncertainty",
    "covariance",
    "fisher",
    "held_labels",
    "information",
    "interval",
    "noise_inflation",
    "quantile",
]
