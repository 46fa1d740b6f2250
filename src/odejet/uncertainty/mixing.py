"""Mixing: whether chains have come to one law, how many draws they are worth, and what is to be said against them.

Chains are judged by R-hat and by effective numbers of draws (see `effective`).  Chains that stay at different optima
cannot tell how probable these are; the normal law with the mean and covariance of each group of chains gives the order
of magnitude, and chains at an optimum without a share worth mentioning are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from odejet.objective.objective import Objective
from odejet.uncertainty import effective
from odejet.uncertainty.sampling import BLOCK, Drawn, Target

RHAT = 1.01
"""Above this chains have not come to the same law."""

CHEAP_RHAT = 1.05
"""Above this, by a quick estimate, the exact one need not be asked for."""

NEGLIGIBLE = 1e-3
"""The share of the probability below which the chains at an optimum are left out."""

WEIGHED = 100
"""Draws by which the probability of a group of chains is estimated."""

FAILED, STUCK = 0.05, 3 * BLOCK
"""The part of evaluations without a likelihood, and the draws in a row that do not move, from which on a sentence says
so."""

FEWEST = 4
"""Draws of a chain, below which nothing can be said of it."""


def statistics(draws: np.ndarray) -> dict[str, float]:
    """Return mean, sd, quantiles, R-hat, effective draws and error of the mean of draws by chain."""
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975])
    worth = {"R-hat": math.nan, "ESS bulk": math.nan, "ESS tail": math.nan, "MCSE": math.nan}
    if draws.shape[1] >= FEWEST:
        worth = {
            "R-hat": effective.rhat(draws),
            "ESS bulk": effective.bulk(draws),
            "ESS tail": effective.tail(draws),
            "MCSE": float(draws.std(ddof=1) / math.sqrt(effective.mean(draws))),
        }
    spread = float(draws.std(ddof=1)) if draws.size > 1 else math.nan
    return {
        "mean": float(draws.mean()),
        "sd": spread,
        "2.5 %": float(low),
        "median": float(middle),
        "97.5 %": float(high),
        **worth,
    }


def is_enough(found: Drawn, ess: float) -> bool:
    """Whether all unknowns have so many effective draws in chains that agree, or in those of every optimum if chains
    do not move between these."""
    if _is_mixed(found.places, ess):
        return True
    groups = _groups(found)
    return len(groups) > 1 and all(_is_mixed(found.places[own], ess) for own in groups.values())


def _is_mixed(chains: np.ndarray, ess: float) -> bool:
    if chains.shape[0] > 1 and _cheap_rhat(chains) > CHEAP_RHAT:
        return False
    for i in range(chains.shape[2]):
        draws = chains[:, :, i]
        if not (effective.tail(draws) >= ess and effective.bulk(draws) >= ess and effective.rhat(draws) <= RHAT):
            return False
    return True


def _cheap_rhat(chains: np.ndarray) -> float:
    """The largest plain R-hat of all unknowns."""
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    return float(np.sqrt(1 + between / np.maximum(within, 1e-300)).max())


def _groups(found: Drawn) -> dict[int, np.ndarray]:
    """The chains that began from each optimum."""
    origins = np.array(found.origins)
    return {int(i): np.flatnonzero(origins == i) for i in np.unique(origins)}


# --- several optima ---


def settled(found: Drawn, objective: Objective) -> tuple[Drawn, list[str]]:
    """Return the draws without chains at optima that have no share worth mentioning, and what is to be said of chains
    that stay at different optima."""
    groups = _groups(found)
    if len(groups) < 2 or found.places.shape[1] < FEWEST or not _is_apart(found.places):
        return found, []
    shares = _shares(found, groups, objective)
    kept = {i: own for i, own in groups.items() if shares[i] >= NEGLIGIBLE}
    said = []
    if len(kept) < len(groups):
        number = len(groups) - len(kept)
        said.append(
            f"chains from {number} other {'optimum' if number == 1 else 'optima'} stayed where there is less than "
            f"{NEGLIGIBLE:g} of the probability, about, and are left out"
        )
    rows = np.sort(np.concatenate(list(kept.values())))
    if len(kept) > 1 and _is_apart(found.places[rows]):
        total = sum(shares[i] for i in kept)
        parts = ", ".join(f"{shares[i] / total:.0%}" for i in kept)
        said.append(
            f"chains stay at {len(kept)} different optima and do not move between them, so that draws do not tell how "
            f"probable each is (about {parts}, if each were normal): look at them one by one"
        )
    origins = tuple(found.origins[row] for row in rows)
    return replace(found, chains=found.chains[rows], places=found.places[rows], origins=origins), said


def _is_apart(chains: np.ndarray) -> bool:
    return any(not effective.rhat(chains[:, :, i]) <= RHAT for i in range(chains.shape[2]))


def _shares(found: Drawn, groups: Mapping[int, np.ndarray], objective: Objective) -> dict[int, float]:
    """The probability at every optimum, about: that of a normal law with the mean log-density and the covariance of
    its chains."""
    target, logs = Target.plain(objective), {}
    for i, own in groups.items():
        draws = found.places[own].reshape(-1, found.places.shape[2])
        chosen = draws[np.linspace(0, len(draws) - 1, min(WEIGHED, len(draws))).astype(int)]
        level = np.median([target.log_density(v) for v in chosen])
        size = np.linalg.slogdet(np.atleast_2d(np.cov(draws.T)) + 1e-300 * np.eye(draws.shape[1]))[1]
        logs[i] = float(level + 0.5 * size)
    most = max(logs.values())
    weights = {i: math.exp(max(own - most, -700.0)) if math.isfinite(own) else 0.0 for i, own in logs.items()}
    return {i: own / sum(weights.values()) for i, own in weights.items()}


# --- sentences ---


def doubts(table: Mapping[str, Mapping[str, float]], found: Drawn, ess: float) -> list[str]:
    """Return what is to be said against draws with these statistics."""
    said = []
    apart = [label for label, own in table.items() if not own["R-hat"] <= RHAT]
    few = [label for label, own in table.items() if not min(own["ESS bulk"], own["ESS tail"]) >= ess]
    if apart:
        worst = max((table[label]["R-hat"] for label in apart), key=lambda x: math.inf if math.isnan(x) else x)
        shown = "is not known" if math.isnan(worst) else f"is up to {worst:.4g}"
        said.append(
            f"the chains have not come to the same law: R-hat {shown} ({_few(apart)}); "
            "draw longer, or give priors to what the data leave open"
        )
    if few:
        counts = [min(table[label]["ESS bulk"], table[label]["ESS tail"]) for label in few]
        least = min(0.0 if math.isnan(count) else count for count in counts)
        over = "the time was over: " if found.stopped else ""
        said.append(f"{over}{least:.0f} effective draws of {_few(few)}, and {ess:g} were asked for")
    if found.failures > FAILED * found.gradients:
        said.append(
            f"at {found.failures / found.gradients:.0%} of the points that chains tried the model could not be "
            "simulated: parts of the posterior may be missing"
        )
    if found.stuck > STUCK:
        said.append(
            f"a chain did not move for {found.stuck} draws (divergent trajectories): where the posterior is narrow, "
            "parts of it may be missing; other parameters or tighter priors help"
        )
    return said


def _few(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - 4} more" if len(labels) > 4 else ""
    return ", ".join(labels[:4]) + more
