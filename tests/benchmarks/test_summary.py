"""The summary's arithmetic, and one part of it for real."""

from __future__ import annotations

import pytest

from benchmarks import summary
from benchmarks.summary import Ratio


def test_a_ratio_is_the_median_over_problems():
    ratio = Ratio.of("fit", "peer", [(1.0, 10.0), (2.0, 4.0), (1.0, 100.0)])
    assert (ratio.ratio, ratio.least, ratio.ours, ratio.theirs, ratio.problems) == (10.0, 2.0, 1.0, 10.0, 3)
    assert ratio.line.count("|") == summary.HEAD[0].count("|")


def test_a_missing_peer_leaves_a_line(monkeypatch):
    def missing(_):
        raise ModuleNotFoundError("No module named 'heyoka'", name="heyoka")
        yield

    monkeypatch.setitem(summary.PARTS, "flow", missing)
    *_, line = summary.measured(["flow"], 1)
    assert "heyoka is not installed" in line and line.count("|") == summary.HEAD[0].count("|")


@pytest.mark.slow
def test_fits_are_measured_side_by_side(monkeypatch):
    monkeypatch.setattr(summary, "FITTED", ("seir",))
    lines = list(summary.fit_ratios(1))
    assert [line.peer for line in lines] == ["pyPESTO multistart"] * 2 + ["scatter search (pyPESTO)"] * 2
    assert all(line.ratio > 0 for line in lines)
