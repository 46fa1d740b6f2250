"""Vanishing: the way back of unknowns that have all but vanished on a logarithmic scale.

A step of theta multiplies such an unknown, and what is next to nothing stays so: on that scale the misfit looks flat,
and a corner of the box passes for an optimum.  In z itself it may well have a slope.  So wherever a search has come to
its end, unknowns that the linear model would make several times larger move by z, and all others on their own scales.
"""

from __future__ import annotations

import numpy as np

from odejet.problem.coordinates import Coordinates
from odejet.problem.misfit import Evaluation
from odejet.search.linear import Dense

LARGER = 2.0
"""An unknown has vanished if the data want it larger by more than so many times what it is."""

WORTH = 1e-3
"""The decrease of the misfit, in units of the noise, for which it is worth an evaluation."""


def way_back(
    frame: Coordinates,
    theta: np.ndarray,
    found: Evaluation,
    groups: tuple[slice, ...],
    levels: np.ndarray,
    unit: float,
    reach: float = 1.0,
) -> np.ndarray | None:
    """Where what has vanished is back, up to so many times as large as the data want it; None where nothing has
    vanished, or where bringing it back is not worth it."""
    assert found.residuals is not None
    z, jacobian = frame.back(theta), found.dense
    weights = 1 / np.repeat(levels, [rows.stop - rows.start for rows in groups])
    weighted = jacobian * weights[:, None]
    gradient, bends = (found.residuals * weights) @ weighted, (weighted**2).sum(axis=0)
    room = np.where(frame.signs > 0, frame.high - z, z - frame.low)
    wanted = np.minimum(-frame.signs * gradient / np.maximum(bends, 1e-300), room)
    vanished = (wanted > LARGER * np.abs(z)) & (gradient**2 > 2 * WORTH * unit * bends)
    if not vanished.any():
        return None
    slopes = np.where(vanished, wanted, frame.slopes(z))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not chosen may be no number
        low = np.where(vanished, (frame.low - z) / slopes, frame.box[0] - theta)
        high = np.where(vanished, (frame.high - z) / slopes, frame.box[1] - theta)
    step = Dense.of(jacobian, slopes, found.residuals, groups).solver(levels, low, high).step(reach)
    if not step.decrease > WORTH * unit:
        return None
    grown = frame.to(frame.inside(np.where(vanished, z + slopes * step.move, z)))
    return np.clip(np.where(vanished, grown, theta + step.move), *frame.box)
