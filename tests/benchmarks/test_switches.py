"""Switches: random models beside other programs' events."""

from __future__ import annotations

import pytest

pytest.importorskip("heyoka", reason="heyoka, a yardstick of switches, is not installed")
pytest.importorskip("sksundae", reason="scikit-sundae, whose CVODE is a yardstick of switches, is not installed")

from benchmarks import switches


@pytest.mark.parametrize("draw", range(4))
def test_random_models_agree_with_cvode_and_heyoka(draw):
    row = switches.measured(2026, draw)
    assert row["outcome"] == "COMPLETED"
    assert row["cvode"] < switches.WRONG
    assert row["heyoka"] < 1e-12
    assert row["sensitivity"] < 1e-7


def test_a_difference_counts_as_wrong_whoever_finds_it():
    row = {"draw": 3, "outcome": "COMPLETED", "cvode": 1e-12, "heyoka": 1e-3, "sensitivity": None}
    assert "1 wrong (3)" in switches.summary([row])
    assert "0 wrong" in switches.summary([row | {"heyoka": None}])
