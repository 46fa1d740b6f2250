"""Start: where the estimation of a population begins, without a guess.

All subjects pooled, as if they did not differ, are an ordinary fit: a few starts drawn around the sizes that the data
suggest lead to its optimum.  From there each subject has a mode under wide random effects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from odejet.clock import now
from odejet.errors import DataError
from odejet.population.effects import Effect
from odejet.population.layout import Layout
from odejet.population.population import Population
from odejet.search.portfolio import explore
from odejet.search.refine import Refined, refine

Array = np.ndarray

STARTS, ENOUGH, EVALUATIONS = 64, 16, 1000
"""Starts of the pooled fit, how many that end well are enough, and what it may cost.  A basin to which one start in
four leads is missed by sixteen in one case of a hundred."""

NOISIER, APART, MOST = 1.5, 0.05, 4
"""Optima of the pooled fit are starts where its noise is at most so many times that of the best; they differ by this
share in some unknown, and are at most so many."""

SCATTER = 0.4
"""By which other starts differ, in the scale of u."""

FIRST_OMEGA = 0.5
"""The sd of random effects at first: of logarithms, of logits, or beside the size of a typical value."""


def pooled_starts(population: Population, seed: int = 0, deadline: float = math.inf) -> tuple[Layout, list[Array]]:
    """Return the layout with units that suit the data, and u of the pooled fit with wide random effects.

    Where all subjects pooled have several optima, as with absorption and elimination that may change places, each is a
    start: what subjects differ by tells them apart, of which the pooled fit knows nothing, so that its cost says little
    of which is the best.  Noise of the pooled fit holds what subjects differ by, and where it has several parameters
    these may share it in a way that leads to a poor maximum.  Then each optimum is a start once more, with noise
    parameters of the sizes that the data suggest.
    """
    problem = population.pooled
    optima = _optima(population, seed, deadline)
    sizes = dict(zip(problem.unknowns, np.abs(problem.sizes).tolist(), strict=True))
    values = [_values(population, end, sizes) for end in optima]
    layout = population.layout
    first = (*layout.typical, *layout.coefficients)
    units = np.array([_unit(layout, j, values[0][name], sizes.get(name, 1.0)) for j, name in enumerate(first)])
    layout = layout.measured_in(units)
    starts = [layout.to(one) for one in values]
    several = [name for name in layout.noise if name in sizes]
    if len(several) > len(population.noises):
        suggested = {name: sizes[name] for name in several}
        starts += [layout.to({**one, **suggested}) for one in values]
    return layout, starts


def _values(population: Population, end: Refined, sizes: Mapping[str, float]) -> dict[str, float]:
    """An optimum of the pooled fit with wide random effects, by name."""
    problem, layout = population.pooled, population.layout
    values = dict(zip(problem.unknowns, end.z.tolist(), strict=True))
    for output, level in layout.levels.items():
        if level is not None:
            values[level] = float(end.levels[problem.misfit.outputs.index(output)])
    for name in layout.random:
        values[f"omega_{name}"] = _first_omega(layout.effects[name], values[name], sizes.get(name, 1.0))
    values |= {f"gamma_{name}": 0.5 * values[f"omega_{name}"] for name in layout.occasional}
    return values | {name: 0.0 for name in layout.names if name.startswith("corr_") and name not in values}


def scattered(layout: Layout, u: Array, count: int, seed: int) -> list[Array]:
    """Return other starts around one: typical values, omegas and noise that differ from it by factors."""
    rng, moves = np.random.default_rng([seed, 7]), np.full(len(u), SCATTER)
    # What moves on a linear scale has a unit of its own size; correlations stay zero.
    moves[layout.omegas] = [SCATTER if a == b else 0.0 for a, b in layout.pairs]
    return [u + moves * rng.standard_normal(len(u)) for _ in range(count)]


def _optima(population: Population, seed: int, deadline: float) -> list[Refined]:
    """Optima of the pooled fit that lie apart, the best first; much poorer ones are left out."""
    problem = population.pooled
    misfit, bounds = problem.misfit, problem.given_bounds
    behind = misfit.points * math.log(NOISIER)

    def enough(ends: Sequence[Refined], _: int) -> bool:
        return sum(end.cost < ends[0].cost + behind for end in ends) >= ENOUGH

    ends = [refine(misfit, problem.sizes, bounds, frame=problem.frame(), time_limit=max(deadline - now(), 0.0))]
    ends += explore(
        misfit,
        bounds,
        scale=problem.sizes,
        time_limit=max(deadline - now(), 0.0),
        seed=seed,
        starts=STARTS,
        agree=STARTS,
        evaluations=EVALUATIONS,
        before=ends,
        answered=enough,
    )
    ends.sort(key=lambda end: end.cost)
    best = ends[0]
    if not math.isfinite(best.cost):
        raise DataError(
            f"the model {population.model.name} cannot be simulated to the last measurement for any values that were "
            "tried; check it with oj.simulate, or give bounds in the model"
        )
    found: list[Refined] = []
    for end in ends:
        if end.cost < best.cost + behind and all(_differ(end.z, other.z) for other in found):
            found.append(end)
    return found[:MOST]


def _differ(one: Array, other: Array) -> bool:
    return bool((np.abs(one - other) > APART * np.maximum(np.abs(one), np.abs(other))).any())


def _unit(layout: Layout, j: int, value: float, size: float) -> float:
    """The unit of a typical value or coefficient on a linear scale."""
    if not layout.linear(j):
        return 1.0
    if j >= len(layout.typical):
        return 1.0 if abs(value) < 1 else abs(value)
    return max(abs(value), 1e-3 * size) or 1.0


def _first_omega(effect: Effect, value: float, size: float) -> float:
    return FIRST_OMEGA * max(abs(value), 1e-3 * size) if effect.name == "normal" else FIRST_OMEGA
