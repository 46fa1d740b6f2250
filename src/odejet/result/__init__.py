"""Result: the answer of a fit.

fit               Fit, with all that is known about it
estimate          values of all unknowns by name; a fit has several where several explain the data equally well
comparison        data beside fit
frame             the estimates as a data frame
prediction        outputs and states at any time, with bands
ranking           fits of different models to the same data
nested            likelihood ratios of models that contain each other
validation        how likely a fit makes experiments that it has not seen
"""

from odejet.decide import Candidates, Certificate, Identifiability, Provenance
from odejet.result.comparison import Comparison
from odejet.result.estimate import Estimate
from odejet.result.fit import LEVEL, Fit
from odejet.result.prediction import Band, Prediction
from odejet.result.ranking import Ranked, Ranking, compare

__all__ = [
    "LEVEL",
    "Band",
    "Candidates",
    "Certificate",
    "Comparison",
    "Estimate",
    "Fit",
    "Identifiability",
    "Prediction",
    "Provenance",
    "Ranked",
    "Ranking",
    "compare",
]
