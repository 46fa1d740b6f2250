"""Simulate: the solution of a model in time, with exact sensitivities."""

from odejet.simulate.simulation import Simulation, simulate

__all__ = ["Simulation", "simulate"]
