"""Result: the answer of a fit."""

from odejet.decide import Candidates, Certificate, Provenance
from odejet.result.result import LEVEL, Comparison, Fit, Identifiability, Solution

__all__ = [
    "LEVEL",
    "Candidates",
    "Certificate",
    "Comparison",
    "Fit",
    "Identifiability",
    "Provenance",
    "Solution",
]
