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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import ClassVar, NamedTuple, cast

import numpy as np
from scipy.fft import dct
from scipy.linalg import blas, lapack, solve_triangular

from odejet.budget import Budget
from odejet.data.series import MIN_TIMES, Series
from odejet.smooth import chebyshev
from odejet.smooth.chain import chain
from odejet.smooth.compressed import EPSILON, triangle
from odejet.smooth.estimator import Estimator, Workspace, register
from odejet.smooth.evidence import Ratio, best_ratio
from odejet.smooth.kernels import Kernel
from odejet.smooth.search import REFINEMENTS, bracketed, climb, lagrange, parabola
from odejet.smooth.smoother import ChebyshevSeries
from odejet.smooth.standardised import Standardised

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
START_SPACING = 0.75
"""Spacing of the starting values of the search, in the logarithm of the length scale."""
SHAPES = (0.4, 1.0, 3.0, 10.0)
"""Starting values of the exponent of the rational quadratic."""

LARGE = 112
"""Bases above this size take their first guess of the kernel from a part of the data."""
NEIGHBOURS, SPACING = 2, 0.2
"""Neighbours of the best length scale on either side that are averaged over, and their spacing in its logarithm."""


@dataclass(frozen=True, eq=False)
class GaussianProcess(ChebyshevSeries):
    """The posterior mean of a Gaussian process in a polynomial basis."""

    kernel: Kernel = field(default_factory=lambda: Kernel(1.0))
    """In natural time."""
    signal: float = 1.0
    """The signal sd in natural units."""
    stationary: ClassVar[bool] = True


class Part(NamedTuple):
    """Basis functions, and the coordinates of the data that see nothing else."""

    columns: slice
    factor: np.ndarray
    coordinates: np.ndarray


class ReducedData(NamedTuple):
    """What the fits of one series share: the leading part of its compressed form."""

    data: Standardised
    parts: tuple[Part, ...]
    """Everything, or the even and the odd polynomials of symmetric times."""
    coordinates: np.ndarray
    outside: float
    size: int
    computed: int

    @classmethod
    def of(cls, data: Standardised, size: int) -> ReducedData:
        compressed = data.compressed(size)
        factor, coordinates, tail = compressed.leading(size)
        parts = tuple(Part(p, np.asfortranarray(factor[p, p]), coordinates[p]) for p in compressed.parts)
        return cls(data, parts, coordinates, tail + data.floor, size, compressed.size)


class Process(Estimator):
    """One of both Gaussian processes, as likelihood has it."""

    def __init__(self, place: int, name: str, rank: float) -> None:
        self.place, self.name, self.rank = place, name, rank

    def fit(self, given: Workspace) -> GaussianProcess:
        return given.once(_both)[self.place]

    def noise(self, given: Workspace) -> float | None:
        """Only the process of better evidence counts."""
        best = max(processes(given), key=lambda process: process.evidence)
        return best.noise if best.name == self.name else None


class Shortened(Estimator):
    """A Gaussian process with a length scale shorter than the likelihood prefers."""

    def __init__(self, process: str, rank: float) -> None:
        self.process, self.name, self.rank = process, f"{process}_short", rank

    def fit(self, given: Workspace) -> GaussianProcess:
        return shortened(given.once(reduced_data), cast(GaussianProcess, given.fitted(self.process)))


register(Process(0, "gp_se", 2.0))
register(Process(1, "gp_rq", 3.0))
register(Shortened("gp_se", 5.0))
register(Shortened("gp_rq", 6.0))


def processes(given: Workspace) -> list[GaussianProcess]:
    """Both processes of an output."""
    return [cast(GaussianProcess, given.fitted(name)) for name in ("gp_se", "gp_rq")]


def reduced_data(given: Workspace) -> ReducedData:
    """An output in a basis with room beyond the degree that it asks for."""
    return _with_room(given.data, *given.once(chebyshev.size))


def _with_room(data: Standardised, size: int, degree: int) -> ReducedData:
    wanted = chebyshev.with_room(degree)
    wanted = min(wanted, size) if size < data.largest_size() else wanted
    return ReducedData.of(data, wanted)


def _both(given: Workspace) -> tuple[GaussianProcess, GaussianProcess]:
    """Both Gaussian processes; for large bases from a guess, because each trial is dear."""
    own = given.once(reduced_data)
    if own.size <= LARGE:
        se = fit_se(own)
        return se, fit_rq(own, se.kernel)
    guess_se, guess_rq = _guesses(own.data, given.budget)
    se = fit_se(own, guess_se)
    return se, fit_rq(own, se.kernel, guess_rq.scaled(se.kernel.length / guess_se.length))


def _guesses(data: Standardised, budget: Budget) -> tuple[Kernel, Kernel]:
    """Kernels fitted to the liveliest third of the data: both are stationary, so its length scale rules the whole."""
    edges = np.linspace(data.times[0], data.times[-1], 4)
    thirds = [_part(data.series, low, high) for low, high in pairwise(edges)]
    parts = [part for part in map(Standardised, filter(_enough, thirds)) if not part.constant]
    sized = [(*chebyshev.needed_size(part, budget), part) for part in parts]
    size, degree, part = max(sized, key=lambda found: found[1])
    own = _with_room(part, size, degree)
    se = search_se(own, refinements=2).kernel
    return se, search_rq(own, se).kernel


def _enough(part: Series) -> bool:
    return part.distinct >= MIN_TIMES


def _part(series: Series, low: float, high: float) -> Series:
    inside = (series.times >= low) & (series.times <= high)
    return series.at(inside)


def fit_se(reduced: ReducedData, guess: Kernel | None = None) -> GaussianProcess:
    """Squared-exponential kernel, hyper-parameters by maximum marginal likelihood; `guess` as in `search_se`."""
    return search_se(reduced, guess).process("gp_se")


def fit_rq(reduced: ReducedData, se: Kernel, guess: Kernel | None = None) -> GaussianProcess:
    """Rational-quadratic kernel, hyper-parameters by maximum marginal likelihood; arguments as in `search_rq`."""
    return search_rq(reduced, se, guess).process("gp_rq")


def search_se(reduced: ReducedData, guess: Kernel | None = None, refinements: int = REFINEMENTS) -> Trials:
    """Squared-exponential kernels, from length scales over the whole range or climbing from a guess in natural time."""
    low, high = np.log(RESOLUTION / reduced.size), np.log(LONGEST)
    trials = Trials(reduced)

    def evidence(log_length: float) -> float:
        return trials(Kernel(float(np.exp(log_length))))

    if guess is None:
        climb(evidence, np.linspace(low, high, int(np.ceil((high - low) / START_SPACING)) + 1), refinements)
    else:
        middle = float(np.clip(np.log(guess.length / reduced.data.half_width), low, high - 0.2))
        bracketed(evidence, middle, 0.2, high)
    return trials


def search_rq(reduced: ReducedData, se: Kernel, guess: Kernel | None = None) -> Trials:
    """Rational-quadratic kernels, from several exponents and the best squared-exponential kernel in natural time.

    The exponent is refined by one parabola through the starts; length scales of the mixture grow as it falls.  A
    `guess` in natural time is taken as it is.
    """
    half, high = reduced.data.half_width, float(np.log(LONGEST))
    trials = Trials(reduced)
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


def shortened(reduced: ReducedData, fitted: GaussianProcess, factor: float = 0.6) -> GaussianProcess:
    """Return the process with a shorter length scale, signal and noise fitted again.

    Likelihood prefers length scales that oversmooth high derivatives; this variant gives bias away for variance.
    """
    trials = Trials(reduced)
    trials(fitted.kernel.scaled(factor / reduced.data.half_width))
    return trials.process(f"{fitted.name}_short")


def neighbours(reduced: ReducedData, fitted: GaussianProcess, lowest: float) -> list[GaussianProcess]:
    """The process and those of neighbouring length scales, as far as their evidence stays above `lowest`.

    Their evidences are multiplied by the spacing of the logarithms of the length scales: summed over the list they are
    the integral over all length scales, and an average weighted by them no longer relies on a single one.
    """
    found = [fitted]
    for sign in (-1.0, 1.0):
        for step in range(1, NEIGHBOURS + 1):
            scaled = fitted.kernel.scaled(float(np.exp(sign * step * SPACING)) / reduced.data.half_width)
            trials = Trials(reduced)
            if trials(scaled) < lowest:
                break
            found.append(trials.process(fitted.name))
    return [replace(process, evidence=process.evidence + float(np.log(SPACING))) for process in found]


class Sight(NamedTuple):
    """One part of reduced data as a kernel sees it: F, a factor of the prior covariance, and A = R F."""

    part: Part
    prior: np.ndarray
    seen: np.ndarray


class Trials:
    """Kernels tried in a search, and the best of them."""

    def __init__(self, reduced: ReducedData) -> None:
        self.reduced = reduced
        self.best: tuple[Kernel, list[Sight], Ratio] | None = None

    def __call__(self, kernel: Kernel) -> float:
        """The evidence of a kernel in units of half the time span."""
        sights = see(self.reduced, kernel)
        found = likeliest(self.reduced, sights)
        if self.best is None or found.evidence > self.best[2].evidence:
            self.best = kernel, sights, found
        return found.evidence

    @property
    def kernel(self) -> Kernel:
        """The best kernel in natural time."""
        assert self.best is not None
        return self.best[0].scaled(self.reduced.data.half_width)

    def process(self, name: str) -> GaussianProcess:
        assert self.best is not None
        return _assemble(self.reduced, *self.best, name)


def see(reduced: ReducedData, kernel: Kernel) -> list[Sight]:
    """A kernel (in units of half the time span) through the data."""
    even, odd = prior_factors(kernel, reduced.size)
    if len(reduced.parts) > 1:
        priors = [even, odd]
    else:
        whole = np.zeros((reduced.size, even.shape[1] + odd.shape[1]), order="F")
        whole[0::2, : even.shape[1]], whole[1::2, even.shape[1] :] = even, odd
        priors = [whole]
    return [Sight(part, prior, _times(part.factor, prior)) for part, prior in zip(reduced.parts, priors, strict=True)]


def _times(factor: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """R F, where R is triangular, unless there are fewer measurements than basis functions."""
    rows, columns = factor.shape
    return np.asarray(blas.dtrmm(1.0, factor, prior)) if rows == columns else factor @ prior


def likeliest(reduced: ReducedData, sights: list[Sight]) -> Ratio:
    """The best signal and noise."""
    links = chain([(sight.seen, sight.part.coordinates) for sight in sights])
    return best_ratio(links, reduced.outside, len(reduced.data), reduced.data.sds is not None)


def _assemble(reduced: ReducedData, kernel: Kernel, sights: list[Sight], chosen: Ratio, name: str) -> GaussianProcess:
    data = reduced.data
    operator = np.zeros((reduced.size, len(reduced.coordinates)))
    for part, prior, seen in sights:
        operator[part.columns, part.columns] = _posterior(seen, prior, chosen.ratio)
    natural = kernel.scaled(data.half_width)
    signal, noise = float(np.sqrt(chosen.signal)) * data.scale, chosen.noise * data.unit
    described = f"length scale {natural.length:.4g}" + ("" if kernel.name == "SE" else f", exponent {kernel.alpha:.3g}")
    return GaussianProcess(
        name,
        data,
        operator,
        reduced.coordinates,
        noise,
        chosen.evidence,
        reduced.computed,
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


def fixed(data: Standardised, kernel: Kernel, signal: float, noise: float, size: int = 160) -> GaussianProcess:
    """The process for given hyper-parameters in natural units (noise a multiple of the sds where they are known)."""
    ratio = (noise / data.unit) ** 2 / (signal / data.scale) ** 2
    given = Ratio(float(np.log(ratio)), (signal / data.scale) ** 2, float("nan"))
    reduced, scaled = ReducedData.of(data, size), kernel.scaled(1.0 / data.half_width)
    return _assemble(reduced, scaled, see(reduced, scaled), given, f"gp_{kernel.name.lower()}")


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
