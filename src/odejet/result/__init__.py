"""Result: the answer of a fit."""

from odejet.result.result import (
    LEVEL,
    Candidates,
    Certificate,
    Comparison,
    Fit,
    Identifiability,
    Provenance,
    Solution,
)

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
