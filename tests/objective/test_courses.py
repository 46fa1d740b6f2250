"""Jacobians in blocks against the same as one matrix, and experiments that are one simulation."""

import numpy as np
import pytest

import odejet as oj
from odejet.objective.courses import Blocks

ROWS = np.arange(3), np.arange(3, 7)
COLUMNS = np.array([0, 1, 3]), np.array([2, 0, 3])  # two experiments share the first unknown and the last


@pytest.fixture
def blocks() -> Blocks:
    rng = np.random.default_rng(3)
    parts = ((rows, own, rng.normal(size=(len(rows), 3))) for rows, own in zip(ROWS, COLUMNS, strict=True))
    return Blocks((7, 4), tuple(parts))


@pytest.mark.parametrize(
    ("column", "slopes"),
    [
        (0, [0.0, 0.0, 0.0]),  # held at a value
        (2, [0.0, 0.0, 0.0]),
        (1, [0.7, 0.0, -2.0]),  # local, and follows what its experiment has
        (2, [0.3, 0.0, 1.5]),
    ],
)
def test_an_unknown_that_follows_others_is_eliminated(blocks, column, slopes):
    found = blocks.eliminated(column, np.array(slopes))
    whole = blocks.dense()
    expected = np.delete(whole, column, axis=1) + np.outer(whole[:, column], slopes)
    assert found is not None and found.dense() == pytest.approx(expected, abs=1e-15)


def test_what_would_fill_blocks_is_left_to_one_matrix(blocks):
    assert blocks.eliminated(0, np.array([1.0, 0.0, 0.0])) is None  # shared, and follows what one experiment has
    assert blocks.eliminated(1, np.array([0.0, 1.0, 0.0])) is None  # local, and follows what another has


def test_experiments_that_differ_in_what_was_measured_are_one_simulation():
    """Three experiments, two of them with one dose: the same residuals and derivatives as of each alone."""
    model = oj.Model({"x": "-k*x", "w": "k*x - w"}, {"y": "s*x", "z": "w"}, initial={"x": "dose", "w": 0})
    rng = np.random.default_rng(1)
    data = [
        oj.Data([0.0, 1.0, 2.0], {"y": rng.random(3)}, values={"dose": 1.0}, name="a"),
        oj.Data([0.5, 1.0, 3.0], {"y": rng.random(3), "z": rng.random(3)}, start=0, values={"dose": 1.0}, name="b"),
        oj.Data([0.5, 1.0], {"z": rng.random(2)}, start=0, values={"dose": 2.0}, name="c"),
    ]
    problem, z = oj.Problem(model, oj.Data.of(one.experiments[0] for one in data)), np.array([0.7, 1.4])
    assert [len(course.times) for course in problem.misfit.measured] == [5, 2]
    found = problem.misfit.evaluate(z)
    for number in range(3):
        alone = problem.misfit.only(number)
        pairs = zip(problem.measurements.rows, problem.measurements.blocks, strict=True)
        own = np.concatenate([np.arange(r.start, r.stop) for r, block in pairs if block.experiment == number])
        part = alone.evaluate(z)
        np.testing.assert_allclose(found.residuals[own], part.residuals, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found.dense[own], part.dense, rtol=1e-12, atol=1e-14)
