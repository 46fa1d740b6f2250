"""Data: what was measured, experiment by experiment."""

from odejet.data.censored import Censored
from odejet.data.data import Data
from odejet.data.experiment import Experiment
from odejet.data.series import Series

__all__ = ["Censored", "Data", "Experiment", "Series"]
