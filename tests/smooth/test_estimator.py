"""Estimators register themselves: a new one is fitted, trusted and refused like those that are there."""

import numpy as np
import pytest

from odejet.budget import Budget
from odejet.smooth import fit_output, series
from odejet.smooth.estimator import ESTIMATORS, Estimator, Workspace, register
from odejet.smooth.output import fit_series
from odejet.smooth.smoother import Constant, Smoother

TIMES = np.linspace(0, 10, 200)
VALUES = np.sin(TIMES) + 0.01 * np.random.default_rng(4).standard_normal(200)


class Mean(Estimator):
    """The mean of the values, which fits nothing that varies."""

    name = "mean"

    def __init__(self, rank: float, counts: bool = False) -> None:
        self.rank, self.counts, self.fits = rank, counts, 0

    def unsuited(self, given: Workspace) -> str | None:
        return "there are few values" if len(given.data) < 50 else None

    def fit(self, given: Workspace) -> Smoother:
        self.fits += 1
        spread = given.data.scale * given.data.unit if given.data.sds is None else given.data.scale
        return Constant(self.name, given.data, spread)


@pytest.fixture
def mean():
    """Registers an estimator of the given rank for one test."""

    def add(*arguments: float) -> Mean:
        register(own := Mean(*arguments))
        return own

    yield add
    ESTIMATORS.pop("mean", None)


def test_a_new_estimator_is_fitted_once_and_refused_for_what_it_leaves(mean):
    own = mean(3.5)
    smoothed = fit_output(TIMES, VALUES)
    assert own.fits == 1
    assert "mean" in smoothed.smoothers
    assert "it leaves residuals of sd" in smoothed.refused["mean"]
    assert "mean" not in smoothed.admitted()


def test_ranks_are_the_order_of_trust(mean):
    mean(3.5)
    names = list(fit_output(TIMES, VALUES).smoothers)
    assert names[names.index("gp_rq") + 1] == "mean"
    mean(-5.0)
    assert next(iter(fit_output(TIMES, VALUES).smoothers)) == "mean"


def test_an_estimator_that_is_unsuited_is_not_fitted(mean):
    own = mean(3.5)
    smoothed = fit_output(TIMES[::8], VALUES[::8])
    assert own.fits == 0
    assert "mean" not in smoothed.smoothers
    assert smoothed.refused["mean"] == "there are few values"


def test_the_noise_is_a_median_that_one_bad_estimator_does_not_move(mean):
    before = fit_output(TIMES, VALUES).noise
    mean(3.5, True)
    assert fit_output(TIMES, VALUES).noise == pytest.approx(before, rel=0.1)


def test_a_series_that_is_checked_already_is_smoothed_as_it_is():
    one, other = fit_output(TIMES, VALUES), fit_series(series(TIMES, VALUES))
    assert list(one.smoothers) == list(other.smoothers)
    np.testing.assert_array_equal(one.jet(5.0, 3).mean, other.jet(5.0, 3).mean)


def test_without_time_the_simplest_estimator_is_fitted_and_the_others_say_why_not():
    smoothed = fit_series(series(TIMES, VALUES), Budget.within(0.0))
    assert list(smoothed.smoothers) == ["chebyshev_bic"]
    assert set(smoothed.refused.values()) == {"the time is over"}
    assert smoothed.refused.keys() >= {"blend", "gp_se", "aaa"}
    assert smoothed.jet(5.0, 1).mean == pytest.approx([np.sin(5.0), np.cos(5.0)], abs=0.05)
    assert smoothed.noise == pytest.approx(0.01, rel=0.2)


def test_a_basis_that_would_take_too_long_is_not_tried():
    times = np.linspace(0, 1, 20_000)
    fast = series(times, np.sin(400 * times) + 0.01 * np.random.default_rng(0).standard_normal(len(times)))
    small = fit_series(fast, Budget(work=1e8)).smoothers["gp_se"]
    large = fit_series(fast).smoothers["gp_se"]
    assert len(small.operator) < len(large.operator)
