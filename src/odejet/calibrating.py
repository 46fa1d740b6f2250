"""Calibrating: data sets made with known values, fitted as a user would, and what their intervals were worth.

Values are drawn from the priors, those without one uniformly between their bounds on the scale of the search; where an
unknown has neither, from the normal law at the fit of the data that are there.  Noise levels that nobody named are
those of that fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odejet.clock import now
from odejet.data import Data
from odejet.data.censored import Limits
from odejet.data.series import Series
from odejet.errors import DataError, ModelError
from odejet.fitting import fit
from odejet.problem import Problem
from odejet.problem.variants import variant
from odejet.progress import Progress
from odejet.result import Fit
from odejet.search.refine import refine
from odejet.uncertainty.calibration import Calibration
from odejet.uncertainty.replicates import replicate
from odejet.uncertainty.samples import laplace

METHODS = ("curvature", "profile", "posterior")

RANKED = 63
"""Draws among which the rank of a true value is looked for."""

ESS, SAMPLING = 100.0, 30.0
"""Effective draws of each data set, and seconds they may take."""

ATTEMPTS = 20
"""Draws of values, of which one must have a simulation."""


def calibrate(
    problem: Problem,
    draws: int = 200,
    *,
    seed: int = 0,
    methods: Sequence[str] = METHODS,
    level: float = 0.95,
    search: bool = True,
    time_limit: float = 600.0,
    progress: bool | Callable[[float], object] | None = None,
) -> Calibration:
    """Whether intervals of a problem hold what they promise: simulation-based calibration with so many data sets.

    Data sets have the times and experiments of the problem.  Each is fitted by a search from nothing, or with
    `search=False` from its true values, which is faster and tests the intervals alone.  After `time_limit` seconds the
    data sets so far are the answer.  `progress` is that of `oj.fit`, but that a function is called with the share of
    data sets that are done.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise ModelError(f"methods must be some of {', '.join(METHODS)}, not {', '.join(map(repr, unknown)) or 'none'}")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise ModelError(f"draws must be a whole number of at least 1, not {draws!r}")
    if not 0 < level < 1:
        raise ModelError(f"level must be between 0 and 1, not {level!r}")
    begin = now()
    source = _Source.of(problem, seed, time_limit)
    trials = list[_Trial | None]()
    told = progress if callable(progress) else None
    with Progress(False if callable(progress) else progress, time_limit, "fitting simulated data sets") as shown:
        for number in range(draws):
            if now() - begin > time_limit and trials:
                break
            shown.share(number / draws, f"{number + 1} of {draws}")
            trials.append(_tried(problem, source, number, seed, methods, level, search))
            if told is not None:
                told((number + 1) / draws)
    done = [trial for trial in trials if trial is not None]
    if not done:
        raise ModelError("no data set could be made and fitted; give bounds or priors within which the model is solved")
    return Calibration(
        problem.unknowns,
        level,
        np.array([trial.truth for trial in done]),
        {method: np.array([trial.covered[method] for trial in done]) for method in methods},
        np.array([trial.ranks for trial in done]),
        source.kind,
        sum(trial.doubtful for trial in done),
        len(trials) - len(done),
        now() - begin,
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    """A data set: its true values, whether intervals held them, and their ranks among draws."""

    truth: np.ndarray
    covered: dict[str, np.ndarray]
    ranks: np.ndarray
    doubtful: bool


@dataclass(frozen=True, eq=False)
class _Source:
    """Where true values come from."""

    problem: Problem
    kind: str
    levels: np.ndarray  # of the noise per output
    around: np.ndarray | None  # draws at the fit

    @classmethod
    def of(cls, problem: Problem, seed: int, time_limit: float) -> _Source:
        stated = set(problem.objective.prior_entries.tolist())
        bounds = [problem.bounds[label] for label in problem.unknowns]
        closed = all(
            i in stated or (math.isfinite(low) and math.isfinite(high) and low != 0 != high)
            for i, (low, high) in enumerate(bounds)
        )
        if closed and not problem.misfit.estimated.any():
            return cls(problem, "prior", problem.misfit.known, None)
        found = fit(problem, seed=seed, time_limit=time_limit)
        if not found.found:
            raise ModelError(f"calibration needs a fit where unknowns have neither bounds nor priors: {found.message}")
        levels = found.likelihood.optimum.levels
        if closed:
            return cls(problem, "prior", levels, None)
        theta = laplace(found.likelihood, 1000, 1, seed)
        return cls(problem, "fit", levels, found.likelihood.frame.back(theta).reshape(1000, -1))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        if self.around is not None:
            return self.around[rng.integers(len(self.around))]
        scale = self.problem.objective.scaled()
        low, high = scale.bounds
        x = low + (high - low) * rng.uniform(size=len(low))
        z = scale.to_natural(x)
        for prior in self.problem.misfit.priors:
            z[prior.entry] = _quantile(prior.prior.below, rng.uniform(), *self._ends(prior.entry))
        return z

    def _ends(self, entry: int) -> tuple[Callable[[float], float], float, float]:
        """From the scale of the search back, and the ends of it."""
        scale = self.problem.objective.scaled()
        low, high = scale.bounds
        middle = 0.5 * (low + high)

        def natural(x: float) -> float:
            at = middle.copy()
            at[entry] = x
            return float(scale.to_natural(at)[entry])

        return natural, float(low[entry]), float(high[entry])


def _quantile(
    below: Callable[[float], float], p: float, natural: Callable[[float], float], low: float, high: float
) -> float:
    """The value below which a share p of the probability between the ends lies, by bisection on the search's scale."""
    first, last = below(natural(low)), below(natural(high))
    aim = first + p * (last - first)
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(natural(middle)) < aim else (low, middle)
    return natural(0.5 * (low + high))


def _tried(
    problem: Problem, source: _Source, number: int, seed: int, methods: Sequence[str], level: float, search: bool
) -> _Trial | None:
    """One data set; None where it has no fit."""
    rng = np.random.default_rng([seed, number])
    for _ in range(ATTEMPTS):
        truth = source.draw(rng)
        values = replicate(problem.misfit, problem.misfit.evaluate(truth, jacobian=False), source.levels, rng)[1]
        if np.isfinite(values).all():
            break
    else:
        return None
    try:
        found = _fitted(variant(problem, with_values(problem, values)), truth, seed, search)
    except (ModelError, DataError):
        return None
    if found is None or not found.found:
        return None
    covered, ranks, doubtful = {}, np.full(len(truth), math.nan), False
    for method in methods:
        if method == "posterior":
            draws = found.sample(ess=ESS, seed=number, time_limit=SAMPLING)
            chosen = draws.draws[np.linspace(0, len(draws) - 1, min(RANKED, len(draws))).round().astype(int)]
            jitter = rng.uniform(size=len(truth))
            ranks = ((chosen < truth).sum(axis=0) + jitter) / (len(chosen) + 1)
            pairs = [draws.interval(label, level) for label in found.labels]
            doubtful = not draws.success
        else:
            pairs = [_interval(found, label, method, level) for label in found.labels]
        covered[method] = np.array(
            [
                math.nan if math.isnan(low + high) else float(low <= value <= high)
                for (low, high), value in zip(pairs, truth, strict=True)
            ]
        )
    return _Trial(truth, covered, ranks, doubtful)


def _fitted(problem: Problem, truth: np.ndarray, seed: int, search: bool) -> Fit | None:
    if search:
        return fit(problem, seed=seed)
    return Fit.of(problem, refine(problem.misfit, truth, frame=problem.frame(truth)))


def _interval(found: Fit, label: str, method: str, level: float) -> tuple[float, float]:
    """An interval; from and to nowhere where there is none."""
    try:
        pair = found.interval(label, level) if method == "curvature" else found.profile(label, level).interval()
    except ModelError:
        return -math.inf, math.inf
    low, high = map(float, pair)
    # What data do not determine has an interval without ends.
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def with_values(problem: Problem, values: np.ndarray) -> Data:
    """The data of a problem with other measured values."""
    tables = [dict(experiment.outputs) for experiment in problem.experiments]
    for rows, block in zip(problem.measurements.rows, problem.measurements.blocks, strict=True):
        series = tables[block.experiment][block.output]
        if len(series.times) != rows.stop - rows.start or not np.array_equal(series.times, block.times):
            raise ModelError(f"the measurements of {block.output} cannot be replaced one by one")
        tables[block.experiment][block.output] = _measured(series, values[rows])
    pairs = zip(problem.data.experiments, tables, strict=True)
    return Data.of(replace(experiment, outputs=table) for experiment, table in pairs)


def _measured(series: Series, values: np.ndarray) -> Series:
    """Other values of a series: those that were censored stay so where they lie between their limits again."""
    if series.limits is None:
        return replace(series, values=values)
    low, high = series.limits.lower, series.limits.upper
    hidden = series.limits.censored & (low <= values) & (values <= high)
    limits = Limits(np.where(hidden, low, values), np.where(hidden, high, values))
    return replace(series, values=np.where(hidden, series.values, values), limits=limits if hidden.any() else None)
