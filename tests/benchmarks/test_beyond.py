"""Models beyond the benchmark: all of them can be simulated, and results are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import beyond


@pytest.mark.parametrize("name", beyond.cases())
def test_draws_give_data(name):
    case = beyond.cases()[name]
    truth, data = case.drawn(np.random.default_rng(0), 0.02)
    assert list(truth) == [*case.model.states, *case.model.parameters]
    for series in data.experiments[0].outputs.values():
        assert len(series.values) == len(case.times) and np.all(np.isfinite(series.values))


def test_a_fit_is_measured_beside_the_one_from_the_truth(tmp_path):
    output = tmp_path / "some.jsonl"
    asked = ["--models", "logistic", "--draws", "1", "--noise", "0.02", "--output", str(output)]
    assert beyond.main(asked) == 0
    assert "| logistic | 1 | 1 |" in output.with_suffix(".md").read_text()
    before = output.read_text()
    assert beyond.main(asked) == 0 and output.read_text() == before


def test_fits_are_counted():
    kinds = [(0.0, True), (-3.0, True), (2.0, True), (math.inf, False)]
    lines = [
        {"model": "m", "noise": 0.01, "behind": behind, "certified": certified, "seconds": 1.0}
        for behind, certified in kinds
    ]
    assert "| m | 4 | 2 | 1 | 3 | 1 | 1.00 | 1.00 |" in beyond.table(lines)
