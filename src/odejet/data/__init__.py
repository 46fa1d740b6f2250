"""Data: what was measured, experiment by experiment."""

from odejet.data.data import Data, Experiment
from odejet.data.series import Series

__all__ = ["Data", "Experiment", "Series"]
