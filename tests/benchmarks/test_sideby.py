"""Two codes side by side: the same cells for both, each in a process of its own, and honest counts."""

from __future__ import annotations

import itertools
import json

import pytest

from benchmarks import sideby


def found(cost=1.0, certified=True, seconds=1.0, **more):
    return {
        "cost": cost,
        "reference": 1.0,
        "exact": False,
        "error": 0.01,
        "certified": certified,
        "seconds": seconds,
        **more,
    }


def line(before, after, kind="beyond"):
    return {"kind": kind, "name": "m", "noise": 0.01, "draw": 0, "before": before, "after": after}


def test_the_same_seed_gives_the_same_cells_and_every_kind_its_turn():
    first, again, other = (
        list(itertools.islice(sideby.cells(seed, ("accuracy", "beyond", "coverage")), 60)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert [cell.kind for cell in first[:6]] == ["accuracy", "beyond", "coverage"] * 2
    assert len(set(first)) == 60


def test_a_job_is_the_cell_in_plain_values():
    cell = sideby.Cell("bounded", "logistic", 0.02, 3)
    job = cell.job(5)
    assert json.loads(json.dumps(job))["outputs"] == cell.job(5)["outputs"] != cell.job(6)["outputs"]
    assert all(low < job["truth"][name] < high for name, (low, high) in job["bounds"].items())


def test_a_fit_is_as_good_if_its_cost_is_that_from_the_truth():
    assert sideby.as_good(found(1.04)) and not sideby.as_good(found(1.2))
    assert sideby.as_good(found(9.0) | {"exact": True, "error": 1e-5})
    assert not sideby.as_good({"failure": "DataError: none"})


def test_counts_and_ratios():
    lines = [
        line(found(seconds=1.0), found(seconds=2.0)),
        line(found(5.0, seconds=1.0), found(seconds=3.0)),
        line(found(5.0, certified=False, seconds=1.0), {"failure": "no answer"}),
    ]
    table = sideby.table(lines)
    assert "| all | before | 3 | 1 | 2 | 1 | 0 | 3 |  | 1.000 | 1.000 | 3.000 |" in table
    assert "| all | after | 3 | 2 | 2 | 0 | 1 | 2 |  | 3.000 |" in table
    assert "3.00 (by cell 3.00)" in table
    differing = sideby.differences(lines)
    assert "behind by 4" in differing and "no answer" in differing and differing.count("before as good") == 0


@pytest.mark.parametrize("kind", ["beyond", "coverage"])
def test_a_worker_answers_with_the_code_it_was_given(kind):
    worker = sideby.Worker(sideby.ROOT)
    try:
        name = "logistic" if kind == "beyond" else "harmonic_oscillator"
        answer = worker.ask(sideby.Cell(kind, name, 0.01, 0).job(1))
        assert sideby.as_good(answer) and answer["error"] < 0.1 and answer["seconds"] > 0
        assert ("hits" in answer) == (kind == "coverage")
        broken = sideby.Cell(kind, name, 0.01, 0).job(1) | {"outputs": {"nobody": [1.0]}}
        assert "DataError" in worker.ask(broken)["failure"]
    finally:
        worker.close()


def test_code_from_elsewhere_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="took its code from"):
        sideby.Worker(tmp_path)
