"""Statistics: whether the residuals of a fit look like noise, and what a fit is worth beside another.

A fit that is right leaves residuals of the size of the noise and without autocorrelation.  Fitting itself takes degrees
of freedom away, unevenly among the outputs, and makes residuals slightly anticorrelated; both are accounted for by the
leverages of the Jacobian (Durbin and Watson 1950 for the moments of quadratic forms of residuals).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odejet.decide import outliers
from odejet.decide.fitted import LAGS, RANK, WEIGHTS, Fitted, beside, fitted, neighbours
from odejet.decide.outliers import Measurement
from odejet.objective.factor import ArrowFactor
from odejet.objective.misfit import Misfit
from odejet.search.refine import Refined

WHITE = 1e-4
"""Residuals less like noise than noise is with this probability are those of a wrong model or optimum, or no normal
noise: more autocorrelation, more outliers, heavier tails."""

NUMERICAL = 1e-10
"""Residuals that are this small beside the spread of their output are the errors of a simulation: no instrument has ten
digits, and such errors are autocorrelated."""

LEAST_DEGREES = 1e-3
"""What is left of an output's degrees of freedom where the unknowns could take them all."""

TOLD = 0.5
"""Degrees of freedom from which on residuals show the noise; with fewer it is not known."""


@dataclass(frozen=True)
class OutputCheck:
    """What the residuals of one output say."""

    output: str
    points: int
    degrees_of_freedom: float  # points less what the fit took of them
    level: float  # the noise level, corrected for the degrees of freedom
    chi_square: float  # of the residuals in units of the reference level
    size_p: float  # the probability of residuals so large or larger, if the reference level is right
    autocorrelation_z: float = 0.0  # the standardised sum of positive lag products; large where neighbours are alike
    autocorrelation_p: float = 1.0  # the probability of so much autocorrelation or more in noise
    runs_p: float = 1.0  # the probability of so few changes of sign or fewer
    outlier_p: float = 1.0  # the probability of so large a largest residual or larger
    tails_p: float = 1.0  # the probability of so heavy tails or heavier
    numerical: bool = False  # whether residuals are so small that they are errors of computing

    @property
    def white_p(self) -> float:
        """The probability that noise looks as little like noise as this, by either test."""
        return min(1.0, 2 * min(self.autocorrelation_p, self.runs_p))


@dataclass(frozen=True)
class Collapse:
    """Measurements of an output that the fit meets exactly, where a scale of the noise that is to be found runs to
    zero: the likelihood then grows without bound, whatever the other measurements say."""

    output: str
    count: int
    experiment: str  # of the first of them; empty if there is only one
    time: float
    value: float

    @property
    def sentence(self) -> str:
        where = f" in {self.experiment}" if self.experiment else ""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return (
            f"the likelihood has no upper bound: the noise of {self.output} runs to zero where the fit meets "
            f"{self.output} = {self.value:g} at t = {self.time:g}{where}{more} exactly, so that AIC and BIC mean "
            "nothing; give the scale of the noise a lower bound, such as half of the last digit of a measurement, or "
            f"leave out what {self.output} cannot but be there"
        )


@dataclass(frozen=True)
class FitCheck:
    """The residuals of all outputs judged, with the criteria that compare models."""

    outputs: tuple[OutputCheck, ...]
    rank: int  # directions among the unknowns that are free to fit the data
    aic: float
    bic: float
    suspicious: tuple[Measurement, ...] = ()  # measurements that are no normal noise
    collapses: tuple[Collapse, ...] = ()  # where the likelihood has no upper bound; AIC and BIC are NaN then

    @property
    def chi_square(self) -> float:
        return sum(check.chi_square for check in self.outputs)

    @property
    def degrees_of_freedom(self) -> float:
        return sum(check.degrees_of_freedom for check in self.outputs)


def check(misfit: Misfit, refined: Refined, reference: np.ndarray | None = None) -> FitCheck:
    """Residuals judged; `reference` are noise levels known from elsewhere, by default those of the misfit.

    Where neither is known the reference is the level that the fit itself estimates, and chi-square says nothing.  Of
    laws other than a level times a shape the normal scores are judged, in whose units noise has the level one.
    """
    rank, outputs = fitted(misfit, refined)
    known = np.where(misfit.free_noise, math.nan, misfit.known) if reference is None else reference
    checks, suspicious = [], list[Measurement]()
    for number, level in enumerate(known.tolist()):
        residuals = _Residuals.of(misfit, refined, outputs[number], number, level)
        checks.append(told := residuals.check())
        suspicious += residuals.suspicious(told, WHITE / len(known))
    free, cost = charged(misfit, refined, rank) + int(misfit.estimated.sum()), refined.cost - refined.prior
    if not misfit.weighted:  # half the squares are no likelihood; one noise level for all outputs makes them one
        variance = max(2 * cost / misfit.points, float(misfit.floors.max()) ** 2)
        free, cost = free + 1, 0.5 * misfit.points * math.log(2 * math.pi * variance) + cost / variance
    found = collapses(misfit, refined)
    if found:  # a likelihood that grows for ever compares with none
        cost = math.nan
    aic, bic = 2 * free + 2 * cost, free * math.log(misfit.points) + 2 * cost
    return FitCheck(tuple(checks), rank, aic, bic, tuple(suspicious), found)


def charged(misfit: Misfit, refined: Refined, rank: int) -> int:
    """Directions among the unknowns that AIC and BIC charge for: those that the data determine.

    An unknown on its bound fits nothing, and takes no degree of freedom from the residuals; but it was free to be
    elsewhere, and a model with it is no simpler because these data would have it beyond its bound.
    """
    if not refined.held.any():
        return rank
    if misfit.in_blocks and (arrow := ArrowFactor.of(refined.jacobian, misfit.blocks, misfit.shared)) is not None:
        return arrow.rank
    sizes = np.sqrt((refined.jacobian**2).sum(axis=0))
    scaled = refined.jacobian[:, sizes > 0] / sizes[sizes > 0]
    singular = np.linalg.svd(scaled, compute_uv=False)
    return int(np.count_nonzero(singular > RANK * singular.max(initial=0.0)))


def collapses(misfit: Misfit, refined: Refined) -> tuple[Collapse, ...]:
    """Outputs with a scale that is to be found and has vanished beside some of their measurements.

    Where it has vanished beside all of them, the data are without noise.  Probabilities of counts have a bound.
    """
    if refined.noise is None:
        return ()
    found = []
    for number, output in enumerate(misfit.outputs):
        group, blocks = misfit.groups[number], [one for one in misfit.measurements.blocks if one.output == output]
        if not any(one.density is not None and one.density.varies and not one.density.law.whole for one in blocks):
            continue
        sizes, logarithm = np.abs(misfit.values[group]), any(one.logarithm for one in blocks)
        sizes = np.where(sizes > 0, sizes, misfit.scales[number]) if not logarithm else np.ones(len(sizes))
        gone = refined.noise.scales[group] <= NUMERICAL * sizes
        if gone.any() and not gone.all():
            row = group.start + int(np.argmax(gone))
            names = zip(experiments(misfit, output), misfit.measurements.series(output), strict=True)
            experiment = next(name for name, rows in names if rows.start <= row < rows.stop)
            several = len(misfit.simulator.conditions) > 1
            found.append(
                Collapse(
                    output,
                    int(gone.sum()),
                    experiment if several else "",
                    float(misfit.times[row]),
                    float(misfit.values[row]),
                )
            )
    return tuple(found)


@dataclass(frozen=True)
class _Residuals:
    """The residuals of one output, with what is needed to judge them."""

    misfit: Misfit
    number: int  # of the output
    values: np.ndarray
    fitted: Fitted
    unit: float  # the noise level they are judged by
    known: bool  # whether it was known beforehand
    scale: float = math.nan  # the median scale of a law that has its own, in the units in which values are compared

    @classmethod
    def of(cls, misfit: Misfit, refined: Refined, fitted: Fitted, number: int, known: float) -> _Residuals:
        rows, scale = misfit.groups[number], math.nan
        if refined.noise is None or not misfit.measurements.densities[number]:
            values = fitted.residuals
        else:
            values, scale = refined.noise.scores[rows], float(np.median(refined.noise.scales[rows]))
        own = cls(misfit, number, values, fitted, known, True, scale)
        return replace(own, unit=own.level, known=False) if math.isnan(known) else own

    @cached_property
    def degrees_of_freedom(self) -> float:
        return max(len(self.values) - float(self.fitted.leverages.sum()), LEAST_DEGREES)

    @cached_property
    def level(self) -> float:
        """The noise level that they tell, never below rounding."""
        squares = float(self.values @ self.values)
        return max(math.sqrt(squares / self.degrees_of_freedom), float(self.misfit.floors[self.number]))

    @property
    def size(self) -> float:
        """How large the noise is beside the spread of the output."""
        return self.level if math.isnan(self.scale) else self.scale

    @cached_property
    def courses(self) -> list[tuple[str, slice]]:
        """Where the residuals of each experiment are, in the order of time; replicates stand side by side."""
        first = self.misfit.groups[self.number].start
        names = experiments(self.misfit, self.misfit.outputs[self.number])
        found = self.misfit.measurements.series(self.misfit.outputs[self.number])
        return [(name, slice(rows.start - first, rows.stop - first)) for name, rows in zip(names, found, strict=True)]

    @cached_property
    def deviations(self) -> np.ndarray:
        return outliers.deviations(self.values / self.unit, self.fitted.leverages, self.degrees_of_freedom, self.known)

    @cached_property
    def deviations_p(self) -> np.ndarray:
        return outliers.largest_p(self.deviations, self.degrees_of_freedom, self.known)

    def check(self) -> OutputCheck:
        number, squares = self.number, float(self.values @ self.values)
        floor, count = float(self.misfit.floors[number]), len(self.values)
        told = OutputCheck(
            output=self.misfit.outputs[number],
            points=count,
            degrees_of_freedom=self.degrees_of_freedom,
            level=self.level,
            chi_square=squares / self.unit**2,
            size_p=chi_square_tail(squares / self.unit**2, self.degrees_of_freedom),
            numerical=self.size <= max(floor, NUMERICAL * float(self.misfit.scales[number])),
        )
        if math.sqrt(squares / max(count, 1)) <= floor:  # rounding is no random process
            return told
        courses = [rows for _, rows in self.courses]
        z = _autocorrelation(self.values / self.level, self.fitted, courses)
        return replace(
            told,
            autocorrelation_z=z,
            autocorrelation_p=autocorrelation_tail(z, [rows.stop - rows.start for rows in courses]),
            runs_p=_runs_tail(self.values, courses),
            outlier_p=float(self.deviations_p.min(initial=1.0)),
            tails_p=outliers.tails_p(self.values),
        )

    def suspicious(self, told: OutputCheck, limit: float) -> list[Measurement]:
        """Measurements that normal noise explains with less than this probability."""
        if told.numerical:
            return []
        unlikely = self.deviations_p < limit
        if told.white_p < limit:
            unlikely &= np.abs(self.deviations) > outliers.GROSS
        elif told.tails_p < limit and not unlikely.any():
            unlikely = outliers.far(self.values)
        misfit, first = self.misfit, self.misfit.groups[self.number].start
        return [
            Measurement(
                told.output,
                experiment,
                float(misfit.times[first + at]),
                float(misfit.values[first + at]),
                float(self.deviations[at]),
            )
            for experiment, rows in self.courses
            for at in (np.flatnonzero(unlikely[rows]) + rows.start).tolist()
        ]


def experiments(misfit: Misfit, output: str) -> list[str]:
    """The names of the experiments that measured an output."""
    conditions = misfit.simulator.conditions
    return [
        conditions[block.experiment].experiment.name for block in misfit.measurements.blocks if block.output == output
    ]


def is_plausible(misfit: Misfit, refined: Refined) -> bool:
    """Whether what is left may be noise: several starts may agree on a wrong optimum."""
    outputs = check(misfit, refined).outputs
    return all(output.numerical or output.white_p > WHITE / len(outputs) for output in outputs)


def _autocorrelation(residuals: np.ndarray, fitted: Fitted, courses: list[slice]) -> float:
    """The weighted sum of products of neighbours, standardised by its mean and variance in a fit of pure noise.

    The sum is e'Ae with a banded A of triangular weights; with M = I - QQ' its mean is tr(MA) and its variance
    2 tr(MAMA), for noise of unit size.  Only the rows of Q that belong to the output enter: what other outputs do
    to these residuals is of second order.
    """
    squares = 2 * sum(float(w) ** 2 * max(c.stop - c.start - lag, 0) for c in courses for lag, w in neighbours())
    variance = 2 * (squares - 2 * fitted.squares + fitted.inner)
    excess = float(residuals @ beside(residuals, courses)) + fitted.trace
    return excess / math.sqrt(variance) if variance > 1e-12 else 0.0


def autocorrelation_tail(z: float, lengths: list[int]) -> float:
    """The tail of a standardised e'Ae, which is skewed: that of the gamma law with its third cumulant 8 tr(A^3).

    The trace counts the ways of three lags that lead back to the start: two that add up to the third.
    """
    from scipy.special import gammaincc

    ways = sum(
        WEIGHTS[a - 1] * WEIGHTS[b - 1] * WEIGHTS[a + b - 1] for a in range(1, LAGS) for b in range(1, LAGS - a + 1)
    )
    cubes = 8 * 6 * ways * sum(max(n - LAGS, 0) for n in lengths)
    squares = sum(4 * WEIGHTS[lag - 1] ** 2 * max(n - lag, 0) for n in lengths for lag in range(1, LAGS + 1))
    if cubes <= 0:
        return _normal_tail(z)
    shape = 4 * squares**3 / cubes**2
    return float(gammaincc(shape, max(shape + z * math.sqrt(shape), 0.0)))


def _runs_tail(residuals: np.ndarray, courses: list[slice]) -> float:
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
