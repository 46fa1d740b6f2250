"""Blend: several linear estimators averaged with the weights of their evidence.

No prior is right for every output: Gaussian processes suit oscillations, decaying coordinates suit relaxations.  Their
marginal likelihoods for the same data say how much each should count, and the average, being linear, keeps an error
law.
"""

from __future__ import annotations

import numpy as np

from odejet.smooth import chebyshev, decay, gp
from odejet.smooth.average import NEGLIGIBLE, average
from odejet.smooth.estimator import Estimator, Workspace, register
from odejet.smooth.smoother import ChebyshevSeries


class Blend(Estimator):
    """The most accurate choice over outputs and noise levels."""

    name, rank, counts = "blend", 0.0, True

    def fit(self, given: Workspace) -> ChebyshevSeries:
        reduced, size = given.once(gp.reduced_data), given.once(chebyshev.size)[0]
        parts = [*given.once(decay.powers), *gp.processes(given), chebyshev.flat(given.data, size)]
        return average(_over_lengths(reduced, parts), self.name)


register(Blend())


def _over_lengths(reduced: gp.ReducedData, parts: list[ChebyshevSeries]) -> list[ChebyshevSeries]:
    """Estimators to be averaged, Gaussian processes over their length scales too where that makes a difference.

    It makes none in a large basis: so much detail in the data determines the length scale.
    """
    lowest = max(part.evidence for part in parts) + float(np.log(NEGLIGIBLE))
    averaged: list[ChebyshevSeries] = []
    for part in parts:
        if isinstance(part, gp.GaussianProcess) and reduced.size <= gp.LARGE and part.evidence > lowest:
            averaged += gp.neighbours(reduced, part, lowest)
        else:
            averaged.append(part)
    return averaged
