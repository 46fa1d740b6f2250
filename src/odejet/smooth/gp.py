"""Gaussian-process regression of one output, with derivatives of any order.

The posterior mean and its derivatives are those of the paper (eq. gp_mean and fixed-design-weight-row), the prior mean
a constant.  A kernel matrix in doubles cannot resolve noise below 1e-8 of the signal, because its small eigenvalues are
rounding; so the matrix is never formed.  Instead the kernel's spectral density gives the process as a sum of cosines
and sines with known variances,

    f(x) = sum_q sqrt(w_q S(w_q)) (xi_q cos(w_q x) + eta_q sin(w_q x)),        xi, eta standard normal,

whose Chebyshev coefficients are a fixed table times those square roots: a *factor* of the prior covariance, accurate to
rounding in every column.  Together with the triangular factor of the design, one singular value decomposition per
length scale yields the marginal likelihood for all signal and noise variances, whatever the number of points.

`exact` is the textbook form with a dense Cholesky factor, for few points and as a check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.linalg import cho_factor, cho_solve

from odejet.smooth.evidence import Ratio, best_ratio
from odejet.smooth.kernels import Kernel
from odejet.smooth.search import bracketed, climb, parabola
from odejet.smooth.series import EPSILON, Series, triangle
from odejet.smooth.smoother import Jet, Linear, Polynomial

LONGEST = 20.0
"""The longest length scale tried, in halves of the time span: beyond, the process is a polynomial of low degree."""
RESOLUTION = 4.0
"""The shortest length scale tried, times the number of basis functions."""
LOWEST_FREQUENCY = 1e-4
"""Lower frequencies, in radians per half of the time span, are a constant."""
SMALL = 100
"""Up to this size a singular value decomposition costs no more than squaring."""
STARTS = 0.75
"""Spacing of the starting values of the search, in the logarithm of the length scale."""
SHAPES = (0.4, 1.0, 3.0, 10.0)
"""Starting values of the exponent of the rational quadratic."""


@dataclass(frozen=True, eq=False)
class GaussianProcess(Polynomial):
    """The posterior mean of a Gaussian process in a polynomial basis."""

    kernel: Kernel = field(default_factory=lambda: Kernel(1.0))
    """In natural time."""
    signal: float = 1.0
    """The signal sd in natural units."""


class Design(NamedTuple):
    """What the fits of one series share: the leading part of its compressed form."""

    series: Series
    factor: np.ndarray
    coordinates: np.ndarray
    outside: float
    size: int
    computed: int
    noisy: bool = False
    """Whether the noise is known to be far above 1e-8 of the signal."""

    @classmethod
    def of(cls, data: Series, size: int, noisy: bool = False) -> Design:
        compressed = data.compressed(size)
        factor, coordinates, tail = compressed.leading(size)
        return cls(data, factor, coordinates, tail + data.floor, size, compressed.size, noisy)


class Decomposition(NamedTuple):
    """One kernel seen through the data: prior and noise made diagonal."""

    left: np.ndarray
    variances: np.ndarray
    loading: np.ndarray
    """Prior covariance of the Chebyshev coefficients with the rotated coordinates."""
    ratio: Ratio


def fit_se(design: Design, guess: float | None = None) -> GaussianProcess:
    """Squared-exponential kernel, hyper-parameters by maximum marginal likelihood.

    The search starts from length scales over the whole range, or climbs from one `guess` in natural time.
    """
    low, high = np.log(RESOLUTION / design.size), np.log(LONGEST)

    trials = Trials(design)

    def evidence(log_length: float) -> float:
        return trials(Kernel(float(np.exp(log_length))))

    if guess is None:
        climb(evidence, np.linspace(low, high, int(np.ceil((high - low) / STARTS)) + 1))
    else:
        middle = float(np.clip(np.log(guess / design.series.half_width), low, high - 0.2))
        bracketed(evidence, middle, 0.2, high, refine=False)
    return trials.process("gp_se")


def fit_rq(design: Design, se: GaussianProcess, guess: Kernel | None = None) -> GaussianProcess:
    """Rational-quadratic kernel, started from several exponents and the squared-exponential length scale.

    The exponent is refined by one parabola through the starts; length scales of the mixture grow as it falls.  A
    `guess` in natural time is taken as it is.
    """
    half, high = design.series.half_width, float(np.log(LONGEST))
    trials = Trials(design)
    best: dict[float, tuple[float, float]] = {}

    def follow(log_shape: float, middle: float) -> float:
        def evidence(log_length: float) -> float:
            return trials(Kernel(float(np.exp(log_length)), float(np.exp(log_shape))))

        best[log_shape] = bracketed(evidence, min(middle, high - 0.3), 0.3, high)
        return best[log_shape][1]

    if guess is None:
        _follow_shapes(follow, best, float(np.log(se.kernel.length / half)))
    else:
        trials(guess.scaled(1.0 / half))
    return trials.process("gp_rq")


def _follow_shapes(
    follow: Callable[[float, float], float], best: dict[float, tuple[float, float]], centre: float
) -> None:
    """Climb for one exponent after the other in the direction of better evidence, then between the best three."""
    logs = [float(np.log(shape)) for shape in SHAPES]
    follow(logs[2], centre + 0.35)
    if follow(logs[1], best[logs[2]][0] + 0.3) > best[logs[2]][1]:
        follow(logs[0], best[logs[1]][0] + 0.4)
    else:
        follow(logs[3], centre + 0.15)
    ordered = sorted(best)
    peak = max(ordered, key=lambda v: best[v][1])
    if peak == ordered[1]:
        values = (best[ordered[0]][1], best[peak][1], best[ordered[2]][1])
        follow(parabola((ordered[0], peak, ordered[2]), values), best[peak][0])


def shortened(design: Design, fitted: GaussianProcess, factor: float = 0.6) -> GaussianProcess:
    """The same kernel with a shorter length scale, signal and noise fitted again.

    Likelihood prefers length scales that oversmooth high derivatives; this variant gives bias away for variance.
    """
    kernel = fitted.kernel.scaled(factor / design.series.half_width)
    return at(design, kernel, f"{fitted.name}_short")


class Trials:
    """Kernels tried in a search; the best one's decomposition is kept."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.best: tuple[Kernel, Decomposition] | None = None

    def __call__(self, kernel: Kernel) -> float:
        """The evidence of a kernel."""
        found = decompose(self.design, kernel)
        if self.best is None or found.ratio.evidence > self.best[1].ratio.evidence:
            self.best = kernel, found
        return found.ratio.evidence

    def process(self, name: str) -> GaussianProcess:
        assert self.best is not None
        return _assemble(self.design, *self.best, name)


def at(design: Design, kernel: Kernel, name: str, ratio: Ratio | None = None) -> GaussianProcess:
    """The process for one kernel (in units of half the time span), signal and noise fitted unless given."""
    return _assemble(design, kernel, decompose(design, kernel, ratio), name)


def _assemble(design: Design, kernel: Kernel, found: Decomposition, name: str) -> GaussianProcess:
    data, chosen = design.series, found.ratio
    operator = (found.loading / (found.variances + chosen.ratio)) @ found.left.T
    natural = kernel.scaled(data.half_width)
    signal, noise = float(np.sqrt(chosen.signal)) * data.scale, chosen.noise * data.unit
    described = f"length scale {natural.length:.4g}" + ("" if kernel.name == "SE" else f", exponent {kernel.alpha:.3g}")
    return GaussianProcess(
        name, data, operator, design.coordinates, noise, chosen.evidence, design.computed, described, natural, signal
    )


def fixed(data: Series, kernel: Kernel, signal: float, noise: float, size: int = 160) -> GaussianProcess:
    """The process for given hyper-parameters in natural units (noise a multiple of the sds where they are known)."""
    ratio = (noise / data.unit) ** 2 / (signal / data.scale) ** 2
    given = Ratio(float(np.log(ratio)), (signal / data.scale) ** 2, float("nan"))
    return at(Design.of(data, size), kernel.scaled(1.0 / data.half_width), f"gp_{kernel.name.lower()}", given)


def decompose(design: Design, kernel: Kernel, ratio: Ratio | None = None) -> Decomposition:
    """Make design times prior factor diagonal, and find the best signal and noise.

    Squaring the matrix is faster and sound while the noise is far above the square root of rounding.
    """
    prior = prior_factor(kernel, design.size)
    seen = design.factor @ prior
    if design.noisy and len(seen) > SMALL:
        variances, left = np.linalg.eigh(seen @ seen.T)
        variances = np.maximum(variances, 0.0)
        loading = prior @ (seen.T @ left)
    else:
        left, values, right = np.linalg.svd(seen, full_matrices=False)
        variances, loading = values**2, prior @ (right.T * values)
    rotated = left.T @ design.coordinates
    if ratio is None:
        missed = max(float(design.coordinates @ design.coordinates - rotated @ rotated), 0.0)
        outside = design.outside + (missed if len(rotated) < len(design.coordinates) else 0.0)
        known = design.series.sds is not None
        ratio = best_ratio(variances, rotated, outside, len(design.series), known)
    return Decomposition(left, variances, loading, ratio)


class _Table(NamedTuple):
    """Quadrature nodes and weights over frequencies, and the Chebyshev coefficients of cosines and sines there."""

    frequencies: np.ndarray
    weights: np.ndarray
    even: np.ndarray
    odd: np.ndarray


@lru_cache(maxsize=8)
def _table(size: int) -> _Table:
    """A trapezoidal rule in u for frequencies w = c log(1 + e^u), which are uniform above c and cluster towards zero.

    It converges exponentially for every kernel here: uniform spacing c*h resolves differences up to the whole interval,
    logarithmic spacing below c resolves long length scales and the singularity of the rational quadratic's density at
    zero.  Frequencies above the size of the basis are left out: its polynomials cannot follow them.
    """
    step, turn = 0.15, 5.0
    u = np.arange(int(np.log(LOWEST_FREQUENCY / turn) / step), int((size / turn + 8.0) / step)) * step
    frequencies, weights = turn * np.logaddexp(0.0, u), turn * step / (1.0 + np.exp(-u))
    kept = frequencies <= size
    frequencies, weights = frequencies[kept], weights[kept]
    nodes = 2 * size
    x = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    phases = np.outer(x, frequencies)
    return _Table(frequencies, weights, _coefficients(np.cos(phases))[:size:2], _coefficients(np.sin(phases))[1:size:2])


def _coefficients(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients of columns sampled at the roots of a Chebyshev polynomial.

    Those of cosines and sines are Bessel functions, which vanish beyond the frequency faster than any power.  What is
    left there is rounding, and derivatives would multiply it by powers of the degree.
    """
    out = dct(values, axis=0, type=2) / len(values)
    out[0] *= 0.5
    out[np.abs(out) < 8.0 * EPSILON] = 0.0
    return out


def prior_factor(kernel: Kernel, size: int) -> np.ndarray:
    """A matrix F whose product F F^T is the prior covariance of the Chebyshev coefficients, for a kernel in x.

    Cosines are even and sines odd, so that two triangular factors of half the size suffice.
    """
    table = _table(size)
    variances = table.weights * kernel.spectral_density(table.frequencies)
    amplitudes = np.sqrt(variances)
    kept = amplitudes > EPSILON**1.1 * amplitudes.max()
    even, odd = table.even[:, kept] * amplitudes[kept], table.odd[:, kept] * amplitudes[kept]
    # What the rule leaves of the unit variance sits at frequencies too low to be told from a constant.
    constant = np.zeros((len(even), 1))
    constant[0] = np.sqrt(max(1.0 - variances.sum(), 0.0)) if variances.sum() < 1.0 - 1e-13 else 0.0
    upper_even = triangle(np.hstack([constant, even]).T)
    upper_odd = triangle(odd.T)
    factor = np.zeros((size, len(upper_even) + len(upper_odd)))
    factor[0::2, : len(upper_even)] = upper_even.T
    factor[1::2, len(upper_even) :] = upper_odd.T
    return factor


def truncation(kernel: Kernel, size: int) -> float:
    """The share of the prior variance (kernel in x) at frequencies that a basis of this size cannot follow."""
    beyond = size + np.linspace(0.0, 10.0 / kernel.length, 200)
    return float(np.trapezoid(kernel.spectral_density(beyond), beyond))


@dataclass(frozen=True, eq=False)
class ExactProcess(Linear):
    """The posterior mean by a dense Cholesky factor of K + sigma_GP^2 I, hyper-parameters in natural units."""

    name: str
    series: Series
    kernel: Kernel
    signal: float
    noise: float
    solve: Callable[[np.ndarray], np.ndarray]

    def rows(self, t: float, order: int) -> np.ndarray:
        """w_{j,t} for j = 0..order (eq. fixed-design-weight-row)."""
        cross = self.signal**2 * self.kernel.derivatives(t - self.series.times, order)
        return self.solve(cross.T).T

    def derivatives(self, times: np.ndarray | float, order: int) -> np.ndarray:
        dual = self.solve(self.series.values - self.series.center)
        lags = np.atleast_1d(times)[:, None] - self.series.times
        out = self.signal**2 * np.einsum("jtn,n->tj", self.kernel.derivatives(lags, order), dual)
        out[:, 0] += self.series.center
        return out

    def jet(self, t: float, order: int) -> Jet:
        sds = 1.0 if self.series.sds is None else self.series.sds
        mean = self.derivatives(np.array([t]), order)[0]
        return Jet(float(t), mean, self.rows(t, order) * sds, self.noise, self)

    def weight_rows(self, jet: Jet) -> np.ndarray:
        assert jet.reduced is not None
        return jet.reduced / (1.0 if self.series.sds is None else self.series.sds)


def exact(data: Series, kernel: Kernel, signal: float, noise: float) -> ExactProcess:
    """The exact process for given hyper-parameters; its cost grows with the cube of the number of points."""
    sds = np.broadcast_to(1.0 if data.sds is None else data.sds, data.times.shape)
    covariance = signal**2 * kernel(data.times[:, None] - data.times)
    covariance[np.diag_indices(len(data))] += (noise * sds) ** 2
    factor = cho_factor(covariance, lower=True)
    return ExactProcess(f"exact_{kernel.name.lower()}", data, kernel, signal, noise, lambda rhs: cho_solve(factor, rhs))
