"""Gaussian-process regression of one output, with derivatives of any order.

The posterior mean and its derivatives are those of the paper (eq. gp_mean and fixed-design-weight-row), the prior mean
a constant.  A kernel matrix in doubles cannot resolve noise below 1e-8 of the signal, because its small eigenvalues are
rounding; so the matrix is never formed.  Instead the kernel's spectral density gives the process as a sum of cosines
and sines with known variances,

    f(x) = sum_q sqrt(w_q S(w_q)) (xi_q cos(w_q x) + eta_q sin(w_q x)),        xi, eta standard normal,

whose Chebyshev coefficients are a fixed table times those square roots: a *factor* of the prior covariance, accurate to
rounding in every column.  Together with the triangular factor of the design, one bidiagonalisation per length scale
yields the marginal likelihood for all signal and noise variances, whatever the number of points, and one orthogonal
factorisation the posterior mean.  Where the times are symmetric, the even and the odd part are fitted apart.

`exact` is the textbook form with a dense Cholesky factor, for few points and as a check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.linalg import blas, cho_factor, cho_solve, lapack, solve_triangular

from odejet.data.series import EPSILON, Series, triangle
from odejet.smooth.chain import chain
from odejet.smooth.evidence import Ratio, best_ratio
from odejet.smooth.kernels import Kernel
from odejet.smooth.search import REFINEMENTS, bracketed, climb, lagrange, parabola
from odejet.smooth.smoother import Jet, Linear, Polynomial

LONGEST = 20.0
"""The longest length scale tried, in halves of the time span: beyond, the process is a polynomial of low degree."""
RESOLUTION = 4.0
"""The shortest length scale tried, times the number of basis functions."""
LOWEST_FREQUENCY = 1e-4
"""Lower frequencies, in radians per half of the time span, are a constant."""
DENSE, SHORT = 1.2, 0.35
"""Spacing of uniform frequencies; the copies of a squared exponential of a shorter length scale are below rounding."""
STEP, TURN, TURN_SHORT = 0.2, 6.0, 8.0
"""Spacing and turns of clustered frequencies: covariances are right to 1e-11, as far as the basis can follow."""
STARTS = 0.75
"""Spacing of the starting values of the search, in the logarithm of the length scale."""
SHAPES = (0.4, 1.0, 3.0, 10.0)
"""Starting values of the exponent of the rational quadratic."""


NEIGHBOURS, SPACING = 2, 0.2
"""Neighbours of the best length scale on either side that are averaged over, and their spacing in its logarithm."""


@dataclass(frozen=True, eq=False)
class GaussianProcess(Polynomial):
    """The posterior mean of a Gaussian process in a polynomial basis."""

    kernel: Kernel = field(default_factory=lambda: Kernel(1.0))
    """In natural time."""
    signal: float = 1.0
    """The signal sd in natural units."""


class Part(NamedTuple):
    """Basis functions, and the coordinates of the data that see nothing else."""

    columns: slice
    factor: np.ndarray
    coordinates: np.ndarray


class Design(NamedTuple):
    """What the fits of one series share: the leading part of its compressed form."""

    series: Series
    parts: tuple[Part, ...]
    """Everything, or the even and the odd polynomials of symmetric times."""
    coordinates: np.ndarray
    outside: float
    size: int
    computed: int

    @classmethod
    def of(cls, data: Series, size: int) -> Design:
        compressed = data.compressed(size)
        factor, coordinates, tail = compressed.leading(size)
        parts = tuple(Part(p, np.asfortranarray(factor[p, p]), coordinates[p]) for p in compressed.parts)
        return cls(data, parts, coordinates, tail + data.floor, size, compressed.size)


def fit_se(design: Design, guess: Kernel | None = None) -> GaussianProcess:
    """Squared-exponential kernel, hyper-parameters by maximum marginal likelihood; `guess` as in `search_se`."""
    return search_se(design, guess).process("gp_se")


def fit_rq(design: Design, se: Kernel, guess: Kernel | None = None) -> GaussianProcess:
    """Rational-quadratic kernel, hyper-parameters by maximum marginal likelihood; arguments as in `search_rq`."""
    return search_rq(design, se, guess).process("gp_rq")


def search_se(design: Design, guess: Kernel | None = None, refinements: int = REFINEMENTS) -> Trials:
    """Squared-exponential kernels, from length scales over the whole range or climbing from a guess in natural time."""
    low, high = np.log(RESOLUTION / design.size), np.log(LONGEST)
    trials = Trials(design)

    def evidence(log_length: float) -> float:
        return trials(Kernel(float(np.exp(log_length))))

    if guess is None:
        climb(evidence, np.linspace(low, high, int(np.ceil((high - low) / STARTS)) + 1), refinements)
    else:
        middle = float(np.clip(np.log(guess.length / design.series.half_width), low, high - 0.2))
        bracketed(evidence, middle, 0.2, high)
    return trials


def search_rq(design: Design, se: Kernel, guess: Kernel | None = None) -> Trials:
    """Rational-quadratic kernels, from several exponents and the best squared-exponential kernel in natural time.

    The exponent is refined by one parabola through the starts; length scales of the mixture grow as it falls.  A
    `guess` in natural time is taken as it is.
    """
    half, high = design.series.half_width, float(np.log(LONGEST))
    trials = Trials(design)
    peaks: dict[float, tuple[float, float]] = {}

    def at(log_length: float, log_shape: float) -> float:
        return trials(Kernel(float(np.exp(min(log_length, high))), float(np.exp(log_shape))))

    def follow(shape: float, middle: float) -> float:
        log_shape = float(np.log(shape))
        peaks[log_shape] = bracketed(lambda v: at(v, log_shape), min(middle, high - 0.3), 0.3, high)
        return peaks[log_shape][0]

    if guess is not None:
        trials(guess.scaled(1.0 / half))
        return trials
    _follow_shapes(follow, peaks, float(np.log(se.length / half)))
    logs = sorted(peaks)
    lengths, heights = ([peaks[v][i] for v in logs] for i in (0, 1))
    # The parabolas say where the ridge is and how high; the two most promising places on it are tried.
    highest = logs[int(np.argmax(heights))]
    at(peaks[highest][0], highest)
    between = parabola(tuple(logs), tuple(heights))
    if highest == logs[1] and between != highest:
        at(lagrange(logs, lengths, between), between)
    return trials


def _follow_shapes(
    follow: Callable[[float, float], float], peaks: dict[float, tuple[float, float]], centre: float
) -> None:
    """Follow the best length scale for three exponents, the third in the direction of better evidence."""
    least, low, middle, high = SHAPES
    at_middle = follow(middle, centre + 0.35)
    at_low = follow(low, at_middle + 0.3)
    if peaks[float(np.log(low))][1] > peaks[float(np.log(middle))][1]:
        follow(least, at_low + 0.4)
    else:
        follow(high, at_middle - 0.2)


def shortened(design: Design, fitted: GaussianProcess, factor: float = 0.6) -> GaussianProcess:
    """The same kernel with a shorter length scale, signal and noise fitted again.

    Likelihood prefers length scales that oversmooth high derivatives; this variant gives bias away for variance.
    """
    trials = Trials(design)
    trials(fitted.kernel.scaled(factor / design.series.half_width))
    return trials.process(f"{fitted.name}_short")


def neighbours(design: Design, fitted: GaussianProcess, lowest: float) -> list[GaussianProcess]:
    """The process and those of neighbouring length scales, as far as their evidence stays above `lowest`.

    Their evidences are multiplied by the spacing of the logarithms of the length scales: summed over the list they are
    the integral over all length scales, and an average weighted by them no longer relies on a single one.
    """
    found = [fitted]
    for sign in (-1.0, 1.0):
        for step in range(1, NEIGHBOURS + 1):
            scaled = fitted.kernel.scaled(float(np.exp(sign * step * SPACING)) / design.series.half_width)
            trials = Trials(design)
            if trials(scaled) < lowest:
                break
            found.append(trials.process(fitted.name))
    return [replace(process, evidence=process.evidence + float(np.log(SPACING))) for process in found]


class Sight(NamedTuple):
    """One part of a design as a kernel sees it: F, a factor of the prior covariance, and A = R F."""

    part: Part
    prior: np.ndarray
    seen: np.ndarray


class Trials:
    """Kernels tried in a search, and the best of them."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.best: tuple[Kernel, list[Sight], Ratio] | None = None

    def __call__(self, kernel: Kernel) -> float:
        """The evidence of a kernel in units of half the time span."""
        sights = see(self.design, kernel)
        found = likeliest(self.design, sights)
        if self.best is None or found.evidence > self.best[2].evidence:
            self.best = kernel, sights, found
        return found.evidence

    @property
    def kernel(self) -> Kernel:
        """The best kernel in natural time."""
        assert self.best is not None
        return self.best[0].scaled(self.design.series.half_width)

    def process(self, name: str) -> GaussianProcess:
        assert self.best is not None
        return _assemble(self.design, *self.best, name)


def see(design: Design, kernel: Kernel) -> list[Sight]:
    """A kernel (in units of half the time span) through the data."""
    even, odd = prior_factors(kernel, design.size)
    if len(design.parts) > 1:
        priors = [even, odd]
    else:
        whole = np.zeros((design.size, even.shape[1] + odd.shape[1]), order="F")
        whole[0::2, : even.shape[1]], whole[1::2, even.shape[1] :] = even, odd
        priors = [whole]
    return [Sight(part, prior, _times(part.factor, prior)) for part, prior in zip(design.parts, priors, strict=True)]


def _times(factor: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """R F, where R is triangular, unless there are fewer measurements than basis functions."""
    rows, columns = factor.shape
    return np.asarray(blas.dtrmm(1.0, factor, prior)) if rows == columns else factor @ prior


def likeliest(design: Design, sights: list[Sight]) -> Ratio:
    """The best signal and noise."""
    reduced = chain([(sight.seen, sight.part.coordinates) for sight in sights])
    return best_ratio(reduced, design.outside, len(design.series), design.series.sds is not None)


def _assemble(design: Design, kernel: Kernel, sights: list[Sight], chosen: Ratio, name: str) -> GaussianProcess:
    data = design.series
    operator = np.zeros((design.size, len(design.coordinates)))
    for part, prior, seen in sights:
        operator[part.columns, part.columns] = _posterior(seen, prior, chosen.ratio)
    natural = kernel.scaled(data.half_width)
    signal, noise = float(np.sqrt(chosen.signal)) * data.scale, chosen.noise * data.unit
    described = f"length scale {natural.length:.4g}" + ("" if kernel.name == "SE" else f", exponent {kernel.alpha:.3g}")
    return GaussianProcess(
        name,
        data,
        operator,
        design.coordinates,
        noise,
        chosen.evidence,
        design.computed,
        described,
        kernel=natural,
        signal=signal,
    )


def _posterior(seen: np.ndarray, prior: np.ndarray, ratio: float) -> np.ndarray:
    """From coordinates to posterior means: F A^T (A A^T + g I)^{-1} for a prior factor F, A = R F.

    With [A; sqrt(g) I] = [Q_1; Q_2] S it is F S^{-1} Q_1^T, and nothing is squared.
    """
    rows, columns = seen.shape
    packed, reflections, _, _ = lapack.dgeqrf(np.vstack([seen, sqrt(ratio) * np.eye(columns)]), lwork=64 * columns)
    upper = packed[:columns]
    orthonormal, _, _ = lapack.dorgqr(packed, reflections, lwork=64 * columns)
    solved = solve_triangular(upper, prior.T, trans="T", check_finite=False)
    return np.asarray(solved.T @ orthonormal[:rows].T)


def fixed(data: Series, kernel: Kernel, signal: float, noise: float, size: int = 160) -> GaussianProcess:
    """The process for given hyper-parameters in natural units (noise a multiple of the sds where they are known)."""
    ratio = (noise / data.unit) ** 2 / (signal / data.scale) ** 2
    given = Ratio(float(np.log(ratio)), (signal / data.scale) ** 2, float("nan"))
    design, scaled = Design.of(data, size), kernel.scaled(1.0 / data.half_width)
    return _assemble(design, scaled, see(design, scaled), given, f"gp_{kernel.name.lower()}")


class _Table(NamedTuple):
    """Quadrature nodes and weights over frequencies, and the Chebyshev coefficients of cosines and sines there."""

    frequencies: np.ndarray
    weights: np.ndarray
    even: np.ndarray
    odd: np.ndarray


@lru_cache(maxsize=16)
def _table(size: int, turn: float | None) -> _Table:
    """Frequencies up to the size of the basis, whose polynomials cannot follow higher ones.

    Uniform ones are a trapezoidal rule, which replaces the kernel by the sum of its copies at multiples of 2 pi/DENSE.
    With a turn c they are a trapezoidal rule in u for frequencies w = c log(1 + e^u), uniform above c and clustered
    towards zero.  It converges exponentially for every kernel here: uniform spacing c*h resolves differences up to the
    whole interval, logarithmic spacing below c resolves long length scales and the singularity of the rational
    quadratic's density at zero.
    """
    if turn is None:
        frequencies = np.arange(0.0, size, DENSE)
        weights = np.where(frequencies > 0.0, DENSE, 0.5 * DENSE)
    else:
        u = np.arange(int(np.log(LOWEST_FREQUENCY / turn) / STEP), int((size / turn + 8.0) / STEP)) * STEP
        frequencies, weights = turn * np.logaddexp(0.0, u), turn * STEP / (1.0 + np.exp(-u))
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


def prior_factors(kernel: Kernel, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices F whose products F F^T are the prior covariances of the even and odd Chebyshev coefficients.

    The kernel is in x.  Cosines are even and sines odd, so that there is no covariance between the two.
    """
    turn = TURN if kernel.length >= SHORT else None if kernel.name == "SE" else TURN_SHORT
    table = _table(size, turn)
    variances = table.weights * kernel.spectral_density(table.frequencies)
    amplitudes = np.sqrt(variances)
    kept = amplitudes > EPSILON**1.1 * amplitudes.max()
    even, odd = table.even[:, kept] * amplitudes[kept], table.odd[:, kept] * amplitudes[kept]
    # What the rule leaves of the unit variance sits at frequencies too low to be told from a constant.
    constant = np.zeros((len(even), 1))
    constant[0] = np.sqrt(max(1.0 - variances.sum(), 0.0)) if variances.sum() < 1.0 - 1e-13 else 0.0
    return _numerical(triangle(np.hstack([constant, even]).T).T), _numerical(triangle(odd.T).T)


def _numerical(factor: np.ndarray) -> np.ndarray:
    """The leading columns of a factor, as far as they matter beside rounding; they fall faster than any power."""
    sizes = np.einsum("ij,ij->j", factor, factor)
    return factor[:, : 1 + int(np.flatnonzero(sizes > EPSILON**2.4 * sizes.max())[-1])]


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

    def jets(self, times: np.ndarray, order: int) -> list[Jet]:
        sds = 1.0 if self.series.sds is None else self.series.sds
        found = zip(times, self.derivatives(times, order), strict=True)
        return [Jet(float(t), mean, self.rows(float(t), order) * sds, self.noise, self) for t, mean in found]

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
