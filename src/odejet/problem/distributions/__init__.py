"""Distributions: the laws of a measurement around its prediction.

Every law has a location, the prediction mu, and most have a scale s.  What a fit needs of it are its negative
log-likelihood with the derivatives by both and the expected information on both; what people need are its sd, its
quantiles and, to judge a measurement as noise, the *normal score*: the residual that normal noise of unit size would
have with the same probability.  In most laws the information on location and scale is orthogonal, so that a
measurement tells of each by itself.

    normal(s), laplace(s)                 sd s; mean absolute deviation s
    student(s, dof)                       scale s and so many degrees of freedom
    lognormal(s), log10normal(s), loglaplace(s), log10laplace(s)   the same of the logarithm; mu is the median
    gamma(s)                              positive, of mean mu and sd s mu
    poisson                               whole numbers of mean mu
    negbinomial(a)                        whole numbers of mean mu and variance mu + a mu^2
    binomial(n)                           whole numbers of mean mu, so many of n
    betabinomial(n, a)                    the same with more variance, (1 + n a)/(1 + a) times it
    ar1(s, rho), logar1(s, rho)           normal and lognormal(s) with errors that persist (see `problem.chains`)
"""

from __future__ import annotations

import math

from odejet.problem.distributions.binomial import BetaBinomial, Binomial
from odejet.problem.distributions.continuous import Laplace, Logarithmic, Normal, Student
from odejet.problem.distributions.counts import NegativeBinomial, Poisson
from odejet.problem.distributions.gamma import Gamma
from odejet.problem.distributions.law import Argument, Distribution, Form, Terms

__all__ = ["LAWS", "Argument", "Distribution", "Form", "Laplace", "Logarithmic", "Normal", "Terms", "is_of_squares"]


def is_of_squares(law: Distribution) -> bool:
    """Whether a law is normal, of the measurement or of its logarithm."""
    return isinstance(law.of if isinstance(law, Logarithmic) else law, Normal)


_DEGREES, _TRIALS = Argument("the degrees of freedom", "4"), Argument("the number of trials", "50", whole=True)

LAWS: dict[str, Form] = {
    "normal": Form(1, Normal),
    "lognormal": Form(1, lambda: Logarithmic(Normal())),
    "log10normal": Form(1, lambda: Logarithmic(Normal(), math.log(10))),
    "laplace": Form(1, Laplace),
    "loglaplace": Form(1, lambda: Logarithmic(Laplace())),
    "log10laplace": Form(1, lambda: Logarithmic(Laplace(), math.log(10))),
    "student": Form(2, Student, 0, "student(scale, degrees of freedom)", (_DEGREES,)),
    "gamma": Form(1, Gamma),
    "poisson": Form(0, Poisson, None),
    "negbinomial": Form(1, NegativeBinomial, 0, "negbinomial(dispersion)"),
    "binomial": Form(1, Binomial, None, "binomial(trials)", (_TRIALS,)),
    "betabinomial": Form(2, BetaBinomial, 1, "betabinomial(trials, dispersion)", (_TRIALS,)),
    "ar1": Form(2, Normal, 0, "ar1(scale, correlation)", (), 1),
    "logar1": Form(2, lambda: Logarithmic(Normal()), 0, "logar1(scale, correlation)", (), 1),
}
"""The laws by name, and how each is written."""
