"""Chains: the table of fits, and one fit in a process of its own."""

from __future__ import annotations

import json

from benchmarks import chains
from problems.chains import drawn_chain


def line(**more):
    facts = {"steps": 5, "measured": "all", "seed": 0, "states": 5, "unknowns": 15, "points": 505, "limit": 120.0}
    costs = {"gradient_ms": 2.0, "rough_gradient_ms": 1.0, "values_ms": 0.5}
    return facts | costs | {"cpu": 1.0, "certified": True, "behind": 0.0} | more


def test_the_table_counts_false_certificates():
    text = chains.table([line(), line(steps=10, behind=3.0), line(measured="third", certified=False, behind=1.0)])
    assert "Of 3 fits 1 are as good as the one from the truth, 2 certified, 1 falsely." in text
    assert "| 10 | all | 0 | 15 | 505 | 1.0 | 120 | yes | 3 | 2.0 | 1.0 | 0.5 |" in text


def test_other_seeds_are_other_draws():
    first, again, other = (drawn_chain(3, 1, seed)[1] for seed in (0, 0, 1))
    assert first == again != other


def test_a_fit_in_a_process_of_its_own(tmp_path):
    path = tmp_path / "chains.jsonl"
    for _ in range(2):  # the second time there is nothing left to do
        assert chains.main(["--steps", "2", "--measured", "all", "--output", str(path)]) == 0
    (found,) = map(json.loads, path.read_text().splitlines())
    assert found["certified"] and found["unknowns"] == 6 and found["behind"] <= 0.05
    assert path.with_suffix(".md").read_text().startswith("# Chains")
