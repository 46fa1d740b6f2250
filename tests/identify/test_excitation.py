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


def test_a_lag_is_seen_in_the_outputs():
    verdict = oj.identify(absorbed(events=[Event(at="tlag", every=12, set={"gut": "gut + dose"})]))
    kinds = {name: verdict[name].kind for name in ("ka", "k", "V", "tlag")}
    assert kinds == {"ka": "local", "k": "local", "V": "local", "tlag": "global"}
    assert all(output == "y" for output, _ in verdict.rows)


def test_a_time_between_doses_is_seen_in_the_outputs():
    verdict = oj.identify(
        absorbed(events=[Event(at=0, every="a*b", set={"gut": "gut + dose"})], fixed={"dose": 1, "V": 2})
    )
    assert {name: verdict[name].kind for name in ("ka", "k", "a", "b")} == {
        "ka": "global", "k": "global", "a": "none", "b": "none",
    }  # fmt: skip
    assert "a*b" in verdict.combinations


INFUSED = Model({"c": "-k*c"}, {"conc": "c/v"}, initial={"c": 0})
TIMES = np.array([0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12])


def infused(**doses) -> oj.Problem:
    data = oj.Data(TIMES, {"conc": np.ones(len(TIMES))}, start=0, doses={"state": ["c"] * len(doses["time"]), **doses})
    return oj.Problem(INFUSED, data)


def test_the_end_of_an_infusion_tells_its_duration():
    verdict = oj.identify(infused(time=[0], amount=[100], duration=["D1"]))
    assert {name: q.kind for name, q in verdict.items()} == {"k": "global", "v": "global", "D1": "global"}
    # The same duration later adds nothing to be confused with.
    verdict = oj.identify(infused(time=[0, 4], amount=[100, 100], duration=["D1", "D1"]))
    assert verdict["D1"].kind == "global"
    # Nobody knows the volume without the amount.
    verdict = oj.identify(infused(time=[0], amount=["A"], duration=["D1"]))
    assert {name: verdict[name].kind for name in ("k", "v", "A", "D1")} == {
        "k": "global", "v": "none", "A": "none", "D1": "global",
    }  # fmt: skip


def test_events_at_unknown_times_may_change_places():
    """Equal doses at two unknown times: the times may be exchanged, and outputs are the same."""
    verdict = oj.identify(infused(time=["t1", "t2"], amount=[100, 100]))
    assert {name: q.told for name, q in verdict.items()} == {
        "k": "global", "v": "at least local", "t1": "at least local", "t2": "at least local",
    }  # fmt: skip
    assert "taken for another" in verdict.reason and verdict.solutions is None
    # Not where one output sees the one alone and another the other.
    twice = Model(
        {"a": "-k*a", "b": "-m*b"}, {"y": "a", "z": "b"}, initial={"a": 0, "b": 0},
        events=[Event(at="t1", set={"a": "a + 1"}), Event(at="t2", set={"b": "b + 1"})],
    )  # fmt: skip
    assert set(oj.identify(twice).names("global")) == {"k", "m", "t1", "t2"}


def test_the_time_of_an_event_that_nothing_shows_is_not_decided():
    hidden = Model({"x": "-k*x", "z": "-z"}, {"y": "x"}, events=[Event(at="tau", set={"z": "z + 1"})])
    verdict = oj.identify(hidden)
    assert not verdict["tau"].tested and "events alone" in verdict["tau"].reason
    # One that adds to a sum what it takes away from it.
    moved = Event(at="tau", set={"x": "x + 1", "z": "z - 1"})
    assert not oj.identify(Model({"x": "-k*z", "z": "k*z"}, {"y": "x + z"}, events=[moved]))["tau"].tested


def test_what_one_event_adds_comes_at_once():
    """Of two parts that are added to a sum at one time the sum is seen."""
    both = Event(at=1, set={"x": "x + a", "z": "z + b"})
    verdict = oj.identify(Model({"x": "-x", "z": "-z"}, {"y": "x + z"}, events=[both], initial={"x": 1, "z": 1}))
    assert verdict["a"].kind == verdict["b"].kind == "none"
    assert "a + b" in verdict.combinations
    # By two events of the same time too.
    parts = [Event(at=1, set={"x": "x + a"}), Event(at=1, set={"x": "x + b"})]
    verdict = oj.identify(Model({"x": "-x"}, {"y": "x"}, events=parts))
    assert verdict["a"].kind == verdict["b"].kind == "none"


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


def test_thousands_of_doses_are_one_input():
    """Amounts that are numbers differ by what everybody knows."""
    doses = [Event(at=i, set={"gut": f"gut + {100 + i % 7}"}) for i in range(3000)]
    verdict = oj.identify(absorbed(events=doses, fixed={"V": 2}))
    assert set(verdict.names("global")) == {"ka", "k"}
    # Unknown factors of two amounts are told apart by their times.
    factors = [Event(at=1, set={"gut": "gut + 100*f"}), Event(at=2, set={"gut": "gut + 100*h"})]
    verdict = oj.identify(absorbed(events=factors, fixed={"V": 2}))
    assert set(verdict.names("local")) == {"ka", "k", "f", "h"}
