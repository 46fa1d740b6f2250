"""odejet: every parameter and every initial condition of an ODE model from noisy time series."""

from odejet.expressions import ExpressionError, ModelError
from odejet.flow import Outcome
from odejet.identify import Verdict, identify
from odejet.model import Model
from odejet.simulation import Simulation, simulate

__all__ = ["ExpressionError", "Model", "ModelError", "Outcome", "Simulation", "Verdict", "identify", "simulate"]
__version__ = "0.1.0"
