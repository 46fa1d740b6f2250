"""Estimation: from a population to the maximum of its likelihood, without a guess.

From the pooled fit (see `start`) every subject has a mode, and nodes around it.  On these nodes the likelihood is a
function of u that needs no simulation; it is maximised as far as the nodes can be trusted, and new nodes follow the
posteriors that this gives (see `integration`).  Few nodes lead near the maximum; in the end there are so many that the
error of -2 log L is known to be small, both at the maximum and in where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odejet.budget import OutOfBudget
from odejet.errors import DataError
from odejet.population.integration import Integrator
from odejet.population.layout import Layout
from odejet.population.marginal import Integral, Marginal
from odejet.population.population import Population
from odejet.population.rivals import Rival, are_apart, families
from odejet.population.simulating import Members, Simulator
from odejet.population.start import pooled_starts, scattered

Array = np.ndarray


@dataclass(frozen=True)
class Settings:
    """What an estimation may cost and how exact it is."""

    error: float = 0.018  # of -2 log L in the end, a little less than the 0.02 that is promised
    rough: float = 0.12  # the error of -2 log L near the maximum, where the place of the maximum is found
    cycles: int = 40  # of nodes on the way
    near: float = 1.0  # a change of -2 log L from one cycle to the next that is small enough for more nodes
    gain: float = 0.002  # of -2 log L that one more step may promise in the end
    last_cycles: int = 8
    attempts: int = 2  # at nodes that are good where the maximum turns out to be
    worse: float = 3.0  # of -2 log L, by which few nodes may err
    serious: float = 13.0  # of -2 log L: what is farther below the best, few nodes included, is no rival
    reach: float = 1.0  # of a cycle in u
    short: float = 0.3  # near the maximum
    shrunk: float = 0.8  # shrinkage from which on a variance may be one that goes to zero
    flat: float = 0.2  # of -2 log L, which an eighth of an omega may cost where the variance goes to zero
    others: int = 2  # starts beside those of the pooled fit
    least_omega: float = 2e-3  # below this a random effect is taken to be none


SETTINGS = Settings()

ITERATIONS = 40
"""Of an optimiser on one set of nodes."""

SUCCESS = 0.02
"""What -2 log L may still gain at an answer that counts as the maximum."""


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
    optimism: float  # by which the maximum on these nodes is expected to be above that of the exact likelihood
    cycles: int
    simulations: int
    removed: tuple[str, ...] = ()
    stopped: str = ""  # why the estimation ended before its time
    starts: int = 1
    agreeing: int = 1  # starts that led near the same maximum
    rivals: tuple[Rival, ...] = ()  # other maxima that are not far below
    far: tuple[float, ...] = ()  # by about how much -2 log L of others is larger, which were not followed to the end

    @property
    def log_likelihood(self) -> float:
        return float(sum(found.log for found in self.integrals))

    @property
    def error(self) -> float:
        """The standard error of -2 log L, with what comes from maximising it on nodes."""
        return math.hypot(2 * float(np.sqrt((self.errors**2).sum())), self.optimism)


def estimate(
    population: Population,
    seed: int = 0,
    settings: Settings = SETTINGS,
    tell: Callable[[str], object] = lambda _: None,
    deadline: float = math.inf,
    executor: Executor | None = None,
) -> Estimated:
    """Return the maximum of the likelihood of a population; by the deadline, the best that is known then."""
    tell("pooled fit")
    layout, starts = pooled_starts(population, seed, deadline)
    tell("starts")
    how = seed, settings, deadline, executor
    searches = [_approached(population, layout, u, *how) for u in starts]
    best = min(range(len(starts)), key=lambda k: searches[k].value)
    # Others around the start that led to the best, to see if they lead there too.
    for u in scattered(layout, starts[best], settings.others, seed):
        searches.append(_approached(population, layout, u, *how, searches[best].integrator.modes))
    tell("nodes")
    # Values on few nodes compare with each other alone: what is counted is counted before any search goes on.
    met = [(family[0], family[0].value, _agreeing(family, settings.worse)) for family in families(searches)]
    lowest = met[0][1]
    ends = [(*_settled(one), agreeing) for one, value, agreeing in met if _is_serious(value, lowest, settings)]
    ends.sort(key=lambda end: end[0].value)
    search, removed, agreeing = ends[0]
    tell("likelihood")
    with search.simulator:
        search.attempt(search.finish)
        found = search.answer()
    return replace(
        found,
        removed=removed,
        starts=len(searches),
        agreeing=agreeing,
        far=tuple(value - lowest for _, value, _ in met if not _is_serious(value, lowest, settings)),
        rivals=tuple(end.as_rival(gone) for end, gone, _ in ends[1:] if gone != removed or are_apart(end, search)),
    )


def _agreeing(family: Sequence[_Search], worse: float) -> int:
    """How many searches of a family have about the value of its best."""
    return sum(one.value <= family[0].value + worse for one in family)


def _is_serious(value: float, lowest: float, settings: Settings) -> bool:
    """Tell if a maximum may be the best, or a rival of it."""
    return value == lowest or value < lowest + settings.serious


def _approached(population: Population, layout: Layout, u: Array, *how: Any) -> _Search:
    """A search that has gone near a maximum; one that cannot, if any other can, is no answer."""
    search = _Search(population, layout, u, *how)
    with search.simulator:
        search.attempt(search.approach)
    return search


def _settled(search: _Search) -> tuple[_Search, tuple[str, ...]]:
    """The search at its maximum without the random effects whose variance goes to zero there, and these."""
    removed: list[str] = []
    while not search.stopped:
        with search.simulator:
            search.attempt(search.settle)
            search.attempt(search.look_for_zeros)
        if not search.vanished:
            break
        removed.append(search.vanished)
        search = search.without(search.vanished)
        with search.simulator:
            search.attempt(search.approach)
    return search, tuple(removed)


class _Search:
    """A population on its way: where it stands, and its likelihood on nodes there."""

    def __init__(
        self,
        population: Population,
        layout: Layout,
        u: Array,
        seed: int,
        settings: Settings,
        deadline: float = math.inf,
        executor: Executor | None = None,
        modes: dict[int, Array] | None = None,
    ) -> None:
        self.population, self.layout, self.settings = population, layout, settings
        self.seed, self.deadline, self.executor = seed, deadline, executor
        self.simulator = Simulator(Members(population.members, deadline), executor)
        self.integrator = Integrator(layout, self.simulator, seed, penalty=population.penalty(layout))
        # What other searches know of subjects with several modes holds here too.
        self.looked = modes is not None
        self.integrator.modes = {} if modes is None else modes
        self.u, self.marginal = u, self.integrator.marginal(())
        self.value, self.cycles, self.stopped, self.vanished = math.inf, 0, "", ""

    def attempt(self, stage: Callable[[], None]) -> None:
        """Go through a stage, unless the time is over."""
        if self.stopped:
            return
        try:
            stage()
        except OutOfBudget as reason:
            self.stopped = str(reason)

    # --- the way ---

    def approach(self) -> None:
        """Go near the maximum with few nodes."""
        integrator, everyone = self.integrator, list(range(len(self.population.members)))
        integrator.adapt_to_modes(self.u, everyone)
        self.marginal = integrator.few(self.u)
        self.value = 2 * self.marginal.value_and_gradient(self.u)[0]
        if not math.isfinite(self.value):
            raise DataError(
                "some subject cannot be simulated with any parameters near those of the pooled fit; look at its doses "
                "and measurements"
            )
        # With the wide noise of a pooled fit a subject has one mode, and several may be told apart only near the end.
        while self.cycle() and not self.looked and integrator.look_for_modes(self.u):
            self.marginal = integrator.few(self.u)
            self.value = 2 * self.marginal.value_and_gradient(self.u)[0]
        integrator.follow(self.marginal, self.u)

    def cycle(self) -> bool:
        """Go on with few nodes until these promise no more; tell if that was before the cycles were over."""
        integrator = self.integrator
        while self.cycles < self.settings.cycles:
            self.cycles += 1
            target, step = self.maximised(self.marginal, self.u, self.settings.reach), 1.0
            while True:
                u = self.u + step * (target - self.u)
                before = list(integrator.laws)
                integrator.follow(self.marginal, u)
                trial = integrator.few(u)
                new = 2 * trial.value_and_gradient(u)[0]
                if new < self.value + self.settings.worse or step < 0.05:
                    break
                integrator.laws, step = before, step / 4
            change, self.u, self.marginal, self.value = self.value - new, u, trial, new
            if change < self.settings.near and step == 1.0:
                return True
        return False

    def settle(self) -> None:
        """Go to the maximum with some nodes, up to what these can tell."""
        for _ in range(self.settings.last_cycles):
            self.cycles += 1
            self.marginal = self.integrator.settled(self.u, self.settings.rough)
            before = self.u
            self.u = self.maximised(self.marginal, self.u, self.settings.short)
            ends = [self.marginal.value_and_gradient(u)[0] for u in (before, self.u)]
            self.value = 2 * ends[1]
            if 2 * (ends[0] - ends[1]) < self.settings.rough:
                break

    def look_for_zeros(self) -> None:
        """Name a random effect whose variance goes to zero: it is as good as none."""
        factor, several = self.layout.cholesky(self.u), len(self.layout.random) > 1
        for effect, name in enumerate(self.layout.random):
            sd = math.sqrt((factor[effect] ** 2).sum())
            if several and (sd < self.least(effect) or self.is_idle(effect)):
                self.vanished = name
                return

    def is_idle(self, effect: int) -> bool:
        """Tell if the likelihood is about the same with a small part of the variance of a random effect."""
        if not any(block == (effect,) for block in self.layout.blocks):
            return False
        u, entry = self.u.copy(), self.layout.omegas.start + self.layout.pairs.index((effect, effect))
        if self.shrinkage(effect) < self.settings.shrunk:
            return False
        u[entry] -= math.log(8)
        # The maximum on nodes is too good there: both are computed on others.
        values = [self.integrator.integrated(v, self.settings.rough)[0].value_and_gradient(v)[0] for v in (self.u, u)]
        return 2 * (values[1] - values[0]) < self.settings.flat

    def shrinkage(self, effect: int) -> float:
        """How much less the posterior means of subjects differ than omega says."""
        means, factor = self.layout.moments(self.u).means[:, effect], self.layout.cholesky(self.u)
        found = zip(self.marginal.samples, self.marginal.integrals(self.u), strict=True)
        centres = [means[i] if one is None else one.shares @ s.nodes.x[:, effect] for i, (s, one) in enumerate(found)]
        return 1 - float(np.std(np.array(centres) - means)) / math.sqrt((factor[effect] ** 2).sum())

    def maximised(self, marginal: Marginal, u: Array, reach: float) -> Array:
        """The maximum on the nodes, within reach."""
        from scipy.optimize import minimize

        low, high = u - reach, u + reach
        for entry, (a, b) in enumerate(self.layout.pairs, self.layout.omegas.start):
            if a == b:
                low[entry] = max(low[entry], min(u[entry], math.log(self.least(a)) - 0.5))
        for k, entry in enumerate(range(self.layout.gammas.start, self.layout.gammas.stop)):
            least = self.least(self.layout.random.index(self.layout.occasional[k]))
            low[entry] = max(low[entry], min(u[entry], math.log(least) - 0.5))
        found: Any = minimize(
            self.bounded(marginal),
            u,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": ITERATIONS, "ftol": 1e-10, "gtol": 1e-4},
        )
        return np.asarray(found.x)

    def bounded(self, marginal: Marginal) -> Callable[[Array], tuple[float, Array]]:
        """A likelihood whose infinite values are very large ones, which a line search can compare."""

        def value_and_gradient(u: Array) -> tuple[float, Array]:
            self.simulator.members.check()
            value, gradient = marginal.value_and_gradient(u)
            return (value, gradient) if math.isfinite(value) else (1e15, np.zeros(len(u)))

        return value_and_gradient

    def least(self, effect: int) -> float:
        """The sd of a random effect below which it is taken to be none."""
        name = self.layout.random[effect]
        j = self.layout.typical.index(name)
        unit = self.layout.units[j] if self.layout.linear(j) else 1.0
        return self.settings.least_omega * unit

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
        return _Search(population, layout, layout.to(values), self.seed, self.settings, self.deadline, self.executor)

    # --- the end ---

    def finish(self) -> None:
        """Go to the maximum on as many nodes as the error asks for."""
        for _ in range(self.settings.attempts):
            self.marginal, errors = self.integrator.integrated(self.u, self.settings.error)
            self.climb()
            integrals = self.marginal.integrals(self.u)
            after = [0.0 if found is None else self.error_of(i, found) for i, found in enumerate(integrals)]
            # Nodes around another place may be uneven at the maximum.
            if np.square(after).sum() < 4 * max((errors**2).sum(), (self.settings.error / 2) ** 2):
                break

    def climb(self) -> None:
        """Go to the maximum on the nodes that there are."""
        covariance = _inverse(self.information(self.marginal))
        for _ in range(self.settings.last_cycles):
            value, gradient = self.marginal.value_and_gradient(self.u)
            self.value = 2 * value
            if gradient @ covariance @ gradient < self.settings.gain:
                break
            self.cycles += 1
            self.u = self.maximised(self.marginal, self.u, self.settings.short)
            if self.layout.common:
                self.marginal = self.integrator.simulated(self.marginal, self.u)

    def answer(self) -> Estimated:
        """Return what is known where the search stands."""
        if not self.marginal.samples:
            raise DataError("the time limit was over before the pooled fit had ended; allow more than that")
        covariance = self.covariance()
        _, gradient = self.marginal.value_and_gradient(self.u)
        integrals = [found for found in self.marginal.integrals(self.u) if found is not None]
        return Estimated(
            self.population,
            self.layout,
            self.u,
            self.marginal,
            tuple(integrals),
            np.array([self.error_of(i, found) for i, found in enumerate(integrals)]),
            covariance,
            float(gradient @ covariance @ gradient),
            self.optimism(covariance),
            self.cycles,
            self.simulator.count,
            stopped=self.stopped,
        )

    def as_rival(self, removed: tuple[str, ...]) -> Rival:
        """Return the place where the search stands as another maximum than the best."""
        integrals = [found for found in self.marginal.integrals(self.u) if found is not None]
        errors = [self.error_of(i, found) for i, found in enumerate(integrals)]
        values = dict(zip(self.layout.names, self.layout.natural(self.u).tolist(), strict=True))
        return Rival(values, -2 * sum(one.log for one in integrals), 2 * float(np.linalg.norm(errors)), removed)

    def covariance(self) -> Array:
        """The covariance of u, or a rough one where the time is over."""
        try:
            if not self.stopped:
                return _inverse(self.information(self.marginal))
        except OutOfBudget as reason:
            self.stopped = str(reason)
        part = self.integrator.marginal([sample.of_shift(0) for sample in self.marginal.samples])
        return _inverse(self.information(part, again=False))

    def error_of(self, i: int, found: Integral) -> float:
        """The error of the logarithm of one subject's likelihood."""
        nodes = self.marginal.samples[i].nodes
        return self.integrator.grid_errors.get(i, math.inf) if nodes.is_grid else found.spread(nodes)

    def optimism(self, covariance: Array) -> float:
        """By how much -2 log L is expected to be too small, since it was minimised on nodes.

        If gradients err with the covariance V, the maximum on the nodes is above the exact likelihood there by
        tr(V H^-1)/2 and more than what would have been the maximum by as much.  V comes from the sequences of nodes.
        """
        rows = self.marginal.score_errors(self.u)
        return float(np.einsum("kja,ab,kjb->", rows, covariance, rows))

    def information(self, marginal: Marginal, again: bool = True) -> Array:
        """The observed information on u, from differences of exact gradients.

        By parameters without random effects predictions are linear on the nodes, so that the nodes are simulated again
        beside the maximum; those of one sequence are enough for that.
        """
        if self.layout.common and again:
            marginal = self.integrator.marginal([sample.of_shift(0) for sample in marginal.samples])
        size, u = len(self.u), self.u
        step = 1e-4
        rows = np.zeros((size, size))
        moving = np.abs(self.layout.moments(u).by_common).max(axis=(0, 1), initial=0.0) > 0
        for j in range(size):
            ends = []
            for sign in (1, -1):
                v = u.copy()
                v[j] += sign * step
                moves = again and j < len(moving) and moving[j]
                there = self.integrator.simulated(marginal, v) if moves else marginal
                ends.append(there.value_and_gradient(v)[1])
            rows[j] = (ends[0] - ends[1]) / (2 * step)
        return 0.5 * (rows + rows.T)


def _inverse(information: Array) -> Array:
    """The inverse on the directions that the data inform on."""
    values, vectors = np.linalg.eigh(information)
    kept = values > 1e-8 * max(float(values.max()), 1e-300)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)
