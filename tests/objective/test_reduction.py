"""Triangles of rows that come one after the other, against the factors of all rows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet import Data, Model
from odejet.objective import misfit
from odejet.objective.reduction import Aim, Pile, Triangles, triangle
from odejet.problem import Problem

CASCADE = Model({"a": "-k1*a", "b": "k1*a - k2*b/(m + b)"}, {"u": "a", "v": "s*b + a*b"})
Z = np.array([2.0, 0.5, 0.6, 0.3, 0.8, 1.5])


@given(st.integers(0, 10_000), st.integers(1, 6), st.lists(st.integers(0, 3000), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_a_pile_has_the_triangle_of_all_its_rows(seed, columns, sizes):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, columns)) for size in sizes]
    pile = Pile(columns)
    for part in parts:
        pile.add(part)
    whole = np.concatenate(parts)
    assert len(pile.triangle) <= max(columns, 0)
    np.testing.assert_allclose(pile.triangle.T @ pile.triangle, whole.T @ whole, rtol=1e-11, atol=1e-9)


def test_small_singular_values_survive_reduction_in_parts():
    rng = np.random.default_rng(2)
    whole = rng.normal(size=(30_000, 5))
    whole[:, 0] = whole[:, 1] + 1e-10 * rng.normal(size=len(whole))  # normal equations would not see it
    pile = Pile(5)
    for part in np.array_split(whole, 37):
        pile.add(part)
    sizes = (np.linalg.svd(one, compute_uv=False) for one in (pile.triangle, triangle(whole)))
    np.testing.assert_allclose(*sizes, rtol=1e-5)


def cascades(shapes=None):
    rng, found = np.random.default_rng(7), []
    for number in range(3):
        times = np.linspace(0, 5, 30 + number)
        noise = None if shapes is None else {"u": 0.02, "v": 0.1 * (1 + times)}
        values = {"u": rng.normal(size=len(times)), "v": rng.normal(size=len(times))}
        found.append(Data(times, values, noise=noise, name=f"e{number}"))
    return Data.join(found)


@pytest.mark.parametrize("shapes", [None, "given"])
def test_reduced_evaluations_are_those_of_the_whole_jacobian(shapes):
    problem = Problem(CASCADE, cascades(shapes)).misfit
    z = np.random.default_rng(0).uniform(0.4, 1.2, size=len(problem.unknowns))
    whole = problem.evaluate(z)
    before, target = np.random.default_rng(1).normal(size=(2, problem.points))
    found = problem.reduced(z, aim=Aim(before, target))
    np.testing.assert_allclose(found.residuals, whole.residuals, rtol=1e-13)
    tall = np.column_stack([whole.dense, whole.residuals, whole.residuals - target, before])
    for part, rows in zip(found.jacobian.parts, problem.groups, strict=True):
        np.testing.assert_allclose(part.T @ part, tall[rows].T @ tall[rows], rtol=1e-9, atol=1e-11)
    for _, rows, values in problem.derivatives(z):
        np.testing.assert_allclose(values, tall[rows, :-2], rtol=1e-12, atol=1e-14)


def test_triangles_by_other_unknowns():
    rng = np.random.default_rng(5)
    tall, matrix = rng.normal(size=(50, 4)), rng.normal(size=(3, 2))
    other = Triangles((triangle(tall),), 3).of(matrix)
    expected = np.column_stack([tall[:, :3] @ matrix, tall[:, 3]])
    np.testing.assert_allclose(other.parts[0].T @ other.parts[0], expected.T @ expected, rtol=1e-10)
    assert other.unknowns == 2


def test_a_simulation_that_breaks_off_says_so():
    growing = Problem(Model({"x": "a*x**2"}, {"y": "x"}), Data([0.0, 1.0, 2.5], {"y": [1.0, 2.0, 3.0]})).misfit
    found = growing.reduced(np.array([1.0, 0.5]))  # the pole is at t = 2
    assert not found.complete and found.jacobian is None
    assert found.reached == pytest.approx(0.8, abs=0.05)


def test_only_many_numbers_are_large():
    problem = Problem(CASCADE, cascades()).misfit
    assert not problem.large
    assert problem.points * len(problem.unknowns) < misfit.LARGE
