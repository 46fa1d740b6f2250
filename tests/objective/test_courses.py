"""Experiments that are one simulation."""

import numpy as np

import odejet as oj


def test_experiments_that_differ_in_what_was_measured_are_one_simulation():
    """Three experiments, two of them with one dose: the same residuals and derivatives as of each alone."""
    model = oj.Model({"x": "-k*x", "w": "k*x - w"}, {"y": "s*x", "z": "w"}, initial={"x": "dose", "w": 0})
    rng = np.random.default_rng(1)
    data = [
        oj.Data([0.0, 1.0, 2.0], {"y": rng.random(3)}, values={"dose": 1.0}, name="a"),
        oj.Data([0.5, 1.0, 3.0], {"y": rng.random(3), "z": rng.random(3)}, start=0, values={"dose": 1.0}, name="b"),
        oj.Data([0.5, 1.0], {"z": rng.random(2)}, start=0, values={"dose": 2.0}, name="c"),
    ]
    problem, z = oj.Problem(model, oj.Data.of(one.experiments[0] for one in data)), np.array([0.7, 1.4])
    assert [len(course.times) for course in problem.misfit.measured] == [5, 2]
    found = problem.misfit.evaluate(z)
    for number in range(3):
        alone = problem.misfit.only(number)
        pairs = zip(problem.measurements.rows, problem.measurements.blocks, strict=True)
        own = np.concatenate([np.arange(r.start, r.stop) for r, block in pairs if block.experiment == number])
        part = alone.evaluate(z)
        np.testing.assert_allclose(found.residuals[own], part.residuals, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found.dense[own], part.dense, rtol=1e-12, atol=1e-14)
