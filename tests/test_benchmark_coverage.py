"""The benchmark of intervals: its counting, and a small run of each part."""

import json

import pytest

from benchmarks import coverage
from odejet.uncertainty.practical import DETERMINED


def cells(*held):
    return [{"quantities": [{"called": DETERMINED, "profile_holds": hit} for hit in own]} for own in held]


def test_shares_and_their_errors():
    mean, error, count = coverage.share(cells([True, True], [True, False]), lambda q: True, "profile_holds")
    assert (mean, count) == (75, 4)
    # One trial is half a hit above the mean, the other as much below.
    assert error == pytest.approx(100 * (0.5**2 + 0.5**2) ** 0.5 / 4)
    assert coverage.share(cells([True]), lambda q: False, "profile_holds")[2] == 0


def test_a_cell_of_intervals():
    line = json.loads(json.dumps(coverage.interval_cell("harmonic_oscillator", 1e-2, 0, 3)))
    assert [q["quantity"] for q in line["quantities"]] == ["x1(0)", "x2(0)", "a", "b"]
    assert all(q["called"] == DETERMINED and (q["deviance"] <= 3.9) == q["profile_holds"] for q in line["quantities"])
    assert "harmonic_oscillator 0.01" in coverage.interval_table([line])


def test_a_cell_of_the_law():
    line = json.loads(json.dumps(coverage.law_cell("vanderpol", 1e-6, 200, 3)))
    assert line["largest entry"] < 5 and line["largest mean"] < 5
    assert all(0.8 < ratio < 1.2 for ratio in line["sd ratios"])
    for kind in ("derivatives within r", "unknowns within bound"):
        assert line[kind]["0.05"] >= 0.95 and line[kind]["0.5"] >= 0.5
    assert "vanderpol" in coverage.law_table([line])
