"""Steps of the Taylor integrator: lengths by terms of known series, branches, and whole solutions in closed form."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import pytest
from numba import njit

import odejet as oj
from odejet.jets.lanes import pointer
from odejet.jets.lengths import finite, guarded_step, shortened
from odejet.jets.steps import nearest_time
from odejet.simulate.flow import Flow, Outcome

ORDER = 20
Layout = namedtuple("Layout", ["guards", "lanes", "states", "dynamic"])


@njit
def shortened_step(c, k, h, tolerance):
    return shortened(pointer(c), 0, k, 1, h, tolerance)


@njit
def on_branch(c, layout, order, h):
    return guarded_step(pointer(c), layout, order, h)


@njit
def is_finite(c, layout, order):
    return finite(pointer(c), layout, order)


@njit
def at_a_time(times, first, t):
    return nearest_time(times, first, t)


@pytest.mark.parametrize("radius", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("tolerance", [1e-8, 1e-15])
def test_a_step_is_the_share_of_the_radius_that_the_tolerance_allows(radius, tolerance):
    """1/(1 - t/r): term k of a step h is (h/r)^k, so that the longest is r times the k-th root of the tolerance."""
    c = radius ** -np.arange(ORDER + 1.0)
    found = shortened_step(c, ORDER, 1e3 * radius, tolerance)
    assert found == pytest.approx(radius * tolerance ** (1 / ORDER), rel=0.3)
    assert (found / radius) ** ORDER <= 1.001 * tolerance * max(1, (found / radius) ** 3)
    assert shortened_step(c, ORDER, 1e-3 * found, tolerance) == 1e-3 * found


def test_a_polynomial_does_not_shorten_a_step():
    c = np.r_[1.0, -2.0, 3.0, np.zeros(ORDER - 2)]
    assert shortened_step(c, ORDER, 7.0, 1e-15) == 7.0


def layout(guards=(0,)):
    return Layout(np.array(guards, np.int64), 1, np.array([0], np.int64), 0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_step_ends_before_a_guarded_argument_changes_its_sign(sign):
    """(1 - t/2) turns at 2: a step of 5 is halved to 1.25."""
    c = np.r_[sign, -0.5 * sign, np.zeros(ORDER - 1)]
    assert on_branch(c, layout(), ORDER, 5.0) == 1.25
    assert on_branch(c, layout(), ORDER, 1.5) == 1.5
    assert on_branch(np.zeros(ORDER + 1), layout(), ORDER, 5.0) == 5.0  # what is zero from the start tells nothing


def test_numbers_that_are_none_are_seen():
    c = np.ones(ORDER + 1)
    assert is_finite(c, layout(), ORDER)
    for bad in (math.nan, math.inf):
        c[-1] = bad
        assert not is_finite(c, layout(), ORDER)


def test_a_time_is_that_which_was_asked_for_if_only_rounding_differs():
    times = np.array([0.1, 0.3, 0.7])
    assert at_a_time(times, 0, 0.1 + 0.2) == 0.3
    assert at_a_time(times, 0, 0.3001) == 0.3001
    assert at_a_time(times, 2, 0.3 + 1e-17) == 0.3


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-15])
def test_solutions_hold_their_tolerance(tolerance):
    """A pole at t = 1, approached, and an oscillation of a hundred periods: errors in units of the tolerance."""
    pole = Flow(oj.Model({"x": "x**2"}, {"y": "x"})).run(
        [], [1.0], np.array([0.5, 0.99]), start=0.0, tolerance=tolerance
    )
    assert np.abs(pole.states[:, 0, 0] * (1 - np.array([0.5, 0.99])) - 1).max() < 300 * tolerance + 1e-12
    times = np.linspace(0, 200 * math.pi, 41)[1:]
    turning = Flow(oj.Model({"x": "v", "v": "-x"}, {"y": "x"}))
    found = turning.run([], [1.0, 0.0], times, start=0.0, tolerance=tolerance)
    assert np.abs(found.states[:, 0, 0] - np.cos(times)).max() < 1e4 * tolerance + 1e-11


def test_a_blow_up_is_an_outcome_with_its_time():
    found = Flow(oj.Model({"x": "x**2"}, {"y": "x"})).run([], [1.0], np.array([0.5, 2.0]), start=0.0)
    assert found.outcome is Outcome.BLOW_UP and found.states.shape[0] == 1


def test_there_and_back_is_where_one_was():
    """Backward in time a solution retraces itself, with its sensitivities."""
    flow = Flow(oj.Model({"r": "a*r - b*r*w", "w": "b*r*w - c*w"}, {"y": "r"}))
    values, begin = [0.9, 0.5, 0.7], [1.0, 0.5]
    there = flow.run(values, begin, np.array([7.0]), start=0.0, sensitivities=False).states[0, :, 0]
    back = flow.run(values, there, np.array([0.0]), start=7.0, sensitivities=False).states[0, :, 0]
    np.testing.assert_allclose(back, begin, rtol=1e-11)
