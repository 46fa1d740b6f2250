"""Refine: from a start to the optimum of the misfit, by least squares with exact sensitivities.

Levenberg and Marquardt's method in the form of a trust region, in coordinates where a step means the same everywhere
(`coordinates`), within bounds.  Noise levels that are not known take part: the profile likelihood

    sum_j N_j log |r_j(z)|

is minimised by reweighting every output with its own rms residual.  The logarithm is concave, so that a step which
decreases the reweighted squares decreases the likelihood too.  Far from the optimum this would chase the output that
happens to fit best, so the first part of the way is gone with constant weights.

Scales and offsets of outputs follow from all other unknowns and are left out on the way (see `projection`), unless it
leads along a bound of theirs.  In a narrow valley steps follow its bend.

Where noise has another law, or where there are priors, residuals and Jacobian are those of Fisher's scoring (see
`problem.scoring`): the gradient is exact, the curvature expected, and a step counts by what it does to the likelihood.

Of hundreds of unknowns most of the way is gone by gradients alone (see `quasi_newton`).

The end is reached when the best step predicts no decrease that matters beside the noise, or none beside rounding.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from odejet import journal
from odejet.clock import now
from odejet.errors import DataError
from odejet.objective.misfit import Misfit
from odejet.objective.projection import projected
from odejet.objective.reduced import AnyMisfit
from odejet.problem import coordinates
from odejet.problem.coordinates import Bounds, Coordinates
from odejet.search import quasi_newton
from odejet.search.descent import Descent
from odejet.search.identity import identity, whereabouts
from odejet.search.refined import Refined
from odejet.search.termination import Ending

__all__ = ["MAX_EVALUATIONS", "PRECISION", "SAME", "Ending", "Refined", "evaluated", "refine"]

PRECISION = 1e-7
"""A predicted decrease of the negative log-likelihood that matters to nobody: steps of 1e-3 standard errors."""

MAX_EVALUATIONS = 500

SAME = 1e-3
"""Optima whose negative log-likelihoods differ by less are one: refinements end within 1e-7 of an optimum."""


def refine(
    misfit: AnyMisfit,
    start: np.ndarray,
    bounds: Bounds = None,
    positive: bool | Collection[str] = False,
    levels: np.ndarray | None = None,
    time_limit: float = math.inf,
    max_evaluations: int = MAX_EVALUATIONS,
    precision: float = PRECISION,
    frame: Coordinates | None = None,
) -> Refined:
    """The optimum to which `start` leads, within bounds.

    `levels` are the noise levels to begin with, by default the spread of each output; `frame` replaces the coordinates
    that would follow from the start and the bounds.  Simulations that are stiff or take very many steps count as
    several of `max_evaluations`, so that the limit means the same wherever the start is.
    """
    start = np.asarray(start, dtype=float)
    frame = frame or coordinates.choose(misfit.unknowns, start, bounds, positive, misfit.model.bounds)
    first = misfit.scales if levels is None else np.maximum(levels, misfit.floors)
    keeper = journal.keeper()
    if keeper is None or not isinstance(misfit, Misfit):
        return _refined(misfit, frame, start, first, time_limit, max_evaluations, precision)
    key = journal.digest("refine", identity(misfit), *whereabouts(frame), start, first, max_evaluations, precision)
    if (known := keeper.recall(key)) is not None:
        return _recalled(known, misfit.labels)
    found = _refined(misfit, frame, start, first, time_limit, max_evaluations, precision)
    if found.ending is not Ending.TIME_LIMIT:  # of which another time there may be more
        keeper.keep(key, found.packed())
    return found


def _recalled(known: bytes, labels: tuple[str, ...]) -> Refined:
    """What a journal says."""
    try:
        return Refined.unpacked(known, labels)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DataError(f"the checkpoint holds what odejet has not written ({error}); delete it") from None


def _refined(
    misfit: AnyMisfit,
    frame: Coordinates,
    start: np.ndarray,
    levels: np.ndarray,
    time_limit: float,
    max_evaluations: int,
    precision: float,
) -> Refined:
    begin, origin, spent = now(), start, 0
    # Far from an optimum numbers may be too large, and are refused.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if quasi_newton.serves(misfit):
            assert isinstance(misfit, Misfit)
            start, spent = quasi_newton.descend(misfit, frame, start, time_limit, max_evaluations)
        descent = Descent(misfit, frame, levels, begin + time_limit, max_evaluations, precision)
        descent.allowance.evaluations = min(spent, max_evaluations - 1)  # where it ends is to be looked at
        part = None if spent else projected(misfit, frame)
        ending = descent.run(start) if part is None else descent.follow(part, start)
        start = origin
        return replace(descent.result(ending, now() - begin), start=frame.inside(start))


def evaluated(misfit: Misfit, z: np.ndarray, frame: Coordinates) -> Refined:
    """The misfit at z itself, moved into the box: no optimum, unless its residuals are down to rounding."""
    begin = now()
    descent = Descent(misfit, frame, misfit.scales, math.inf, 1, PRECISION)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ending = descent.look(np.asarray(z, dtype=float))
        return descent.result(ending, now() - begin)
