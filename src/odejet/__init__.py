"""odejet: every parameter and every initial condition of an ODE model from noisy time series.

The method goes back to what is called *the paper* throughout: O. Bassik, A. Demin and A. Ovchinnikov, Practical
Algebraic Parameter Estimation for Noisy Data via Gaussian Process Regression.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from odejet import startup  # noqa: F401 - before what takes time

# isort: split
from odejet.attach import provided

if TYPE_CHECKING:
    from odejet.data import Censored, Data, Experiment
    from odejet.errors import DataError, ExpressionError, ModelError
    from odejet.fitting import Failure, Method, fit, fit_many, sample
    from odejet.identify import Verdict
    from odejet.identifying import identify
    from odejet.io.antimony import read_antimony
    from odejet.io.petab import read_petab
    from odejet.io.sbml import read_sbml
    from odejet.model import Event, Model
    from odejet.population import Population, PopulationFit, compare
    from odejet.problem import Problem
    from odejet.result import Fit, Prediction, Ranking
    from odejet.selection import Selection, select
    from odejet.simulate import Simulation, simulate
    from odejet.simulate.flow import Outcome
    from odejet.uncertainty.design import Design, design
    from odejet.uncertainty.posterior import Posterior

__all__ = [
    "Censored",
    "Data",
    "DataError",
    "Design",
    "Event",
    "Experiment",
    "ExpressionError",
    "Failure",
    "Fit",
    "Method",
    "Model",
    "ModelError",
    "Outcome",
    "Population",
    "PopulationFit",
    "Posterior",
    "Prediction",
    "Problem",
    "Ranking",
    "Selection",
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
    "sample",
    "select",
    "simulate",
]
__version__ = "0.1.0"

provided(
    Model=("odejet.io.models", "odejet.io.sbml.writing"),
    Data=("odejet.io.csv",),
    Problem=("odejet.io.petab.writing",),
    Population=("odejet.io.populations",),
    PopulationFit=("odejet.io.populations",),
    Simulation=("odejet.io.figures",),
    Prediction=("odejet.io.figures",),
    Profile=("odejet.io.figures",),
    Posterior=("odejet.report.posterior", "odejet.io.figures", "odejet.io.posteriors"),
    Verdict=("odejet.algebra.likely",),
    Shown=(
        "odejet.report.text",
        "odejet.report.html",
        "odejet.io.fits",
        "odejet.io.pages",
        "odejet.io.figures",
        "odejet.io.pypesto",
        "odejet.io.exports",
    ),
)

_HOMES = {
    "Censored": "data",
    "Data": "data",
    "DataError": "errors",
    "Design": "uncertainty.design",
    "Event": "model",
    "Experiment": "data",
    "ExpressionError": "errors",
    "Failure": "fitting",
    "Fit": "result",
    "Method": "fitting",
    "Model": "model",
    "ModelError": "errors",
    "Outcome": "simulate.flow",
    "Population": "population",
    "PopulationFit": "population",
    "Posterior": "uncertainty.posterior",
    "Prediction": "result",
    "Problem": "problem",
    "Ranking": "result",
    "Selection": "selection",
    "Simulation": "simulate",
    "Verdict": "identify",
    "compare": "population.ranking",
    "design": "uncertainty.design",
    "fit": "fitting",
    "fit_many": "fitting",
    "identify": "identifying",
    "read_antimony": "io.antimony",
    "read_petab": "io.petab",
    "read_sbml": "io.sbml",
    "sample": "fitting",
    "select": "selection",
    "simulate": "simulate",
}


def __getattr__(name: str) -> Any:
    """A public name when it is first asked for: NumPy, numba and SciPy together take a second to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"odejet.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A module in which `simulate` and `identify` are the functions, whenever the packages of these names come in."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
