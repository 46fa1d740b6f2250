"""Valleys whose constant is known, and the rule that looks along them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odejet import Data, Fit, Model, simulate
from odejet.uncertainty.forms import Form, is_news
from odejet.uncertainty.practical import DETERMINED, judged
from odejet.uncertainty.valley import SPREADS, Valley
from tests.fits import refined_fit

NAMES = ["a", "b", "c", "d"]
EVERY, ALIKE = np.ones(4, dtype=bool), [None] * 4


def wandering(count: int, seed: int) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(size=count))


def texts(points: np.ndarray, loose: np.ndarray = EVERY, alike: list[object] | None = None) -> list[str]:
    found = Valley(points).forms(loose, range(points.shape[1]), alike or ALIKE)
    return [form.text(NAMES[: points.shape[1]]) for form in found]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (lambda a, b, c: 2 / (a * b), "a*b*d"),
        (lambda a, b, c: 3 * a / b**2, "b**2*d/a"),
        (lambda a, b, c: a * c, "a*c/d"),
    ],
)
def test_the_product_that_stays(last, expected):
    a, b, c = (wandering(30, seed) for seed in (1, 2, 3))
    found = texts(np.column_stack([a, b, c, last(a, b, c)]))
    assert found[0] == expected


@given(st.floats(0.02, 0.5), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_a_sum_with_the_coefficient_that_fits(slope, seed):
    """10 - slope * b falls as b grows; a plain sum would not stay."""
    b = 1 + 8 * np.random.default_rng(seed).uniform(size=40) / slope * 0.9
    points = np.column_stack([10 - slope * b, b])
    best = Valley(points).forms(EVERY[:2], range(2), ALIKE[:2])[0]
    assert not best.product and best.coefficients[0] == pytest.approx(1)
    assert best.coefficients[1] == pytest.approx(slope, rel=0.06)
    assert Valley(points).spread(best) < SPREADS[0]


def test_sums_are_of_one_sort():
    b = np.linspace(1, 9, 20)
    points = np.column_stack([10 - b, b])
    assert "a + b" in texts(points, EVERY[:2], [None, None])
    assert not texts(points, EVERY[:2], [None, "one"])


def test_what_moves_little_is_not_worth_a_term():
    """A quantity that is known, less a thousandth of one that is not."""
    b = np.linspace(1, 5, 20)
    points = np.column_stack([1 + 1e-3 * b, b])
    assert not texts(points, np.array([False, True]))


def test_nothing_stays_where_all_wander():
    points = np.column_stack([wandering(60, seed) for seed in range(4)])
    assert not texts(points)


def test_spreads_are_those_of_logarithms():
    valley = Valley(np.array([[1.0, 2.0], [2.0, 3.0], [0.5, 2.0]]))
    assert valley.spread(Form(np.array([1.0, 0.0]), 0.0)) == pytest.approx(math.log(2))
    assert valley.spread(Form(np.array([1.0, 1.0]), 0.0, product=False)) == pytest.approx(math.log(5 / 3))
    assert valley.spread(Form(np.array([1.0, -1.0]), 0.0, product=False)) == pytest.approx(math.log(1.5))
    assert valley.spread(Form(np.array([2.0, -1.0]), 0.0, product=False)) == math.inf  # zero at the optimum


def test_nearly_the_same_form_is_no_news():
    known = [Form(np.array([1.0, 1.0, 0.0]), 0.0, product=False)]
    loose = np.array([True, True, False])
    assert not is_news(Form(np.array([1.0, 0.97, 0.0]), 0.0, product=False), known, loose)
    assert not is_news(Form(np.array([1.0, 1.0, 2.0]), 0.0), known, loose)
    assert is_news(Form(np.array([1.0, -1.0, 0.0]), 0.0), known, loose)


# --- along real likelihoods ---

TIMES = np.linspace(0, 4, 60)


def fitted(model: Model, values: dict[str, float], states: dict[str, float], bounds: Any) -> Fit:
    clean = simulate(model, values, states, TIMES)["y"]
    data = Data(TIMES, {"y": clean + 0.01 * np.random.default_rng(2).normal(size=60)})
    return refined_fit(model, data, [*states.values(), *values.values()], bounds=bounds)


def test_a_weighted_sum_is_named():
    """Of two sources that act with different weights only the weighted sum is known."""
    fit = fitted(Model({"x": "a + 0.05*b - x"}, {"y": "x"}), {"a": 0.5, "b": 6.0}, {"x": 0.2}, (1e-4, 16))
    found = fit.practical
    assert "b" in found.undetermined
    named = {one.label: one for one in found.compounds}
    assert "a + 0.05*b" in named
    assert named["a + 0.05*b"].value == pytest.approx(0.8, rel=0.05)


def test_a_narrow_interval_is_not_believed_where_the_valley_bends():
    """At b = 0 nothing depends on b to first order, and a looks sharp; where b is not zero, a is smaller."""
    model = Model({"x": "a + b**2 - x"}, {"y": "x"})
    bounds = {"x": (1e-4, 10), "a": (1e-4, 10), "b": (-3, 3)}
    fit = fitted(model, {"a": 0.8, "b": 0.0}, {"x": 0.2}, bounds)
    low, high = fit.interval("a")
    assert 0.9 * high < fit.parameters["a"] < 1.1 * low
    findings, profiles = judged(fit.likelihood, fit.intervals())
    assert "a" in profiles and findings["a"].kind != DETERMINED
    assert findings["a"].interval[0] < 0.5 * low


def test_a_profile_of_what_has_no_effect_reaches_both_ends():
    """With a = 0 the rate b acts on nothing: every value of it is as good."""
    model = Model({"x": "-k*x", "z": "-b*z"}, {"y": "x + a*z"})
    clean = np.exp(-0.6 * TIMES)
    data = Data(TIMES, {"y": clean + 0.01 * np.random.default_rng(4).normal(size=60)})
    bounds = {"x": (0, 10), "z": (0, 10), "k": (0, 10), "b": (0.01, 10), "a": (0, 1e-14)}
    fit = refined_fit(model, data, [1.0, 0.5, 0.6, 0.5, 1e-15], bounds=bounds)
    found = fit.profile("b")
    assert found.open == (True, True) and found.interval() == (0.01, 10)
    assert found.values[0] == pytest.approx(0.01) and found.values[-1] == pytest.approx(10)
    assert len(found.values) > 4 and found.evaluations > 0
