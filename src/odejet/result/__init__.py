"""Result: the answer of a fit.

fit               Fit, with all that is known about it
estimate          values of all unknowns by name; a fit has several where several explain the data equally well
comparison        data beside fit
"""

from odejet.decide import Candidates, Certificate, Identifiability, Provenance
from odejet.result.comparison import Comparison
from odejet.result.estimate import Estimate
from odejet.result.fit import LEVEL, Fit

__all__ = [
    "LEVEL",
    "Candidates",
    "Certificate",
    "Comparison",
    "Estimate",
    "Fit",
    "Identifiability",
    "Provenance",
]
