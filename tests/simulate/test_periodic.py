"""Steady states of repeated doses: closed forms, long repetition and differences tell what they are."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet.problem import Problem
from odejet.simulate.flow import Outcome

ORAL = oj.Model({"g": "-ka*g", "c": "ka*g - k*c"}, {"y": "c/V"}, initial={"g": 0, "c": 0})
TRUTH = {"ka": 1.0, "k": 0.1, "V": 10.0}
TIMES = np.array([0.5, 1, 2, 4, 8, 11.5])


def problem(model, times, doses, **told):
    return Problem(model, oj.Data(times, {"y": np.ones(len(times))}, doses=doses, **told))


def oral(t, ka=1.0, k=0.1, v=10.0, every=12.0):
    """The amount in the second compartment after a dose of 100 at steady state, as textbooks have it."""
    part = [np.exp(-rate * t) / (1 - np.exp(-rate * every)) for rate in (k, ka)]
    return 100 * ka / v / (ka - k) * (part[0] - part[1])


@pytest.mark.parametrize("told", [{}, {"initial": "steady"}], ids=["from zero", "steady"])
def test_a_bolus_is_as_the_textbook_says(told):
    dose = {"time": 0, "state": "g", "amount": 100, "every": 12, "count": 1, "steady": 1}
    model = ORAL if not told else ORAL.replace(initial=None)
    found = problem(model, TIMES, dose, start=0, **told)
    assert found.unknowns == ("ka", "k", "V")
    assert np.allclose(found.simulate(TRUTH)["experiment1"]["y"], oral(TIMES), rtol=1e-12)


@pytest.mark.parametrize(
    ("rates", "dose", "truth"),
    [
        ({"c": "-k*c"}, {"amount": 100}, {"k": 0.01, "V": 10.0}),
        ({"c": "-k*c"}, {"amount": "F*100", "duration": "D"}, {"k": 0.1, "V": 10.0, "F": 0.7, "D": 2.0}),
        ({"c": "-Vm*c/(K + c)"}, {"amount": 100}, {"Vm": 12.0, "K": 20.0, "V": 10.0}),
        ({"c": "R - k*c*c"}, {"amount": 50, "duration": 6}, {"R": 1.0, "k": 0.01, "V": 10.0}),
        ({"c": "-k*c", "auc": "c"}, {"amount": 100}, {"k": 0.1, "V": 10.0}),
    ],
    ids=["slow", "infusion of unknown length", "saturated", "production", "an area"],
)
def test_long_repetition_comes_to_the_same(rates, dose, truth):
    """In the middle of an experiment, too, and with derivatives that differences agree with."""
    model = oj.Model(rates, {"y": "c/V"}, initial=dict.fromkeys(rates, 0))
    times = np.array([3.0, 49.0, 50.5, 55.0, 60.0, 70.0])
    row = {"state": "c", "every": 12, **dose}
    found = problem(model, times, [{**row, "time": 0, "every": None}, {**row, "time": 50, "count": 2, "steady": 1}])
    periods = 400
    repeated = problem(
        model, times[2:], {**row, "time": 50 - 12 * periods, "count": periods + 2}, start=50 - 12 * periods
    )
    values = found.simulate(truth)["experiment1"]["y"]
    assert np.allclose(values[2:], repeated.simulate(truth)["experiment1"]["y"], rtol=1e-9)
    single = problem(model, times[:2], {**row, "time": 0, "every": None}, start=0)
    assert np.allclose(values[:2], single.simulate(truth)["experiment1"]["y"], rtol=1e-12)
    slopes = found.simulate(truth, sensitivities=True)["experiment1"]
    for name in found.unknowns:
        step = 1e-5 * truth[name]
        ends = [found.simulate({**truth, name: truth[name] + s})["experiment1"]["y"] for s in (step, -step)]
        assert np.allclose(slopes.sensitivity("y", name), (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-7)


def test_a_steady_state_may_be_added_to_what_is_there():
    """Doses of mornings and evenings: by superposition each is at its own steady state."""
    row = {"state": "g", "amount": 100, "every": 24, "count": 3}
    times = np.array([12.5, 14.0, 23.0])
    found = problem(ORAL, times, [{**row, "time": 0, "steady": 1}, {**row, "time": 12, "steady": 2}])
    assert np.allclose(found.simulate(TRUTH)["experiment1"]["y"], oral(times - 12, every=12.0), rtol=1e-12)


def test_what_grows_without_end_has_none():
    model = oj.Model({"c": "-Vm*c/(K + c)"}, {"y": "c"}, initial={"c": 0})
    dose = {"time": 0, "state": "c", "amount": 100, "every": 12, "steady": 1}
    found = problem(model, TIMES, dose, start=0).simulate({"Vm": 5.0, "K": 20.0})["experiment1"]
    assert found.trajectory.outcome in (Outcome.RESTLESS, Outcome.UNSTABLE)
    assert problem(model, TIMES, dose, start=0).log_likelihood({"Vm": 5.0, "K": 20.0}) == -np.inf


def test_rest_and_repeated_doses_are_not_mistaken_for_each_other():
    row = {"time": 0, "state": "g", "amount": 100, "every": 12, "count": 3}
    model = ORAL.replace(initial=None)
    with pytest.raises(oj.DataError, match=r"dose 1: initial=\"steady\" is rest without doses.*a column steady"):
        problem(model, TIMES, row, start=0, initial="steady")
    resting = problem(model, TIMES, {**row, "steady": 0}, start=0, initial="steady")
    single = problem(ORAL, TIMES, row, start=0)
    expected = single.simulate(TRUTH)["experiment1"]["y"]
    assert np.allclose(resting.simulate(TRUTH)["experiment1"]["y"], expected, rtol=1e-12)


def test_parameters_that_events_set_have_no_steady_state():
    dose = {"time": 0, "state": "g", "amount": 100, "every": 12, "steady": 1}
    with pytest.raises(oj.DataError, match="an event sets 'k'"):
        problem(ORAL, TIMES, dose, start=0, events=[oj.Event(at=5, set={"k": 0.2})])


def test_a_fit_at_steady_state(tmp_path):
    rng = np.random.default_rng(0)
    values = oral(TIMES) * (1 + 0.01 * rng.standard_normal(len(TIMES)))
    dose = {"time": 0, "state": "g", "amount": 100, "every": 12, "count": 1, "steady": 1}
    fit = oj.fit(ORAL, oj.Data(TIMES, {"y": values}, doses=dose), noise="1%", positive=True)
    assert [fit.kind(name) for name in ("ka", "k", "V")] == ["local", "local", "local"]  # they flip, as ever
    assert abs(fit.values["V"] - 10) < 1 or abs(fit.values["V"] - 1) < 0.2
    fit.save(tmp_path / "fit.json")
    again = oj.Fit.load(tmp_path / "fit.json")
    assert again.data.experiments[0].doses == fit.data.experiments[0].doses
