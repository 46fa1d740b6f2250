"""Sweep: the best of very many points of a box, where a misfit has narrow valleys.

A start that is refined from anywhere falls into the nearest valley, and where there are hundreds of them thousands of
starts would be needed.  A point that lies in the valley of the best optimum mostly costs less than most others at once.
So very many points are looked at without derivatives, the best of them are led on for a few steps, and the best of
these to the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from odejet.clock import now
from odejet.objective.misfit import Misfit
from odejet.problem.coordinates import Coordinates
from odejet.search.box import batches
from odejet.search.refine import Refined, refine
from odejet.search.screen import Screen, rough_effort

LED, STEPS = 0.05, 12
"""The part of all points that is led on, and evaluations for each."""

FEWEST, MOST = 48, 512
"""Points that are led on, at least and at most."""

REFINED, EVALUATIONS = 24, 200
"""Points that are refined to the end, and evaluations for each."""


def sweep(
    misfit: Misfit,
    frame: Coordinates,
    sizes: np.ndarray,
    looks: int,
    seed: int | Sequence[int],
    deadline: float = math.inf,
) -> list[Refined]:
    """The optima to which the best of so many points lead, best first; the same for the same seed."""
    ties = np.arange(len(sizes))
    points = [z for batch in batches(frame, sizes, ties, looks, np.random.default_rng(seed)) for z in batch]
    rough = misfit.window(1.0, effort=rough_effort(misfit, points, deadline))
    screen = Screen.of(rough, frame)
    costs = np.array([screen.cost(z, deadline) for z in points])
    order = [i for i in np.argsort(costs, kind="stable").tolist() if math.isfinite(costs[i])]
    led = [
        refine(rough, points[i], max_evaluations=STEPS, frame=frame, time_limit=deadline - now())
        for i in order[: min(max(round(LED * looks), FEWEST), MOST)]
        if now() < deadline
    ]
    best = sorted((one for one in led if math.isfinite(one.cost)), key=lambda one: one.cost)[:REFINED]
    ends = [
        refine(misfit, one.z, max_evaluations=EVALUATIONS, frame=frame, time_limit=deadline - now())
        for one in best
        if now() < deadline
    ]
    return sorted((one for one in ends if math.isfinite(one.cost)), key=lambda one: one.cost)
