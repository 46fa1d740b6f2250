"""Objective: how far a model with given values is from the data, as a function of the unknowns, with derivatives."""

# A problem hands out its objective, and an objective is made of a problem's parts: whichever of the two packages is
# asked for first, the problem is read first.
import odejet.problem  # noqa: F401
