"""SHADE on functions whose minima are known, and its parts against the published rules."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.methods import shade


def sphere(x):
    return (x**2).sum(axis=1)


def rosenbrock(x):
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


def rastrigin(x):
    return (x**2 - 10 * np.cos(2 * np.pi * x) + 10).sum(axis=1)


def ackley(x):
    return -20 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))) - np.exp(np.cos(2 * np.pi * x).mean(axis=1)) + 20 + np.e


def minimised(function, n, generations, seed=0, reach=5.12, size=100):
    rng = np.random.default_rng(seed)
    low, high = np.full(n, -reach), np.full(n, reach)
    population = shade.begin(function, low, high, rng, size)
    for _ in range(generations):
        shade.advance(population, function, low, high, rng)
        assert np.all((population.points >= low) & (population.points <= high))
    return population


@pytest.mark.parametrize(
    ("function", "n", "generations", "tolerance"),
    [(sphere, 10, 200, 1e-8), (rosenbrock, 5, 400, 1e-6), (rastrigin, 10, 600, 1e-6), (ackley, 10, 300, 1e-6)],
)
def test_minima_of_standard_functions(function, n, generations, tolerance):
    population = minimised(function, n, generations)
    best = population.order[0]
    assert population.values[best] < tolerance
    assert population.values[best] == pytest.approx(function(population.points[best][None])[0], abs=1e-12)
    expected = np.ones(n) if function is rosenbrock else np.zeros(n)
    np.testing.assert_allclose(population.points[best], expected, atol=1e-2)


def test_the_same_seed_gives_the_same_points():
    one, other = (minimised(rastrigin, 4, 30, seed=3) for _ in range(2))
    assert np.array_equal(one.points, other.points)
    assert not np.array_equal(one.points, minimised(rastrigin, 4, 30, seed=4).points)


def test_values_that_are_no_numbers_lose_against_all_others():
    def partly(x):
        return np.where(x[:, 0] > 0, np.inf, sphere(x))

    population = minimised(partly, 3, 150)
    assert population.values.min() < 1e-6
    assert np.all(np.isfinite(population.crossover)) and np.all(np.isfinite(population.scale))


def test_parameters_are_drawn_within_their_ranges():
    population = minimised(sphere, 2, 5)
    population.scale[:] = 0.01  # most Cauchy draws are then negative and must be drawn again
    crossover, scale = shade.drawn(population, np.random.default_rng(0))
    assert np.all((crossover >= 0) & (crossover <= 1)) and np.all((scale > 0) & (scale <= 1))


def test_chosen_others_are_others():
    taken = np.array([[0, 1], [1, 2], [2, 0]])
    for seed in range(20):
        chosen = shade.others(taken, 4, np.random.default_rng(seed))
        assert not (taken == chosen[:, None]).any()


def test_the_archive_never_outgrows_the_population():
    assert 0 < len(minimised(sphere, 5, 40, size=20).archive) <= 20


def test_the_memory_takes_weighted_and_lehmer_means():
    population = minimised(sphere, 2, 0)
    shade._learn(population, np.array([0.2, 0.8]), np.array([0.5, 1.0]), np.array([1.0, 3.0]))
    assert population.crossover[0] == pytest.approx(0.65)
    assert population.scale[0] == pytest.approx((0.25 * 0.25 + 0.75) / (0.25 * 0.5 + 0.75))
    assert population.place == 1
