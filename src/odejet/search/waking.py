"""Waking: unknowns that make no difference where a search has come to its end, moved to where they do.

In the corners of a box models are simpler than they need be: an initial value says nothing beside what is produced
later, and a rate that is fast enough nothing at all.  On a logarithmic scale the misfit is flat there, so that no
descent moves such an unknown, and where it begins to matter may be a hill, so that no slope tells either.  A draw of
many unknowns that is chosen by its cost leaves it asleep: what changes nothing costs least.  So one that sleeps is
moved by itself along its whole range, to any place where the model feels it, and all others may adapt to it from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from odejet.search.screen import Screen

ASLEEP = 1.0
"""What a factor e of a sleeping unknown does to all residuals together at most, in units of what they are."""

AWAKE = 1.0
"""The change of the cost that tells that an unknown is felt, in units of the squares of these."""

PLACES = 8
"""Places along the range of an unknown that are tried, one in each part of it."""


def woken(
    screen: Screen,
    theta: np.ndarray,
    box: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    deadline: float = math.inf,
) -> Iterator[np.ndarray]:
    """Points that differ from this one in an unknown which sleeps here and not there; each can be woken once."""
    frame, (low, high) = screen.frame, box
    here, effects = screen.cost(frame.back(theta), deadline), screen.effects(frame.back(theta), deadline)
    if effects is None or not math.isfinite(here):
        return
    for entry in rng.permutation(screen.free[effects.sizes < ASLEEP]):
        places = low[entry] + (np.arange(PLACES) + rng.random(PLACES)) / PLACES * (high - low)[entry]
        points = [frame.back(np.where(np.arange(len(theta)) == entry, place, theta)) for place in places]
        costs = np.array([screen.cost(point, deadline) for point in points])
        felt = np.flatnonzero(np.isfinite(costs) & (np.abs(costs - here) > AWAKE * effects.unit))
        if len(felt):
            yield points[int(rng.choice(felt))]
