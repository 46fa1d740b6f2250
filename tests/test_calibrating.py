"""Calibration: true values come from the priors, and intervals that are too short are found out."""

import numpy as np
import pytest
from scipy import stats

import odejet as oj
from odejet.calibrating import _Source, with_values
from odejet.uncertainty.calibration import Calibration

TIMES = np.linspace(0, 2, 9)
MODEL = oj.Model({"x": "-k*x"}, {"y": "x"})
PRIORS = {"k": "lognormal(-0.5, 0.3)", "x": "truncated(normal(1, 0.3), 0.2, 3)"}


def problem(**options):
    values = np.exp(-0.6 * TIMES) + 0.05 * np.sin(9 * TIMES)
    return oj.Problem(MODEL, oj.Data(TIMES, {"y": values}), **options)


def test_truths_come_from_the_priors():
    posed = problem(noise=0.05, priors=PRIORS, positive=True)
    source, rng = _Source.of(posed, 0, 10), np.random.default_rng(0)
    draws = np.array([source.draw(rng) for _ in range(400)])
    assert source.kind == "prior"
    assert stats.kstest(np.log(draws[:, 1]), stats.norm(-0.5, 0.3).cdf).pvalue > 0.01
    cut = stats.truncnorm((0.2 - 1) / 0.3, (3 - 1) / 0.3, 1, 0.3)
    assert stats.kstest(draws[:, 0], cut.cdf).pvalue > 0.01


def test_truths_come_from_the_fit_where_nothing_else_tells():
    source = _Source.of(problem(), 0, 10)
    assert source.kind == "fit" and source.levels[0] == pytest.approx(0.035, abs=0.02)


def test_curvature_covers_as_often_as_it_says():
    found = oj.calibrate(problem(noise=0.05, priors=PRIORS), draws=40, methods=["curvature"], search=False, seed=3)
    assert found.success and found.warnings == ()
    for share, low, high in found.coverage("curvature").values():
        assert low <= 0.95 <= high and 0.8 <= share <= 1
    assert "hold the truth, of 40 data sets drawn from the prior" in found.summary()


def test_what_is_too_short_is_said(tmp_path):
    rng = np.random.default_rng(0)
    held = (rng.uniform(size=(100, 2)) < [0.95, 0.6]).astype(float)
    ranks = np.column_stack([rng.uniform(size=100), rng.beta(0.2, 0.2, size=100)])
    found = Calibration(("a", "b"), 0.95, np.zeros((100, 2)), {"profile": held}, ranks, "prior", 0, 2, 1.0)
    assert not found.success and len(found.warnings) == 3
    assert "of b hold the truth in" in found.warnings[0] and "too short" in found.warnings[0]
    assert "not spread evenly among the draws of b" in found.warnings[1] and "2 of 102" in found.warnings[2]
    pytest.importorskip("matplotlib")
    assert len(found.plot(tmp_path / "calibration.svg").subfigs) == 4


def test_data_with_other_values():
    posed = problem(noise=0.05)
    other = with_values(posed, np.arange(9.0))
    np.testing.assert_array_equal(other.experiments[0].outputs["y"].values, np.arange(9.0))
    np.testing.assert_array_equal(other.experiments[0].outputs["y"].times, TIMES)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"methods": ["bayes"]}, "methods must be some of"),
        ({"draws": 0}, "draws must be a whole number"),
        ({"level": 2}, "level must be between"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(oj.ModelError, match=sentence):
        oj.calibrate(problem(), **options)


@pytest.mark.slow
def test_ranks_of_the_posterior_are_uniform():
    pytest.importorskip("walnutpie")
    pytest.importorskip("arviz")
    found = oj.calibrate(problem(noise=0.05, priors=PRIORS), draws=60, methods=["posterior"], search=False)
    assert all(p > 0.001 for p in found.p_values.values())


def test_what_was_censored_stays_so_between_its_limits():
    values = [2.0, 1.5, 1.0, oj.Censored(below=0.9), oj.Censored(below=0.9)]
    posed = oj.Problem(MODEL, oj.Data(np.arange(5.0), {"y": values}), noise=0.1)
    series = with_values(posed, np.array([2.1, 1.4, 0.8, 0.7, 1.2])).experiments[0].outputs["y"]
    np.testing.assert_array_equal(series.censored, [False, False, False, True, False])
    np.testing.assert_array_equal(series.values[[0, 1, 2, 4]], [2.1, 1.4, 0.8, 1.2])
    assert series.limits.upper[3] == 0.9
