"""Experiments as one model: however many doses and known numbers there are, what is asked stays small."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.problem.joint import joint

TIMES = np.linspace(0.5, 30, 12)


def dosed(count: int, **cells) -> oj.Problem:
    model = oj.Model({"g": "-ka*g", "c": "ka*g - k*c"}, {"y": "c/V"}, initial={"g": 0, "c": 0})
    amounts = np.random.default_rng(0).uniform(5, 15, count)
    doses = {"time": np.linspace(0, 20, count), "state": "g", "amount": amounts, **cells}
    return oj.Problem(model, oj.Data(TIMES, {"y": np.ones(len(TIMES))}, doses=doses))


@pytest.mark.parametrize("cells", [{}, {"duration": 0.01}], ids=["boluses", "infusions"])
def test_doses_at_known_times_are_one_input(cells):
    few, many = dosed(2, **cells), dosed(1200, **cells)
    assert len(many.conditions[0].model.events) >= 1200 and len(joint(many).model.events) == 1
    kinds = [{name: oj.identify(one)[name].kind for name in ("ka", "k", "V")} for one in (few, many)]
    assert kinds[0] == kinds[1] == {"ka": "local", "k": "local", "V": "local"}


def test_what_is_not_known_of_a_dose_is_kept():
    found = joint(dosed(3, amount=["F*10", 5, 7], time=[0, "lag", 9]))
    assert len(found.model.events) == 3 and {"F", "lag"} <= set(found.model.parameters)


def test_experiments_put_together_may_have_more_entries_than_files():
    names = [f"c{i}" for i in range(300)]
    model = oj.Model({"x": "-k*x + " + " + ".join(names)}, {"y": "x"}, fixed=dict.fromkeys(names, 1e-4))
    parts = [oj.Data(TIMES, {"y": np.ones(12)}, name=f"e{j}", values={"c0": 1e-4 * (j + 1)}) for j in range(5)]
    assert len(joint(oj.Problem(model, oj.Data.join(parts))).model.fixed) > 1000
