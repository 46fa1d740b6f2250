"""Fitting: a population fit from a population."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor

from odejet.clock import now
from odejet.population.estimation import estimate
from odejet.population.population import Population
from odejet.population.result import PopulationFit


def fit_population(
    population: Population,
    seed: int = 0,
    tell: Callable[[str], object] = lambda _: None,
    deadline: float = math.inf,
    executor: Executor | None = None,
) -> PopulationFit:
    """Return the maximum of the marginal likelihood of a population, with what follows from it."""
    begin = now()
    return PopulationFit(
        estimate(population, seed, tell=tell, deadline=deadline, executor=executor), now() - begin, seed
    )
