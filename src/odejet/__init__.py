"""odejet: every parameter and every initial condition of an ODE model from noisy time series."""

from typing import TYPE_CHECKING, Any

from odejet.errors import DataError
from odejet.expressions import ExpressionError, ModelError
from odejet.flow import Outcome
from odejet.identify import Verdict, identify
from odejet.model import Model
from odejet.simulation import Simulation, simulate

if TYPE_CHECKING:
    from odejet.data import Data, Experiment
    from odejet.result import Fit

__all__ = [
    "Data",
    "DataError",
    "Experiment",
    "ExpressionError",
    "Fit",
    "Model",
    "ModelError",
    "Outcome",
    "Simulation",
    "Verdict",
    "identify",
    "simulate",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Data come with the smoothers and their part of SciPy, which a simulation need not wait for."""
    if name in ("Data", "Experiment"):
        from odejet import data

        return getattr(data, name)
    if name == "Fit":
        from odejet.result import Fit

        return Fit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
