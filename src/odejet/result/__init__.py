"""Result: the answer of a fit.

fit               Fit, with all that is known about it
estimate          values of all unknowns by name; a fit has several where several explain the data equally well
identifiability   what the verdict on the model says of each unknown
comparison        data beside fit
result            certificate, provenance and the candidates that were looked at
"""

from odejet.result.comparison import Comparison
from odejet.result.estimate import Estimate
from odejet.result.fit import LEVEL, Fit
from odejet.result.identifiability import Identifiability
from odejet.result.result import Candidates, Certificate, Provenance

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
