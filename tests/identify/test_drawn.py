"""Models that nobody has chosen: engines against each other, and against exhaustive search over a small field."""

import pytest

import odejet as oj
from odejet.errors import ModelError
from odejet.identify import msolve
from tests.identify import drawn

SMALL = [seed for seed in range(400) if 1 <= len(drawn.model(seed).unknowns) <= 3]
"""Few enough unknowns for all values to be tried."""


def some(seeds, many):
    return [*seeds[:many], *(pytest.param(seed, marks=pytest.mark.slow) for seed in seeds[many:])]


def verdict(model: oj.Model, engine: str) -> oj.Verdict:
    try:
        return oj.identify(model, engine=engine, time_limit=2)
    except ModelError as refusal:
        pytest.skip(str(refusal))


@pytest.mark.parametrize("seed", some(range(200), 20))
def test_engines_agree(seed, monkeypatch):
    monkeypatch.setenv(msolve.VARIABLE, "")
    model = drawn.model(seed)
    one, other = verdict(model, "builtin"), verdict(model, "elimination")
    for name in model.unknowns:
        if "undecided" not in (one[name].kind, other[name].kind):
            assert (one[name].kind, one[name].values) == (other[name].kind, other[name].values), name
    assert None in (one.solutions, other.solutions) or one.solutions == other.solutions
    assert all(one[text].kind in ("global", "undecided") for text in one.combinations if one.generate)


@pytest.mark.parametrize("seed", some(SMALL, 20))
def test_exhaustive_search_finds_as_many_values(seed, monkeypatch):
    """At most points: in a small field more values coincide by accident at some."""
    monkeypatch.setenv(msolve.VARIABLE, "")
    model = drawn.model(seed)
    found = verdict(model, "exact")
    for name, counts in drawn.values(model, seed).items():
        middle = counts[len(counts) // 2]
        if found[name].kind == "none":
            assert middle > 2, name
        elif found[name].kind != "undecided":
            assert middle <= found[name].values, name
            # Of three values two may be conjugates that are not in the field, of two none.
            assert middle == 2 or found[name].values != 2, name
