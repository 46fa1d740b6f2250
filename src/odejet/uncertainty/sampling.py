"""Sampling: draws of all unknowns from their posterior, by a sampler that follows exact gradients.

Unknowns have their priors; those without one are uniform within their bounds on the scale of the search (logarithmic
for what keeps its sign), and noise levels that are not known have Jeffreys' prior, integrated out.

What is sampled is w, on all numbers and about standard normal near the optimum:

    x = low + (high - low) sigmoid(v),    v = v0 + L w,    L L' = (information of v at the optimum)^-1

The sigmoid keeps x in its box, and L takes out sizes and correlations, so that a sampler has little left to learn.  The
sampler is WALNUTS (Bou-Rabee, Carpenter, Kleppe and Liu 2025), a NUTS whose steps adapt to the curvature on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.clock import now
from odejet.errors import ModelError
from odejet.extras import needed
from odejet.objective.objective import Objective, Scaled

WARMUP = 250
"""Iterations in which a chain learns its steps; the whitening leaves little to learn."""

ROUND = 250
"""Draws of each chain between looks at the clock and at what they are worth."""

MOST_ROUNDS = 80
"""Rounds after which more draws do not help."""

EDGE = 8.0
"""The largest |v| of a start: closer to a bound the sigmoid is flat."""

SPREAD = 1.0
"""Standard deviations by which starts of chains differ from the optimum, each in every direction."""

ATTEMPTS = 50
"""Draws of a start, of which one must have a likelihood."""

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Target:
    """The log-posterior as a function of w, with its gradient."""

    scaled: Scaled
    stated: np.ndarray  # entries with a prior: a density of the unknown itself
    low: np.ndarray
    width: np.ndarray
    centre: np.ndarray  # v at the optimum
    root: np.ndarray  # L

    @classmethod
    def at(cls, objective: Objective, optimum: np.ndarray) -> Target:
        """The target whitened at an optimum."""
        scaled = objective.scaled()
        low, high = scaled.bounds
        width = high - low
        share = np.clip((scaled.from_natural(optimum) - low) / width, 1e-12, 1 - 1e-12)
        centre = np.clip(np.log(share / (1 - share)), -EDGE, EDGE)
        x = low + width * _sigmoid(centre)
        slopes = width * _sigmoid(centre) * _sigmoid(-centre)
        information = slopes[:, None] * scaled.fisher(x) * slopes
        # What the uniform law on the box has of it: the curvature of log sigmoid'(v).
        information += np.diag(2 * _sigmoid(centre) * _sigmoid(-centre))
        root = np.linalg.inv(np.linalg.cholesky(information)).T
        return cls(scaled, objective.prior_entries, low, width, centre, root)

    def natural(self, w: np.ndarray) -> np.ndarray:
        """Return the unknowns for draws of w, one in each row."""
        v = self.centre + w @ self.root.T
        return self.scaled.to_natural(self.low + self.width * _sigmoid(v))

    def to_w(self, theta: np.ndarray) -> np.ndarray:
        """Return w for unknowns in the box."""
        share = np.clip((self.scaled.from_natural(theta) - self.low) / self.width, 1e-12, 1 - 1e-12)
        v = np.clip(np.log(share / (1 - share)), -EDGE, EDGE)
        return np.asarray(np.linalg.solve(self.root, v - self.centre))

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        v = self.centre + self.root @ w
        up, down = _sigmoid(v), _sigmoid(-v)
        x = self.low + self.width * up
        value, gradient = self.scaled.value_and_gradient(x)
        if not math.isfinite(value):
            return -math.inf, np.zeros(len(w))
        # log dx/dv = log width + log sigmoid(v) + log sigmoid(-v)
        with np.errstate(divide="ignore"):
            log_slope = float(np.log(up).sum() + np.log(down).sum())
        total = self.scaled.log_jacobian(x, self.stated) - value + log_slope
        by_x = self.scaled.log_jacobian_gradient(x, self.stated) - gradient
        by_v = by_x * self.width * up * down + (down - up)
        if not (math.isfinite(total) and np.isfinite(by_v).all()):
            return -math.inf, np.zeros(len(w))
        return total, by_v @ self.root


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws of w by chain, and how far they came."""

    chains: np.ndarray  # (chains, draws, unknowns), of the unknowns on their natural scale
    gradients: int
    stopped: bool  # whether the time was over before the draws were worth what was asked for


def drawn(
    objective: Objective,
    optima: Sequence[np.ndarray],
    enough: Callable[[np.ndarray], bool],
    chains: int,
    seed: int,
    time_limit: float,
    progress: Progress | None = None,
) -> Drawn:
    """Return draws of chains that begin around optima in turn, the best one first, until they are enough."""
    walnutpie = needed("walnutpie")
    end = now() + time_limit
    target = _Counted(Target.at(objective, optima[0]))
    rng = np.random.default_rng(seed)
    starts = [_start(target, target.target.to_w(optima[i % len(optima)]), rng) for i in range(chains)]
    sampler = _Sampler(walnutpie, target, seed)
    parts: list[list[np.ndarray]] = [[] for _ in range(chains)]
    known: list[Any] = [None] * chains
    for number in range(MOST_ROUNDS):
        for i in range(chains):
            found = sampler.run(starts[i], known[i], number * chains + i)
            known[i] = known[i] or found.warmup
            parts[i].append(np.array(found))
            starts[i] = parts[i][-1][-1]
            if number and now() > end:
                return _drawn(target, parts, True)
        whole = _drawn(target, parts, now() > end)
        if progress is not None:
            progress(min(1 - (end - now()) / time_limit, 1.0))
        if whole.stopped or enough(whole.chains):
            return whole
    return _drawn(target, parts, True)


def _drawn(target: _Counted, parts: list[list[np.ndarray]], stopped: bool) -> Drawn:
    """The draws that all chains have."""
    rows = [np.concatenate(own) for own in parts]
    least = min(map(len, rows))
    return Drawn(np.array([target.target.natural(own[:least]) for own in rows]), target.calls, stopped)


@dataclass(eq=False)
class _Counted:
    """A target that counts how often it is asked."""

    target: Target
    calls: int = 0

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self.calls += 1
        return self.target(w)


def _start(target: _Counted, centre: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A point around a centre that has a likelihood."""
    for attempt in range(ATTEMPTS):
        w = centre + SPREAD * 0.7**attempt * rng.normal(size=len(centre))
        if math.isfinite(target(w)[0]):
            return w
    if math.isfinite(target(centre)[0]):
        return centre
    raise ModelError("the model cannot be simulated around the optimum, so that there is nothing to draw from")


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Runs of one chain: the first with its warm-up, all others with what that has learnt."""

    walnutpie: Any
    target: _Counted
    seed: int

    def run(self, start: np.ndarray, known: Any, number: int) -> Any:
        warmup = WARMUP if known is None else 0
        learnt = {} if known is None else {"init_inv_metric": known.inv_metric, "step_size_init": float(known.stepsize)}
        (found,) = self.walnutpie.walnuts_pyfunc(
            self.target,
            inits=start[None],
            num_chains=1,
            seed=self.seed,
            id=1 + number,
            # As many iterations whatever they show: the same draws whenever the seed is the same.
            min_warmup_iter=warmup,
            max_warmup_iter=warmup,
            min_sampling_iter=ROUND,
            max_sampling_iter=ROUND,
            save_inv_metric=True,
            **learnt,
        )
        return found


def _sigmoid(v: np.ndarray) -> np.ndarray:
    return np.where(v >= 0, 1 / (1 + np.exp(-np.abs(v))), np.exp(-np.abs(v)) / (1 + np.exp(-np.abs(v))))
