"""Switches that solutions cross on the way: beside closed forms, with nothing decided in Python."""

import numpy as np
import pytest
from mpmath import mp

from odejet import Event, Model, Outcome
from odejet.simulate.events import Passage
from odejet.simulate.flow import Flow
from tests.simulate.test_events import agree


@pytest.fixture
def crossings(monkeypatch):
    """The times of crossings that Python had to look at."""
    seen, cross = [], Passage.cross
    monkeypatch.setattr(Passage, "cross", lambda passage, place: seen.append(place.time) or cross(passage, place))
    return seen


def swinging(t, p, q, c, u, w, x):
    """How long u = u cos t + w sin t has been above c, and below it, from a start below it."""
    size, phase = mp.sqrt(u * u + w * w), mp.atan2(u, w)  # u = size sin(t + phase)
    up, down = mp.asin(c / size) - phase, mp.pi - mp.asin(c / size) - phase
    above = sum(max(0, min(t, down + 2 * mp.pi * k) - (up + 2 * mp.pi * k)) for k in range(20))
    return [x + p * above + q * (t - above)]


MODEL = {"u": "w", "w": "-u", "x": "piecewise(p, u > c, q)"}
VALUES, INITIAL = {"p": 1.7, "q": -0.6, "c": 0.4}, {"u": 0.1, "w": 1.3, "x": 0.2}
PARAMETERS = list(VALUES.values())


def test_a_threshold_is_crossed_on_the_way(crossings):
    agree(Model(MODEL, {"y": "x"}), VALUES, INITIAL, np.linspace(0, 60, 41), swinging)
    assert not crossings


def test_crossings_among_doses_that_change_no_sign(crossings):
    """Doses happen on the way, and so do crossings between them."""
    model = Model(MODEL, {"y": "x"}, events=[Event(at=1.5, every=2, count=20, set={"x": "x + d"})])

    def closed(t, d, **others):
        return [swinging(t, **others)[0] + d * min(20, max(0, mp.floor((t - 1.5) / 2) + 1))]

    agree(model, VALUES | {"d": 0.3}, INITIAL, np.linspace(0, 50, 34), closed)
    assert not crossings


def test_backward_over_thresholds(crossings):
    flow, times = Flow(Model(MODEL, {"y": "x"})), np.array([0.0, 25.0])
    there = flow.run(PARAMETERS, list(INITIAL.values()), times, sensitivities=False).states[1, :, 0]
    back = flow.run(PARAMETERS, there, times, start=25.0, sensitivities=False, free_states=True)
    assert back.outcome is Outcome.COMPLETED
    np.testing.assert_allclose(back.states[0, :, 0], list(INITIAL.values()), rtol=1e-12)
    assert not crossings


def test_a_second_threshold_is_for_python_once(crossings):
    """The function that was crossed last is the one that is expected next."""
    model = Model({**MODEL, "n": "piecewise(1, u > 3*c, 0)"}, {"y": "x"}, initial={"n": 0})
    low = INITIAL | {"w": 1.0}  # never as high as the second threshold
    agree(model, VALUES, low, np.linspace(0, 30, 13), swinging)
    assert not crossings
    Flow(model).run(PARAMETERS, [*INITIAL.values(), 0.0], np.linspace(0, 30, 13))
    assert crossings


@pytest.mark.parametrize("limit", [4, 8])
def test_the_limit_of_switches_counts_those_on_the_way(limit):
    flow = Flow(Model(MODEL, {"y": "x"}))
    run = flow.run(PARAMETERS, list(INITIAL.values()), np.linspace(0, 60, 5), max_switches=limit)
    assert run.outcome is Outcome.EXHAUSTED
    size, phase = np.hypot(0.1, 1.3), np.arctan2(0.1, 1.3)
    up = np.arcsin(0.4 / size) - phase
    assert run.time == pytest.approx(up + np.pi * limit, rel=1e-12)


@pytest.mark.parametrize("sensitivities", [True, False])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-8, 1e-10, 1e-16])
def test_a_switch_at_the_last_time_of_a_stiff_model(tolerance, sensitivities):
    """What is asked for there is what holds after it, whatever method led there."""
    model = Model({"x": "k*(cos(t) - x)"}, {"y": "piecewise(x, t < 3, 10 + x)"}, initial={"x": 0})
    flow, times = Flow(model), np.array([1.0, 2.0, 3.0])
    run = flow.run([1e6], [0.0], times, start=0.0, tolerance=tolerance, sensitivities=sensitivities)
    assert run.outcome is Outcome.COMPLETED and "collocation" in run.method
    np.testing.assert_allclose(run.outputs[:, 0, 0], np.cos(times) + [0, 0, 10], atol=1e-5)
