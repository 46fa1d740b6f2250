"""Result: the answer of a fit, with how sure it is, where it came from and what was tried on the way.

A `Fit` holds plain values: it prints as a table, saves to JSON and comes back the same, simulates itself, and draws
itself.  Initial states and noise are by name for one experiment, and by experiment and name for several.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data import Experiment
from odejet.data.data import Data
from odejet.decide import Candidates, Certificate, Identifiability, Provenance
from odejet.decide.statistics import FitCheck, check
from odejet.errors import ModelError
from odejet.io import files
from odejet.model import Model
from odejet.problem import Problem, Unknown, Unknowns
from odejet.problem.misfit import Misfit
from odejet.search.refine import Refined
from odejet.simulate import Simulation
from odejet.uncertainty import ByName, Matrix, Uncertainty, find, fisher, held_labels, interval, noise_inflation
from odejet.uncertainty.quantities import quantity

if TYPE_CHECKING:
    import arviz
    import matplotlib.figure
    import pandas

    from odejet.smooth import Smoothed
    from odejet.uncertainty.budget import Budget
    from odejet.uncertainty.likelihood import Likelihood
    from odejet.uncertainty.practical import Practical
    from odejet.uncertainty.profile import Profile

LEVEL = 0.95
"""The probability of the intervals that tables show."""


@dataclass(frozen=True)
class Solution:
    """One set of values that explains the data as well as any other."""

    parameters: Mapping[str, float]
    initial_states: Mapping[str, Mapping[str, float]]  # by experiment
    cost: float
    inside_bounds: bool = True

    @property
    def initial_state(self) -> Mapping[str, Any]:
        return _of_one(self.initial_states)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One output of one experiment: what was measured, what the fit says, and the sd of the noise."""

    experiment: str
    output: str
    times: np.ndarray
    values: np.ndarray
    fitted: np.ndarray  # NaN where the simulation did not get
    sds: np.ndarray

    @property
    def residuals(self) -> np.ndarray:
        """Model minus measurement."""
        return self.fitted - self.values

    @property
    def standardised(self) -> np.ndarray:
        """Residuals in units of the noise."""
        return self.residuals / self.sds


def _of_one(tables: Mapping[str, Any]) -> Any:
    """The table of the only experiment; of several, all of them by name."""
    return next(iter(tables.values())) if len(tables) == 1 else tables


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """All parameters and initial states, on their natural scale, and everything that is known about them."""

    problem: Problem
    values: np.ndarray  # of the unknowns
    uncertainty: Uncertainty
    bounds: Mapping[str, tuple[float, float]]  # by label; infinite where there are none
    held: tuple[str, ...]  # labels of estimates that a bound keeps from going on
    sds: Mapping[str, Mapping[str, np.ndarray]]  # of the noise by experiment and output; one number, or one per value
    cost: float  # negative log-likelihood, or half the sum of squares with weights "none"
    aic: float
    bic: float
    success: bool
    message: str
    solutions: tuple[Solution, ...]
    certificate: Certificate = field(default_factory=Certificate)
    provenance: Provenance = field(default_factory=Provenance)
    census: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # stage -> what became of it -> count
    stages: Mapping[str, float] = field(default_factory=dict)  # stage -> seconds
    seconds: float = 0.0
    verdict: Identifiability | None = None
    candidates: Candidates | None = None
    seed: int = 0
    effort: str = "auto"
    smoothed: Mapping[tuple[str, str], Smoothed] = field(default_factory=dict)  # (experiment, output); never saved

    @classmethod
    def of(
        cls,
        problem: Problem,
        refined: Refined,
        *,
        checks: FitCheck | None = None,
        others: Sequence[Refined] = (),
        verdict: Identifiability | None = None,
        success: bool | None = None,
        message: str | None = None,
        seconds: float | None = None,
        stages: Mapping[str, float] | None = None,
        **told: Any,
    ) -> Fit:
        """The fit that a refinement found, with all that follows from it.

        `checks` how the residuals were judged, `others` are equally good solutions; `told`
        are further fields of a fit that stay as they are: certificate, provenance, census, candidates, seed, effort,
        smoothed.  Without a certificate the fit is not certified, but its residuals are judged all the same.
        """
        misfit, bounds = problem.misfit, problem.bounds
        simulated = len(refined.residuals) > 0
        if checks is None:
            checks = check(misfit, refined) if simulated else FitCheck((), 0, math.nan, math.nan)
        inflation = noise_inflation(misfit, refined, checks) if simulated else np.full(len(misfit.outputs), math.nan)
        levels = refined.levels * inflation
        noise = dict(zip(misfit.outputs, levels.tolist(), strict=True))
        told.setdefault("certificate", Certificate(outputs=checks.outputs, noise=noise))
        if stages is None:
            stages = {"refine": refined.seconds}
        uncertainty = fisher(misfit, refined, checks)
        experiments = problem.experiments
        return cls(
            problem=problem,
            values=np.array(refined.z, dtype=float),
            uncertainty=uncertainty,
            bounds=bounds,
            held=tuple(held_labels(refined, uncertainty.stderr, bounds)),
            sds=_sds(misfit, experiments, levels),
            cost=refined.cost,
            aic=checks.aic,
            bic=checks.bic,
            success=refined.ending.settled and math.isfinite(refined.cost) if success is None else success,
            message=refined.message if message is None else message,
            solutions=tuple(_solution(misfit.unknowns, experiments, one, bounds) for one in (refined, *others)),
            stages=stages,
            seconds=sum(stages.values()) if seconds is None else seconds,
            verdict=verdict,
            **told,
        )

    @property
    def found(self) -> bool:
        """Whether there are values with which the model explains the data at all, certified or not."""
        return math.isfinite(self.cost)

    # --- the problem ---

    @property
    def model(self) -> Model:
        return self.problem.model

    @property
    def data(self) -> Data:
        return self.problem.data

    @property
    def weights(self) -> str:
        return self.problem.weights

    @property
    def unknowns(self) -> Unknowns:
        return self.problem.layout

    # --- values ---

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(unknown.label for unknown in self.unknowns)

    @property
    def parameters(self) -> dict[str, float]:
        return named(self.unknowns, self.data.experiments, self.values)[0]

    @property
    def initial_states(self) -> dict[str, dict[str, float]]:
        """The initial states that were estimated, by experiment and state."""
        return named(self.unknowns, self.data.experiments, self.values)[1]

    @property
    def initial_state(self) -> dict[str, Any]:
        """The same by state, if there is one experiment only."""
        return dict(_of_one(self.initial_states))

    @property
    def noise(self) -> dict[str, Any]:
        """The sd of the noise by output (by experiment and output, if there are several); the median if it varies."""
        return dict(
            _of_one(
                {
                    experiment: {output: float(np.median(sds)) for output, sds in table.items()}
                    for experiment, table in self.sds.items()
                }
            )
        )

    # --- uncertainty ---

    @property
    def covariance(self) -> Matrix:
        return self.uncertainty.covariance

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors by label, infinite for what the data do not determine; `stderr["r"]` is that of r(0)."""
        return ByName(self.uncertainty.stderr)

    @property
    def correlation(self) -> Matrix:
        """Correlations of the estimates; NaN for what the data do not determine."""
        variances = np.diag(self.covariance.values)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self.covariance.values / np.sqrt(np.outer(variances, variances))
        determined = np.isfinite(variances)
        values = np.where(np.outer(determined, determined), np.clip(values, -1, 1), math.nan)
        np.fill_diagonal(values, 1.0)
        return Matrix(self.labels, values)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """What the data say nothing about."""
        return tuple(label for label, sd in self.stderr.items() if not math.isfinite(sd))

    def interval(self, name: str, level: float = LEVEL) -> tuple[float, float]:
        """The interval that contains the true value with this probability, by the curvature of the likelihood.

        Of an unknown, or of an expression in the unknowns such as "k1*k2"; see `uncertainty.interval`.
        """
        try:
            label = self.labels[find(self.labels, name)]
        except KeyError:
            return self._expression_interval(name, level)
        value, sd = float(self.values[self.labels.index(label)]), self.stderr[label]
        bounds = self.bounds.get(label, (-math.inf, math.inf))
        return interval(value, sd, level, self.uncertainty.freedom[label], bounds, label in self.held)

    def _expression_interval(self, text: str, level: float) -> tuple[float, float]:
        asked = quantity(text, self.model, self.unknowns)
        value, gradient = asked.at(self.values)
        known, rows = self.likelihood.information, gradient[None]
        positive = asked.keeps_sign(self.likelihood.frame.signs)
        bounds = ((0.0, math.inf) if value > 0 else (-math.inf, 0.0)) if positive else (-math.inf, math.inf)
        return interval(value, float(known.stderr(rows)[0]), level, float(known.freedom(rows)[0]), bounds)

    def intervals(
        self, method: str = "fisher", level: float = LEVEL, names: Sequence[str] | None = None
    ) -> dict[str, tuple[float, float]]:
        """Intervals of all unknowns, or of what is named: by curvature ("fisher") or by the likelihood ("profile")."""
        if method not in ("fisher", "profile"):
            raise ModelError(f"the method of intervals is 'fisher' or 'profile', not {method!r}")
        asked = self.labels if names is None else names
        if method == "fisher":
            return {name: self.interval(name, level) for name in asked}
        return {name: self.profile(name, level).interval() for name in asked}

    def profile(self, name: str, level: float = LEVEL) -> Profile:
        """The likelihood along an unknown or an expression such as "k1*k2", all other unknowns at their best.

        Its interval needs no curvature and says when it has no end: `fit.profile("k1").interval()`.
        """
        from odejet.uncertainty.profile import profile

        key = (self._label(name), level)
        if key not in self._profiles:
            self._profiles[key] = profile(self.likelihood, name, level)
        return self._profiles[key]

    def _label(self, name: str) -> str:
        place = self.unknowns.keys().get(name)
        return name if place is None else self.labels[place]

    @cached_property
    def _profiles(self) -> dict[tuple[str, float], Profile]:
        return {}

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood around the optimum, from the model and the data of the fit."""
        from odejet.uncertainty.likelihood import Likelihood

        return Likelihood.of(self)

    @cached_property
    def practical(self) -> Practical:
        """What the data determine: unknowns by their profiles, and combinations of those they leave loose."""
        from odejet.uncertainty.practical import practical

        return practical(self)

    @cached_property
    def glance(self) -> Practical:
        """The same by curvature, quickly; only combinations are looked at closely."""
        from odejet.uncertainty.practical import QUICK, practical

        known = self.__dict__.get("practical")
        return known if known is not None else practical(self, seconds=QUICK, profiled=False)

    def error_budget(
        self, time: float | None = None, experiment: str | None = None, estimator: str | None = None
    ) -> Budget:
        """How noise becomes error of the derivatives, and that of the raw algebraic estimate, at one shooting time."""
        from odejet.uncertainty.budget import error_budget

        return error_budget(self, time, experiment, estimator)

    def to_inference_data(
        self, draws: int = 1000, chains: int = 4, sampler: str = "laplace", seed: int = 0
    ) -> arviz.InferenceData:
        """Draws of all unknowns for ArviZ, from the normal approximation on the scale of the search, or by emcee."""
        from odejet.uncertainty.samples import to_inference_data

        return to_inference_data(self, draws, chains, sampler, seed)

    def at_bound(self, name: str) -> bool:
        """Whether a bound keeps an estimate from going on."""
        return self.labels[find(self.labels, name)] in self.held

    def kind(self, name: str) -> str:
        """The verdict on an unknown: global, local, none or undecided; empty if none was asked for."""
        unknown = self.unknowns[find(self.labels, name)]
        return "" if self.verdict is None else self.verdict.kinds.get(unknown.label, "")

    # --- how well it fits ---

    @property
    def chi_square(self) -> float:
        """The sum of squares of residuals in units of the noise the certificate was judged by."""
        return sum(check.chi_square for check in self.certificate.outputs) if self.certificate.outputs else math.nan

    @property
    def degrees_of_freedom(self) -> float:
        return sum(check.degrees_of_freedom for check in self.certificate.outputs)

    @property
    def points(self) -> int:
        return sum(experiment.points for experiment in self.data.experiments)

    def __getstate__(self) -> dict[str, Any]:
        """What travels between processes: the fit without what can be found again from it."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def experiment(self, name: str | None = None) -> Experiment:
        """An experiment of the data by name, or the only one."""
        return self.problem.experiments[self.problem.number(name)]

    def simulate(
        self, times: Sequence[float] | np.ndarray | None = None, experiment: str | None = None, **options: Any
    ) -> Simulation:
        """The trajectories of the fit in an experiment, at any times its inputs cover; by default those measured.

        Further options are those of `odejet.simulate`.
        """
        return self.problem.simulate_experiment(self.problem.number(experiment), self.values, times, **options)

    def compare(self) -> tuple[Comparison, ...]:
        """Data beside fit, for every output of every experiment."""
        compared = []
        for experiment in self.data.experiments:
            simulation = self.simulate(experiment=experiment.name)
            for output, series in experiment.outputs.items():
                places = np.searchsorted(simulation.times, series.times)
                reached = places < len(simulation.times)
                fitted = np.full(len(series), math.nan)
                fitted[reached] = simulation[output][places[reached]]
                sds = np.broadcast_to(self.sds[experiment.name][output], fitted.shape)
                compared.append(Comparison(experiment.name, output, series.times, series.values, fitted, sds))
        return tuple(compared)

    def residuals(self) -> dict[str, Any]:
        """Model minus measurement by output, or by experiment and output if there are several experiments."""
        tables: dict[str, dict[str, np.ndarray]] = {experiment.name: {} for experiment in self.data.experiments}
        for pair in self.compare():
            tables[pair.experiment][pair.output] = pair.residuals
        return dict(_of_one(tables))

    # --- looks ---

    def summary(self) -> str:
        """The table of estimates and the story of the fit, as text."""
        from odejet.report.text import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from odejet.report.html import fragment

        return fragment(self)

    def to_dataframe(self, level: float = LEVEL) -> pandas.DataFrame:
        """One row per unknown: value, stderr, interval, verdict."""
        import pandas

        ends = [self.interval(label, level) for label in self.labels]
        columns = {
            "value": self.values,
            "stderr": list(self.stderr.values()),
            "low": [end[0] for end in ends],
            "high": [end[1] for end in ends],
            "verdict": [self.kind(label) for label in self.labels],
            "name": [unknown.name for unknown in self.unknowns],
            "experiment": [unknown.experiment for unknown in self.unknowns],
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.labels, name="quantity"))

    def plot(self) -> matplotlib.figure.Figure:
        """Data, fit and residuals for every output of every experiment."""
        from odejet.report.plots import fit_figure

        return fit_figure(self)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page that needs nothing else: verdict, table, plots, timings."""
        from odejet.report.html import page

        text = page(self)
        files.write_all({os.fspath(path): lambda file: file.write(text.encode())})

    # --- files ---

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the attributes, ready for JSON; `from_dict` reads them back."""
        from odejet.io.fits import encode

        return encode(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "the fit") -> Fit:
        from odejet.io.fits import decode

        return decode(document, where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, whole or not at all."""
        from odejet.io.fits import write

        write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Fit:
        """The fit in a JSON file; nothing in it is executed."""
        from odejet.io.fits import read

        return read(path)


def _sds(misfit: Misfit, experiments: Sequence[Experiment], levels: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """The sd of every measurement; one number where all of a series are alike."""
    sds: dict[str, dict[str, np.ndarray]] = {experiment.name: {} for experiment in experiments}
    for output, rows, level in zip(misfit.outputs, misfit.groups, levels, strict=True):
        place = rows.start
        for experiment in experiments:
            if output in experiment.outputs:
                size = len(experiment.outputs[output])
                own = level * misfit.shapes[place : place + size]
                sds[experiment.name][output] = np.asarray(own[0]) if np.all(own == own[0]) else own
                place += size
    return sds


def named(
    unknowns: Sequence[Unknown], experiments: Sequence[Experiment], values: np.ndarray
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Parameters by name, and initial states by experiment and state."""
    parameters: dict[str, float] = {}
    states: dict[str, dict[str, float]] = {experiment.name: {} for experiment in experiments}
    for unknown, value in zip(unknowns, values.tolist(), strict=True):
        if unknown.is_state and unknown.experiment is not None:
            states[unknown.experiment][unknown.name] = value
        else:
            parameters[unknown.label] = value
    return parameters, states


def _solution(
    unknowns: Sequence[Unknown],
    experiments: Sequence[Experiment],
    refined: Refined,
    bounds: Mapping[str, tuple[float, float]],
) -> Solution:
    inside = all(
        bounds[unknown.label][0] <= value <= bounds[unknown.label][1]
        for unknown, value in zip(unknowns, refined.z.tolist(), strict=True)
    )
    return Solution(*named(unknowns, experiments, refined.z), refined.cost, inside)
