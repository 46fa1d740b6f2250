"""Intervals by curvature beside those of the likelihood: the ones that differ are told."""

import numpy as np
import pytest

from odejet import Data, Fit, Model, simulate
from tests.fits import STRAIGHT, predators, refined_fit

LOGISTIC = Model({"x": "r*x*(1 - x/K)"}, {"y": "x"}, name="logistic")
TIMES = np.linspace(0, 4, 15)
EXACT = simulate(LOGISTIC, {"r": 1.0, "K": 10.0}, {"x": 0.5}, TIMES)["y"]


def grown(points: int) -> Fit:
    """A population that was watched for so long; early, nothing is known of where it ends."""
    data = Data(TIMES[:points], {"y": EXACT[:points] + 0.15 * np.random.default_rng(7).normal(size=points)})
    return refined_fit(LOGISTIC, data, [0.5, 1.0, 10.0], bounds=(0, 1e6))


def test_a_straight_line_is_not_doubted():
    times = np.linspace(0, 4, 12)
    data = Data(times, {"y": 1.5 * times + 0.3 * np.random.default_rng(3).normal(size=12)})
    assert refined_fit(STRAIGHT, data, [0.5, 1.5]).doubts == {}
    assert predators(points=40).doubts == {}


@pytest.mark.parametrize("points", [9, 15])
def test_doubts_are_where_the_likelihood_has_other_intervals(points):
    fit = grown(points)
    for label in fit.labels:
        own = np.array(fit.profile(label).interval())
        outward = np.array([-1, 1]) * (own - fit.interval(label)) / (own[1] - own[0])
        words = fit.doubts.get(label, "")
        for much, side in zip(outward, ("below", "above"), strict=True):
            # Between a third and a half of the width either is right.
            if abs(much) > 0.5:
                assert f"too {'narrow' if much > 0 else 'wide'} {side}" in words
            elif abs(much) < 0.35:
                assert side not in words
    assert ("K" in fit.doubts) == (points == 9)


def test_an_end_that_a_bound_cuts_off_is_not_doubted():
    data = Data(TIMES[:9], {"y": EXACT[:9] + 0.15 * np.random.default_rng(7).normal(size=9)})
    fit = refined_fit(LOGISTIC, data, [0.5, 1.0, 10.0], bounds={"x": (0, 5), "r": (0, 5), "K": (0, 12)})
    assert fit.interval("K")[1] == 12 and "above" not in fit.doubts.get("K", "")


def test_they_are_told_where_intervals_are_shown():
    fit = grown(9)
    assert "not to be trusted" not in str(fit)  # printing computes nothing
    summary = fit.summary()
    assert "not to be trusted: the intervals by curvature of K (" in summary and "fit.profile exact ones" in str(fit)
    low, _ = fit.better["K"]
    assert f"[{low:.2g}" in summary and fit.profile("K").interval()[0] == pytest.approx(low, rel=0.1)
    assert "too narrow above" in fit.to_dict()["doubts"]["K"]
    assert Fit.from_dict(fit.to_dict()).doubts == fit.doubts


def test_plain_squares_have_no_likelihood_to_doubt():
    data = Data(TIMES, {"y": EXACT})
    assert refined_fit(LOGISTIC, data, [0.5, 1.0, 10.0], weights="none").doubts == {}


def test_what_looks_as_if_it_were_anywhere_in_its_bounds_is_looked_at():
    """Of a sixth power the data say little where it is small, and much where it is not."""
    model = Model({"x": "-k*x + s**6"}, {"y": "x"}, name="sixth power")
    data = Data(TIMES, {"y": simulate(model, {"k": 0.5, "s": 0.3}, {"x": 2.0}, TIMES)["y"]})
    fit = refined_fit(model, data, [2.0, 0.5, 0.3], bounds={"k": (0, 9), "s": (0.05, 3)}, noise=0.05)
    assert fit.interval("s") == (0.05, 3) and "too wide above" in fit.doubts["s"]
    assert fit.better["s"][1] == pytest.approx(fit.profile("s").interval()[1], rel=0.1)
    assert "anywhere in its bounds" in str(fit.from_dict(fit.to_dict()))
    assert "anywhere in its bounds" not in fit.summary()
