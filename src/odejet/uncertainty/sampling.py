"""Sampling: draws of all unknowns from their posterior, by a sampler that follows exact gradients.

Unknowns have their priors; those without one are uniform within their bounds on the scale of the search (logarithmic
for what keeps its sign), and noise levels that are not known have Jeffreys' prior, integrated out.

What is sampled is w, on all numbers and about standard normal:

    x = low + (high - low) sigmoid(v),    v = v0 + L bent(w),    L L' = covariance of v

The sigmoid keeps x in its box, L takes out sizes and correlations, and `bending` what is left of parabolas, so that a
sampler has little left to learn.  Every optimum has chains of its own.  For a first short run L is that of the
curvature there, after it all are those of draws.
The sampler is WALNUTS (Bou-Rabee, Carpenter, Kleppe and Liu 2025), a NUTS whose steps adapt to the curvature.

Where w is nearly standard normal, a draw of Student's t is a good proposal from anywhere, and costs one simulation
without derivatives, not a dozen with them.  Then most transitions of a chain are such independent proposals, accepted
by the rule of Metropolis and Hastings; those of WALNUTS in between keep it moving wherever proposals are bad.  Both
leave the posterior as it is, and so does their sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from odejet.clock import now
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.objective.objective import Objective
from odejet.uncertainty import effective
from odejet.uncertainty.bending import Bending

WARMUP, PILOTS = 50, (30, 100, 300)
"""Iterations in which the first chain of an optimum learns steps for all of them, and draws of each chain, three times,
that only show their covariance: by WALNUTS, then with independent proposals."""

SHOWN, LONGEST_PILOT, LEAST_DRAWS = 150.0, 1200, 10
"""Effective draws that the last of these runs must have, or one twice as long follows, up to so many draws; of fewer
than the last nothing can be said."""

AGAIN, FIRMNESS = 15, 50.0
"""Iterations in which steps are learnt where the target is white already, and draws that its unit metric counts
for: little is left to learn.  With 50 iterations a time, two thirds of all gradients of a small model went there."""

SHRINKAGE = 5
"""Draws, beside one for each unknown, that the covariance before counts for."""

FIRST_ROUND, GROWTH = 100, 0.25
"""Draws of each chain before the first look at what they are worth, and their part of all draws between later looks."""

MOST_DRAWS = 50_000
"""Of a chain: beyond, more do not help."""

EDGE = 8.0
"""The largest |v| of a start: closer to a bound the sigmoid is flat."""

LEAST_CURVATURE = 0.1
"""Of v in any direction: the law of v within bounds alone has a curvature of up to a half."""

SPREAD = 1.0
"""Standard deviations by which starts of chains differ from the optimum, each in every direction."""

CLIMBS, HIGHER = 60, 0.5
"""Steps of a search for the mode of w, and how much higher it must be than at the optimum to begin there."""

ATTEMPTS = 50
"""Draws of a start, of which one must have a likelihood."""

ENERGY_ERROR = 2.0
"""That a step may have before it is halved.  Gradients for an effective draw, on Lotka-Volterra and on a normal law of
eight unknowns: 22 and 18 at the sampler's own 0.5, 15 and 12 at 1, 14 and 12 at 2."""

BLOCK, FOLLOWED = 80, 1
"""Draws of a chain of which so many come from WALNUTS, where others are proposed independently."""

ACCEPTED, TRIED = 0.1, 50
"""The least part of independent proposals that must be accepted for any to be made, and how many of each chain tell.
A trajectory takes about as long as 15 proposals and is worth about 0.6 draws, proposals accepted at a rate a about
a / (2 - a) each."""

FREEDOM = 6.0
"""Degrees of freedom of the law of proposals: its tails are heavier than those of most posteriors."""


@dataclass(frozen=True, eq=False)
class Target:
    """The log-posterior as a function of w, with its gradient."""

    objective: Objective
    stated: np.ndarray  # which entries have a prior: a density of the unknown itself
    low: np.ndarray
    width: np.ndarray
    centre: np.ndarray  # v where w is zero
    root: np.ndarray  # L
    bending: Bending

    @classmethod
    def at(cls, objective: Objective, optimum: np.ndarray) -> Target:
        """The target whitened by the curvature at an optimum."""
        scaled, plain = objective.scaled(), cls.plain(objective)
        low, width = plain.low, plain.width
        share = np.clip((scaled.from_natural(optimum) - low) / width, 1e-12, 1 - 1e-12)
        centre = np.clip(np.log(share / (1 - share)), -EDGE, EDGE)
        x = low + width * expit(centre)
        slopes = width * expit(centre) * expit(-centre)
        information = slopes[:, None] * scaled.fisher(x) * slopes
        # What the uniform law on the box has of it: the curvature of log sigmoid'(v).
        information += np.diag(2 * expit(centre) * expit(-centre))
        return replace(plain, centre=centre, root=_inverse_root(information))

    @classmethod
    def plain(cls, objective: Objective) -> Target:
        """The target of v itself."""
        low, high = objective.scaled().bounds
        stated = np.zeros(len(low), dtype=bool)
        stated[objective.prior_entries] = True
        return cls(objective, stated, low, high - low, np.zeros(len(low)), np.eye(len(low)), Bending.none(len(low)))

    def rewhitened(self, v: np.ndarray) -> Target:
        """The target whitened, and straightened, by draws of v."""
        few = SHRINKAGE + v.shape[1]
        known = self.root * self.bending.spread
        covariance = (len(v) * np.cov(v.T, bias=True).reshape(v.shape[1], -1) + few * known @ known.T) / (len(v) + few)
        sizes, directions = np.linalg.eigh(covariance)
        # The widest direction first: it bends the others.
        root = (directions * np.sqrt(np.maximum(sizes, 1e-300)))[:, ::-1]
        centre = v.mean(axis=0)
        return replace(self, centre=centre, root=root, bending=Bending.of(np.linalg.solve(root, (v - centre).T).T))

    def v(self, w: np.ndarray) -> np.ndarray:
        return self.centre + self.bending.to_w(w) @ self.root.T

    def w(self, v: np.ndarray) -> np.ndarray:
        return self.bending.to_u(np.asarray(np.linalg.solve(self.root, (v - self.centre).T).T))

    def natural(self, v: np.ndarray) -> np.ndarray:
        """Return the unknowns for draws of v, one in each row."""
        return self.objective.coordinates.back(self.low + self.width * expit(v))

    def to_w(self, theta: np.ndarray) -> np.ndarray:
        """Return w for unknowns in the box."""
        share = np.clip((self.objective.scaled().from_natural(theta) - self.low) / self.width, 1e-12, 1 - 1e-12)
        return self.w(np.clip(np.log(share / (1 - share)), -EDGE, EDGE))

    def log_density(self, w: np.ndarray) -> float:
        """Return the logarithm of the density of w, up to a constant."""
        v = self.v(w)
        up, scale = expit(v), self.objective.coordinates
        theta = scale.back(self.low + self.width * up)
        with np.errstate(divide="ignore"):
            bent = np.log(np.where(self.stated, scale.slopes(theta), 1.0) * up * expit(-v))
        return float(bent.sum()) - self.objective.value(theta)

    def log_densities(self, w: np.ndarray, until: float = math.inf) -> np.ndarray:
        """Return the logarithm of the density of every row of w; NaN for those that are not looked at in time."""
        up, scale = expit(self.v(w)), self.objective.coordinates
        theta = scale.back(self.low + self.width * up)
        with np.errstate(divide="ignore"):
            bent = np.log(np.where(self.stated, scale.slopes(theta), 1.0) * up * (1 - up))
        return np.asarray(bent.sum(axis=1) - self.objective.values(theta, until))

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        scale = self.objective.coordinates
        v = self.v(w)
        up, down = expit(v), expit(-v)
        theta = scale.back(self.low + self.width * up)
        value, by_theta = self.objective.value_and_gradient(theta)
        if value == math.inf:
            return -math.inf, np.zeros(len(w))
        slopes = scale.slopes(theta)
        # The density of v: that of x has dx/dv = width up down, and where a prior is one of theta, dtheta/dx too.
        with np.errstate(divide="ignore"):
            total = float(np.log(np.where(self.stated, slopes, 1.0) * up * down).sum()) - value
        # d log cosh(x) = tanh(x) on the scale of asinh; log |theta| is x itself, or -x, on that of logarithms.
        bent = np.where(scale.signs == 0, theta / slopes, scale.signs)
        by_x = np.where(self.stated, bent, 0.0) - by_theta * slopes
        gradient = self.bending.gradient(w, (by_x * self.width * up * down + (down - up)) @ self.root)
        if not math.isfinite(total + float(gradient.sum())):
            return -math.inf, np.zeros(len(w))
        return total, gradient


def _inverse_root(information: np.ndarray) -> np.ndarray:
    """L with L L' the inverse of an information, which is at least a little in every direction."""
    known, directions = np.linalg.eigh(0.5 * (information + information.T))
    return np.asarray(directions / np.sqrt(np.maximum(known, LEAST_CURVATURE)))


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws by chain, on the natural scale, and how they came about."""

    chains: np.ndarray  # (chains, draws, unknowns)
    places: np.ndarray  # the same as v, on all numbers
    origins: tuple[int, ...]  # the optimum from which each chain began
    gradients: int
    failures: int  # points at which there was no likelihood
    stuck: int  # the most draws in a row that are the same
    stopped: bool  # whether the time was over before the draws were enough


def drawn(
    objective: Objective,
    optima: Sequence[np.ndarray],
    enough: Callable[[Drawn], bool],
    chains: int,
    seed: int,
    time_limit: float,
    note: Callable[[str], object] | None = None,
) -> Drawn:
    """Return draws of chains that begin around optima, until they are enough; each optimum has two at least."""
    walnutpie, end = needed("walnutpie"), now() + time_limit
    rng = np.random.default_rng(seed)
    count = max(chains, 2 * len(optima)) if len(optima) > 1 else chains
    counted = [_Counted(_at_mode(objective, optimum, end), end) for optimum in optima]
    runs = [_Chain(walnutpie, counted[i % len(optima)], i % len(optima), seed, i) for i in range(count)]
    for chain in runs:
        chain.begin(_start(chain.counted, rng))
    for i, own in enumerate(counted):
        _pilot(own, [chain for chain in runs if chain.origin == i])
    while True:
        length = len(runs[0].draws)
        for chain in runs:
            chain.run(max(FIRST_ROUND, int(GROWTH * length)))
        late = now() > end
        whole = _together(counted, runs, late)
        if note is not None:
            note(f"{whole.places.shape[0] * whole.places.shape[1]:,} so far")
        if late or enough(whole):
            return whole
        if len(runs[0].draws) >= MOST_DRAWS:
            return replace(whole, stopped=True)


def _pilot(counted: _Counted, chains: Sequence[_Chain]) -> None:
    """Learn from draws that are not kept how the target is to be whitened, and what steps and proposals are worth."""
    _tune(counted, chains)
    lengths = list(PILOTS)
    for length in lengths:
        if length > PILOTS[1] and not counted.proposing:
            return  # draws by trajectories alone are too dear to throw away
        for chain in chains:
            chain.run(length)
        if length == lengths[-1] < LONGEST_PILOT and _worth(chains) < SHOWN:
            lengths.append(2 * length)
        # The first draws of a chain still show where it began.
        v = np.concatenate([chain.draws[len(chain.draws) // 4 :] for chain in chains])
        if len(v) > 2 * len(counted.target.centre):
            counted.target, counted.whitened = counted.target.rewhitened(v), True
        for chain in chains:
            chain.begin(chain.place)
        _tune(counted, chains)


def _worth(chains: Sequence[_Chain]) -> float:
    """The least effective number of draws of the unknowns."""
    least = min(len(chain.draws) for chain in chains)
    draws = np.array([chain.draws[:least] for chain in chains])
    return min((effective.bulk(one) for one in draws.T.swapaxes(1, 2)), default=0.0) if least > LEAST_DRAWS else 0.0


def _tune(counted: _Counted, chains: Sequence[_Chain]) -> None:
    """Try independent proposals, and learn the steps of trajectories."""
    counted.proposing = float(np.mean([chain.trial() for chain in chains])) >= ACCEPTED
    chains[0].follow(1)
    for chain in chains:
        chain.learnt = chains[0].learnt
    chains[0].parts = []


def _together(counted: Sequence[_Counted], runs: Sequence[_Chain], late: bool) -> Drawn:
    """The draws that all chains have."""
    least = min(len(chain.draws) for chain in runs)
    places = np.array([chain.draws[:least] for chain in runs])
    return Drawn(
        counted[0].target.natural(places.reshape(-1, places.shape[2])).reshape(places.shape),
        places,
        tuple(chain.origin for chain in runs),
        sum(own.calls for own in counted),
        sum(own.failures for own in counted),
        max(map(_longest, places)),
        late,
    )


@dataclass(eq=False)
class _Counted:
    """A target that counts how often it is asked, and refuses when the time is over: no chain moves on then."""

    target: Target
    end: float
    calls: int = 0
    failures: int = 0
    whitened: bool = False  # by draws
    proposing: bool = False  # whether independent proposals are worth their time

    def values(self, w: np.ndarray) -> np.ndarray:
        """Return the log-density of every row without its gradient, of as many as there is time for."""
        found = self.target.log_densities(w, self.end)
        seen = found[: int(np.argmax(np.isnan(found)))] if np.isnan(found).any() else found
        return np.where(np.isfinite(seen), seen, -math.inf)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        if now() > self.end:
            return -math.inf, np.zeros(len(w))
        self.calls += 1
        value, gradient = self.target(w)
        self.failures += value == -math.inf
        return value, gradient


def _at_mode(objective: Objective, optimum: np.ndarray, end: float) -> Target:
    """The target whitened where the density of w has its mode next to an optimum.

    That of the unknowns may have it on a bound, as that of a scale that few data tell has: there nothing is known of
    the law, and a chain that begins there comes away slowly.
    """
    target = Target.at(objective, optimum)
    size = len(optimum)

    def downhill(w: np.ndarray) -> tuple[float, np.ndarray]:
        if now() > end:
            return 0.0, np.zeros(size)  # it ends here
        value, gradient = target(w)
        return (-value, -gradient) if math.isfinite(value) else (1e300, np.zeros(size))

    level = target(np.zeros(size))[0]
    if not math.isfinite(level):
        return target
    found = minimize(downhill, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": CLIMBS})
    if not -float(found.fun) > level + HIGHER or now() > end:
        return target
    return Target.at(objective, target.natural(target.v(found.x)))


def _start(counted: _Counted, rng: np.random.Generator) -> np.ndarray:
    """A point around the centre of a target that has a likelihood, as v."""
    target, size = counted.target, len(counted.target.centre)
    for attempt in range(ATTEMPTS):
        w = SPREAD * 0.7**attempt * rng.normal(size=size)
        if math.isfinite(target(w)[0]):
            return target.v(w)
    if math.isfinite(target(np.zeros(size))[0]):
        return target.centre.copy()
    raise ModelError("the model cannot be simulated around the optimum, so that there is nothing to draw from")


@dataclass(eq=False)
class _Chain:
    """One chain: the first run with its warm-up, all others with what that has learnt."""

    walnutpie: Any
    counted: _Counted
    origin: int
    seed: int
    number: int
    runs: int = 0
    learnt: dict[str, Any] = field(default_factory=dict)
    place: np.ndarray = field(default_factory=lambda: np.empty(0))  # v
    parts: list[np.ndarray] = field(default_factory=list)

    @property
    def draws(self) -> np.ndarray:
        """All draws as v."""
        self.parts = [np.concatenate(self.parts)] if self.parts else [self.place[None][:0]]
        return self.parts[0]

    def begin(self, place: np.ndarray) -> None:
        """Begin anew from v."""
        self.place, self.learnt, self.parts = place, {}, []

    @property
    def is_late(self) -> bool:
        return now() > self.counted.end

    def trial(self) -> float:
        """Return the part of independent proposals that are accepted from here."""
        draws = self._proposed(TRIED) if not self.is_late else self.place[None]
        self.place = draws[-1]
        return float((draws[1:] != draws[:-1]).any(axis=1).mean()) if len(draws) > 1 else 0.0

    def _proposed(self, length: int) -> np.ndarray:
        """Return draws by independent proposals, fewer where the time is over."""
        counted, rng = self.counted, np.random.default_rng([self.seed, self.number, self.runs, 1])
        self.runs += 1
        w, size = counted.target.w(self.place), len(self.place)
        mixed = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=length))
        steps, chances = rng.normal(size=(length, size)) * mixed[:, None], np.log(rng.uniform(size=length))
        # Proposals know nothing of each other: all are looked at together.
        places = np.vstack([w, steps])
        worth = counted.values(places)
        worth -= _log_proposal(places[: len(worth)])
        if len(worth) < 2:
            return self.place[None]
        chosen, at = np.zeros(len(worth), dtype=int), 0
        for i, chance in enumerate(chances[: len(worth) - 1].tolist(), 1):
            if chance < worth[i] - worth[at]:
                at = i
            chosen[i] = at
        found: np.ndarray = counted.target.v(places[chosen[1:]])
        return found

    def run(self, length: int) -> None:
        """Draw on, in turns with independent proposals where these are worth their time."""
        if not (self.counted.proposing and self.learnt):
            return self.follow(length)
        for _ in range(-(-length // BLOCK)):
            self.follow(FOLLOWED)
            if self.is_late:
                return None
            self.parts.append(self._proposed(BLOCK - FOLLOWED))
            self.place = self.parts[-1][-1]
        return None

    def follow(self, length: int) -> None:
        """Draw on by WALNUTS; less where the time is over, and nothing but the place where it was over before."""
        try:
            draws = self.place[None] if self.is_late else self._run(length)
        except ValueError:  # steps become too short for a number where no chain moves
            if not self.is_late:
                raise
            draws = self.place[None]
        if self.is_late:
            draws = draws[: _moving(draws)]
        self.parts.append(draws)
        self.place = draws[-1]

    def _run(self, length: int) -> np.ndarray:
        # What is white already, as draws or proposals have shown, has its metric.
        white = self.counted.whitened or self.counted.proposing
        warmup, target = (0 if self.learnt else AGAIN if white else WARMUP), self.counted.target
        known = self.learnt or {"init_inv_metric": np.ones(len(self.place)), "mass_init_count": FIRMNESS}
        self.runs += 1
        (found,) = self.walnutpie.walnuts_pyfunc(
            self.counted,
            inits=target.w(self.place)[None],
            num_chains=1,
            seed=self.seed,
            id=1 + self.number + 1000 * self.runs,
            max_hamiltonian_error=ENERGY_ERROR,
            # As many iterations whatever they show: the same draws whenever the seed is the same.
            min_warmup_iter=warmup,
            max_warmup_iter=warmup,
            min_sampling_iter=length,
            max_sampling_iter=length,
            save_inv_metric=True,
            **(known if self.learnt or white else {}),
        )
        if warmup:
            learnt = found.warmup
            self.learnt = {"init_inv_metric": learnt.inv_metric, "step_size_init": float(learnt.stepsize)}
        return target.v(np.array(found))


def _log_proposal(w: np.ndarray) -> np.ndarray:
    """The logarithm of the density of a multivariate t at every row, up to a constant."""
    return np.asarray(-0.5 * (FREEDOM + w.shape[1]) * np.log1p((w * w).sum(axis=1) / FREEDOM))


def _longest(draws: np.ndarray) -> int:
    """The most draws in a row that are the same."""
    ends = np.flatnonzero(np.append((draws[1:] != draws[:-1]).any(axis=1), True))
    return int(np.diff(ends, prepend=-1).max())


def _moving(draws: np.ndarray) -> int:
    """How many draws there are until none moves any more, one at least."""
    moves = np.flatnonzero((draws[1:] != draws[:-1]).any(axis=1))
    return 1 if not len(moves) else int(moves[-1]) + 2
