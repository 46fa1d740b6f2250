"""Semantic cases of others: none is answered wrong, and what is not supported is refused by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")

from benchmarks import sbml

ARCHIVE = Path(__file__).parents[3] / "shared" / "sbml" / "semantic.zip"
pytestmark = pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"the semantic cases are not here: {ARCHIVE} is missing")

SAMPLED = 29
"""Every so-many-th case is tried each time; all of them are slow."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return list(sbml.cases(sbml.unpacked(ARCHIVE, tmp_path_factory.mktemp("cases"))))


def check(cases) -> None:
    answers = [sbml.answer(case) for case in cases]
    assert [(one.number, one.reason) for one in answers if one.verdict == sbml.WRONG] == []
    counts = Counter(one.verdict for one in answers)
    assert counts[sbml.PASSED] >= 0.75 * len(answers), counts


def test_some_cases(cases):
    check(cases[::SAMPLED])


@pytest.mark.slow
def test_all_cases(cases):
    check(cases)


def test_a_wrong_answer_is_seen(cases):
    """Results that were changed beyond the tolerances are wrong."""
    case = cases[0]
    name, values = next(iter(case.expected.items()))
    case.expected[name] = values + 2 * (case.absolute + case.relative * abs(values))
    assert sbml.answer(case).verdict == sbml.WRONG
    case.expected[name] = values
    assert sbml.answer(case).verdict == sbml.PASSED
