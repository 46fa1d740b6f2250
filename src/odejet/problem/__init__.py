"""Problem: a model and data as one question, with its unknowns and its likelihood."""

from odejet.problem.joint import Joint, joint
from odejet.problem.problem import Problem
from odejet.problem.unknowns import Unknown, Unknowns, find

__all__ = ["Joint", "Problem", "Unknown", "Unknowns", "find", "joint"]
