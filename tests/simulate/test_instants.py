"""Order at one time: what a measurement sees that is made when something happens, in every way to say that it happens.

The table of `docs/instants.md` in numbers.  A state that stays where it is, x' = 0 from x(0) = 1, tells by its value
what has happened to it.
"""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj
from odejet import Data, Event, Model
from odejet.problem import Problem

TIMES = [0.0, 1.0, 2.0, 3.0]
RELATIONS = ("<", "<=", ">", ">=", "==", "!=")


def course(events=(), times=TIMES, outputs=None, rate="0", **options):
    model = Model({"x": rate}, outputs or {"y": "x"}, initial={"x": 1}, events=events)
    found = oj.simulate(model, {}, {}, times, start=0.0, **options)
    assert found.success, found.message
    return list(found["y"])


def predicted(model, data, values):
    """What a model predicts for every measurement, in the order of the data."""
    problem = Problem(model, data)
    courses = problem.conditions
    (own,) = courses
    times = own.experiment.outputs["y"].times
    run = oj.simulate(own.model, values, {}, times, start=own.experiment.start)
    assert run.success, run.message
    return list(run["y"])


STATIONARY = Model({"x": "0"}, {"y": "x"}, initial={"x": 1})


def dosed(doses, times=TIMES, model=STATIONARY, **options):
    data = Data(times, {"y": np.ones(len(times))}, doses=doses, start=0.0, **options)
    return predicted(model, data, {})


# --- events of a model


SITUATIONS = {
    "an event is after what is measured at its time": ([Event(at=2, set={"x": "x + 1"})], [1, 1, 1, 2]),
    "an event at the start is after what is measured there": ([Event(at=0, set={"x": "x + 1"})], [1, 2, 2, 2]),
    "a repeated event": ([Event(at=0, every=1, set={"x": "2*x"})], [1, 2, 4, 8]),
    "an event at several times": ([Event(at=[2, 1], set={"x": "x + 1"})], [1, 1, 2, 3]),
    "a reset": ([Event(at=2, set={"x": 0})], [1, 1, 1, 0]),
    "events at one time in the order given": (
        [Event(at=2, set={"x": "x + 1"}), Event(at=2, set={"x": "10*x"})],
        [1, 1, 1, 20],
    ),
    "an event that is seen at its time": ([Event(at=2, set={"x": "x + 1"}, seen=True)], [1, 1, 2, 2]),
    "one that is seen at the start": ([Event(at=0, set={"x": "x + 1"}, seen=True)], [2, 2, 2, 2]),
    "what is seen comes first, then the measurement": (
        [Event(at=2, set={"x": "10*x"}), Event(at=2, set={"x": "x + 1"}, seen=True)],
        [1, 1, 2, 20],
    ),
    "a condition of the time": ([Event(when="t >= 2", set={"x": "x + 1"})], [1, 1, 1, 2]),
    "one that is seen where it is true": ([Event(when="t >= 2", set={"x": "x + 1"}, seen=True)], [1, 1, 2, 2]),
    "one that is not yet true there is not seen": ([Event(when="t > 2", set={"x": "x + 1"}, seen=True)], [1, 1, 1, 2]),
    "a condition that holds for an instant": ([Event(when="t == 2", set={"x": "x + 1"})], [1, 1, 1, 2]),
    "such a condition, seen": ([Event(when="t == 2", set={"x": "x + 1"}, seen=True)], [1, 1, 2, 2]),
    "one that fails for an instant": ([Event(when="t != 2", set={"x": "x + 1"})], [1, 1, 1, 2]),
    "a condition that becomes true just after the start": ([Event(when="t > 0", set={"x": "x + 1"})], [1, 2, 2, 2]),
    "a condition that is true at the start": ([Event(when="t >= 0", set={"x": "x + 1"})], [1, 1, 1, 1]),
    "what follows from a seen event is seen": (
        [Event(at=2, set={"x": 5}, seen=True), Event(when="x > 4", set={"x": "x + 1"}, seen=True)],
        [1, 1, 6, 6],
    ),
    "conditions in a row at one instant": (
        [
            Event(when="t >= 2", set={"x": 5}, seen=True),
            Event(when="x > 4", set={"x": "x + 1"}, seen=True),
            Event(when="t > 2", set={"x": "10*x"}, seen=True),
        ],
        [1, 1, 6, 60],
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_events(situation):
    events, expected = SITUATIONS[situation]
    assert course(events) == expected


@pytest.mark.parametrize("situation", SITUATIONS)
def test_events_are_the_same_whether_anybody_measures_at_their_times(situation):
    events, expected = SITUATIONS[situation]
    assert course(events, [0.5, 1.5, 2.5, 3.0])[-1] == expected[-1]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_events_beside_a_state_that_is_stiff(situation):
    """Steps of collocation come to the same instants."""
    events, expected = SITUATIONS[situation]
    model = Model(
        {"x": "0", "a": "1e6*(b - a)", "b": "1e6*(cos(t) - b)"},
        {"y": "x"},
        initial={"x": 1, "a": 1, "b": 1},
        events=events,
    )
    found = oj.simulate(model, {}, {}, TIMES, start=0.0)
    assert list(found["y"]) == expected


def test_a_state_that_rises_from_zero_passes_it_just_after_the_start():
    """x = sin(t) is zero at the start, where x > 0 is false."""
    model = Model({"x": "cos(t)", "n": "0"}, initial={"x": 0, "n": 0}, events=[Event(when="x > 0", set={"n": "n + 1"})])
    assert list(oj.simulate(model, {}, {}, [0, 1, 5, 7]).states["n"]) == [0, 1, 1, 2]


def test_a_start_that_is_left_slowly():
    """x = t^3 and then t^4: the first terms of a series that tell the sign are late ones."""
    for rate in ("3*t**2", "4*t**3"):
        model = Model({"x": rate, "n": "0"}, initial={"x": 0, "n": 0}, events=[Event(when="x > 0", set={"n": "n + 1"})])
        assert list(oj.simulate(model, {}, {}, [0, 1, 2]).states["n"]) == [0, 1, 1]


def test_backward_a_measurement_is_before_the_event_too():
    model = Model({"x": "0"}, {"y": "x"}, events=[Event(at=2, set={"x": "x + 1"})])
    assert list(oj.simulate(model, {}, {"x": 5.0}, [1.0, 2.0, 3.0], start=4.0)["y"]) == [4, 4, 5]
    seen = model.replace(events=[Event(at=2, set={"x": "x + 1"}, seen=True)])
    assert list(oj.simulate(seen, {}, {"x": 5.0}, [1.0, 2.0, 3.0], start=4.0)["y"]) == [4, 5, 5]
    lost = model.replace(events=[Event(at=2, set={"x": 0})])
    assert list(oj.simulate(lost, {}, {"x": 5.0}, [1.0, 2.0, 3.0], start=4.0).times) == [3.0]


# --- comparisons at the instant at which they change


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("of", ["t", "x"])
def test_comparisons_in_outputs(relation, of):
    """x = 1 + t beside 3, and the time beside 2."""
    output = {"y": f"piecewise(1, {of} {relation} {2 if of == 't' else 3}, 0)"}
    truth = {"<": [1, 1, 0, 0], "<=": [1, 1, 1, 0], ">": [0, 0, 0, 1], ">=": [0, 0, 1, 1]}
    truth |= {"==": [0, 0, 1, 0], "!=": [1, 1, 0, 1]}
    assert course(outputs=output, rate="1") == truth[relation]


@pytest.mark.parametrize("relation", RELATIONS)
def test_comparisons_in_outputs_at_the_start(relation):
    truth = {"<": [0, 0], "<=": [1, 0], ">": [0, 1], ">=": [1, 1], "==": [1, 0], "!=": [0, 1]}
    assert course(outputs={"y": f"piecewise(1, t {relation} 0, 0)"}, times=[0.0, 1.0]) == truth[relation]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("of", ["t", "x"])
def test_comparisons_in_events(relation, of):
    """How often an event has happened whose condition changes at t = 2, unseen and seen."""
    bound = 2 if of == "t" else 3
    counts = {}
    for seen in (False, True):
        event = Event(when=f"{of} {relation} {bound}", set={"n": "n + 1"}, seen=seen)
        model = Model({"x": "1", "n": "0"}, {"y": "n"}, initial={"x": 1, "n": 0}, events=[event])
        counts[seen] = list(oj.simulate(model, {}, {}, TIMES)["y"])
    unseen = [0, 0, 0, 0] if relation in ("<", "<=") else [0, 0, 0, 1]
    assert counts[False] == unseen
    assert counts[True] == ([0, 0, 1, 1] if relation in (">=", "==") else unseen)


def test_comparisons_in_outputs_of_a_rate_that_switches():
    """The state goes on as it did, and what is shown of the rate is what the comparison says."""
    model = Model({"x": "piecewise(1, t <= 2, -1)"}, {"y": "x", "rate": "piecewise(1, t <= 2, -1)"}, initial={"x": 0})
    found = oj.simulate(model, {}, {}, TIMES)
    np.testing.assert_allclose(found["y"], [0, 1, 2, 1], rtol=1e-15)
    assert list(found["rate"]) == [1, 1, 1, -1]


# --- inputs that step


def test_an_input_that_jumps_is_measured_before_the_jump():
    model = Model({"x": "u"}, {"y": "x + 10*u"}, inputs={"u": None}, initial={"x": 1})
    step = ([0.0, 2.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0])
    found = oj.simulate(model, {}, {}, TIMES, inputs={"u": step})
    np.testing.assert_allclose(found["y"], [1, 1, 1, 12], rtol=1e-15)


def test_an_input_that_is_held_has_at_a_sample_the_value_of_the_sample():
    model = Model({"x": "0"}, {"y": "x + 10*u"}, inputs={"u": "sampled, hold"}, initial={"x": 1})
    found = oj.simulate(model, {}, {}, TIMES, inputs={"u": ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])})
    np.testing.assert_allclose(found["y"], [1, 11, 21, 21], rtol=1e-15)


def test_an_event_and_a_jump_of_an_input_at_one_time():
    events = [Event(at=2, set={"x": "x + 5"})]
    model = Model({"x": "0"}, {"y": "x + 10*u"}, inputs={"u": None}, initial={"x": 1}, events=events)
    step = ([0.0, 2.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0])
    assert list(oj.simulate(model, {}, {}, TIMES, inputs={"u": step})["y"]) == [1, 1, 1, 16]
    switching = model.replace(outputs={"y": "x + 10*u + piecewise(100, t >= 2, 0)"})
    assert list(oj.simulate(switching, {}, {}, TIMES, inputs={"u": step})["y"]) == [1, 1, 101, 116]


# --- doses


def test_a_bolus():
    assert dosed({"time": [2], "state": ["x"], "amount": [5]}) == [1, 1, 1, 6]


def test_a_bolus_at_the_start():
    assert dosed({"time": [0], "state": ["x"], "amount": [5]}) == [1, 6, 6, 6]


def test_a_repeated_bolus():
    assert dosed({"time": [0], "state": ["x"], "amount": [5], "every": [1], "count": [3]}) == [1, 6, 11, 16]


def test_an_infusion_begins_and_ends():
    """The state is what it is; an output that shows its rate is of before."""
    found = dosed({"time": [1], "state": ["x"], "amount": [5], "duration": [1]})
    np.testing.assert_allclose(found, [1, 1, 6, 6], rtol=1e-14)


def test_a_bolus_where_an_infusion_ends():
    doses = {"time": [1, 2], "state": ["x", "x"], "amount": [5, 100], "duration": [1, None]}
    np.testing.assert_allclose(dosed(doses), [1, 1, 6, 106], rtol=1e-14)


def test_a_dose_that_is_seen():
    assert dosed({"time": [2], "state": ["x"], "amount": [5], "seen": [1]}) == [1, 1, 6, 6]


def test_a_dose_and_an_event_of_the_experiment_at_one_time():
    """What is done to an experiment comes before doses."""
    doses = {"time": [2], "state": ["x"], "amount": [5]}
    assert dosed(doses, events=[Event(at=2, set={"x": "10*x"})]) == [1, 1, 1, 15]


def test_a_count_since_the_last_reset_is_measured_before_the_next():
    """New cases of every week: 7 in each."""
    model = Model({"C": "1"}, {"y": "C"}, initial={"C": 0}, events=[Event(at=0, every=7, set={"C": 0})])
    found = oj.simulate(model, {}, {}, np.arange(0, 36, 7.0))
    np.testing.assert_allclose(found["y"], [0, 7, 7, 7, 7, 7], rtol=1e-15)


def test_weekly_counts_with_a_reset_are_fitted():
    """Cases of an epidemic by week: the reset at the time of each count comes after it."""
    model = Model(
        {"S": "-b*S*I", "I": "b*S*I - g*I", "C": "b*S*I"},
        {"cases": "C"},
        initial={"S": 990, "I": 10, "C": 0},
        events=[Event(at=0, every=7, set={"C": 0})],
    )
    times = np.arange(7.0, 71.0, 7.0)
    truth = {"b": 5e-4, "g": 0.25}
    cases = oj.simulate(model, truth, {}, times, start=0.0)["cases"]
    fit = oj.fit(model, Data(times, {"cases": cases}, start=0.0), positive=True)
    assert fit.success
    assert fit.values["b"] == pytest.approx(5e-4, rel=1e-6) and fit.values["g"] == pytest.approx(0.25, rel=1e-6)


def test_a_condition_of_an_instant_at_the_start_happens_once():
    """Several events at the start, each of which makes the conditions be read again."""
    text = [Event(when="t == 0", set={"x": "x + 1"}, seen=True), Event(at=[0, 0, 0], set={"x": "x + 10"}, seen=True)]
    assert course(text) == [31, 31, 31, 31]
    assert course([Event(when="t > 0", set={"x": "x + 1"}, seen=True), text[1]]) == [31, 32, 32, 32]
