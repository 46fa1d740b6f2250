"""Jacobians in blocks against the same as one matrix."""

import numpy as np
import pytest

from odejet.problem.courses import Blocks

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
