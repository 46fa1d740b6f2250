"""Estimation: from a population to the maximum of its likelihood, without a guess.

From the pooled fit (see `start`) every subject has a mode, and nodes around it.  On these nodes the likelihood is a
function of u that needs no simulation; it is maximised as far as the nodes can be trusted, and new nodes follow the
posteriors that this gives.  Few nodes lead near the maximum; in the end there are so many that the error of -2 log L is
known to be small, both at the maximum and in where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odejet.errors import DataError
from odejet.population.layout import Layout, Moments
from odejet.population.marginal import Integral, Marginal, Sample, integrate
from odejet.population.modes import find_mode
from odejet.population.nodes import Mixture, Nodes, Normal, drawn, grid, grid_size, joined, mixture, whole
from odejet.population.population import Population
from odejet.population.start import pooled_starts
from odejet.population.subject import Subject

Array = np.ndarray


@dataclass(frozen=True)
class Settings:
    """What an estimation may cost and how exact it is."""

    error: float = 0.016  # of -2 log L in the end, a little less than the 0.02 that is promised
    few: int = 64  # nodes per subject on the way, for up to two random effects; twice as many for each two more
    rough: float = 0.25  # the error of -2 log L near the maximum, where the place of the maximum is found
    first: int = 32  # nodes per sequence then and in the end, before subjects that need more have twice as many
    most: int = 4096  # nodes per sequence
    nodes: int = 150_000  # of all subjects together; where these are too few, the error says so
    uneven: float = 0.5  # the effective share of nodes below which one normal law does not follow a posterior
    parts: int = 6  # of a mixture that does
    adapting: tuple[int, ...] = (64, 256, 1024)  # nodes per sequence after which such a mixture is made anew
    orders: tuple[int, ...] = (4, 5, 7, 9, 11, 15)  # of rules on grids, the last two of which must agree
    most_of_grid: int = 350  # nodes of a grid; where it would take more, nodes are drawn
    cycles: int = 40  # of nodes on the way
    near: float = 1.0  # a change of -2 log L from one cycle to the next that is small enough for more nodes
    gain: float = 0.005  # of -2 log L that one more step may promise in the end
    last_cycles: int = 8
    worse: float = 3.0  # of -2 log L, by which few nodes may err
    least_effective: float = 6.0  # nodes of a posterior that tells where the next ones belong
    reach: float = 1.0  # of a cycle in u
    short: float = 0.3  # the same near the maximum
    least_omega: float = 2e-3  # below this a random effect is taken to be none


SETTINGS = Settings()
FLOOR = 1e-4
"""Of the variance of a random effect: what is added to that of the nodes of a subject."""

ITERATIONS = 40
"""Of an optimiser on one set of nodes."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """The maximum of the likelihood, with nodes there."""

    population: Population
    layout: Layout
    u: Array
    marginal: Marginal
    integrals: tuple[Integral, ...]
    errors: Array  # of the logarithm of the likelihood of each subject
    covariance: Array  # of u, from the observed information
    gain: float  # of -2 log L that is still to be expected
    cycles: int
    simulations: int
    removed: tuple[str, ...] = ()

    @property
    def log_likelihood(self) -> float:
        return float(sum(found.log for found in self.integrals))

    @property
    def error(self) -> float:
        """The standard error of -2 log L."""
        return 2 * float(np.sqrt((self.errors**2).sum()))


def estimate(
    population: Population,
    seed: int = 0,
    settings: Settings = SETTINGS,
    tell: Callable[[str], object] = lambda _: None,
) -> Estimated:
    """Return the maximum of the likelihood of a population."""
    tell("pooled fit")
    layout, starts = pooled_starts(population, seed)
    searches = [_Search(population, layout, u, seed, settings) for u in starts]
    tell("nodes")
    search = min(searches, key=lambda one: one.approach())
    removed: list[str] = []
    while True:
        search.settle()
        vanished = search.vanished()
        if vanished is None:
            break
        removed.append(vanished)
        search = search.without(vanished)
        search.approach()
    tell("likelihood")
    found = search.finish()
    return replace(found, removed=tuple(removed))


@dataclass(eq=False)
class _Search:
    """A population on its way: where it stands, and the laws that nodes follow."""

    population: Population
    layout: Layout
    u: Array
    seed: int
    settings: Settings
    laws: list[Mixture] = field(default_factory=list)
    simulations: int = 0
    cycles: int = 0

    @property
    def members(self) -> tuple[Subject, ...]:
        return self.population.members

    def state(self, u: Array) -> tuple[Moments, Array, Array]:
        return self.layout.moments(u), self.layout.cholesky(u), self.layout.noise_values(u)

    # --- nodes ---

    def adapt_to_modes(self, u: Array, which: list[int]) -> None:
        """Let nodes of some subjects follow their modes."""
        moments, factor, noise = self.state(u)
        precision = np.linalg.inv(factor @ factor.T)
        if not self.laws:
            self.laws = [((1.0, Normal(mean, factor)),) for mean in moments.means]
        for i in which:
            mode = find_mode(self.members[i], moments.means[i], moments.means[i], moments.common[i], precision, noise)
            if math.isfinite(mode.value):
                self.laws[i] = ((1.0, Normal.of(mode.x, np.linalg.inv(mode.curvature))),)
            else:
                self.laws[i] = ((1.0, Normal(moments.means[i], factor)),)

    def sample(self, i: int, nodes: Nodes, common: Array) -> Sample:
        """Simulate a subject at nodes."""
        subject = self.members[i]
        self.simulations += len(nodes.x)
        if self.layout.common:
            predictions, _, by_common = subject.linearise(nodes.x, common)
            return Sample(subject, nodes, predictions, common, by_common)
        return Sample(subject, nodes, subject.predict(nodes.x, common), common, None)

    def drawn(self, u: Array, count: int, shifts: int) -> Marginal:
        """The likelihood on so many nodes per sequence and subject."""
        moments, factor, _ = self.state(u)
        samples = []
        for i in range(len(self.members)):
            population = Normal(moments.means[i], factor)
            nodes = drawn(0, count, self.laws[i], population, (self.seed, i), shifts)
            samples.append(self.sample(i, nodes, moments.common[i]))
        return Marginal(self.layout, samples)

    def few(self, u: Array) -> Marginal:
        """The likelihood on few nodes per subject."""
        return self.drawn(u, self.settings.few << (len(self.layout.random) - 1) // 2, 1)

    def follow(self, marginal: Marginal, u: Array) -> None:
        """Let the laws of nodes follow the posteriors at u."""
        lost = []
        _, factor, _ = self.state(u)
        floor = FLOOR * np.diag(np.diag(factor @ factor.T))
        for i, (sample, found) in enumerate(zip(marginal.samples, marginal.integrals(u), strict=True)):
            on_grid = sample.nodes.parts is None
            if found is None or (found.effective() < self.settings.least_effective and not on_grid):
                lost.append(i)
                continue
            # Nodes of a mixture are even because it has several parts.
            one = len(self.laws[i]) == 1 and not self.is_uneven(found)
            even = on_grid or one
            most = 1 if even else self.settings.parts
            self.laws[i] = mixture(sample.nodes.x, found.shares, floor, most)
        if lost:
            self.adapt_to_modes(u, lost)

    def is_uneven(self, found: Integral) -> bool:
        """Whether few nodes of a subject have most of its likelihood."""
        return found.effective() < self.settings.uneven * len(found.shares)

    # --- the way ---

    def approach(self) -> float:
        """Go near the maximum with few nodes; return -2 log L there."""
        self.adapt_to_modes(self.u, list(range(len(self.members))))
        marginal = self.few(self.u)
        value = 2 * marginal.value_and_gradient(self.u)[0]
        if not math.isfinite(value):
            raise DataError(
                "some subject cannot be simulated with any parameters near those of the pooled fit; look at its doses "
                "and measurements"
            )
        for _ in range(self.settings.cycles):
            self.cycles += 1
            target, step = self.maximised(marginal, self.u, self.settings.reach), 1.0
            while True:
                u = self.u + step * (target - self.u)
                before = list(self.laws)
                self.follow(marginal, u)
                trial = self.few(u)
                new = 2 * trial.value_and_gradient(u)[0]
                if new < value + self.settings.worse or step < 0.05:
                    break
                self.laws, step = before, step / 4
            change, self.u, marginal, value = value - new, u, trial, new
            if change < self.settings.near and step == 1.0:
                break
        self.follow(marginal, self.u)
        return value

    def settle(self) -> None:
        """Go to the maximum with some nodes, up to what these can tell."""
        for _ in range(self.settings.last_cycles):
            self.cycles += 1
            marginal, _ = self.many(self.u, self.settings.rough)
            before = self.u
            self.u = self.maximised(marginal, self.u, self.settings.short)
            self.follow(marginal, self.u)
            moved = 2 * (marginal.value_and_gradient(before)[0] - marginal.value_and_gradient(self.u)[0])
            if moved < 10 * self.settings.gain:
                break

    def maximised(self, marginal: Marginal, u: Array, reach: float) -> Array:
        """The maximum on the nodes, within reach."""
        from scipy.optimize import minimize

        low, high = u - reach, u + reach
        for entry, (a, b) in enumerate(self.layout.pairs, self.layout.omegas.start):
            if a == b:
                low[entry] = max(low[entry], min(u[entry], math.log(self.least(a)) - 0.5))
        found: Any = minimize(
            _finite(marginal.value_and_gradient),
            u,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": ITERATIONS, "ftol": 1e-10, "gtol": 1e-4},
        )
        return np.asarray(found.x)

    def least(self, effect: int) -> float:
        """The sd of a random effect below which it is taken to be none."""
        name = self.layout.random[effect]
        j = self.layout.typical.index(name)
        unit = self.layout.units[j] if self.layout.linear(j) else 1.0
        return self.settings.least_omega * unit

    def vanished(self) -> str | None:
        """A random effect whose variance has gone to zero."""
        if len(self.layout.random) == 1:
            return None
        factor = self.layout.cholesky(self.u)
        sds = np.sqrt((factor**2).sum(axis=1))
        for effect, name in enumerate(self.layout.random):
            if sds[effect] < self.least(effect):
                return name
        return None

    def without(self, name: str) -> _Search:
        """The search in which a parameter has no random effect."""
        population = self.population.without(name)
        values = dict(zip(self.layout.names, self.layout.natural(self.u).tolist(), strict=True))
        units = dict(zip((*self.layout.typical, *self.layout.coefficients), self.layout.units, strict=True))
        layout = population.layout
        names = (*layout.typical, *layout.coefficients)
        new = np.array(
            [
                (abs(values[key]) or 1.0) if layout.linear(j) and key == name else units[key]
                for j, key in enumerate(names)
            ]
        )
        layout = layout.measured_in(new)
        return _Search(population, layout, layout.to(values), self.seed, self.settings)

    # --- the end ---

    def finish(self) -> Estimated:
        """The maximum on as many nodes as the error asks for."""
        marginal, errors = self.many(self.u, self.settings.error)
        for _ in range(self.settings.last_cycles):
            covariance = _inverse(self.information(marginal))
            _, gradient = marginal.value_and_gradient(self.u)
            gain = float(gradient @ covariance @ gradient)
            if gain < self.settings.gain:
                break
            self.cycles += 1
            self.u = self.maximised(marginal, self.u, self.settings.short)
            if self.layout.common:
                marginal = self.simulated(marginal, self.u)
        integrals = [found for found in marginal.integrals(self.u) if found is not None]
        return Estimated(
            self.population,
            self.layout,
            self.u,
            marginal,
            tuple(integrals),
            errors,
            covariance,
            gain,
            self.cycles,
            self.simulations,
        )

    def many(self, u: Array, error_allowed: float) -> tuple[Marginal, Array]:
        """The likelihood on as many nodes as its error asks for, and the error of every subject."""
        moments, factor, noise = self.state(u)
        count, goal = len(self.members), (error_allowed / 2) ** 2
        samples: list[Sample] = []
        errors = np.zeros(count)
        sizes = np.zeros(count, int)  # of quasi-random nodes per shift; zero where a grid will do

        def measured(i: int, sample: Sample) -> Integral | None:
            return integrate(sample, moments.means[i], moments.common[i], factor, noise)

        for i in range(count):
            sample, error = self.on_grid(i, moments, measured, math.sqrt(goal / count))
            if sample is None:
                population, sizes[i] = Normal(moments.means[i], factor), self.settings.first
                nodes = drawn(0, int(sizes[i]), self.laws[i], population, (self.seed, i))
                sample = self.sample(i, nodes, moments.common[i])
                found = measured(i, sample)
                error = math.inf if found is None else found.spread(nodes)
            samples.append(sample)
            errors[i] = error
        while (errors**2).sum() > goal and sum(len(one.nodes.x) for one in samples) < self.settings.nodes:
            able = np.where((sizes > 0) & (sizes < self.settings.most), errors, 0.0)
            worst = np.flatnonzero((able > 0) & (able > 0.5 * able.max()))
            if not len(worst):
                break
            for i in worst.tolist():
                population = Normal(moments.means[i], factor)
                found = measured(i, samples[i])
                if found is not None and sizes[i] in self.settings.adapting and self.is_uneven(found):
                    # Nodes so far tell where a posterior with narrow parts is, and those ahead follow it.
                    floor = FLOOR * np.diag(np.diag(factor @ factor.T))
                    self.laws[i] = mixture(samples[i].nodes.x, found.shares, floor, self.settings.parts)
                    nodes = drawn(0, int(sizes[i]), self.laws[i], population, (self.seed, i))
                    samples[i] = self.sample(i, nodes, moments.common[i])
                more = drawn(int(sizes[i]), 2 * int(sizes[i]), self.laws[i], population, (self.seed, i))
                samples[i] = _extended(samples[i], self.sample(i, more, moments.common[i]))
                sizes[i] *= 2
                found = measured(i, samples[i])
                errors[i] = math.inf if found is None else found.spread(samples[i].nodes)
        return Marginal(self.layout, samples), errors

    def on_grid(
        self, i: int, moments: Moments, measured: Callable[[int, Sample], Integral | None], goal: float
    ) -> tuple[Sample | None, float]:
        """The nodes of a rule that agrees with the one before it; none where that takes too many."""
        effects, before = len(self.layout.random), math.nan
        orders = [one for one in self.settings.orders if grid_size(one, effects) <= self.settings.most_of_grid]
        # One rule alone tells nothing of its error.
        for order in orders if len(orders) > 1 else ():
            sample = self.sample(i, grid(order, whole(self.laws[i])), moments.common[i])
            found = measured(i, sample)
            if found is None:
                break
            if abs(found.log - before) < goal:
                return sample, abs(found.log - before)
            before = found.log
        return None, math.inf

    def information(self, marginal: Marginal) -> Array:
        """The observed information on u, from differences of exact gradients.

        By parameters without random effects predictions are linear on the nodes, so that the nodes are simulated again
        beside the maximum.
        """
        size, u = len(self.u), self.u
        step = 1e-4
        rows = np.zeros((size, size))
        moving = np.abs(self.layout.moments(u).by_common).max(axis=(0, 1), initial=0.0) > 0
        for j in range(size):
            ends = []
            for sign in (1, -1):
                v = u.copy()
                v[j] += sign * step
                again = j < len(moving) and moving[j]
                ends.append((self.simulated(marginal, v) if again else marginal).value_and_gradient(v)[1])
            rows[j] = (ends[0] - ends[1]) / (2 * step)
        return 0.5 * (rows + rows.T)

    def simulated(self, marginal: Marginal, u: Array) -> Marginal:
        """Simulate the nodes again at other values of the parameters without random effects."""
        common = self.layout.moments(u).common
        samples = [self.sample(i, one.nodes, common[i]) for i, one in enumerate(marginal.samples)]
        return Marginal(self.layout, samples)


def _finite(function: Callable[[Array], tuple[float, Array]]) -> Callable[[Array], tuple[float, Array]]:
    """A function whose infinite values are very large ones, which a line search can compare."""

    def bounded(u: Array) -> tuple[float, Array]:
        value, gradient = function(u)
        return (value, gradient) if math.isfinite(value) else (1e15, np.zeros(len(u)))

    return bounded


def _extended(sample: Sample, more: Sample) -> Sample:
    slopes = None
    if sample.by_common is not None and more.by_common is not None:
        slopes = np.concatenate([sample.by_common, more.by_common])
    return replace(
        sample,
        nodes=joined(sample.nodes, more.nodes),
        predictions=np.concatenate([sample.predictions, more.predictions]),
        by_common=slopes,
    )


def _inverse(information: Array) -> Array:
    """The inverse on the directions that the data inform on."""
    values, vectors = np.linalg.eigh(information)
    kept = values > 1e-8 * max(float(values.max()), 1e-300)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)
