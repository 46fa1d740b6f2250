"""Published models: our verdicts against those of their sources."""

import pytest

import odejet as oj
from odejet.identify import msolve
from problems import zoo
from problems.zoo import HARD

ENTRIES = {entry.name: entry for entry in zoo.ENTRIES}
EASY = sorted(set(ENTRIES) - HARD)


def expected(entry: zoo.Entry) -> dict[str, str]:
    return {**entry.verdicts, **entry.functions, **dict.fromkeys(entry.combinations, "global")}


@pytest.mark.parametrize("name", EASY)
def test_verdicts_are_those_published(name, monkeypatch):
    monkeypatch.setenv(msolve.VARIABLE, "")
    entry = ENTRIES[name]
    asked = [*entry.functions, *entry.combinations]
    verdict = oj.identify(entry.model, functions=asked, time_limit=600)
    assert {key: verdict[key].kind for key in expected(entry)} == expected(entry)
    assert entry.solutions is None or verdict.solutions == entry.solutions
    assert all(verdict[text].kind in ("global", "local", "undecided") for text in verdict.combinations)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_without_counting_nothing_contradicts_what_is_published(name):
    """Local verdicts always come: what is lost is lost, and the rest is undecided at worst."""
    entry = ENTRIES[name]
    verdict = oj.identify(entry.model, functions=[*entry.functions, *entry.combinations], time_limit=0)
    for key, kind in expected(entry).items():
        allowed = {"none"} if kind == "none" else {kind, "undecided"}
        assert verdict[key].kind in allowed, key


def test_the_zoo_is_large_and_its_hard_models_are_in_it():
    assert len(ENTRIES) >= 83
    assert set(ENTRIES) >= HARD
