"""Subject: the simulations and measurements of one member of a population.

One simulation at parameters phi gives the predictions of all measurements and, if asked for, their derivatives by x,
the scale of the random effects, and by the parameters that have none.  The law of the noise gives from predictions the
log-likelihood with its derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odejet.data.censored import Limits
from odejet.model import Model
from odejet.model.expressions import Symbol, number
from odejet.population.layout import Layout
from odejet.problem.conditions import Condition
from odejet.problem.laws import Density
from odejet.problem.noise import Noise, densities_of, limits_in
from odejet.simulate.flow import Flow, Outcome
from odejet.simulate.many import outputs_of

Array = np.ndarray

TOLERANCE, MAX_STEPS, STIFF_STEPS = 1e-9, 3000, 500
"""Of a simulation: errors far below the noise, and what one may cost."""


SPARED, MIDDLE = 4, 0.7
"""Slopes at few rows serve for so many times as many, and are taken among this share of them around the middle."""


@dataclass(frozen=True, eq=False)
class Block:
    """The measurements of one output: where they are among all of the subject, and their law."""

    rows: slice
    output: int  # of the model
    name: str
    positions: Array  # among the times
    values: Array
    density: Density
    sds: Array | None  # where they are known, in place of the law's scale
    limits: Limits | None = None  # of values that are censored

    @property
    def censored(self) -> Array:
        """Which values are known by limits alone."""
        return np.zeros(len(self.values), bool) if self.limits is None else np.asarray(self.limits.censored)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """What measurements say at rows of predictions: log-likelihoods, and derivatives."""

    values: Array  # (nodes,)
    by_predictions: Array  # (nodes, points), of the log-likelihood
    by_noise: Array  # (nodes, noise parameters)
    weights: Array  # (nodes, points), expected information on predictions


@dataclass(frozen=True, eq=False)
class Subject:
    """One member: its flow, its times and its measurements."""

    name: str
    flow: Flow
    start: float
    times: Array
    random: Array  # of the parameters of its model: the position among individual parameters, or -1
    common: Array  # or the position among parameters without effects, or -1
    layout: Layout
    blocks: tuple[Block, ...]

    @property
    def points(self) -> int:
        return self.blocks[-1].rows.stop

    @property
    def values(self) -> Array:
        """Everything that was measured, in the order of predictions."""
        return np.concatenate([block.values for block in self.blocks])

    @property
    def measured_at(self) -> Array:
        return np.concatenate([self.times[block.positions] for block in self.blocks])

    def parameters(self, x: Array, common: Array) -> Array:
        """The parameters of the subject's model for rows of x."""
        phi = self.layout.individual(x)
        found = np.empty((len(x), len(self.random)))
        effect, other = self.random >= 0, self.common >= 0
        found[:, effect] = phi[:, self.random[effect]]
        found[:, other] = np.broadcast_to(common, (len(x), len(common)))[:, self.common[other]]
        return found

    def predict(self, x: Array, common: Array) -> Array:
        """Predictions at rows of x, NaN where the model cannot be simulated."""
        found, parameters = np.full((len(x), self.points), np.nan), self.parameters(x, common)
        states = np.zeros(len(self.flow.model.states))
        usable = np.flatnonzero(np.isfinite(parameters).all(axis=1))
        outputs = outputs_of(self.flow, parameters[usable], self.times, self.start, TOLERANCE, MAX_STEPS)
        for k, own in zip(usable.tolist(), outputs, strict=True):
            known = bool(np.isfinite(own).all())
            self._fill(found[k], own[:, :, None] if known else self._run(parameters[k], states, False))
        return found

    def linearise(self, x: Array, common: Array) -> tuple[Array, Array, Array]:
        """Predictions at rows of x with their derivatives by x, and by the parameters without random effects."""
        count = len(x)
        found = np.full((count, self.points), np.nan)
        by_own = np.zeros((count, self.points, self.layout.dimension))
        by_common = np.zeros((count, self.points, len(common)))
        states = np.zeros(len(self.flow.model.states))
        first = 1 + len(self.flow.unknowns()) - len(self.random)
        effect, other = np.flatnonzero(self.random >= 0), np.flatnonzero(self.common >= 0)
        for k, parameters in enumerate(self.parameters(x, common)):
            run = self._run(parameters, states, True)
            self._fill(found[k], run)
            if run is None:
                continue
            for block in self.blocks:
                rows = run[block.positions, block.output]
                by_own[k, block.rows][:, self.random[effect]] = rows[:, first + effect]
                by_common[k, block.rows][:, self.common[other]] = rows[:, first + other]
        return found, self.layout.by_x(by_own, x), by_common

    def predict_with_slopes(self, x: Array, common: Array) -> tuple[Array, Array]:
        """Predictions at rows of x, and about their slopes by parameters without random effects: an affine function of
        x that follows the slopes at a few rows in the middle of all, for where these only tell a direction."""
        size = x.shape[1] + 1
        if len(x) < SPARED * size:
            predictions, _, by_common = self.linearise(x, common)
            return predictions, by_common
        centre, scale = np.median(x, axis=0), np.ptp(np.quantile(x, (0.25, 0.75), axis=0), axis=0) + 1e-12
        away = (x - centre) / scale
        near = np.argsort((away**2).sum(axis=1), kind="stable")[: int(MIDDLE * len(x))]
        chosen = near[np.linspace(0, len(near) - 1, 2 * size).astype(int)]
        told, _, slopes = self.linearise(x[chosen], common)
        usable = np.isfinite(told).all(axis=1)
        terms = np.concatenate([np.ones((len(x), 1)), away], axis=1)
        rows = slopes[usable].reshape(int(usable.sum()), -1)
        fitted = np.linalg.lstsq(terms[chosen[usable]], rows, rcond=1e-6)[0]
        return self.predict(x, common), (terms @ fitted).reshape(len(x), *slopes.shape[1:])

    def _run(self, parameters: Array, states: Array, sensitivities: bool) -> Array | None:
        if not np.isfinite(parameters).all():
            return None
        run = self.flow.run(
            parameters,
            states,
            self.times,
            start=self.start,
            sensitivities=sensitivities,
            tolerance=TOLERANCE,
            max_steps=MAX_STEPS,
            stiff_steps=STIFF_STEPS,
        )
        return run.outputs if run.outcome is Outcome.COMPLETED else None

    def _fill(self, row: Array, outputs: Array | None) -> None:
        if outputs is not None:
            for block in self.blocks:
                row[block.rows] = outputs[block.positions, block.output, 0]

    # --- the law of the noise ---

    def scales(self, predictions: Array, noise: Array) -> tuple[Array, Array, Array]:
        """The scale of the law of every measurement, its slope by the prediction, and slopes by noise parameters."""
        count = len(predictions)
        scale, by_prediction = np.ones_like(predictions), np.zeros_like(predictions)
        by_noise = np.zeros((len(noise), *predictions.shape))
        for block in self.blocks:
            mu = predictions[:, block.rows]
            if block.sds is not None:
                scale[:, block.rows] = block.sds
                continue
            s, ds, rows = block.density.scales(np.ascontiguousarray(mu).ravel(), noise)
            scale[:, block.rows], by_prediction[:, block.rows] = s.reshape(mu.shape), ds.reshape(mu.shape)
            by_noise[block.density.entries, :, block.rows] = rows.reshape(len(rows), count, -1)
        return scale, by_prediction, by_noise

    def likelihood(self, predictions: Array, noise: Array) -> Likelihood:
        """What the measurements say at rows of predictions."""
        with np.errstate(all="ignore"):
            scale, by_prediction, by_noise = self.scales(predictions, noise)
            costs, slopes = np.empty_like(predictions), np.empty_like(predictions)
            weights, by_s = np.empty_like(predictions), np.empty_like(predictions)
            for block in self.blocks:
                own = block.rows
                terms = block.density.terms(block.values, predictions[:, own], scale[:, own], block.limits)
                costs[:, own], by_s[:, own] = terms.costs, terms.by_s
                slopes[:, own] = terms.by_mu + terms.by_s * by_prediction[:, own]
                weights[:, own] = terms.weight_mu + terms.weight_s * by_prediction[:, own] ** 2
            values = -costs.sum(axis=1)
            values = np.where(np.isfinite(values) & (scale > 0).all(axis=1), values, -np.inf)
            return Likelihood(values, -slopes, -np.einsum("kn,qkn->kq", by_s, by_noise), weights)


def subjects_of(
    conditions: Sequence[Condition], flows: Sequence[Flow], noises: Mapping[str, Noise], layout: Layout, model: Model
) -> tuple[Subject, ...]:
    """The members of a population."""
    random, common = list(layout.individual_names), list(layout.common)
    found = []
    for condition, flow in zip(conditions, flows, strict=True):
        experiment, own = condition.experiment, condition.model
        times = np.unique(np.concatenate([series.times for series in experiment.outputs.values()]))
        blocks, first = [], 0
        for name, series in experiment.outputs.items():
            rows = slice(first, first + len(series.times))
            density, sds = _law(noises[name], name, condition, layout, model)
            place = list(own.outputs).index(name)
            positions = np.searchsorted(times, series.times)
            limits = limits_in(noises[name].law, series)
            blocks.append(Block(rows, place, name, positions, series.values, density, sds, limits))
            first = rows.stop
        found.append(
            Subject(
                experiment.name,
                flow,
                float(experiment.start),
                times,
                np.array([random.index(name) if name in random else -1 for name in own.parameters], dtype=int),
                np.array([common.index(name) if name in common else -1 for name in own.parameters], dtype=int),
                layout,
                tuple(blocks),
            )
        )
    return tuple(found)


def _law(noise: Noise, output: str, condition: Condition, layout: Layout, model: Model) -> tuple[Density, Array | None]:
    """The law of an output's measurements in a subject, and their scales where these are known."""
    places = {name: i for i, name in enumerate(layout.noise)}
    series = condition.experiment.outputs[output]
    density = densities_of(noise, output, condition.experiment.values, places, model, series.limits is not None)
    if density is not None:
        return density, None
    level = layout.levels[output]
    if level is not None:
        return Density(noise.law, Symbol(level), output, {level: places[level]}, {}), None
    known = noise.level * noise.shapes(condition.experiment.outputs[output])
    return Density(noise.law, number(1), output, {}, {}), known
