"""Statistics: whether the residuals of a fit look like noise, and what a fit is worth beside another.

A fit that is right leaves residuals of the size of the noise and without autocorrelation.  Fitting itself takes degrees
of freedom away, unevenly among the outputs, and makes residuals slightly anticorrelated; both are accounted for by the
leverages of the Jacobian (Durbin and Watson 1950 for the moments of quadratic forms of residuals).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odejet.problem.misfit import Misfit
from odejet.search.refine import Refined

LAGS = 8
"""Lags of the test for autocorrelation: errors of a model stretch over many measurements."""

_WEIGHTS = 0.5 * (1 - np.arange(LAGS) / LAGS)

WHITE = 1e-4
"""Residuals with more autocorrelation than noise has with this probability are those of a wrong model or optimum."""

_RANK = 1e-12  # singular values of the scaled Jacobian below this fraction of the largest fit nothing


@dataclass(frozen=True)
class OutputCheck:
    """What the residuals of one output say."""

    output: str
    points: int
    degrees_of_freedom: float  # points less what the fit took of them
    level: float  # the noise level, corrected for the degrees of freedom
    chi_square: float  # of the residuals in units of the reference level
    size_p: float  # the probability of residuals so large or larger, if the reference level is right
    autocorrelation_z: float  # the standardised sum of positive lag products; large where neighbours are alike
    autocorrelation_p: float  # the probability of so much autocorrelation or more in noise
    runs_p: float  # the probability of so few changes of sign or fewer

    @property
    def white_p(self) -> float:
        """The probability that noise looks as little like noise as this, by either test."""
        return min(1.0, 2 * min(self.autocorrelation_p, self.runs_p))


@dataclass(frozen=True)
class FitCheck:
    """The same for all outputs, with the criteria that compare models."""

    outputs: tuple[OutputCheck, ...]
    rank: int  # directions among the unknowns that the data determine
    aic: float
    bic: float

    @property
    def chi_square(self) -> float:
        return sum(check.chi_square for check in self.outputs)

    @property
    def degrees_of_freedom(self) -> float:
        return sum(check.degrees_of_freedom for check in self.outputs)


def check(misfit: Misfit, refined: Refined, reference: np.ndarray | None = None) -> FitCheck:
    """Residuals judged; `reference` are noise levels known from elsewhere, by default those of the misfit.

    Where neither is known the reference is the level that the fit itself estimates, and chi-square says nothing.
    """
    basis = _basis(misfit, refined)
    taken = (basis**2).sum(axis=1)
    checks = []
    for number, (name, rows) in enumerate(zip(misfit.outputs, misfit.groups, strict=True)):
        count = rows.stop - rows.start
        freedom = max(count - float(taken[rows].sum()), 1e-3)
        residuals = refined.residuals[rows] * refined.levels[number]
        squares = float(residuals @ residuals)
        level = max(math.sqrt(squares / freedom), float(misfit.floors[number]))
        known = misfit.known[number] if reference is None else reference[number]
        unit = level if math.isnan(known) else float(known)
        chi_square = squares / unit**2
        courses = _ordered(misfit, rows)
        autocorrelation = _autocorrelation(residuals / level, basis[rows], courses)
        checks.append(
            OutputCheck(
                name,
                count,
                freedom,
                level,
                chi_square,
                chi_square_tail(chi_square, freedom),
                autocorrelation,
                _autocorrelation_tail(autocorrelation, [len(course) for course in courses]),
                _runs_tail(residuals, courses),
            )
        )
    free, cost = basis.shape[1] + int(misfit.estimated.sum()), refined.cost
    if not misfit.weighted:  # half the squares are no likelihood; one noise level for all outputs makes them one
        variance = max(2 * cost / misfit.points, float(misfit.floors.max()) ** 2)
        free, cost = free + 1, 0.5 * misfit.points * math.log(2 * math.pi * variance) + cost / variance
    return FitCheck(tuple(checks), basis.shape[1], 2 * free + 2 * cost, free * math.log(misfit.points) + 2 * cost)


def is_plausible(misfit: Misfit, refined: Refined) -> bool:
    """Whether what is left may be noise: several starts may agree on a wrong optimum."""
    outputs = check(misfit, refined).outputs
    return min(output.white_p for output in outputs) > WHITE / len(outputs)


def _basis(misfit: Misfit, refined: Refined) -> np.ndarray:
    """An orthonormal basis of what the unknowns can fit; those held on a bound fit nothing."""
    free = refined.jacobian[:, ~refined.held]
    sizes = np.sqrt((free**2).sum(axis=0))
    scaled = free[:, sizes > 0] / sizes[sizes > 0]
    if not scaled.shape[1]:
        return np.zeros((misfit.points, 0))
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    return u[:, s > _RANK * s[0]]


def _ordered(misfit: Misfit, rows: slice) -> list[np.ndarray]:
    """Positions of an output's residuals along time, for each experiment; replicates stand side by side."""
    times = misfit.times[rows]
    ends = np.flatnonzero(np.diff(times) < 0) + 1  # a new experiment begins where time goes back
    return [part for part in np.split(np.arange(len(times)), ends) if len(part) > 1]


def _autocorrelation(residuals: np.ndarray, basis: np.ndarray, courses: list[np.ndarray]) -> float:
    """The weighted sum of products of neighbours, standardised by its mean and variance in a fit of pure noise.

    The sum is e'Ae with a banded A of triangular weights; with M = I - QQ' its mean is tr(MA) and its variance
    2 tr(MAMA), for noise of unit size.  Only the rows of Q that belong to the output enter: what other outputs do
    to these residuals is of second order.
    """
    neighbours = np.zeros_like(residuals)
    moved = np.zeros_like(basis)
    squares = 0.0
    for course in courses:
        begin, end = int(course[0]), int(course[-1]) + 1  # without a gap, so that slices do
        for lag in range(1, min(LAGS, len(course) - 1) + 1):
            weight = _WEIGHTS[lag - 1]
            first, second = slice(begin, end - lag), slice(begin + lag, end)
            for target, source in ((neighbours, residuals), (moved, basis)):
                target[first] += weight * source[second]
                target[second] += weight * source[first]
            squares += 2 * weight**2 * (end - begin - lag)
    inner = basis.T @ moved
    mean = -float(np.trace(inner))
    variance = 2 * (squares - 2 * float((moved**2).sum()) + float((inner * inner.T).sum()))
    return (float(residuals @ neighbours) - mean) / math.sqrt(variance) if variance > 1e-12 else 0.0


def _autocorrelation_tail(z: float, lengths: list[int]) -> float:
    """The tail of a standardised e'Ae, which is skewed: that of the gamma law with its third cumulant 8 tr(A^3).

    The trace counts the ways of three lags that lead back to the start: two that add up to the third.
    """
    from scipy.special import gammaincc

    ways = sum(
        _WEIGHTS[a - 1] * _WEIGHTS[b - 1] * _WEIGHTS[a + b - 1] for a in range(1, LAGS) for b in range(1, LAGS - a + 1)
    )
    cubes = 8 * 6 * ways * sum(max(n - LAGS, 0) for n in lengths)
    squares = sum(4 * _WEIGHTS[lag - 1] ** 2 * max(n - lag, 0) for n in lengths for lag in range(1, LAGS + 1))
    if cubes <= 0:
        return _normal_tail(z)
    shape = 4 * squares**3 / cubes**2
    return float(gammaincc(shape, max(shape + z * math.sqrt(shape), 0.0)))


def _runs_tail(residuals: np.ndarray, courses: list[np.ndarray]) -> float:
    """The probability of so few runs of one sign (Wald and Wolfowitz 1940), by its normal approximation."""
    excess, variance = 0.0, 0.0
    for course in courses:
        signs = residuals[course] > 0
        up, down = int(signs.sum()), int((~signs).sum())
        n = up + down
        if up and down and n > 2:
            expected = 1 + 2 * up * down / n
            excess += expected - (1 + int(np.count_nonzero(np.diff(signs)))) - 0.5
            variance += (expected - 1) * (expected - 2) / (n - 1)
        elif n > 2:
            excess += 0.5 * n - 1
            variance += 0.25 * (n - 1)
    return _normal_tail(excess / math.sqrt(variance)) if variance > 0 else 1.0


def _normal_tail(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))


def chi_square_tail(value: float, freedom: float) -> float:
    """The probability that chi-square with so many degrees of freedom is at least `value`."""
    from scipy.special import gammaincc

    return float(gammaincc(0.5 * freedom, 0.5 * value))
