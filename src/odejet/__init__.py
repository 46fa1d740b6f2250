"""odejet: every parameter and every initial condition of an ODE model from noisy time series.

The method goes back to what is called *the paper* throughout: O. Bassik, A. Demin and A. Ovchinnikov, Practical
Algebraic Parameter Estimation for Noisy Data via Gaussian Process Regression.
"""

import importlib
from typing import TYPE_CHECKING, Any

from odejet import startup  # noqa: F401 - before what takes time

# isort: split
from odejet.jets import compilation  # noqa: F401 - before any kernel, which needs a folder

# isort: split
from odejet.attach import provided
from odejet.errors import DataError, ExpressionError, ModelError
from odejet.identify import Verdict, identify
from odejet.model import Event, Model
from odejet.simulate import Simulation, simulate
from odejet.simulate.flow import Outcome

if TYPE_CHECKING:
    from odejet.data import Data, Experiment
    from odejet.fitting import Failure, fit, fit_many
    from odejet.io.antimony import read_antimony
    from odejet.io.petab import read_petab
    from odejet.io.sbml import read_sbml
    from odejet.problem import Problem
    from odejet.result import Fit, Prediction, Ranking, compare
    from odejet.uncertainty.design import Design, design

__all__ = [
    "Data",
    "DataError",
    "Design",
    "Event",
    "Experiment",
    "ExpressionError",
    "Failure",
    "Fit",
    "Model",
    "ModelError",
    "Outcome",
    "Prediction",
    "Problem",
    "Ranking",
    "Simulation",
    "Verdict",
    "compare",
    "design",
    "fit",
    "fit_many",
    "identify",
    "read_antimony",
    "read_petab",
    "read_sbml",
    "simulate",
]
__version__ = "0.1.0"

provided(
    Model=("odejet.io.models", "odejet.io.sbml.writing"),
    Data=("odejet.io.csv",),
    Problem=("odejet.io.petab.writing",),
    Simulation=("odejet.io.figures",),
    Prediction=("odejet.io.figures",),
    Profile=("odejet.io.figures",),
    Verdict=("odejet.algebra.likely",),
    Fit=(
        "odejet.report.text",
        "odejet.report.html",
        "odejet.io.fits",
        "odejet.io.pages",
        "odejet.io.figures",
        "odejet.io.pypesto",
    ),
)

_LATER = {
    "Data": "data",
    "Design": "uncertainty.design",
    "Experiment": "data",
    "Failure": "fitting",
    "Fit": "result",
    "Prediction": "result",
    "Problem": "problem",
    "Ranking": "result",
    "compare": "result",
    "design": "uncertainty.design",
    "fit": "fitting",
    "fit_many": "fitting",
    "read_antimony": "io.antimony",
    "read_petab": "io.petab",
    "read_sbml": "io.sbml",
}


def __getattr__(name: str) -> Any:
    """Data and fits come with the smoothers and their part of SciPy, which a simulation need not wait for."""
    if name in _LATER:
        return getattr(importlib.import_module(f"odejet.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
