"""Error budgets against a system that can be solved by hand, and against noise drawn many times."""

import math

import numpy as np
import pytest

from odejet import Data, Fit, Model, ModelError
from odejet.smooth import fit_output
from odejet.uncertainty.error_budget import linear_jet
from tests.fits import predators, refined_fit

DECAY = Model({"x": "-k*x"}, {"y": "x"})
TIMES = np.linspace(0, 3, 80)
SD = 0.01
CLEAN = 2 * np.exp(-0.7 * TIMES)
MEASURED = CLEAN + SD * np.random.default_rng(6).normal(size=80)


def decay():
    """A fit that is the truth: x(t) = y and k = -y'/y."""
    data = Data(TIMES, {"y": MEASURED})
    smoothed = {("experiment1", "y"): fit_output(TIMES, MEASURED)}
    return refined_fit(DECAY, Data(TIMES, {"y": CLEAN}), [2.0, 0.7], noise=SD), refined_fit(
        DECAY, data, [2.0, 0.7], noise=SD, smoothed=smoothed
    )


def test_the_sensitivity_of_a_decay():
    _, fit = decay()
    budget = fit.error_budget(time=1.0)
    k, y = fit.parameters["k"], fit.simulate([0.0, 1.0])["y"][1]
    assert budget.labels == ("x(1)", "k") and budget.rows == (("y", 0), ("y", 1))
    np.testing.assert_allclose(budget.derivatives, [y, -k * y], rtol=1e-9)
    # dk = y'/y^2 dy - 1/y dy'
    np.testing.assert_allclose(budget.sensitivity, [[1, 0], [-k / y, -1 / y]], rtol=1e-9, atol=1e-12)
    assert budget.norm == pytest.approx(max(1, k / y + 1 / y))


def test_the_law_of_many_draws():
    _, fit = decay()
    budget = fit.error_budget(time=1.0)
    jet = linear_jet(fit.smoothed["experiment1", "y"], 1.0, 1, SD, budget.estimators["y"])
    clean, center = fit.simulate(TIMES)["y"], fit.smoothed["experiment1", "y"].data.center
    noisy = clean + SD * np.random.default_rng(7).normal(size=(4000, 80))
    value, slope = ((noisy - center) @ jet.weights.T + [center, 0]).T
    errors = np.column_stack([value, -slope / value]) - budget.values
    # To first order; at this noise the second is a few percent of it.
    np.testing.assert_allclose(np.cov(errors.T), budget.covariance.values, rtol=0.08)
    np.testing.assert_allclose(errors.mean(axis=0), list(budget.shift.values()), atol=0.1 * errors.std(axis=0).max())
    for delta in (0.05, 0.5):
        assert np.mean(np.abs(errors).max(axis=1) <= budget.bound(delta)) >= 1 - delta


def test_shares_add_up():
    budget = predators().error_budget()
    np.testing.assert_allclose(budget.shares.sum(axis=1), 1)
    for table in (budget.by_output(), budget.by_order()):
        assert all(sum(shares.values()) == pytest.approx(1) for shares in table.values())
    assert all(share >= 0 for shares in budget.by_output().values() for share in shares.values())
    assert budget.limit in ("nothing", "derivatives", "algebra") and budget.limit in (
        *budget.sentence.split(),
        "nothing",
    )
    assert budget.changes and "w measured too" in budget.advice()[-1]
    assert "error budget" in repr(budget) and len(budget.to_dataframe()) == 5


def test_more_noise_is_more_error():
    data = Data(TIMES, {"y": MEASURED})
    smoothed = {("experiment1", "y"): fit_output(TIMES, MEASURED)}
    errors = [
        refined_fit(DECAY, data, [2.0, 0.7], noise=noise, smoothed=smoothed).error_budget(time=1.0).stderr["k"]
        for noise in (0.01, 0.02)
    ]
    assert errors[1] == pytest.approx(2 * errors[0], rel=1e-3)


def test_fits_from_files_have_the_same_budget(tmp_path):
    _, fit = decay()
    fit.save(tmp_path / "fit.json")
    back = Fit.load(tmp_path / "fit.json").error_budget(time=1.0)
    assert back.stderr == pytest.approx(fit.error_budget(time=1.0).stderr, rel=1e-6)


def test_what_has_no_budget():
    _, fit = decay()
    with pytest.raises(ModelError, match="outside the data"):
        fit.error_budget(time=30.0)
    with pytest.raises(ModelError, match="no estimator 'magic'"):
        fit.error_budget(time=1.0, estimator="magic")
    few = refined_fit(DECAY, Data([0, 1, 2], {"y": [2.0, 1.0, 0.5]}), [2.0, 0.7])
    with pytest.raises(ModelError, match="no error budget"):
        few.error_budget()


def test_bias_is_what_smoothing_does_to_the_truth():
    """A spike that no smoother follows: the derivative at its top is biased, not noisy."""
    model = Model({"x": "-k*x*(t - 1)"}, {"y": "x"})
    times = np.linspace(0, 2, 120)
    values = 2 * np.exp(-8.0 * (times - 1) ** 2 / 2) + 1e-6 * np.random.default_rng(2).normal(size=120)
    fit = refined_fit(model, Data(times, {"y": values}), [values[0], 8.0])
    budget = fit.error_budget(time=0.5)
    assert math.isfinite(budget.shift["k"]) and math.isfinite(budget.bound())
