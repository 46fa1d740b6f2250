"""Identity: what tells the misfits of one fit from each other, from one run of a program to the next."""

from __future__ import annotations

import weakref

import numpy as np

from odejet.journal import digest
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates

_KNOWN: weakref.WeakKeyDictionary[Misfit, bytes] = weakref.WeakKeyDictionary()


def identity(misfit: Misfit) -> bytes:
    """Return a key of a misfit: of its unknowns, its measurements, their noise and the effort of simulations.

    A fit looks at parts of its data, and at problems that it makes of parts of its model; one that has all of this in
    common with another is the same.
    """
    if misfit not in _KNOWN:
        own, conditions = misfit.measurements, misfit.simulator.conditions
        names = (
            misfit.labels,
            own.outputs,
            [(one.experiment.name, one.model.name, tuple(one.model.states)) for one in conditions],
        )
        blocks = [(block.experiment, block.output, len(block.values), block.logarithm) for block in own.blocks]
        noise = misfit.known, misfit.weighted, own.shapes, len(misfit.priors)
        _KNOWN[misfit] = digest(*names, *blocks, own.times, own.values, *noise, misfit.effort)
    return _KNOWN[misfit]


def whereabouts(frame: Coordinates) -> tuple[np.ndarray, ...]:
    """Return the box and the scales of a frame."""
    return frame.low, frame.high, frame.signs, frame.units
