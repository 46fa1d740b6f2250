"""Proposals: roots of single experiments put together for all unknowns."""

import numpy as np
import pytest

from odejet import Data, Model, Problem, simulate
from odejet.search.candidates import Census, Root
from odejet.search.proposals import FEW, Proposer, algebraic_model, combined, libraries
from odejet.search.shooting import Shot
from odejet.smooth import fit_output

DECAY = Model({"x": "-k*x"}, {"y": "x"})
TIMES = np.linspace(0, 3, 31)
SHOT = Shot((0.0,), "test")
LEVELS = np.array([0.1])


def decay(name: str, first: float, k: float, **known: object) -> Data:
    return Data(TIMES, {"y": first * np.exp(-k * TIMES)}, name=name, **known)


def pair(**options: object) -> Problem:
    return Problem(DECAY, Data.join([decay("a", 2.0, 0.5), decay("b", 3.0, 0.5)]), **options)


def root(**values: float) -> Root:
    return Root(values, SHOT)


def test_a_root_meets_the_others_with_the_most_similar_parameters():
    found = combined(pair(), [[root(x=2.0, k=0.5)], [root(x=9.0, k=5.0), root(x=3.0, k=0.52)]], LEVELS)
    np.testing.assert_array_equal(found[0].z, [2.0, 3.0, 0.5])
    np.testing.assert_array_equal(found[1].z, [2.0, 9.0, 5.0])


def test_an_experiment_without_roots_does_not_lose_those_of_the_others():
    """What it would have told is guessed from what has the same name elsewhere."""
    found = combined(pair(), [[root(x=2.0, k=0.5)], []], LEVELS)
    np.testing.assert_array_equal(found[0].z, [2.0, 2.0, 0.5])


def test_shared_parameters_have_a_median_too():
    found = combined(pair(), [[root(x=2.0, k=0.4)], [root(x=3.0, k=0.6)]], LEVELS)
    assert found[-1].start == "median"
    np.testing.assert_allclose(found[-1].z, [2.0, 3.0, 0.5])


def test_local_parameters_stay_with_their_experiment():
    found = combined(pair(local=["k"]), [[root(x=2.0, k=0.4)], [root(x=3.0, k=0.6)]], LEVELS)
    assert pair(local=["k"]).unknowns == ("x(0) in a", "k in a", "x(0) in b", "k in b")
    np.testing.assert_array_equal(found[0].z, [2.0, 0.4, 3.0, 0.6])


@pytest.mark.parametrize(("expression", "value"), [("x0", 3.0), ("2*x0 + 1", 1.0), ("k*x0", 6.0)])
def test_initial_values_tell_the_parameters_they_are_made_of(expression, value):
    problem = Problem(DECAY, decay("a", 3.0, 0.5, initial={"x": expression}))
    (candidate,) = combined(problem, [[root(x=3.0, k=0.5)]], LEVELS)
    assert problem.layout.table(candidate.z)["x0"] == pytest.approx(value)


def test_what_is_known_at_the_start_is_not_known_to_the_algebra():
    model = Model({"x": "-k*x", "z": "-z"}, {"y": "x", "w": "z"}, initial={"x": "x0", "z": 1})
    (condition,) = Problem(model, Data(TIMES, {"y": np.exp(-TIMES)})).conditions
    seen = algebraic_model(condition)
    assert list(seen.outputs) == ["y"] and not seen.initial and seen.parameters == ("k",)


def test_very_many_roots_are_judged_by_their_own_data():
    problem = pair()
    good = [root(x=2.0, k=0.5)], [root(x=3.0, k=0.5)]
    poor = [root(x=50.0 + i, k=9.0) for i in range(100)]
    found = combined(problem, [[*poor, *good[0]], [*poor, *good[1]]], LEVELS)
    assert len(found) == 5  # two of each, and the median of the best
    np.testing.assert_array_equal(found[0].z, [2.0, 3.0, 0.5])
    np.testing.assert_array_equal(found[-1].z, [2.0, 3.0, 0.5])


def test_roots_of_every_experiment_by_itself():
    """The algebra of exact data: each experiment tells its own start and the shared rate; where it begins does not
    matter to that."""
    model = Model({"x": "-k*x + u"}, {"y": "x"}, fixed={"u": 0})
    parts = [
        Data(
            TIMES + 1,
            {"y": simulate(model, {"k": 0.5}, {"x": 2.0}, np.r_[0.0, TIMES + 1])["y"][1:]},
            start=0.0,
            name="a",
        ),
        Data(TIMES, {"y": 2 + np.exp(-0.5 * TIMES)}, values={"u": 1.0}, name="b"),
    ]
    problem = Problem(model, Data.join(parts))
    smoothed = {
        (e.name, name): fit_output(s.times, s.values, s.sds)
        for e in problem.experiments
        for name, s in e.outputs.items()
    }
    proposer = Proposer(problem, libraries(problem), smoothed, None, 0, Census())
    for number, first in ((0, 2.0), (1, 3.0)):
        roots = proposer.propose(number, FEW)
        errors = [abs(r.values["x"] - first) + abs(r.values["k"] - 0.5) for r in roots]
        assert min(errors) < 1e-4
