"""Identifiability of models with events and switches: known excitation, or no decision and the reason."""

import numpy as np
import pytest

import odejet as oj
from odejet import Event, Model
from odejet.jets.inputs import input_jets

DOSE = Event(at=0, every=12, set={"gut": "gut + dose"})


def absorbed(**changes) -> Model:
    arguments = {
        "states": {"gut": "-ka*gut", "x": "ka*gut - k*x"},
        "outputs": {"y": "x/V"},
        "initial": {"gut": 0, "x": 0},
        "fixed": {"dose": 100},
        "events": [DOSE],
    }
    return Model(**(arguments | changes))


def test_doses_are_an_excitation():
    """Absorption and elimination are exchanged with the volume in one dose; an input into the gut tells no more."""
    verdict = oj.identify(absorbed())
    assert {name: verdict[name].kind for name in ("ka", "k", "V")} == {"ka": "local", "k": "local", "V": "local"}
    assert verdict.solutions == 2
    assert oj.identify(absorbed(fixed={"dose": 100, "V": 2})).solutions == 1
    alone = Model({"x": "-k*x"}, {"y": "x/V"}, events=[Event(at=1, set={"x": "x + 0"})])
    assert oj.identify(alone)["V"].kind == "none"


def test_an_unknown_dose_hides_the_volume():
    verdict = oj.identify(absorbed(fixed={}))
    assert verdict["dose"].kind == verdict["V"].kind == "none"


def test_an_infusion_that_is_switched_on_and_off():
    switched = [Event(at=1, set={"rate": 5}), Event(at=2, set={"rate": 0})]
    model = Model({"x": "rate - k*x"}, {"y": "x/V"}, fixed={"rate": 0}, events=switched, initial={"x": 0})
    assert set(oj.identify(model).names("global")) == {"k", "V"}


def test_a_lag_is_not_decided_but_all_the_rest_is():
    verdict = oj.identify(absorbed(events=[Event(at="tlag", every=12, set={"gut": "gut + dose"})]))
    kinds = {name: verdict[name].kind for name in ("ka", "k", "V", "tlag")}
    assert kinds == {"ka": "local", "k": "local", "V": "local", "tlag": "undecided"}
    assert "events alone" in verdict["tlag"].reason
    assert "everything else" in verdict.message and "tlag" in verdict.message


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"events": [Event(when="x > 3", set={"gut": "gut + dose"})]}, "conditions"),
        ({"events": [Event(at=3, set={"gut": "dose"})]}, "sets a state to another value"),
        ({"states": {"gut": "-ka*floor(gut)", "x": "ka*gut - k*x"}}, "the equations switch between more than"),
    ],
)
def test_what_is_not_decided_says_why(changes, reason):
    verdict = oj.identify(absorbed(**changes))
    assert all(quantity.kind == "undecided" for quantity in verdict.values())
    assert reason in verdict.reason
    assert reason in verdict.message


def test_switches_that_numbers_decide_are_none():
    model = absorbed(states={"gut": "-ka*gut", "x": "piecewise(ka, 1 > 0, 7)*gut - k*x"})
    assert oj.identify(model).solutions == 2


def test_inputs_that_switch_have_jets_on_every_branch():
    model = Model({"x": "u"}, inputs={"u": "piecewise(t**2, t < 1, 3 - t)"})
    jets = input_jets(model, {}, np.array([0.5, 1.0, 2.0]), 2)
    assert jets[:, 0] == pytest.approx(np.array([[0.25, 1.0, 1.0], [2.0, -1.0, 0.0], [1.0, -1.0, 0.0]]))
