"""The map that takes parabolas out of a law."""

import numpy as np
import pytest

from odejet.uncertainty.bending import Bending


@pytest.fixture
def bent():
    """Of six directions the fourth is a parabola of the first and the last a product of two others."""
    found = Bending.none(6)
    found.bends[3, 0], found.bends[5, 4] = 0.6, -0.5
    return found


def test_forth_and_back(bent):
    u = np.random.default_rng(0).normal(size=(50, 6))
    np.testing.assert_allclose(bent.to_u(bent.to_w(u)), u, atol=1e-12)
    np.testing.assert_allclose(bent.to_u(bent.to_w(u)[0]), u[0], atol=1e-12)


def test_the_gradient(bent):
    rng = np.random.default_rng(1)
    u, by_w = rng.normal(size=6), rng.normal(size=6)
    each = [by_w @ (bent.to_w(u + step) - bent.to_w(u - step)) / 2e-5 for step in 1e-5 * np.eye(6)]
    np.testing.assert_allclose(bent.gradient(u, by_w), each, atol=1e-8)


def test_draws_show_the_bends(bent):
    w = bent.to_w(np.random.default_rng(2).normal(size=(4000, 6)))
    sizes = w.std(axis=0)
    found = Bending.of((w - w.mean(axis=0)) / sizes)
    np.testing.assert_allclose(found.bends * sizes[:, None], bent.bends, atol=0.05)
    np.testing.assert_allclose(found.spread * sizes, 1.0, atol=0.05)


def test_few_draws_of_a_normal_law_show_none():
    assert Bending.of(np.random.default_rng(3).normal(size=(300, 8))).is_straight
    assert Bending.of(np.random.default_rng(3).normal(size=(300, 1))).is_straight
