"""Alternatives: other values with the derivatives of an optimum."""

import numpy as np

from odejet import Data, Model, Problem, fit, simulate
from odejet.algebra.library import Library
from odejet.search.alternatives import alternatives
from odejet.search.proposals import algebraic_model

TIMES = np.linspace(0, 4, 41)
FLIP_FLOP = Model({"g": "-a*g", "c": "a*g - e*c"}, {"y": "c/V"}, initial={"g": 1, "c": 0})
"""Absorption and elimination may change places, if the volume follows: V -> V*e/a."""
TRUTH = {"a": 1.5, "e": 0.4, "V": 2.0}


def problem(**bounds: tuple[float, float]) -> Problem:
    y = simulate(FLIP_FLOP, TRUTH, {}, TIMES)["y"]
    return Problem(FLIP_FLOP, Data(TIMES, {"y": y}), bounds=bounds or None, positive=True)


def others(asked: Problem) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    fibre = Library(algebraic_model(asked.conditions[0])).fibre(1)
    assert fibre is not None
    z = asked.layout.vector(TRUTH)
    found = alternatives(asked, [fibre], z, asked.frame(z), np.array([1e-6]), 0)
    return [asked.layout.table(one) for one in found.inside], [asked.layout.table(one) for one in found.outside]


def test_the_flip_flop_twin_is_found():
    """Only where the amounts are free does the algebra see both; the twin has the same outputs at all times."""
    inside, _ = others(problem())
    twins = [one for one in inside if abs(one["a"] - 0.4) < 1e-3 and abs(one["e"] - 1.5) < 1e-3]
    assert twins
    y = simulate(FLIP_FLOP, {"a": 0.4, "e": 1.5, "V": 2.0 * 0.4 / 1.5}, {}, TIMES)["y"]
    np.testing.assert_allclose(y, simulate(FLIP_FLOP, TRUTH, {}, TIMES)["y"], rtol=1e-10)


def test_what_lies_outside_the_bounds_is_told_apart():
    inside, outside = others(problem(a=(1.0, 10.0), e=(1e-3, 1.0), V=(0.1, 10.0)))
    assert not any(one["a"] < 0.99 for one in inside)
    assert any(abs(one["a"] - 0.4) < 1e-3 for one in outside)


def doses(*amounts: float, noise: float = 0.0) -> Data:
    """The same body after several doses."""
    rng = np.random.default_rng(2)
    parts = []
    for amount in amounts:
        y = simulate(FLIP_FLOP.replace(initial={"g": amount, "c": 0}), TRUTH, {}, TIMES)["y"]
        values = y + noise * rng.normal(size=len(y))
        parts.append(Data(TIMES, {"y": values}, name=f"dose {amount:g}", initial={"g": amount}))
    return Data.join(parts)


def test_twins_of_several_experiments_are_put_together():
    asked = Problem(FLIP_FLOP, doses(1.0, 3.0), positive=True)
    fibre = Library(algebraic_model(asked.conditions[0])).fibre(1)
    z = asked.layout.vector(TRUTH)
    for fibres in ([fibre, fibre], [None, fibre]):
        found = [
            asked.layout.table(one)
            for one in alternatives(asked, fibres, z, asked.frame(z), np.array([1e-6]), 0).inside
        ]
        # The volume, which the derivatives do not tell, is for refinement to find.
        assert any(abs(one["a"] - 0.4) < 1e-3 and abs(one["e"] - 1.5) < 1e-3 for one in found)


def test_a_fit_of_several_experiments_has_all_solutions():
    """Also the one that no search within the bounds comes by."""
    bounds = {"a": (1.0, 10.0), "e": (1e-3, 1.0), "V": (0.1, 10.0)}
    found = fit(FLIP_FLOP, doses(1.0, 3.0, noise=1e-3), bounds=bounds)
    assert len(found.solutions) == found.verdict.solutions == 2
    assert [one.inside_bounds for one in found.solutions] == [True, False]
    pairs = [(one.parameters["a"], one.parameters["e"]) for one in found.solutions]
    np.testing.assert_allclose(pairs, [(1.5, 0.4), (0.4, 1.5)], rtol=0.05)
