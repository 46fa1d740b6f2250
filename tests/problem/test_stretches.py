"""Stretches: where outputs are smooth, between what happens at known times and what the data show."""

import numpy as np

import odejet as oj
from odejet.problem import Problem
from odejet.problem.stretches import stretch, stretches

TIMES = np.arange(0.0, 30.0)
RATES = {"x": "-k*x"}


def condition(events=(), values=None, **known):
    model = oj.Model(RATES, {"y": "x"}, events=list(events), **known)
    return Problem(model, oj.Data(TIMES, {"y": np.cos(TIMES) if values is None else values})).conditions[0]


def span(part):
    return (part["y"].times[0], part["y"].times[-1]) if part else None


def test_without_events_all_of_it():
    assert span(stretch(condition())) == (0, 29)


def test_the_longest_between_known_times_with_what_was_measured_then_before_it():
    doses = [oj.Event(at=[5, 20], set={"x": "x + 1"})]
    assert span(stretch(condition(doses))) == (6, 20)
    assert [span(part) for part in stretches(condition(doses))] == [(0, 5), (6, 20), (21, 29)]
    repeated = [oj.Event(at=2, every=4, count=2, set={"x": "x + 1"})]
    assert span(stretch(condition(repeated))) == (7, 29)
    seen = [oj.Event(at=[5, 20], set={"x": "x + 1"}, seen=True)]
    assert [span(part) for part in stretches(condition(seen))] == [(0, 4), (5, 19), (20, 29)]
    first = [oj.Event(at=0, set={"x": "x + 1"})]
    assert span(stretch(condition(first))) == (1, 29)


def test_what_cannot_be_undone_ends_it():
    reset = [oj.Event(at=12, set={"x": 1})]
    assert span(stretch(condition(reset))) == (0, 12)
    unknown = [oj.Event(at=12, set={"x": "x + F"})]  # nothing but the event tells F
    assert span(stretch(condition(unknown))) == (0, 12)
    changed = [oj.Event(at=8, set={"k": "2*k"})]
    assert span(stretch(condition(changed))) == (0, 8)


def test_times_that_nobody_knows():
    assert not stretch(condition([oj.Event(at="lag", set={"x": "x + 1"})]))


def test_switches_on_the_time_are_known():
    model = oj.Model({"x": "piecewise(1, t < 10, 0) - k*x"}, {"y": "x"})
    problem = Problem(model, oj.Data(TIMES, {"y": np.cos(TIMES)}))
    assert span(stretch(problem.conditions[0])) == (10, 29)
    until = Problem(model.replace(states={"x": "piecewise(1, t <= 10, 0) - k*x"}), oj.Data(TIMES, {"y": np.cos(TIMES)}))
    assert span(stretch(until.conditions[0])) == (11, 29)


def test_jumps_that_the_data_show():
    values = np.where(TIMES < 12, 0.1 * TIMES, 50 + 0.1 * TIMES)
    shown = condition([oj.Event(when="x > 3", set={"x": 0})], values)
    assert span(stretch(shown)) == (0, 11)
    assert [span(part) for part in stretches(shown)] == [(0, 11), (12, 29)]


def test_kinks_that_the_data_show_where_nothing_jumps():
    times = np.linspace(0, 3, 61)
    height = np.abs(np.sin(times * np.pi)) + 0.002 * np.random.default_rng(0).standard_normal(61)
    model = oj.Model({"h": "v", "v": "-k*h"}, {"y": "h"}, events=[oj.Event(when="h < 0", set={"v": "-v"})])
    found = [span(part) for part in stretches(Problem(model, oj.Data(times, {"y": height})).conditions[0])]
    assert len(found) == 3
    for (_, end), (begin, _), kink in zip(found, found[1:], (1, 2), strict=False):
        assert end < kink < begin <= end + 0.21


def test_a_curve_that_only_bends_has_no_kinks():
    times = np.linspace(0, 6, 121)
    model = oj.Model({"h": "v", "v": "-k*h"}, {"y": "h"}, events=[oj.Event(when="h < -9", set={"v": "-v"})])
    for noise in (0.0, 1e-4, 0.05):
        values = np.sin(2 * times) + noise * np.random.default_rng(1).standard_normal(121)
        assert len(stretches(Problem(model, oj.Data(times, {"y": values})).conditions[0])) == 1
