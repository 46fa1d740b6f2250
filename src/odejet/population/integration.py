"""Integration: nodes that follow the posteriors of subjects, as many as an error asks for.

A grid serves where two rules agree.  Elsewhere nodes are drawn, in rounds: a mixture of normal laws is fitted to the
nodes of one round by their shares in the posterior, and the next is drawn from it, together with nodes of the
population that would meet what the mixture leaves out.  Rounds go on until nodes are about even and two rounds, whose
nodes are independent, agree.  How many nodes the end takes is planned from the spread of the last round; they are drawn
afresh, so that their own spread tells their error and nothing was chosen by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from odejet.population.curved import Curved
from odejet.population.layout import Layout, Moments
from odejet.population.marginal import Integral, Marginal, Sample, integrate
from odejet.population.modes import find_modes, scattered_starts
from odejet.population.nodes import SHIFTS, Mixture, Nodes, Normal, Proposal, drawn, grid, grid_size, mixture, whole
from odejet.population.simulating import Request, Simulator

Array = np.ndarray


@dataclass(frozen=True)
class Precision:
    """How nodes are chosen."""

    few: int = 64  # nodes per subject on the way, for up to two random effects; twice as many for each two more
    rounds: tuple[int, ...] = (16, 32, 64, 128, 256)  # nodes per sequence, for two effects; twice as many for one more
    least_rounds: int = 3
    even: float = 0.6  # the effective share of nodes above which laws follow a posterior well enough
    kept: float = 0.7  # of the evenness that all rounds led to, above which laws made elsewhere still serve
    agree: float = 4.0  # standard errors by which two rounds may differ
    uneven: float = 0.5  # the effective share below which one normal law does not follow a posterior on the way
    parts: int = 4  # of a mixture of normal laws
    curved: float = 0.4  # nodes from a curved law, beside those of the mixture
    wider: float = 0.2  # and from the same with larger sds, so that no weight in the tails is large
    times: float = 1.7  # by which they are larger
    of_population: float = 0.0625  # nodes from the law of the population, which would meet what all others leave out
    wide: float = 0.5  # in the first round
    rate: float = 0.65  # errors fall as this power of the number of nodes: between chance (1/2) and smoothness (1)
    attempts: int = 3  # to draw the last nodes of subjects whose error is much larger than planned
    large: float = 0.7  # such an error, beside that of all subjects together
    least: int = 32  # nodes per sequence in the end
    most: int = 8192
    nodes: int = 250_000  # of all subjects together; where these are too few, the error says so
    orders: tuple[int, ...] = (4, 5, 7, 9, 11, 15)  # of rules on grids, the last two of which must agree
    most_of_grid: int = 350  # nodes of a grid; where it would take more, nodes are drawn
    screened: int = 48  # draws from wide laws of the population, among which other modes of a subject are looked for
    widths: tuple[float, ...] = (1.0, 2.5)  # of these laws, in sds of the population
    looks: int = 5  # searches for a mode from the most probable of them
    of_modes: float = 0.1  # nodes around the modes of a subject that has several, so that none is lost
    least_effective: float = 6.0  # nodes of a posterior that tells where the next ones belong


PRECISION = Precision()
KNOWN = 0.7
"""What the variance among eight sequences tells of a subject's own, beside that among subjects."""

LEAST_OF_MODE = 0.03
"""The least share of nodes at first around a mode, beside those around the largest."""

FLOOR = 1e-4
"""Of the variance of a random effect: what is added to that of the nodes of a subject."""


@dataclass(frozen=True, eq=False)
class State:
    """What holds at u: means of subjects, parameters without effects, the factor of Omega, noise."""

    moments: Moments
    factor: Array
    noise: Array

    @classmethod
    def at(cls, layout: Layout, u: Array) -> State:
        return cls(layout.moments(u), layout.cholesky(u), layout.noise_values(u))

    def population(self, i: int) -> Normal:
        """The law of the population for a subject with its covariates."""
        return Normal(self.moments.means[i], self.factor)

    def integral(self, i: int, sample: Sample) -> Integral | None:
        return integrate(sample, self.moments.means[i], self.moments.common[i], self.factor, self.noise)

    @property
    def floor(self) -> Array:
        return FLOOR * np.diag(np.diag(self.factor @ self.factor.T))


@dataclass(eq=False)
class Integrator:
    """The subjects of a population with the laws that their nodes follow."""

    layout: Layout
    simulator: Simulator
    seed: int
    precision: Precision = PRECISION
    penalty: Callable[[Array], tuple[float, Array]] | None = None
    laws: list[Mixture] = field(default_factory=list)
    curves: dict[int, Curved] = field(default_factory=dict)
    modes: dict[int, Array] = field(default_factory=dict)  # places of those of subjects that have several
    around: dict[int, Mixture] = field(default_factory=dict)  # equal shares of normal laws around these at u
    banks: dict[int, Sample] = field(default_factory=dict)  # the nodes of the last round of a subject
    reached: dict[int, float] = field(default_factory=dict)  # evenness after all rounds, of those that stayed uneven
    grid_errors: dict[int, float] = field(default_factory=dict)  # of the logarithms on the grids last used
    _draws: int = 0

    @property
    def count(self) -> int:
        return len(self.simulator.members.subjects)

    def samples(self, which: Sequence[int], nodes: Sequence[Nodes], state: State, exact: bool = False) -> list[Sample]:
        """Simulate nodes of some subjects; on the way slopes by parameters without random effects are about right."""
        common = state.moments.common
        requests = [Request(i, own, common[i], exact) for i, own in zip(which, nodes, strict=True)]
        return list(self.simulator.samples(requests))

    def marginal(self, samples: Sequence[Sample]) -> Marginal:
        return Marginal(self.layout, samples, self.penalty)

    def simulated(self, marginal: Marginal, u: Array) -> Marginal:
        """Return the nodes simulated at other values of parameters without random effects."""
        everyone = range(self.count)
        nodes = [one.nodes for one in marginal.samples]
        return self.marginal(self.samples(everyone, nodes, State.at(self.layout, u), exact=True))

    # --- laws ---

    def adapt_to_modes(self, u: Array, which: Sequence[int]) -> None:
        """Let nodes of some subjects follow their modes: the one nearest to the typical subject, and known ones."""
        state = State.at(self.layout, u)
        if not self.laws:
            self.laws = [((1.0, state.population(i)),) for i in range(self.count)]
        for i in which:
            mean = state.moments.means[i][None]
            self._begin_at(i, np.concatenate([mean, self.modes[i]]) if i in self.modes else mean, state)

    def look_for_modes(self, u: Array) -> bool:
        """Look for modes that nodes of subjects may leave out, and tell if there are; laws of such begin anew."""
        state = State.at(self.layout, u)
        inverse, rng = _precision(state), np.random.default_rng([self.seed, 11])
        wide = np.repeat(self.precision.widths, self.precision.screened // len(self.precision.widths))[:, None]
        more = False
        for i in range(self.count):
            self.simulator.members.check()
            law, common = state.population(i), state.moments.common[i]
            draws = law.at(wide * rng.standard_normal((len(wide), self.layout.dimension)))
            subject = self.simulator.members.subjects[i]
            starts = scattered_starts(subject, draws, law.mean, common, inverse, state.noise, self.precision.looks)
            known = self.modes.get(i, np.array([whole(self.laws[i]).mean]))
            if self._begin_at(i, np.concatenate([known, starts]), state, only_if_more=True):
                more = True
                self.banks.pop(i, None)
                self.curves.pop(i, None)
                self.reached.pop(i, None)
        return more

    def _begin_at(self, i: int, starts: Array, state: State, only_if_more: bool = False) -> bool:
        """Let nodes of a subject lie around the modes that starts lead to; tell if there are more than were known."""
        self.simulator.members.check()
        found = self._modes(i, starts, state)
        more = len(found) > max(len(self.modes.get(i, ())), 1)
        if more:
            self.modes[i] = np.array([law.mean for _, law in found])
        if more or not only_if_more:
            self.laws[i] = tuple(found) or ((1.0, state.population(i)),)
        return more

    def _modes(self, i: int, starts: Array, state: State) -> list[tuple[float, Normal]]:
        """The modes of a subject that starts lead to, as normal laws with their shares of the posterior."""
        subject, common = self.simulator.members.subjects[i], state.moments.common[i]
        found = find_modes(subject, starts, state.moments.means[i], common, _precision(state), state.noise)
        logs = np.array([mode.log_share for mode in found])
        shares = np.maximum(np.exp(logs - logs.max(initial=-math.inf)), LEAST_OF_MODE)
        laws = [Normal.of(mode.x, np.linalg.inv(mode.curvature)) for mode in found]
        return list(zip((shares / shares.sum()).tolist(), laws, strict=True))

    def _keep_modes(self, state: State) -> None:
        """Let laws around the modes of subjects that have several follow u."""
        for i, places in self.modes.items():
            self.simulator.members.check()
            if found := self._modes(i, places, state):
                self.around[i] = tuple((1 / len(found), law) for _, law in found)

    def _kept(self, i: int) -> Mixture:
        """Laws around known modes, so that none loses all nodes."""
        return tuple((self.precision.of_modes * share, law) for share, law in self.around.get(i, ()))

    def few(self, u: Array) -> Marginal:
        """Return the likelihood on few nodes per subject, the same numbers behind them every time."""
        state = State.at(self.layout, u)
        count = self.precision.few << (self.layout.dimension - 1) // 2
        share = self.precision.of_population
        self._keep_modes(state)
        nodes = [
            drawn(count, [*self.laws[i], *self._kept(i), (2 * share, state.population(i))], (self.seed, i), 1)
            for i in range(self.count)
        ]
        return self.marginal(self.samples(range(self.count), nodes, state))

    def follow(self, marginal: Marginal, u: Array) -> None:
        """Let the laws of nodes follow the posteriors at u."""
        state, lost = State.at(self.layout, u), []
        for i, (sample, found) in enumerate(zip(marginal.samples, marginal.integrals(u), strict=True)):
            if not self._followed(i, sample, found, state):
                lost.append(i)
        if lost:
            self.adapt_to_modes(u, lost)

    def _followed(self, i: int, sample: Sample, found: Integral | None, state: State) -> bool:
        """Fit the laws of a subject to its nodes; tell if there were enough with any weight."""
        on_grid = sample.nodes.is_grid
        if found is None or (found.effective() < self.precision.least_effective and not on_grid):
            return False
        # Nodes of a mixture are even because it has several parts.
        plain = len(self.laws[i]) == 1 and found.evenness() > self.precision.uneven
        most = 1 if on_grid or plain else self.precision.parts
        self.laws[i] = mixture(sample.nodes.x, found.shares, state.floor, most)
        return True

    # --- many nodes ---

    def settled(self, u: Array, error: float) -> Marginal:
        """Return the likelihood on the nodes by which laws follow the posteriors."""
        _, samples, _ = self._adapted(u, error)
        return self.marginal([samples[i] if i in samples else self.banks[i] for i in range(self.count)])

    def integrated(self, u: Array, error: float) -> tuple[Marginal, Array]:
        """Return the likelihood on as many nodes as an error of -2 log L asks for, with the error of every subject."""
        state, samples, drawn_for = self._adapted(u, error)
        if self.layout.common:
            grids = self.samples(list(samples), [one.nodes for one in samples.values()], state, exact=True)
            samples = dict(zip(samples, grids, strict=True))
        errors = np.array([self.grid_errors.get(i, math.inf) for i in range(self.count)])
        goal, left = self._share(error), drawn_for
        for _ in range(self.precision.attempts):
            for i, sample in zip(left, self._planned(left, state, goal), strict=True):
                samples[i] = sample
                found = state.integral(i, sample)
                errors[i] = math.inf if found is None else found.spread(sample.nodes)
                if found is not None and found.effective() > self.precision.least_effective:
                    # The next nodes, if there are any, follow these.
                    self.banks[i] = sample
            # Laws that leave out a tail show it by a few large weights.
            left = [i for i in drawn_for if errors[i] > self.precision.large * goal * math.sqrt(self.count)]
            for i in left:
                found = state.integral(i, samples[i])
                if found is not None and found.effective() > self.precision.least_effective:
                    self._follow_closely(i, samples[i], found, state)
            if not left or (errors**2).sum() < self.count * goal**2:
                break
        return self.marginal([samples[i] for i in range(self.count)]), errors

    def _share(self, error: float) -> float:
        """The error of the logarithm of one subject's likelihood that makes an error of -2 log L of all."""
        return error / 2 / math.sqrt(self.count)

    def _adapted(self, u: Array, error: float) -> tuple[State, dict[int, Sample], list[int]]:
        """What holds at u, the nodes of subjects that a grid serves, and the others, whose laws are made to follow."""
        state = State.at(self.layout, u)
        self._keep_modes(state)
        goal = self._share(error)
        samples, self.grid_errors = self._on_grids(state, goal)
        others = [i for i in range(self.count) if i not in samples]
        new = [i for i in others if not self._is_adapted(i, state, goal)]
        self._adapt(u, state, new, goal)
        if self.layout.common:
            # Predictions that follow slopes are not to be carried far.
            kept = sorted({*others} - {*new})
            self.banks.update(zip(kept, self.samples(kept, [self.banks[i].nodes for i in kept], state), strict=True))
        return state, samples, others

    def _on_grids(self, state: State, goal: float) -> tuple[dict[int, Sample], dict[int, float]]:
        """The nodes of rules that agree with those before them, for subjects that have one."""
        effects, largest = self.layout.dimension, self.precision.most_of_grid
        orders = [one for one in self.precision.orders if grid_size(one, effects) <= largest]
        kept, errors = dict[int, Sample](), dict[int, float]()
        before = np.full(self.count, math.nan)
        # One rule alone tells nothing of its error.
        for order in orders if len(orders) > 1 else ():
            which = [i for i in range(self.count) if i not in kept and not self._is_long(i)]
            for i, sample in zip(
                which, self.samples(which, [grid(order, whole(self.laws[i])) for i in which], state), strict=True
            ):
                found = state.integral(i, sample)
                value = math.nan if found is None else found.log
                if abs(value - before[i]) < goal:
                    kept[i], errors[i] = sample, abs(value - before[i])
                before[i] = value
        return kept, errors

    def _is_long(self, i: int) -> bool:
        """Tell a subject whose posterior is known to be no normal law."""
        return i in self.banks or i in self.modes

    def _is_adapted(self, i: int, state: State, goal: float) -> bool:
        """Tell if the laws of a subject, made at another u, still serve."""
        if i not in self.banks:
            return False
        found = state.integral(i, self.banks[i])
        if found is None:
            return False
        # Where all rounds left nodes uneven, others would too.
        even = min(self.precision.even, self.precision.kept * self.reached.get(i, math.inf))
        return found.evenness() > even or found.spread(self.banks[i].nodes) < goal

    def _adapt(self, u: Array, state: State, which: Sequence[int], goal: float) -> None:
        """Draw nodes in rounds until they follow the posteriors of these subjects, or have an error below the goal."""
        doubled = max(self.layout.dimension - 2, 0)
        left, known = list(which), dict[int, tuple[float, float]]()
        for i in which:
            self.reached.pop(i, None)
        for number, count in enumerate(self.precision.rounds, 1):
            if not left:
                return
            nodes = [drawn(count << doubled, self._proposal(i, state), self._new_seed(i)) for i in left]
            samples = self.samples(left, nodes, state)
            for i, sample in zip(list(left), samples, strict=True):
                found = state.integral(i, sample)
                self.banks[i] = sample
                if found is None or found.effective() < self.precision.least_effective:
                    self.adapt_to_modes(u, [i])
                    continue
                self._follow_closely(i, sample, found, state)
                log, spread = known.get(i, (math.inf, 0.0))
                known[i] = found.log, found.spread(sample.nodes)
                agrees = abs(found.log - log) < self.precision.agree * math.hypot(spread, known[i][1])
                even = found.evenness() > self.precision.even and number >= self.precision.least_rounds
                if agrees and (even or known[i][1] < goal):
                    left.remove(i)
                elif number == len(self.precision.rounds):
                    self.reached[i] = found.evenness()

    def _follow_closely(self, i: int, sample: Sample, found: Integral, state: State) -> None:
        x, spread = sample.nodes.x, np.sqrt((state.factor**2).sum(axis=1))
        self.laws[i] = mixture(x, found.shares, state.floor, self.precision.parts)
        self.curves[i] = Curved.following(x, found.shares, spread)

    def _proposal(self, i: int, state: State) -> Proposal:
        """The laws that nodes of a subject are drawn from."""
        precision, population = self.precision, state.population(i)
        if i not in self.curves:
            return [*self.laws[i], *self._kept(i), (precision.wide, population)]
        curve, left = self.curves[i], 1 - precision.curved - precision.wider
        return [
            *((left * share, law) for share, law in self.laws[i]),
            (precision.curved, curve),
            (precision.wider, curve.wider(precision.times)),
            *self._kept(i),
            (precision.of_population, population),
        ]

    def _new_seed(self, i: int) -> tuple[int, ...]:
        """A seed that nothing was drawn with before."""
        self._draws += 1
        return self.seed, i, self._draws

    def _planned(self, which: Sequence[int], state: State, goal: float) -> list[Sample]:
        """Fresh nodes of subjects, so many that each should have this error."""
        spreads = {i: self._spread(i, state) for i in which}
        usual = float(np.median([s**2 for s in spreads.values()])) if spreads else 0.0
        # The error of a subject at one node per sequence.
        single = np.array(
            [
                math.sqrt(KNOWN * spreads[i] ** 2 + (1 - KNOWN) * usual)
                * (len(self.banks[i].nodes.x) / SHIFTS) ** self.precision.rate
                for i in which
            ]
        )
        sizes = self._sizes(np.where(np.isfinite(single), single, 1e3), len(which) * goal**2)
        nodes = [drawn(size, self._proposal(i, state), self._new_seed(i)) for i, size in zip(which, sizes, strict=True)]
        return self.samples(which, nodes, state, exact=True)

    def _sizes(self, single: Array, goal: float) -> list[int]:
        """The fewest nodes per sequence, powers of two, that should have this sum of squared errors."""
        precision, rate = self.precision, self.precision.rate
        # Lagrange: the gain of one more node is the same for all.
        shape = single ** (2 / (1 + 2 * rate))
        errors = (single**2 / shape ** (2 * rate)).sum()
        times = (errors / goal) ** (1 / (2 * rate)) if len(single) else 0.0
        while True:
            wanted = np.log2(np.maximum(times * shape, 1.0))
            sizes = [min(max(1 << round(w), precision.least), precision.most) for w in wanted]
            if sum(sizes) * SHIFTS <= precision.nodes or max(sizes) == precision.least:
                return sizes
            times *= 0.8

    def _spread(self, i: int, state: State) -> float:
        found = state.integral(i, self.banks[i])
        return math.inf if found is None else found.spread(self.banks[i].nodes)


def _precision(state: State) -> Array:
    """The inverse of Omega."""
    return np.asarray(np.linalg.inv(state.factor @ state.factor.T))
