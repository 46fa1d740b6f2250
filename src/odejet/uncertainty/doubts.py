"""Doubts: intervals by curvature that are not to be trusted, since the likelihood is not the parabola they take it for.

Each end of an interval is looked at once: with the unknown held there and everything else at its best, the deviance
should be what it is at the end of an interval of that level.  Where it is much less the interval is too narrow on that
side, where it is much more it is too wide.  An end that a bound cuts off, and one that there is not, cannot be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from odejet.clock import now
from odejet.smooth.threads import one_thread
from odejet.uncertainty.fisher import quantile
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.parabola import Parabola
from odejet.uncertainty.profile import deviance_quantile

MOST = 200
"""Unknowns whose intervals are looked at, at some four simulations to each end."""

SECONDS = 10.0
"""What this may take at most, so that models that are very slow to simulate end too."""

NARROW, WIDE = "too narrow", "too wide"


@one_thread()
def doubts(
    likelihood: Likelihood, intervals: Mapping[str, tuple[float, float]], level: float, seconds: float = SECONDS
) -> dict[str, str]:
    """Of these intervals of a level, by label, those that are not to be trusted, with what is wrong in words."""
    if not likelihood.misfit.weighted:
        return {}
    parabola, known, deadline = Parabola(likelihood), likelihood.information, now() + seconds
    rows = np.eye(len(likelihood.optimum.z))
    sds, degrees, ratios = known.errors(rows)
    with np.errstate(over="ignore"):
        directions, bounds = parabola.directions(rows), likelihood.frame.given
    found = {}
    for i, label in enumerate(likelihood.misfit.labels[:MOST]):
        if now() > deadline:
            break
        if label not in intervals or not math.isfinite(sds[i]) or sds[i] <= 0:
            continue
        asked, distance = likelihood.derived(label), quantile(level, float(degrees[i]))
        crossing = math.sqrt(deviance_quantile(level, float(degrees[i]), float(ratios[i])))
        words = []
        for end, bound, sign, side in zip(
            intervals[label], (bounds[0][i], bounds[1][i]), (-1, 1), ("below", "above"), strict=True
        ):
            if end == bound or not math.isfinite(end):
                continue
            probe = parabola.probe(asked, end, directions[i], sign * distance)
            if not probe.confirms(crossing):
                words.append(f"{NARROW if probe.root < crossing else WIDE} {side}")
        if words:
            found[label] = " and ".join(words)
    return found
