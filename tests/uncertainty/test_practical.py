"""What data determine, where it is known from the model which combinations act."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odejet import Data, Model, simulate
from odejet.uncertainty.forms import Form, oriented
from odejet.uncertainty.likelihood import Likelihood
from odejet.uncertainty.practical import DETERMINED, UNDETERMINED, WEAK, Finding, judged, kind
from tests.fits import predators, refined_fit

TIMES = np.linspace(0, 4, 60)


def fitted(model, parameters, states, noise=0.01, seed=2, bounds=(1e-4, 20)):
    clean = simulate(model, parameters, states, TIMES)
    rng = np.random.default_rng(seed)
    data = Data(TIMES, {name: values + noise * rng.normal(size=60) for name, values in clean.items()})
    return refined_fit(model, data, [*states.values(), *parameters.values()], bounds=bounds)


@pytest.mark.parametrize(
    ("value", "interval", "opened", "expected"),
    [
        (1.0, (0.9, 1.1), (False, False), DETERMINED),
        (-1.0, (-1.1, -0.9), (False, False), DETERMINED),
        (1.0, (0.5, 1.1), (False, False), WEAK),
        (1.0, (0.9, 9.0), (False, False), WEAK),
        (1.0, (0.9, 11.0), (False, False), UNDETERMINED),
        (1.0, (-0.1, 1.1), (False, False), WEAK),
        (1.0, (0.9, 1.1), (True, False), UNDETERMINED),
        (1.0, (0.9, math.inf), (False, False), UNDETERMINED),
        (-1.0, (-30, -0.9), (False, False), UNDETERMINED),
    ],
)
def test_kinds(value, interval, opened, expected):
    assert kind(value, interval, opened) == expected


@given(st.floats(0.01, 100), st.floats(1e-3, 3), st.floats(0, 3))
def test_a_wider_interval_is_never_better(value, reach, more):
    order = [DETERMINED, WEAK, UNDETERMINED]
    ends = value * math.exp(-reach), value * math.exp(reach)
    wider = value * math.exp(-reach - more), value * math.exp(reach + more)
    assert order.index(kind(value, ends)) <= order.index(kind(value, wider))


def test_all_is_determined_where_data_are_good():
    fit = fitted(Model({"x": "-k*x"}, {"y": "x"}), {"k": 0.7}, {"x": 1.5})
    assert fit.practical.determined == fit.labels and not fit.practical.compounds


@pytest.mark.parametrize(
    ("model", "values", "states", "combination", "true"),
    [
        (Model({"x": "-a*b*x"}, {"y": "x"}), {"a": 0.5, "b": 1.4}, {"x": 1.5}, "a*b", 0.7),
        (Model({"x": "-a/b*x"}, {"y": "x"}), {"a": 0.5, "b": 0.8}, {"x": 1.5}, "a/b", 0.625),
        (Model({"x": "-(a + b)*x"}, {"y": "x"}), {"a": 0.5, "b": 0.3}, {"x": 1.5}, "a + b", 0.8),
        (Model({"x": "-k*x"}, {"y": "s*x"}), {"k": 0.7, "s": 2.0}, {"x": 1.5}, "x*s", 3.0),
    ],
)
def test_the_combination_that_acts_is_named(model, values, states, combination, true):
    fit = fitted(model, values, states)
    found = fit.practical
    assert len(found.undetermined) == 2
    named = {one.label: one for one in found.compounds}
    assert combination in named
    one = named[combination]
    assert one.kind == DETERMINED and one.value == pytest.approx(true, rel=0.05)
    assert one.interval[0] < one.value < one.interval[1] < 1.2 * one.interval[0]
    assert combination in fit.summary()


def test_nearly_a_product():
    """Saturation that the data hardly reach: only the ratio of maximal rate and constant acts."""
    model = Model({"x": "-v*x/(K + x)"}, {"y": "x"})
    fit = fitted(model, {"v": 24.0, "K": 80.0}, {"x": 0.5}, noise=0.001, bounds=(1e-4, 1000))
    found = fit.practical
    assert set(found.undetermined) == {"v", "K"}
    assert any(set(one.label) >= set("v/K") for one in found.compounds)
    shown = fit.summary()
    assert "≈" in shown and "determined in combination" in shown


def test_a_glance_is_quick_and_honest():
    fit = predators()
    kinds = {label: finding.kind for label, finding in fit.glance.findings.items()}
    assert kinds == {label: kind(value, fit.interval(label)) for label, value in fit.values.items()}
    assert all(one.method == "fisher" for one in fit.glance.findings.values())


def test_plain_squares_are_judged_by_curvature():
    model = Model({"x": "-a*b*x"}, {"y": "x"})
    data = Data(TIMES, {"y": np.exp(-0.5 * TIMES) + 0.01 * np.random.default_rng(1).normal(size=60)})
    fit = refined_fit(model, data, [1.0, 0.5, 1.0], weights="none")
    assert set(fit.practical.undetermined) == {"a", "b"} and not fit.practical.compounds


def test_forms_as_people_write_them():
    names = ["a", "b", "c"]
    assert Form(np.array([1, -1, 0]), 0.1).text(names) == "a/b"
    assert Form(np.array([2, 0, 0.5]), 0.1).text(names) == "a**2*c**0.5"
    assert Form(np.array([0, -1, -2]), 0.1).text(names) == "1/b/c**2"
    assert Form(np.array([-1, 1, 1]), 0.1, product=False).text(names) == "b + c - a"


def test_a_finding_has_the_digits_that_its_interval_lets_mean_something():
    closed = Finding("a + b", 1.33742, (1.28211, 1.43004), "determined", "profile")
    assert closed.sentence == "a + b = 1.337 [1.282, 1.430]"
    assert replace(closed, open=(False, True)).sentence == "a + b = 1.337 above 1.28"


def test_a_profile_for_which_there_was_no_time_says_nothing(monkeypatch):
    fit = fitted(Model({"x": "-k*x"}, {"y": "x"}), {"k": 0.7}, {"x": 1.5})
    loose = {label: (0.5 * fit.values[label], 2 * fit.values[label]) for label in fit.labels}
    seconds = 0.0

    def slow(*_):
        nonlocal seconds
        seconds += 0.3

    for module in ("practical", "profile"):
        monkeypatch.setattr(importlib.import_module(f"odejet.uncertainty.{module}"), "now", lambda: seconds)
    monkeypatch.setattr(Likelihood, "hold", slow)
    findings, profiles = judged(fit.likelihood, loose, deadline=0.2)
    assert not profiles and {one.method for one in findings.values()} == {"fisher"}


@pytest.mark.parametrize(("signs", "value", "text"), [((1, 1), -2.0, "b1 + b2"), ((1, -1), -2.0, "b2 - b1")])
def test_sums_begin_with_what_they_add(signs, value, text):
    coefficients = oriented(np.array(signs, dtype=float), value)
    assert Form(coefficients, 0.01, product=False).text(["b1", "b2"]) == text
