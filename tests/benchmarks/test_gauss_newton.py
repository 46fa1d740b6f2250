"""Gauss-Newton: linear least squares by hand, weights, and smaller errors on noisy jets."""

import numpy as np

from benchmarks import algebra as bench
from benchmarks.gauss_newton import Measured, beyond
from odejet import Model
from odejet.algebra.monodromy import fibre
from odejet.algebra.system import SquareSystem, join

TWICE = SquareSystem(join(Model(states={"x": "0"}, outputs={"y1": "x", "y2": "x"})), ((0, 0),), (), 1)


def test_two_measurements_of_one_number_are_averaged_by_their_variances():
    target = Measured(np.array([[1.0], [2.0]]), np.diag([1.0, 3.0]), np.zeros((0, 1)), np.zeros(0))
    improved = beyond(TWICE, np.array([[1.0]]), target)
    np.testing.assert_allclose(improved.estimates, [[1.25]])
    np.testing.assert_allclose(improved.after, [0.25**2 + 0.75**2 / 3])
    assert improved.moved.all()


def test_correlated_measurements_use_the_whole_covariance():
    sigma = np.array([[1.0, 0.5], [0.5, 2.0]])
    target = Measured(np.array([[1.0], [2.0]]), sigma, np.zeros((0, 1)), np.zeros(0))
    weights = np.linalg.solve(sigma, np.ones(2))
    expected = weights @ [1.0, 2.0] / weights.sum()
    np.testing.assert_allclose(beyond(TWICE, np.array([[1.0]]), target).estimates, [[expected]])


def test_the_misfit_never_grows():
    system = bench.square("seir")
    rng = np.random.default_rng(4)
    z = rng.uniform(0.2, 1.0, (6, len(system.unknowns)))
    rows = len(system.joined.model.outputs), system.highest + 1
    target = Measured(
        rng.normal(size=rows),
        np.eye(rows[0] * rows[1]),
        np.zeros((system.joined.inputs, rows[1])),
        np.ones(len(system.fixed)),
    )
    improved = beyond(system, z, target)
    assert np.all(improved.after <= improved.before) and np.all(np.isfinite(improved.estimates))


def test_errors_on_noisy_jets_become_smaller_in_the_median():
    errors = np.array(list(bench._beyond(fibre(bench.square("latent_subpopulation")), 31, 0, 1e-3)))
    assert len(errors) > 10
    assert np.median(errors[:, 1]) < np.median(errors[:, 0])
