"""Decide: how much is tried, and when it is enough."""

from odejet.decide.adequacy import Adequacy
from odejet.decide.answer import Answer, Candidates
from odejet.decide.certificate import Certificate
from odejet.decide.ladder import search
from odejet.decide.optima import Attempt, Provenance
from odejet.decide.optimality import Optimality
from odejet.decide.task import LIMITS, Options, Record, Task
from odejet.decide.verdict import Identifiability

__all__ = [
    "LIMITS",
    "Adequacy",
    "Answer",
    "Attempt",
    "Candidates",
    "Certificate",
    "Identifiability",
    "Optimality",
    "Options",
    "Provenance",
    "Record",
    "Task",
    "search",
]
