"""Model: the language of equations, the model written in it, and the straight-line program it becomes."""

from odejet.model.events import Event
from odejet.model.model import Model

__all__ = ["Event", "Model"]
