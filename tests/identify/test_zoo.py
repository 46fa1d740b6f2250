"""Published models: our verdicts against those of their sources."""

import pytest

import odejet as oj
from odejet.identify import msolve
from tests import zoo

HARD = {
    "siwr",
    "siwr_population",
    "seaijrc",
    "goodwin",
    "goodwin_known_intermediates",
    "mapk_five_outputs",
    "nfkb",
    "pharm",
    "cgv1990",
    "qwwc",
    "stirred_tank_reactor",
    "stirred_tank_reactor_recast",
    "sliqr",
}
"""Models whose Groebner bases take longer than a test may: only their local verdicts are compared."""

ENTRIES = {entry.name: entry for entry in zoo.ENTRIES}
EASY = sorted(set(ENTRIES) - HARD)


def expected(entry: zoo.Entry) -> dict[str, str]:
    return {**entry.verdicts, **entry.functions, **dict.fromkeys(entry.combinations, "global")}


@pytest.mark.skipif(not msolve.executable(), reason="no msolve")
@pytest.mark.parametrize("name", EASY)
def test_verdicts_are_those_published(name):
    entry = ENTRIES[name]
    asked = [*entry.functions, *entry.combinations]
    verdict = oj.identify(entry.model, functions=asked, budget=120)
    assert {key: verdict[key].kind for key in expected(entry)} == expected(entry)
    assert entry.solutions is None or verdict.solutions == entry.solutions
    assert all(verdict[text].kind in ("global", "local", "undecided") for text in verdict.combinations)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_without_counting_nothing_contradicts_what_is_published(name):
    """Local verdicts always come: what is lost is lost, and the rest is undecided at worst."""
    entry = ENTRIES[name]
    verdict = oj.identify(entry.model, functions=[*entry.functions, *entry.combinations], budget=0)
    for key, kind in expected(entry).items():
        allowed = {"none"} if kind == "none" else {kind, "undecided"}
        assert verdict[key].kind in allowed, key


def test_the_zoo_is_large_and_its_hard_models_are_in_it():
    assert len(ENTRIES) >= 25
    assert set(ENTRIES) >= HARD
