"""Integrals with known values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from odejet.population.curved import Curved
from odejet.population.nodes import Normal, drawn, grid, mixture

LAW = Normal(np.array([0.3, -0.2]), np.array([[0.5, 0.0], [0.2, 0.4]]))
WIDE = Normal(np.zeros(2), np.eye(2))
LAWS = [(1.0, LAW), (0.125, WIDE)]


def integral(nodes, function):
    return float(np.exp(nodes.log_weights) @ function(nodes.x))


def test_a_grid_is_exact_for_polynomials_times_its_law() -> None:
    def moment(x):
        return np.exp(LAW.log_density(x)) * x[:, 0] ** 2 * x[:, 1] ** 2

    covariance = LAW.factor @ LAW.factor.T
    a, b = LAW.mean
    expected = (a * a + covariance[0, 0]) * (b * b + covariance[1, 1]) + 4 * a * b * covariance[0, 1]
    expected += 2 * covariance[0, 1] ** 2
    assert integral(grid(5, LAW), moment) == pytest.approx(expected, rel=1e-12)


def test_drawn_nodes_integrate_what_no_grid_does() -> None:
    """A law cut at a plane, of which the half is known."""

    def half(x):
        return np.exp(WIDE.log_density(x)) * (x[:, 0] > x[:, 1])

    nodes, more = (drawn(count, LAWS, (0, 1)) for count in (256, 1024))
    assert integral(nodes, half) == pytest.approx(0.5, abs=0.05)
    assert integral(more, half) == pytest.approx(0.5, abs=0.03)
    assert len(more.x) == 4 * len(nodes.x)
    smooth = integral(more, lambda x: np.exp(WIDE.log_density(x)) * np.cos(x[:, 0]))
    assert smooth == pytest.approx(math.exp(-0.5), abs=0.01)


def test_laws_that_nodes_were_drawn_from_integrate_to_one() -> None:
    nodes = drawn(64, LAWS, (0, 1))
    for _, law in LAWS:
        assert integral(nodes, lambda x, law=law: np.exp(law.log_density(x))) == pytest.approx(1, abs=1e-9)


def test_nodes_are_the_same_every_time_and_differ_between_subjects() -> None:
    first, again, other = (drawn(16, LAWS, (0, i)) for i in (1, 1, 2))
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)


def test_a_curved_law_follows_a_parabola() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((4000, 2))
    x = np.stack([z[:, 0], 0.5 * z[:, 0] ** 2 + 0.1 * z[:, 1]], axis=1)
    shares = np.full(4000, 1 / 4000)
    law = Curved.following(x, shares, np.array([1.0, 1.0]))
    exact = -0.5 * (z**2).sum(axis=1) - math.log(2 * math.pi) - math.log(0.1)
    near = np.abs(z).max(axis=1) < 2
    assert law.log_density(x)[near] == pytest.approx(exact[near], abs=0.3)
    nodes = drawn(512, [(1.0, law.wider(1.2))], (0, 3))
    assert integral(nodes, lambda x: np.exp(law.log_density(x))) == pytest.approx(1, abs=1e-3)


def test_a_mixture_follows_two_modes() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 0.3, (300, 1)), rng.normal(3, 0.3, (100, 1))])
    parts = mixture(x, np.full(400, 1 / 400), 1e-6 * np.eye(1), 2)
    assert sorted(round(float(law.mean[0])) for _, law in parts) == [-3, 3]
    assert sorted(round(share, 2) for share, _ in parts) == [0.25, 0.75]
