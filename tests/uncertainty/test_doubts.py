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
        value, (low, high), own = fit.values[label], fit.interval(label), fit.profile(label)
        reaches = np.log([value / low, high / value])
        exact = np.log([value / own.interval()[0], own.interval()[1] / value])
        words = fit.doubts.get(label, "")
        for reach, wanted, side in zip(reaches, exact, ("below", "above"), strict=True):
            # Between a tenth and a third either is right.
            if wanted > 1.35 * reach:
                assert f"too narrow {side}" in words
            elif wanted < 0.65 * reach:
                assert f"too wide {side}" in words
            elif abs(wanted / reach - 1) < 0.1:
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
    assert "not to be trusted: the intervals of" in summary and "K (" in summary and "fit.profile has" in str(fit)
    assert "too narrow above" in fit.to_dict()["doubts"]["K"]
    assert Fit.from_dict(fit.to_dict()).doubts == fit.doubts


def test_plain_squares_have_no_likelihood_to_doubt():
    data = Data(TIMES, {"y": EXACT})
    assert refined_fit(LOGISTIC, data, [0.5, 1.0, 10.0], weights="none").doubts == {}
