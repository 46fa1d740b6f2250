"""Rows of measurements whose noise has a law of its own."""

import numpy as np

import odejet as oj
from odejet.problem import Problem

TIMES = np.linspace(0, 5, 6)


def posed(noise):
    model = oj.Model({"x": "-k*x"}, {"y": "x", "w": "2*x"}, initial={"x": 1})
    clean = np.exp(-TIMES)
    data = [oj.Data(TIMES, {"y": clean, "w": clean * (2 + n)}, name=f"e{n}").experiments[0] for n in (1, 2)]
    return Problem(model, oj.Data.of(data), noise=noise)


def test_one_law_of_an_output_is_scored_at_once_in_all_experiments():
    misfit = posed({"y": "normal(s + q*y)", "w": "normal(s + q*w)"}).misfit
    parts = misfit.scoring.blocks
    assert [(rows.start, rows.stop) for rows, *_ in parts] == [(0, 12), (12, 24)]
    assert [(rows.start, rows.stop) for _, rows, *_ in parts] == [(24, 36), (36, 48)]
    z = np.array([0.9, 0.1, 0.2])
    mu = misfit.predicted(z, jacobian=False).residuals[:24]
    s = z[1] + z[2] * mu
    found = misfit.evaluate(z)
    cost = np.log(s) + 0.5 * ((mu - misfit.values) / s) ** 2 + 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(misfit.cost(found.residuals, rest=found.rest), cost.sum())
    gradient = found.residuals @ found.dense
    for i, axis in enumerate(np.eye(3)):
        costs = []
        for step in (1e-6, -1e-6):
            there = misfit.evaluate(z + step * axis, jacobian=False)
            costs.append(misfit.cost(there.residuals, rest=there.rest))
        np.testing.assert_allclose(gradient[i], (costs[0] - costs[1]) / 2e-6, rtol=1e-6)


def test_laws_with_other_numbers_are_apart():
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1})
    data = [oj.Data(TIMES, {"y": np.exp(-TIMES)}, name=f"e{n}", values={"f": float(n)}).experiments[0] for n in (1, 2)]
    misfit = Problem(model, oj.Data.of(data), noise={"y": "normal(s*f)"}).misfit
    assert len(misfit.scoring.blocks) == 2
