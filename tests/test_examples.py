"""Examples: the values that made their data come back, and what cannot be known is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from odejet import Data, Fit, Model, fit

HERE = Path(__file__).parent.parent / "examples"


def fitted(name: str, **options: object) -> Fit:
    return fit(Model.from_toml(HERE / f"{name}.toml"), Data.from_csv(HERE / f"{name}.csv"), **options)


def test_a_gain_that_nobody_knows_is_told():
    answer = fitted("decay")
    assert answer.success and "many values of x(0), s do as well" in answer.message
    assert str(answer).startswith("decay: certified as far as data can tell")
    assert answer.parameters["k"] == pytest.approx(0.4, abs=5 * answer.stderr["k"])


def test_the_reactor():
    answer = fitted("cstr", effort="quick")
    truth = {"tau": 0.5, "Tin": 0.6, "heat": 0.7, "cooling": 0.4, "C": 0.6, "T": 0.5, "rate": 0.4}
    for name, value in {**answer.parameters, **answer.initial_state}.items():
        assert value == pytest.approx(truth[name], abs=5 * answer.stderr[name])


def test_two_receptors_that_nothing_tells_apart():
    answer = fitted("receptor_binding")
    here, there = (one.parameters for one in answer.solutions)
    for name in ("kon", "koff", "R"):
        assert here[f"{name}1"] == pytest.approx(there[f"{name}2"], rel=1e-3)
        assert here[f"{name}2"] == pytest.approx(there[f"{name}1"], rel=1e-3)
    assert sorted([here["kon1"], here["kon2"]]) == pytest.approx([0.3, 5.0], rel=0.05)


def test_doses_with_a_lag():
    data = Data.from_csv(HERE / "repeated_doses.csv", doses=HERE / "repeated_doses_given.csv").starting(0)
    answer = fit(Model.from_toml(HERE / "repeated_doses.toml"), data, bounds={"V1": (10, 100)}, positive=True)
    assert answer.certified
    truth = {"ka": 0.9, "CL": 4.0, "V1": 20.0, "Q": 3.0, "V2": 30.0, "tlag": 0.6}
    for name, value in truth.items():
        assert answer.parameters[name] == pytest.approx(value, abs=4 * answer.stderr[name])
