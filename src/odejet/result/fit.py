"""Fit: the answer, with how sure it is, where it came from and what was tried on the way.

A `Fit` holds plain values: it prints as a table, saves to JSON and comes back the same, simulates itself, and draws
itself.  Initial states and noise are by name for one experiment, and by experiment and name for several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odejet.data import Data, Experiment
from odejet.decide import Adequacy, Attempt, Candidates, Certificate, Identifiability, Optimality, Provenance
from odejet.decide.statistics import FitCheck, check
from odejet.errors import ModelError
from odejet.model import Model
from odejet.model.cumulated import refuse_windows
from odejet.problem import Problem, Unknowns, find
from odejet.progress import Wanted, doing
from odejet.renaming import renamed
from odejet.result.building import parts_of
from odejet.result.comparison import Comparison, compared
from odejet.result.estimate import Estimate, named, of_one
from odejet.result.frame import frame
from odejet.result.intervals import LEVEL, asked_of, of_expression, of_unknown
from odejet.result.noise import stated
from odejet.result.planned import predicted
from odejet.result.prediction import Prediction
from odejet.result.shown import Shown
from odejet.search.refine import Refined
from odejet.simulate import Simulation
from odejet.smooth import Smoothed
from odejet.uncertainty import ByName, Matrix, Uncertainty, posterior
from odejet.uncertainty.bands import EVALUATIONS
from odejet.uncertainty.bands import SECONDS as BAND_SECONDS
from odejet.uncertainty.design import Design, repeated
from odejet.uncertainty.doubts import Doubt, doubts
from odejet.uncertainty.error_budget import ErrorBudget, error_budget
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.posterior import Posterior
from odejet.uncertainty.practical import QUICK, Practical, practical
from odejet.uncertainty.profile import SECONDS, Profile, profile
from odejet.uncertainty.samples import to_inference_data

if TYPE_CHECKING:
    import arviz
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Shown):
    """All parameters and initial states, on their natural scale, and everything that is known about them."""

    problem: Problem
    estimates: np.ndarray  # of the unknowns, in their order
    uncertainty: Uncertainty
    bounds: Mapping[str, tuple[float, float]]  # by label; infinite where there are none
    held: tuple[str, ...]  # labels of estimates that a bound keeps from going on
    sds: Mapping[str, Mapping[str, np.ndarray]]  # of the noise by experiment and output; one number, or one per value
    cost: float  # negative log-posterior, the log-likelihood without priors; half the squares with weights "none"
    aic: float  # NaN without a fit, and where the likelihood has no upper bound
    bic: float
    success: bool
    message: str
    solutions: tuple[Estimate, ...]  # all that explain the data equally well, this one first
    rivals: tuple[Estimate, ...] = ()  # other optima that are nearly as likely, which no interval around this one has
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
    attempts: tuple[Attempt, ...] = ()  # every start, and where it has led; never saved

    @classmethod
    def of(
        cls,
        problem: Problem,
        refined: Refined,
        *,
        checks: FitCheck | None = None,
        others: Sequence[Refined] = (),
        rivals: Sequence[Refined] = (),
        verdict: Identifiability | None = None,
        success: bool | None = None,
        message: str | None = None,
        seconds: float | None = None,
        stages: Mapping[str, float] | None = None,
        **told: Any,
    ) -> Fit:
        """The fit that a refinement found, with all that follows from it.

        `checks` tells how the residuals were judged, `others` are equally good solutions and `rivals` nearly as good
        ones; `told` are further fields of a fit that stay as they are: certificate, provenance, census, candidates,
        seed, effort, smoothed, attempts.  Without a certificate the fit is not certified, but its residuals are judged
        all the same.
        """
        simulated = refined.simulated
        if checks is None:
            checks = check(problem.misfit, refined) if simulated else FitCheck((), 0, math.nan, math.nan)
        stages = {"refine": refined.seconds} if stages is None else stages
        parts = {**parts_of(problem, refined, checks, others, rivals), **told}
        return cls(
            problem=problem,
            success=refined.ending.settled and math.isfinite(refined.cost) if success is None else success,
            message=refined.message if message is None else message,
            stages=stages,
            seconds=sum(stages.values()) if seconds is None else seconds,
            verdict=verdict,
            **parts,
        )

    @property
    def found(self) -> bool:
        """Whether there are values with which the model explains the data at all, certified or not."""
        return math.isfinite(self.cost)

    @property
    def certified(self) -> bool:
        """Whether this is confirmed to be the best fit and the model explains the data; `fit.certificate` says why."""
        return self.certificate.granted

    search = property(lambda self: self.certificate.search, doc=Optimality.__doc__)
    adequacy = property(lambda self: self.certificate.adequacy, doc=Adequacy.__doc__)

    @property
    def log_likelihood(self) -> float:
        """Of the data with these values; with weights "none" minus half the sum of squares."""
        return -self.cost - self.log_prior if self.found else -math.inf

    @property
    def log_posterior(self) -> float:
        """The log-likelihood and the logarithm of the priors, which is what a fit with priors has maximised."""
        return -self.cost

    @cached_property
    def log_prior(self) -> float:
        """Zero without priors."""
        return self.problem.log_prior(self.values) if self.problem.priors and self.found else 0.0

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
    def values(self) -> dict[str, float]:
        """Every unknown by its label; `values["r"]` is that of r(0)."""
        return ByName(self.unknowns, self.estimates.tolist())

    @property
    def parameters(self) -> dict[str, float]:
        return named(self.unknowns, self.data.experiments, self.estimates)[0]

    @property
    def initial_states(self) -> dict[str, dict[str, float]]:
        """The initial states that were estimated, by experiment and state."""
        return named(self.unknowns, self.data.experiments, self.estimates)[1]

    @property
    def initial_state(self) -> dict[str, Any]:
        """The initial state that was estimated, by state; for a single experiment."""
        return dict(of_one(self.initial_states))

    @property
    def noise(self) -> dict[str, Any]:
        """The sd of the noise by output (by experiment and output, if there are several); the median if it varies."""
        return dict(
            of_one(
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
        return ByName(self.unknowns, self.uncertainty.stderr.values())

    @property
    def correlation(self) -> Matrix:
        """Correlations of the estimates; NaN for what the data do not determine."""
        return self.covariance.correlation

    @property
    def undetermined(self) -> tuple[str, ...]:
        """What the data say nothing about."""
        return tuple(
            label for label, sd in self.stderr.items() if not math.isfinite(sd) and label not in self.without_error
        )

    @property
    def without_error(self) -> tuple[str, ...]:
        """What the data determine with an error that they do not tell: no residual is left to show the noise."""
        return self.uncertainty.untold

    def interval(self, name: str, level: float = LEVEL, experiment: str | None = None) -> tuple[float, float]:
        """The interval that contains the true value with this probability, by the curvature of the likelihood.

        Of an unknown, or of an expression in the unknowns such as "k1*k2"; see `uncertainty.interval`.  Where values
        belong to experiments, `experiment` tells whose are meant.
        """
        try:
            place = find(self.unknowns, name)
        except KeyError:
            asked = asked_of(self, name, experiment)
            if asked.place is None:
                return of_expression(self, asked, level)
            place = asked.place
        return of_unknown(self, place, level)

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

    @renamed("seconds", "time_limit")
    def profile(
        self, name: str, level: float = LEVEL, time_limit: float = SECONDS, *, experiment: str | None = None
    ) -> Profile:
        """The likelihood along an unknown or an expression such as "k1*k2", all other unknowns at their best.

        Its interval needs no curvature and says when it has no end: `fit.profile("k1").interval()`.  Where values
        belong to experiments, `experiment` tells whose are meant.
        """
        asked = asked_of(self, name, experiment)
        key = (asked.label, level)
        if key in self._profiles:
            return self._profiles[key]
        with doing(f"following the likelihood along {asked.label}", limit=time_limit):
            found = profile(self.likelihood, asked, level, time_limit)
        # One that was stopped would tell more with more time.
        return found if found.stopped else self._profiles.setdefault(key, found)

    @cached_property
    def _profiles(self) -> dict[tuple[str, float], Profile]:
        return {}

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood around the optimum, from the model and the data of the fit."""
        if not self.found:
            raise ModelError("there is no fit to be uncertain about: the model cannot be simulated to the last time")
        return Likelihood.of(self.problem, self.estimates)

    @cached_property
    def doubts(self) -> dict[str, str]:
        """Unknowns whose intervals by curvature are not to be trusted, by label, with what is wrong with these, such as
        "too narrow above"; `fit.profile` has better ones."""
        return {label: doubt.words for label, doubt in self._doubted.items()}

    @property
    def better(self) -> dict[str, tuple[float, float]]:
        """Of `doubts`, about the intervals that the likelihood has instead."""
        return {label: doubt.interval for label, doubt in self._doubted.items()}

    @cached_property
    def _doubted(self) -> dict[str, Doubt]:
        with doing("looking where intervals by curvature are wrong"):
            return doubts(self.likelihood, self.intervals(), LEVEL, self.held) if self.found else {}

    @cached_property
    def practical(self) -> Practical:
        """What the data determine: unknowns by their profiles, and compounds of those they leave loose."""
        with doing("finding out what the data determine"):
            return practical(self.likelihood, self.intervals())

    @cached_property
    def glance(self) -> Practical:
        """What the data determine by curvature alone, quickly; only compounds are looked at closely."""
        known = self.__dict__.get("practical")
        return known or practical(self.likelihood, self.intervals(), seconds=QUICK, profiled=False)

    def error_budget(
        self, time: float | None = None, experiment: str | None = None, estimator: str | None = None
    ) -> ErrorBudget:
        """How noise becomes error of the derivatives, and that of the raw algebraic estimate, at one shooting time: by
        default that which led to the fit, or else the best of a few."""
        if not self.found:
            raise ModelError("there is no fit whose trajectory could stand for the truth")
        if time is None and len(self.provenance.times) == 1 and len(self.data.experiments) == 1:
            time = self.provenance.times[0]
        return error_budget(self, self.experiment(experiment), time, estimator)

    def design(self, experiment: str | None = None) -> Design:
        """An experiment of the data as if it were planned, with the values and the noise of the fit."""
        refuse_windows(self.model, "a design")
        own = self.experiment(experiment)
        number = self.problem.number(own.name)
        model = self.problem.conditions[number].model
        parameters, states = self.problem.values_in(number, self.estimates)
        noise_values = {name: value for name, value in self.values.items() if name in self.problem.noise_names(number)}
        noise = stated(self.problem, own, self.likelihood.optimum.levels, self.sds[own.name])
        return repeated(self.problem.conditions[number].driven, model, parameters | noise_values, states, noise)

    def sample(
        self,
        ess: float = posterior.ESS,
        chains: int = posterior.CHAINS,
        seed: int = 0,
        time_limit: float = posterior.TIME_LIMIT,
        progress: Wanted = None,
    ) -> Posterior:
        """Draws of all unknowns from their posterior, until each has `ess` effective ones or the time is over; needs
        `odejet[bayes]`.  `progress` is that of `oj.fit`."""
        others = (*self.solutions[1:], *self.rivals)
        rivals = [np.array([one.value(unknown) for unknown in self.unknowns]) for one in others]
        return posterior.sample(self.likelihood, self.problem, rivals, ess, chains, seed, time_limit, progress)

    def to_inference_data(
        self, draws: int = 1000, chains: int = 4, sampler: str = "laplace", seed: int = 0
    ) -> arviz.InferenceData:
        """Draws of all unknowns for ArviZ, from the normal approximation on the scale of the search, or by emcee."""
        several = len(self.data.experiments) > 1
        observed = {
            f"{output} in {experiment.name}" if several else output: series.values
            for experiment in self.data.experiments
            for output, series in experiment.outputs.items()
        }
        return to_inference_data(self.likelihood, observed, draws, chains, sampler, seed)

    def at_bound(self, name: str) -> bool:
        """Whether a bound keeps an estimate from going on."""
        return self.labels[find(self.unknowns, name)] in self.held

    def kind(self, name: str) -> str:
        """The verdict on an unknown: global, local, none or undecided; empty if none was asked for."""
        unknown = self.unknowns[find(self.unknowns, name)]
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
    def free(self) -> int:
        """Parameters that AIC and BIC charge for: directions that the data determine, among them what is on a bound,
        and estimated noise levels."""
        spread = math.log(self.points) - 2
        return round((self.bic - self.aic) / spread) if math.isfinite(self.aic) else len(self.labels)

    @property
    def aicc(self) -> float:
        """AIC with its correction for few measurements; infinite where these are too few for it."""
        left = self.points - self.free - 1
        return self.aic + 2 * self.free * (self.free + 1) / left if left > 0 else math.inf

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
        return self.problem.simulate_experiment(self.problem.number(experiment), self.estimates, times, **options)

    @renamed("seconds", "time_limit")
    def predict(
        self,
        times: Sequence[float] | np.ndarray | None = None,
        experiment: str | Data | None = None,
        level: float = LEVEL,
        method: str = "auto",
        states: bool = True,
        evaluations: int = EVALUATIONS,
        time_limit: float = BAND_SECONDS,
    ) -> Prediction:
        """Outputs and states of an experiment at any times its inputs cover, with bands; by default those measured.

        `experiment` names one of the data, or is `oj.Data` of one that was not measured, such as
        `oj.Data(None, {}, doses=..., start=0)`: what that leaves open has the values of the fit (see `planned`).

        Bands come from the delta method where that is to be trusted and from profiles where it is not ("auto"), or
        from either alone ("delta", "profile"): `prediction["y1"].low`, `prediction.states["x"].high`, and with the
        noise of a new measurement `prediction["y1"].measured_low`.  `evaluations` and `time_limit` limit the effort.
        """
        with doing("finding the bands of a prediction", limit=time_limit):
            return predicted(self, times, experiment, level, method, states, evaluations, time_limit)

    def compare(self) -> tuple[Comparison, ...]:
        """Data beside fit, for every output of every experiment."""
        return compared(self.data, lambda name: self.simulate(experiment=name), self.sds, self.certificate.suspicious)

    def residuals(self) -> dict[str, Any]:
        """Model minus measurement by output, or by experiment and output if there are several experiments."""
        tables: dict[str, dict[str, np.ndarray]] = {experiment.name: {} for experiment in self.data.experiments}
        for pair in self.compare():
            tables[pair.experiment][pair.output] = pair.residuals
        return dict(of_one(tables))

    def to_dataframe(self, level: float = LEVEL) -> pandas.DataFrame:
        """One row per unknown: value, stderr, interval, verdict."""
        return frame(self, level)
