"""Strategies: which there are, how they are chosen, and what a fit does with some of them alone."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.search.halving import PLAIN
from odejet.search.multistart import Multistart
from odejet.search.strategies import EVERY, NAMES, chosen

TIMES = np.linspace(0, 5, 60)
MODEL = oj.Model({"x": "-k*x"}, {"y": "x"})
DATA = oj.Data(TIMES, {"y": 2 * np.exp(-0.7 * TIMES) + 0.01 * np.random.default_rng(0).standard_normal(len(TIMES))})


def test_all_are_meant_without_a_choice_and_values_keep_their_settings():
    assert chosen(None) is EVERY and tuple(one.name for one in EVERY) == NAMES
    plain = Multistart(groups=(1,), halving=PLAIN)
    assert chosen([plain, "algebraic starts"]) == (plain, EVERY[0])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([], "must be a list of some of 'algebraic starts'"),
        ("multistart", "must be a list"),
        (["genetic"], "no strategy 'genetic'; there are algebraic starts, multistart"),
        ([3], "no strategy 3"),
        (["multistart", Multistart()], "multistart is given twice"),
    ],
)
def test_a_choice_that_means_nothing_is_refused(wanted, message):
    with pytest.raises(oj.ModelError, match=message):
        oj.fit(MODEL, DATA, method=oj.Method(strategies=wanted))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "multiple shooting"])
def test_each_finds_a_simple_optimum_alone(name):
    fit = oj.fit(MODEL, DATA, bounds=(0.01, 10.0), method=oj.Method(strategies=[name]), time_limit=20.0)
    assert fit.parameters["k"] == pytest.approx(0.7, rel=0.02)
    assert all((attempt.rung == "multistart") == (name != "algebraic starts") for attempt in fit.attempts)
