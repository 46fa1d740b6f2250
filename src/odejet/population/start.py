"""Start: where the estimation of a population begins, without a guess.

All subjects pooled, as if they did not differ, are an ordinary fit: a few starts drawn around the sizes that the data
suggest lead to its optimum.  From there each subject has a mode under wide random effects.
"""

from __future__ import annotations

import math

import numpy as np

from odejet.clock import now
from odejet.errors import DataError
from odejet.population.effects import Effect
from odejet.population.layout import Layout
from odejet.population.population import Population
from odejet.search.portfolio import explore
from odejet.search.refine import Refined, refine

Array = np.ndarray

STARTS, AGREE, EVALUATIONS = 64, 2, 200
"""Starts of the pooled fit, how many must lead to its optimum, and what it may cost."""

FIRST_OMEGA = 0.5
"""The sd of random effects at first: of logarithms, of logits, or beside the size of a typical value."""


def pooled_starts(population: Population, seed: int = 0, deadline: float = math.inf) -> tuple[Layout, list[Array]]:
    """Return the layout with units that suit the data, and u of the pooled fit with wide random effects.

    Noise of the pooled fit holds what subjects differ by, and where it has several parameters these may share it in a
    way that leads to a poor maximum.  Then there is a second start, with each of the size that the data suggest.
    """
    problem = population.pooled
    found = _optimum(population, seed, deadline)
    values = dict(zip(problem.unknowns, found.z.tolist(), strict=True))
    sizes = dict(zip(problem.unknowns, np.abs(problem.sizes).tolist(), strict=True))
    layout = population.layout
    for output, level in layout.levels.items():
        if level is not None:
            values[level] = float(found.levels[problem.misfit.outputs.index(output)])
    first = (*layout.typical, *layout.coefficients)
    units = np.array([_unit(layout, j, values[name], sizes.get(name, 1.0)) for j, name in enumerate(first)])
    layout = layout.measured_in(units)
    for name in layout.random:
        values[f"omega_{name}"] = _first_omega(layout.effects[name], values[name], sizes.get(name, 1.0))
    values |= {name: 0.0 for name in layout.names if name.startswith("corr_") and name not in values}
    starts = [layout.to(values)]
    several = [name for name in layout.noise if name in sizes]
    if len(several) > len(population.noises):
        starts.append(layout.to({**values, **{name: sizes[name] for name in several}}))
    return layout, starts


def _optimum(population: Population, seed: int, deadline: float) -> Refined:
    problem = population.pooled
    misfit, bounds = problem.misfit, problem.given_bounds
    ends = [refine(misfit, problem.sizes, bounds, frame=problem.frame(), time_limit=max(deadline - now(), 0.0))]
    ends += explore(
        misfit,
        bounds,
        scale=problem.sizes,
        time_limit=max(deadline - now(), 0.0),
        seed=seed,
        starts=STARTS,
        agree=AGREE,
        evaluations=EVALUATIONS,
        before=ends,
    )
    best = min(ends, key=lambda end: end.cost)
    if not math.isfinite(best.cost):
        raise DataError(
            f"the model {population.model.name} cannot be simulated to the last measurement for any values that were "
            "tried; check it with oj.simulate, or give bounds in the model"
        )
    return best


def _unit(layout: Layout, j: int, value: float, size: float) -> float:
    """The unit of a typical value or coefficient on a linear scale."""
    if not layout.linear(j):
        return 1.0
    if j >= len(layout.typical):
        return 1.0 if abs(value) < 1 else abs(value)
    return max(abs(value), 1e-3 * size) or 1.0


def _first_omega(effect: Effect, value: float, size: float) -> float:
    return FIRST_OMEGA * max(abs(value), 1e-3 * size) if effect.name == "normal" else FIRST_OMEGA
