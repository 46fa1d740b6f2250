"""SHADE: differential evolution whose parameters follow the history of their successes.

R. Tanabe and A. Fukunaga, Success-history based parameter adaptation for differential evolution, IEEE Congress on
Evolutionary Computation 2013.  Every individual i of a generation draws a place r of the memory, its crossover rate
from N(M_CR[r], 0.1), its scale from Cauchy(M_F[r], 0.1) and its greediness p from [2/N, 0.2]; its trial is

    v = x_i + F (x_pbest - x_i) + F (x_r1 - x_r2)

with x_pbest among the best p N, x_r1 from the population and x_r2 from the population or the archive of what trials
replaced, crossed with x_i binomially.  What succeeded moves one place of the memory: the mean of the CR and the Lehmer
mean of the F, both weighted by the improvement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.methods.problem import SEARCH, Answer, Objective, Problem

POPULATION = 100
MEMORY = 100
GREEDIEST = 0.2
SPREAD = 0.1
REFINED = 5
"""How many of the best are refined, as in the paper."""

Function = Callable[[np.ndarray], np.ndarray]
"""Values of many points, one per row."""


@dataclass
class Population:
    """Points and their values, those that were replaced, and the memory of what succeeded."""

    points: np.ndarray
    values: np.ndarray
    archive: np.ndarray
    crossover: np.ndarray  # M_CR
    scale: np.ndarray  # M_F
    place: int = 0

    @property
    def order(self) -> np.ndarray:
        return np.argsort(self.values, kind="stable")


def begin(function: Function, low: np.ndarray, high: np.ndarray, rng: np.random.Generator, size: int) -> Population:
    points = rng.uniform(low, high, (size, len(low)))
    memory = np.full(MEMORY, 0.5)
    return Population(points, function(points), np.empty((0, len(low))), memory, memory.copy())


def advance(
    population: Population, function: Function, low: np.ndarray, high: np.ndarray, rng: np.random.Generator
) -> None:
    """One generation, in place."""
    crossover, scale = drawn(population, rng)
    trials = proposed(population, crossover, scale, low, high, rng)
    values = function(trials)
    better, taken = values < population.values, values <= population.values
    gains = improvements(population.values[better], values[better])
    _archive(population, population.points[better], rng)
    population.points[taken], population.values[taken] = trials[taken], values[taken]
    if len(gains):
        _learn(population, crossover[better], scale[better], gains)


def drawn(population: Population, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """CR and F of every individual: CR cut off at 0 and 1, F drawn again while not positive and cut off at 1."""
    size = len(population.points)
    places = rng.integers(MEMORY, size=size)
    crossover = np.clip(rng.normal(population.crossover[places], SPREAD), 0.0, 1.0)
    scale = np.zeros(size)
    while np.any(low := scale <= 0):
        scale[low] = population.scale[places[low]] + SPREAD * rng.standard_cauchy(int(low.sum()))
    return crossover, np.minimum(scale, 1.0)


def proposed(
    population: Population,
    crossover: np.ndarray,
    scale: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Trials: current-to-pbest/1 with archive and binomial crossover; beyond a bound, halfway to it."""
    points, (size, n) = population.points, population.points.shape
    share = rng.uniform(2 / size, GREEDIEST, size)
    best = points[population.order[(rng.random(size) * np.maximum(share * size, 1)).astype(int)]]
    own = np.arange(size)
    first = others(own[:, None], size, rng)
    everything = np.concatenate([points, population.archive])
    second = others(np.stack([own, first], axis=1), len(everything), rng)
    scaled = scale[:, None]
    mutants = points + scaled * (best - points) + scaled * (points[first] - everything[second])
    crossed = rng.random((size, n)) <= crossover[:, None]
    crossed[own, rng.integers(n, size=size)] = True
    trials = np.where(crossed, mutants, points)
    trials = np.where(trials < low, (low + points) / 2, trials)
    return np.where(trials > high, (high + points) / 2, trials)


def others(taken: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """One number below `size` for every row of `taken`, none of those in the row."""
    chosen = rng.integers(size, size=len(taken))
    while np.any(again := (taken == chosen[:, None]).any(axis=1)):
        chosen[again] = rng.integers(size, size=int(again.sum()))
    return chosen


def improvements(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """By how much values decreased; from no value at all, as much as the largest of the others."""
    with np.errstate(invalid="ignore"):
        gains = before - after
    finite = np.isfinite(gains)
    return np.where(finite, gains, gains[finite].max(initial=1.0))


def _archive(population: Population, replaced: np.ndarray, rng: np.random.Generator) -> None:
    """Keep what was replaced, as many as the population; random ones give way."""
    archive = np.concatenate([population.archive, replaced])
    size = len(population.points)
    if len(archive) > size:
        archive = archive[rng.choice(len(archive), size, replace=False)]
    population.archive = archive


def _learn(population: Population, crossover: np.ndarray, scale: np.ndarray, gains: np.ndarray) -> None:
    weights = gains / gains.sum()
    population.crossover[population.place] = weights @ crossover
    population.scale[population.place] = (weights @ scale**2) / (weights @ scale)
    population.place = (population.place + 1) % MEMORY


def solve(problem: Problem) -> Answer:
    """SHADE in the box, then our refinement of the five best."""
    objective = Objective(problem)
    misfit, box = objective.misfit, (objective.low, objective.high)
    population: Population | None = None
    with misfit.share(SEARCH):
        population = begin(objective.costs, *box, objective.rng, POPULATION)
        while True:
            advance(population, objective.costs, *box, objective.rng)
    if population is not None:
        with misfit.share(1.0):
            for i in population.order[:REFINED]:
                objective.refine(population.points[i])
    return misfit.answer(f"the {REFINED} best refined")
