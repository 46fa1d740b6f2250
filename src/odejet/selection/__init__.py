"""Selection: which of several models the data support.

switches      parameters that a model may do without, and the problems that they make
candidate     one of the models, fitted, with its criteria
calibration   fits of candidates, and what they tell about each other
methods       which models are fitted: all, or a way through them
selection     the ranking, its weights and its averaged predictions
average       predictions of several models together
petab_select  problems of PEtab Select
"""

from odejet.selection.candidate import Candidate
from odejet.selection.selection import Selection, select

__all__ = ["Candidate", "Selection", "select"]
