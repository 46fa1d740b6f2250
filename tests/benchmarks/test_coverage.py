"""The benchmark of intervals: its counting, its statistics where the answer is known, and a small run of each part."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks import bands, coverage
from odejet.uncertainty.practical import DETERMINED


def test_shares_and_their_errors():
    lines = [{"n": 2, "hits": 2}, {"n": 2, "hits": 1}]
    mean, error, count = coverage.share(lines, "n", "hits")
    assert (mean, count) == (75, 4)
    # One trial is half a hit above the mean, the other as much below.
    assert error == pytest.approx(100 * (0.5**2 + 0.5**2) ** 0.5 / 4)
    assert coverage.share([{"n": 0, "hits": 0}], "n", "hits")[2] == 0


def test_quantities_of_a_fit_that_err_together_count_as_one():
    lines = [{"n": 5, "hits": 5}] * 9 + [{"n": 5, "hits": 0}]
    assert coverage.share(lines, "n", "hits")[1] == pytest.approx(100 * np.sqrt(0.9 * 0.1 / 10))


def test_a_cell_of_intervals():
    fit, quantities = coverage.interval_quantities("harmonic_oscillator", 1e-2, 0, 3)
    assert [q["quantity"] for q in quantities] == ["x1(0)", "x2(0)", "a", "b"] == list(fit.labels)
    assert all(q["called"] == DETERMINED and (q["deviance"] <= 3.9) == q["profile_holds"] for q in quantities)
    line = coverage.interval_cell("harmonic_oscillator", 1e-2, 0, 3)
    assert tuple(line) == coverage.FIELDS
    assert (line["quantities"], line["profile"], line["lost"]) == (4, 4, 0)
    assert line["hits"] == sum(q["profile_holds"] for q in quantities)
    assert "harmonic_oscillator 0.01" in coverage.interval_table([line])


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "intervals.jsonl"
    arguments = ["--trials", "1", "--noise", "0.01", "--systems", "harmonic_oscillator", "--output", str(path)]
    tables = [coverage.main(arguments) or path.with_suffix(".md").read_text() for _ in range(2)]
    assert len(path.read_text().splitlines()) == 1 and tables[0] == tables[1]


def test_a_cell_of_the_law():
    line = json.loads(json.dumps(coverage.law_cell("vanderpol", 1e-6, 200, 3)))
    assert line["largest entry"] < 5 and line["largest mean"] < 5
    assert line["joint"] > 1e-3 and line["joint linear"] > 1e-3
    assert all(0.8 < ratio < 1.2 for ratio in line["sd ratios"])
    for kind in ("derivatives within r", "unknowns within bound"):
        assert line[kind]["0.05"] >= 0.95 and line[kind]["0.5"] >= 0.5
    assert "vanderpol" in coverage.law_table([line])


def test_a_joint_test_is_fair():
    """P-values of draws that have the covariance are uniform."""
    rng = np.random.default_rng(1)
    values = [coverage.wilks(rng.normal(size=(200, 4))) for _ in range(300)]
    assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("change", [np.diag([1.3, 1, 1]), np.array([[1, 0.3, 0], [0, 1, 0], [0, 0, 1]])])
def test_a_joint_test_sees_what_is_not_so(change):
    draws = np.random.default_rng(2).normal(size=(500, 3))
    assert coverage.wilks(draws @ change) < 1e-4


def test_whitening_undoes_sensitivity_and_covariance():
    class Law:
        sensitivity = np.array([[1e6, 2.0], [3.0, 1e-4]])
        covariance_of_derivatives = np.array([[4.0, 1e-3], [1e-3, 1e-6]])

    draws = np.random.default_rng(3).normal(size=(20, 2))
    root = np.linalg.cholesky(Law.covariance_of_derivatives)
    errors = draws @ root.T @ Law.sensitivity.T
    np.testing.assert_allclose(coverage.whitened(errors, Law), draws, rtol=1e-6, atol=1e-8)


def test_what_is_possible_is_what_regression_knows():
    """With the exponents of the others at their best, a product is known no worse than its factor alone."""
    truth = coverage.draw("harmonic_oscillator", 1e-2, 0, 3, coverage.POINTS, False)
    fit = coverage.from_truth(truth, evaluations=1)
    assert np.isnan(coverage.possible(truth, []))
    alone = fit.stderr["a"] / abs(fit.parameters["a"])
    assert 0 < coverage.possible(truth, ["a"]) <= alone


def test_a_cell_of_bands():
    line = json.loads(json.dumps(coverage.band_cell("harmonic_oscillator", 1e-2, 0, 3)))
    assert line["closed"] == [3.0] * 7 and line["outputs"] == [2.0] * 7  # an output is a state
    assert all(hits <= 3 for hits in line["hits"]) and all(0 < p <= 2 for p in line["measured"])
    assert (line["bands"], line["open"], line["untrusted"]) == (28, 0, 0)
    text = bands.table([{**line, "hits": [1.5] * 7}, {**line, "hits": [3.0] * 7}])
    # Half of one fit's curves and all of the other's.
    assert "| curves, noise 0.01 | 2 | 75.0 ± 17.7 |" in text
