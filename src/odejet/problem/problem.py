"""Problem: a model, data, and all that is known beforehand, put together once and checked once.

It is the centre of a fit: every later stage takes it, and nothing in it changes.  What is asked are its unknowns, in
one order; what it answers is how likely the data are with given values of them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from odejet.attach import attached
from odejet.clock import now
from odejet.data import Data, Experiment, Series
from odejet.errors import DataError, ModelError, nearest
from odejet.model import Model
from odejet.model.expressions import Symbol, names, spelled_keys, spelled_names, substituted
from odejet.objective.courses import PATIENT, flows, measuring_flows
from odejet.objective.misfit import Misfit, Simulator
from odejet.objective.objective import Objective
from odejet.problem import coordinates
from odejet.problem.chains import rho_bounds
from odejet.problem.conditions import Condition, conditions, felt, fixed_values, in_words_of
from odejet.problem.coordinates import Bounds, Coordinates
from odejet.problem.measurements import Block, Measurements
from odejet.problem.noise import (
    Given,
    Noise,
    check_measured,
    check_names,
    densities_of,
    limits_in,
    merged,
    new_names,
    noise_of,
)
from odejet.problem.priors import Priors, priors_of, priors_together, total, truncated
from odejet.problem.scales import scales
from odejet.problem.unknowns import Unknowns, delay_bounds, lay_out
from odejet.simulate import Simulation
from odejet.simulate.flow import Flow
from odejet.simulate.simulation import TIME_LIMIT, simulated

WEIGHTS = ("likelihood", "none")

VANISHING = 1e-6
"""Of its size by the units of the data: an estimate below this says nothing about how large a quantity is."""


class Problem:
    """What a fit is about.

    `bounds` is one pair for all unknowns or one per name or label, `positive` a truth value or names.  `noise` per
    output, or one for all: a number is a known standard deviation, "2%" a known relative one, "relative" an unknown
    one, and a text such as "lognormal(s)" a law whose scale is an expression in parameters and the output; without it
    they come from the data or are estimated.  `fixed` gives parameters and initial states in all experiments, as
    numbers or as expressions in parameters (`{"k3": "k1"}`); `local` names parameters with a value of their own in each
    experiment.  `nominal` are values that somebody has published, by label; no fit looks at them.  `priors`, by name or
    label, are texts such as "normal(1, 0.2)".
    """

    def __init__(
        self,
        model: Model,
        data: Data | Sequence[Data],
        bounds: Bounds = None,
        positive: bool | Collection[str] | None = None,
        noise: Given = None,
        fixed: Mapping[str, float | str] | None = None,
        local: Sequence[str] = (),
        weights: str = "likelihood",
        nominal: Mapping[str, float] | None = None,
        priors: Priors = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ModelError(f"expected a model as oj.Model has it, not {type(model).__name__}")
        if isinstance(data, list | tuple) and data and all(isinstance(one, Data) for one in data):
            data = Data.join(data)
        if not isinstance(data, Data):
            hint = "; use oj.Data.from_dataframe" if type(data).__name__ == "DataFrame" else ""
            raise DataError(f"expected data as oj.Data has them, not {type(data).__name__}{hint}")
        if weights not in WEIGHTS:
            raise ModelError(f"weights must be 'likelihood' or 'none', not {weights!r}")
        bounds, noise, fixed, nominal, priors = (
            spelled_keys(told, what)
            for told, what in (
                (bounds, "bounds"),
                (noise, "noise"),
                (fixed, "fixed"),
                (nominal, "nominal"),
                (priors, "priors"),
            )
        )
        positive, local = spelled_names(positive), spelled_names(local)
        data = in_words_of(model, data)
        check_names(noise, list(model.outputs))
        self.model, self.noise, self.weights = model, merged(noise, model), weights
        self.noises = self._noises(data)
        new = new_names(self.noises, model)
        self.fixed = fixed_values(fixed, model, new)
        self.conditions: tuple[Condition, ...] = conditions(model, data, self.fixed, new)
        self.local = _local(local, model, self.conditions, new)
        used = [self.noise_names(number) for number in range(len(self.conditions))]
        layout = lay_out(self.conditions, model.parameters, self.local, used)
        usual = delay_bounds(model, self.conditions) if model.is_delayed else {}
        layout = layout.usually(usual | self._correlation_bounds(data)).limited(self._correlations(layout))
        self.priors = priors_together(priors, model.priors)
        self._priors = priors_of(self.priors, layout)
        self.layout: Unknowns = layout.limited({i: prior.limits for i, prior in self._priors.items()})
        self.data = Data.of(condition.experiment for condition in self.conditions)
        self.given_bounds, self.positive = bounds, positive or False
        self.nominal = dict(nominal or {})
        self.measurements, self._levels = self._measured()
        self.bounds  # noqa: B018 - refuses bounds that make no sense

    def _noises(self, data: Data) -> dict[str, Noise]:
        """What is known of the noise of every output that was measured."""
        given = self.noise if self.weights == "likelihood" else 1.0
        if self.weights != "likelihood":
            _check_squares(data)
        series = {name: [e.outputs[name] for e in data.experiments if name in e.outputs] for name in self.model.outputs}
        return {name: noise_of(name, given, measured) for name, measured in series.items() if measured}

    def _correlation_bounds(self, data: Data) -> dict[str, tuple[float, float]]:
        """Bounds of correlations of errors that the times of measurement can tell."""
        found = dict[str, tuple[float, float]]()
        for output, noise in self.noises.items():
            times = [one.outputs[output].times for one in data.experiments if output in one.outputs]
            if isinstance(noise.correlation, Symbol) and (own := rho_bounds(times)) is not None:
                low, high = found.get(noise.correlation.name, own)
                found[noise.correlation.name] = min(low, own[0]), max(high, own[1])
        return found

    def _correlations(self, layout: Unknowns) -> dict[int, tuple[float, float]]:
        """The limits of unknowns that are correlations of errors."""
        own = {noise.correlation.name for noise in self.noises.values() if isinstance(noise.correlation, Symbol)}
        return {i: (0.0, 1.0) for i, unknown in enumerate(layout) if unknown.name in own}

    def noise_names(self, number: int) -> tuple[str, ...]:
        """What the noise of an experiment depends on beside its model."""
        own, experiment = self.conditions[number].model, self.conditions[number].experiment
        found = dict[str, None]()
        for output in experiment.outputs:
            for part in self.noises[output].estimated:
                for name in names(substituted(part, experiment.values)):
                    if name not in (output, *own.parameters, *own.fixed, *self.model.fixed):
                        found[name] = None
        return tuple(found)

    def _measured(self) -> tuple[Measurements, np.ndarray]:
        """All measurements, and the noise levels of their outputs as far as these are known."""
        blocks = [
            self._block(i, output, experiment.outputs[output])
            for output in self.noises
            for i, experiment in enumerate(self.experiments)
            if output in experiment.outputs
        ]
        levels = np.array([noise.level for noise in self.noises.values()])
        return Measurements(tuple(self.noises), tuple(blocks)), levels

    def _block(self, number: int, output: str, series: Series) -> Block:
        """The measurements of an output in an experiment, with their noise."""
        noise, known, places = self.noises[output], self.experiments[number].values, self.layout.places[number]
        density = densities_of(noise, output, known, places, self.model, series.limits is not None)
        if density is not None and noise.shapes_told:
            check_measured(output, noise.text, density.law, series.observed.values)
        shapes, base = noise.shapes(series), noise.law.logarithm
        return Block(number, output, series.times, series.values, shapes, base, density, limits_in(noise.law, series))

    def check_points(self) -> None:
        """Refuse to look for more unknowns than measurements, priors and bounds say anything of."""
        if not len(self.layout):
            raise DataError(f"everything in {self.model.name} is known, so that there is nothing to find")
        points = sum(experiment.points for experiment in self.experiments)
        bounded = sum(bool(np.all(np.isfinite(pair))) for pair in self.bounds.values())
        if points + len(self._priors) < len(self.layout) - bounded:
            found = "there is 1 measurement" if points == 1 else f"there are {points} measurements"
            unknowns = f"{len(self.layout)} unknowns of {self.model.name}"
            raise DataError(f"{found} for {unknowns}; measure more, or give some of them a value, bounds or a prior")

    # --- what is asked ---

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        return self.data.experiments

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The labels of everything that is to be found, in the order of z."""
        return self.layout.labels

    @property
    def by_columns(self) -> tuple[str, ...]:
        """Parameters that nobody looks for, since columns of the data tell what they are."""
        told = {name for one in self.experiments for name in one.covariates}
        return tuple(name for name in self.model.parameters if name in told)

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of each unknown by label; infinite where there are none."""
        pairs = coordinates.given_bounds(self.layout, self.given_bounds, self.positive, self.model.bounds)
        return dict(zip(self.unknowns, pairs, strict=True))

    def bounded(self, bounds: Bounds) -> Problem:
        """Return the problem with other bounds."""
        other = copy(self)
        for name, value in vars(Problem).items():
            if isinstance(value, cached_property):
                vars(other).pop(name, None)
        other.given_bounds = bounds
        other.bounds  # noqa: B018 - refuses bounds that make no sense
        return other

    @property
    def is_bounded(self) -> bool:
        """Whether anything at all is known about where to look."""
        return self.given_bounds is not None or bool(self.positive) or bool(self.model.bounds)

    @cached_property
    def sizes(self) -> np.ndarray:
        """About how large each unknown is; one where bounds say where to look."""
        ends = np.array(list(self.bounds.values())).reshape(-1, 2)
        bounded = np.isfinite(ends).all(axis=1)
        sizes = np.ones(len(ends))
        if not bounded.all():
            sizes = np.where(bounded, 1.0, scales(self.conditions, self.layout, self.noises))
        for entry, prior in self._priors.items():
            sizes[entry] = abs(prior.typical)
        return sizes

    def sized(self, scale: np.ndarray) -> np.ndarray:
        """Sizes of estimates, of which one that vanishes has the size that its unit suggests."""
        return np.where(np.abs(scale) < VANISHING * self.sizes, self.sizes, np.abs(scale))

    def frame(self, scale: np.ndarray | None = None) -> Coordinates:
        """Coordinates for a search among unknowns of about these sizes."""
        scale = self.sizes if scale is None else self.sized(scale)
        return coordinates.choose(self.layout, scale, self.given_bounds, self.positive, self.model.bounds)

    # --- what it answers ---

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The solution map of every experiment."""
        return flows(self.conditions)

    @cached_property
    def misfit(self) -> Misfit:
        """Residuals and likelihood as functions of z."""
        feelings = tuple(map(self._feelings, self.measurements.outputs))
        over = any(one.cumulated.outputs for one in self.conditions)
        measuring = measuring_flows(self.conditions) if over else self.flows
        simulator = Simulator(self.model, self.conditions, measuring, self.layout, feelings)
        priors = truncated(self._priors, list(self.bounds.values())) if self.weights == "likelihood" else ()
        return Misfit(simulator, self.measurements, self._levels, self.weights == "likelihood", priors=priors)

    @cached_property
    def objective(self) -> Objective:
        """The negative log-posterior as a function of the unknowns, with exact derivatives."""
        ends = np.array(list(self.bounds.values())).reshape(-1, 2)
        return Objective(replace(self.misfit, effort=PATIENT), self.frame(), (ends[:, 0], ends[:, 1]))

    def _feelings(self, output: str) -> int:
        """How many unknowns an output feels, all experiments together."""
        entries: set[int] = set()
        for condition, places in zip(self.conditions, self.layout.places, strict=True):
            if output in condition.experiment.outputs:
                entries |= {places[name] for name in felt(condition.model, output)}
        return len(entries)

    def log_likelihood(self, values: Mapping[str, float], time_limit: float = TIME_LIMIT) -> float:
        """The log-likelihood of values by label, with noise that is not known at its most likely level.

        Minus infinity where the model cannot be simulated to the last measurement; `why` tells the reason.
        """
        patient = replace(self.misfit, priors=(), effort=PATIENT)
        return -patient.score(self.layout.vector(values), deadline=now() + time_limit)

    def why(self, values: Mapping[str, float], time_limit: float = TIME_LIMIT) -> str | None:
        """Why values by label have a likelihood of zero, in a sentence; None if they have not."""
        patient = replace(self.misfit, priors=(), effort=PATIENT)
        return patient.why(self.layout.vector(values), now() + time_limit)

    def log_prior(self, values: Mapping[str, float]) -> float:
        """The logarithm of the priors at values by label; zero where there are none."""
        z = self.layout.vector(values)
        ends = np.array(list(self.bounds.values())).reshape(-1, 2)
        if np.any(z < ends[:, 0]) or np.any(z > ends[:, 1]):
            return -math.inf
        return -total(self.misfit.priors, z)

    def log_posterior(self, values: Mapping[str, float]) -> float:
        """The log-likelihood and the logarithm of the priors; minus infinity outside the bounds."""
        prior = self.log_prior(values)
        return self.log_likelihood(values) + prior if math.isfinite(prior) else -math.inf

    def simulate(
        self, values: Mapping[str, float], times: Sequence[float] | np.ndarray | None = None, **options: Any
    ) -> dict[str, Simulation]:
        """The trajectories of every experiment by name, at its measured times or at others.

        Further options are those of `odejet.simulate`.
        """
        z = self.layout.vector(values)
        return {
            experiment.name: self.simulate_experiment(number, z, times, **options)
            for number, experiment in enumerate(self.experiments)
        }

    def simulate_experiment(
        self, number: int, z: np.ndarray, times: Sequence[float] | np.ndarray | None = None, **options: Any
    ) -> Simulation:
        """The trajectories of one experiment."""
        condition, experiment = self.conditions[number], self.experiments[number]
        return simulated(
            condition.cumulated,
            {name: series.times for name, series in experiment.outputs.items()},
            *self.values_in(number, z),
            self.times(number) if times is None else times,
            start=experiment.start,
            inputs=experiment.sampled or None,
            **options,
        )

    def times(self, number: int) -> np.ndarray:
        """All times at which something was measured in an experiment."""
        return np.unique(np.concatenate([one.times for one in self.experiments[number].outputs.values()]))

    def values_in(self, number: int, z: np.ndarray) -> tuple[dict[str, float], dict[str, float]]:
        """The parameters and the initial states that are unknown in an experiment, by name."""
        own, places = self.conditions[number].model, self.layout.places[number]
        free = own.free_states
        parameters, states = ({name: float(z[places[name]]) for name in names} for names in (own.parameters, free))
        return parameters, states

    def number(self, experiment: str | None = None) -> int:
        """The place of an experiment by name, or of the only one."""
        names = [one.name for one in self.experiments]
        if experiment is None and len(names) == 1:
            return 0
        if experiment not in names:
            if experiment is None:
                raise ModelError(f"name one experiment; there are {', '.join(names[:10])}")
            raise ModelError(f"there is no experiment {experiment!r}{nearest(experiment, names)}")
        return names.index(experiment)

    @attached
    def to_petab(self, folder: str | os.PathLike[str]) -> Path:
        """Write the problem as PEtab (version 2) into a folder, and return the path of its YAML file."""
        raise NotImplementedError

    def __repr__(self) -> str:
        count, points = len(self.experiments), sum(experiment.points for experiment in self.experiments)
        more = f" and {len(self.unknowns) - 12} more" if len(self.unknowns) > 12 else ""
        shown = ", ".join(self.unknowns[:12]) + more
        return (
            f"Problem {self.model.name}: {len(self.unknowns)} unknowns from {points} measurements in {count} "
            f"experiment{'s'[: count != 1]}\n  {shown}"
        )


def _check_squares(data: Data) -> None:
    """Refuse plain squares of what is no number."""
    for experiment in data.experiments:
        for output, series in experiment.outputs.items():
            if series.limits is not None:
                raise DataError(
                    f"{experiment.name}: '{output}' has censored values, of which there are no squares; leave out "
                    "weights='none'"
                )


def _local(local: Sequence[str], model: Model, found: Sequence[Condition], noise: Sequence[str]) -> tuple[str, ...]:
    """Names with a value of their own in each experiment, from the model and from the problem."""
    if isinstance(local, str):
        raise ModelError(f"local must be a list of names, such as ['{local}']")
    chosen = tuple(dict.fromkeys([*model.local, *local]))
    known = {*noise, *(name for one in found for name in one.model.parameters)}
    for name in chosen:
        if name not in known and name not in model.parameters:
            raise ModelError(f"local: the model has no parameter '{name}'{nearest(str(name), known)}")
        if name not in known and any(name in one.experiment.covariates for one in found):
            raise ModelError(f"local: a column of the data tells '{name}'; leave it out with data.without({name!r})")
    return chosen
