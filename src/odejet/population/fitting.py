"""Fitting: a population fit from a population."""

from __future__ import annotations

import math
from collections.abc import Callable

from odejet.clock import now
from odejet.population.estimation import estimate
from odejet.population.population import Population
from odejet.population.result import PopulationFit


def fit_population(
    population: Population,
    seed: int = 0,
    tell: Callable[[str], object] = lambda _: None,
    deadline: float = math.inf,
    jobs: int = 1,
) -> PopulationFit:
    """Return the maximum of the marginal likelihood of a population, with what follows from it."""
    begin = now()
    return PopulationFit(estimate(population, seed, tell=tell, deadline=deadline, jobs=jobs), now() - begin, seed)
