"""The ceiling against formulas of linear regression, and against fits of fresh noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

from benchmarks import ceiling, cells
from benchmarks.cells import Cell, Protocol
from benchmarks.methods import METHODS, Problem

PROTOCOL = Protocol(seed=3)


def test_covariances_are_those_of_linear_regression():
    rng = np.random.default_rng(0)
    jacobian, sds = rng.standard_normal((40, 3)), rng.uniform(0.1, 5.0, 40)
    weighted = ceiling.weighted_root(jacobian / sds[:, None])
    np.testing.assert_allclose(weighted @ weighted.T, np.linalg.inv(jacobian.T @ np.diag(sds**-2) @ jacobian))
    unweighted, inverse = ceiling.unweighted_root(jacobian, sds), np.linalg.pinv(jacobian)
    np.testing.assert_allclose(unweighted @ unweighted.T, inverse @ np.diag(sds**2) @ inverse.T)


def test_what_rounding_hides_is_not_taken_for_known():
    """Two unknowns of which the data tell only the sum."""
    jacobian = np.ones((30, 2)) * np.linspace(1, 2, 30)[:, None]
    draws = np.random.default_rng(1).standard_normal((1000, 2))
    for root in (ceiling.weighted_root(jacobian), ceiling.unweighted_root(jacobian, np.ones(30))):
        assert np.median(ceiling.worst(root, draws)) > 1e10


def test_success_is_a_normal_probability_for_one_unknown():
    draws = np.random.default_rng(1).standard_normal((20_000, 1))
    found = ceiling.Ceiling(ceiling.worst(np.array([[2.0]]), draws), np.ones(1))
    assert found.success(0.05, 0.1) == pytest.approx(erf(1 / np.sqrt(2)), abs=0.01)
    assert found.success(0.0, 0.1) == 1.0


def test_weights_never_make_a_perfect_fit_worse():
    for name in ("sirt_treatment", "receptor_binding", "latent_subpopulation"):
        found = ceiling.of_cell(Cell(name, 1e-2, 0), PROTOCOL)
        assert np.median(found.weighted) <= 1.02 * np.median(found.unweighted)


def test_what_cannot_be_known_does_not_count():
    found = ceiling.of_cell(Cell("aircraft_pitch", 1e-6, 0), PROTOCOL)
    assert found.success(1e-6, 0.1) == 1.0


def test_errors_of_fits_are_those_predicted():
    """Twenty fits from the truth of fresh noise: their median worst error is the ceiling's."""
    errors, predicted = [], []
    for trial in range(20):
        truth = cells.draw("seir", trial, PROTOCOL)
        data = cells.measured(truth, Cell("seir", 1e-2, trial), PROTOCOL)
        answer = METHODS["truth"].solve(Problem(truth.system.model, data, (1e-5, 10.0), truth=truth.values))
        errors.append(truth.error(answer.values))
        predicted.append(np.median(ceiling.ceiling(truth).weighted) * 1e-2)
    assert np.median(np.array(errors) / predicted) == pytest.approx(1.0, abs=0.5)


def test_luck_is_the_scatter_between_draws_and_of_the_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(ceiling, "FILE", tmp_path / "ceiling.csv")
    ceiling.FILE.write_text(
        "seed,noise,weighted,unweighted,sd_of_noise\n1,0.01,60,50,4\n2,0.01,66,52,4\n1,0,100,100,0\n"
    )
    found = ceiling.luck(0.01)
    assert found is not None
    assert (found.expected, found.benchmarks) == (63.0, 2) and found.spread == pytest.approx(np.sqrt(18 + 16))
    assert ceiling.luck(1e-4) is None


def test_ceilings_of_many_seeds_are_those_of_their_cells(monkeypatch):
    monkeypatch.setattr(ceiling.systems, "names", lambda: ("seir",))
    lines = ceiling.many(range(3, 4)).splitlines()
    assert len(lines) == 1 + 5 and lines[1] == "3,0,100,100,0"
    rates = [ceiling.of_cell(Cell("seir", 1e-2, trial), PROTOCOL).success(1e-2, 0.1) for trial in range(10)]
    assert float(lines[-1].split(",")[2]) == pytest.approx(100 * np.mean(rates), abs=0.05)
