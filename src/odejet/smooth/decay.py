"""Decay: polynomials whose coefficients are expected to die away, the prior of an analytic function.

In the basis of polynomials orthonormal over the data, the coordinates of an analytic function fall geometrically with
the degree.  The prior

    z_k ~ N(0, s_f^2 exp(-2 b k^p)),        p in POWERS,

says so; rate, signal and noise maximise the marginal likelihood, which is diagonal here and costs microseconds.  The
posterior mean shrinks each coordinate instead of cutting at one degree.  The powers are averaged with the weights of
their evidence.
"""

from __future__ import annotations

import numpy as np

from odejet.smooth import gp
from odejet.smooth.average import average
from odejet.smooth.chain import links
from odejet.smooth.estimator import Estimator, Workspace, register
from odejet.smooth.evidence import Ratio, best_ratio
from odejet.smooth.search import climb
from odejet.smooth.smoother import ChebyshevSeries, Linear
from odejet.smooth.standardised import Standardised

POWERS = (0.7, 1.0, 1.4)
SLOWEST = 4.0
"""The least fall of the prior sd over the whole basis, as a logarithm: less would call white noise a signal."""
FASTEST, SPACING = np.log(8.0), 0.75
SHARE = 0.7
"""Terms per different time at most: beyond, the orthonormal polynomials explode between the outer points."""
NEGLIGIBLE = 1e-18
"""Coordinates shrunk by more than this are left out."""

MATCHED = 3.0
"""For noise-free data, decaying coordinates that leave at most this many times the noise come first."""


class Decay(Estimator):
    """The average over how coordinates decay."""

    name, rank, counts = "decay", 1.0, True

    def fit(self, given: Workspace) -> ChebyshevSeries:
        return average(given.once(powers), self.name)

    def trust(self, given: Workspace) -> float:
        """Before all others for noise-free data.

        There evidence compares how well priors fit rounding, and the decaying coordinates, which adapt most freely,
        are better.
        """
        own = given.fitted(self.name)
        matched = given.clean and isinstance(own, Linear) and own.noise <= MATCHED * given.noise
        return -1.0 if matched else self.rank


register(Decay())


def powers(given: Workspace) -> list[ChebyshevSeries]:
    """One estimator per power of an output."""
    return fit(given.data, given.once(gp.reduced_data).size)


def fit(data: Standardised, size: int) -> list[ChebyshevSeries]:
    """One estimator per power, with its evidence."""
    return [_fit_power(data, size, power) for power in POWERS]


def _fit_power(data: Standardised, size: int, power: float) -> ChebyshevSeries:
    compressed = data.compressed(size)
    most = max(int(SHARE * data.distinct), min(6, data.distinct - 1))
    _, coordinates, tail = compressed.leading(min(size, most))
    steps = np.arange(len(coordinates)) ** power

    def prior(log_rate: float) -> tuple[np.ndarray, Ratio]:
        # Variances below any noise are all the same; without a floor they would underflow.
        variances = np.exp(np.maximum(-2.0 * np.exp(log_rate) * steps, -200.0))
        known = data.sds is not None
        return variances, best_ratio(links(variances, coordinates), tail + data.floor, len(data), known)

    slowest = np.log(SLOWEST / max(steps[-1], 1.0))
    starts = np.linspace(slowest, FASTEST, 2 + int((FASTEST - slowest) / SPACING))
    log_rate = climb(lambda v: prior(v)[1].evidence, starts)
    variances, ratio = prior(log_rate)
    shrink = variances / (variances + ratio.ratio)
    terms = 1 + int(np.flatnonzero(shrink > NEGLIGIBLE)[-1])
    operator = compressed.inverse[:terms, :terms] * shrink[:terms]
    described = f"coordinates fall as exp(-{np.exp(log_rate):.3g} k^{power:g})"
    noise = ratio.noise * data.unit
    solved = compressed.solve(shrink[:terms] * coordinates[:terms])
    name, kept = f"decay_{power:g}", coordinates[:terms]
    return ChebyshevSeries(name, data, operator, kept, noise, ratio.evidence, compressed.size, described, solved)
