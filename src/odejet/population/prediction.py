"""Prediction: a new subject of a population, under a regimen and with covariates of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.data import Data
from odejet.errors import ModelError, nearest
from odejet.objective.courses import flows
from odejet.population.layout import Layout
from odejet.population.population import Population
from odejet.population.subject import Subject, subjects_of
from odejet.problem.conditions import conditions
from odejet.tables import html_table, table

Array = np.ndarray

SCREEN = 20
"""Times that a table shows."""


@dataclass(frozen=True, eq=False)
class Bands:
    """One output over time: that of the typical subject, the band of subjects, and that of knowledge."""

    typical: Array
    low: Array
    high: Array
    known_low: Array
    known_high: Array


@dataclass(frozen=True, eq=False)
class PopulationPrediction:
    """Outputs of a new subject by name."""

    times: Array
    outputs: Mapping[str, Bands]
    level: float

    def __getitem__(self, output: str) -> Bands:
        if output not in self.outputs:
            raise KeyError(f"there is no output '{output}'{nearest(output, self.outputs)}")
        return self.outputs[output]

    def __repr__(self) -> str:
        rows = self._rows()
        return "\n".join([self._title(), *table(rows, right=range(len(rows[0])))])

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(rows, range(len(rows[0])), self._title())

    def _title(self) -> str:
        return f"Prediction of a new subject; {self.level:.0%} of subjects are within the ends"

    def _rows(self) -> list[tuple[str, ...]]:
        """At no more than a screenful of times: the typical subject, and the ends of the population."""
        shown = np.unique(np.linspace(0, len(self.times) - 1, min(len(self.times), SCREEN)).astype(int))
        rows = [
            (
                f"{self.times[i]:.6g}",
                *(f"{own.typical[i]:.4g} ({own.low[i]:.4g} to {own.high[i]:.4g})" for own in self.outputs.values()),
            )
            for i in shown
        ]
        return [("time", *self.outputs), *rows]


@dataclass(frozen=True, eq=False)
class Known:
    """What a fit knows of a population: the vector u of a layout and its covariance."""

    population: Population
    layout: Layout
    u: Array
    covariance: Array

    @classmethod
    def restored(cls, population: Population, told: Mapping[str, Any]) -> Known:
        """Return it from the plain values that `PopulationFit.to_dict` gives, and the population that was fitted."""
        for name in told["removed"]:
            population = population.without(name)
        layout = population.layout
        u = layout.to({name: told["population"][name]["value"] for name in layout.names})
        inverse = np.linalg.inv(layout.slopes(u))
        return cls(population, layout, u, inverse @ np.asarray(told["covariance"], dtype=float) @ inverse.T)


def predicted(
    known: Known,
    times: Array,
    doses: Any,
    covariates: Mapping[str, float],
    level: float,
    draws: int,
    seed: int,
) -> PopulationPrediction:
    """Return the prediction of a new subject."""
    population, layout, u = known.population, known.layout, known.u
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all():
        raise ModelError("times must be a list of finite numbers")
    missing = [name for name in layout.columns if name not in covariates]
    if missing:
        raise ModelError(f"the covariate '{missing[0]}' of the new subject is missing; give covariates={{...}}")
    columns = {name: np.array([float(covariates[name])]) for name in layout.columns}
    subject = _new_subject(known, times, doses, covariates)
    rng = np.random.default_rng([seed, 3])

    def run(v: Array, z: Array) -> Array:
        moments = layout.moments(v, columns)
        x = moments.means[0] + z @ layout.cholesky(v).T
        return subject.predict(x, moments.common[0])

    nothing = np.zeros((1, layout.dimension))
    typical = run(u, nothing)[0]
    subjects = run(u, rng.standard_normal((draws, layout.dimension)))
    values, vectors = np.linalg.eigh(known.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    typicals = np.concatenate([run(u + root @ rng.standard_normal(len(u)), nothing) for _ in range(draws)])
    ends = 50 * (1 - level), 50 * (1 + level)
    outputs = {}
    for block in subject.blocks:
        low, high = np.nanpercentile(subjects[:, block.rows], ends, axis=0)
        known_low, known_high = np.nanpercentile(typicals[:, block.rows], ends, axis=0)
        outputs[block.name] = Bands(typical[block.rows], low, high, known_low, known_high)
    return PopulationPrediction(times, {name: outputs[name] for name in population.noises}, level)


def _new_subject(known: Known, times: Array, doses: Any, covariates: Mapping[str, float]) -> Subject:
    population = known.population
    model = population.own_model
    given = {name: float(value) for name, value in covariates.items() if name in (*model.parameters, *model.fixed)}
    zeros = {name: (times, np.ones(len(times))) for name in population.noises}
    # Initial values hold where those of the data do, or with the first dose before that.
    start = min(one.experiment.start for one in population.conditions)
    data = Data(None, zeros, name="new subject", doses=doses, values=given)
    data = data.starting(min(start, data.experiments[0].start))
    own = conditions(model, data, population.fixed, population.layout.noise)
    layout = population.layout
    needed = [n for n in own[0].model.parameters if n not in (*layout.typical, *layout.individual_names)]
    if needed:
        raise ModelError(f"'{needed[0]}' of the new subject is not known; give it in covariates={{'{needed[0]}': …}}")
    noises = {
        name: replace(noise, kind="constant", level=1.0) if noise.kind == "data" else noise
        for name, noise in population.noises.items()
    }
    return subjects_of(own, flows(own), noises, known.layout, model)[0]
