"""The gradient for samplers beside that of the linear model for searches, which comes about otherwise."""

import numpy as np
import pytest

import odejet as oj

TIMES = np.linspace(0.1, 3, 15)
MODEL = oj.Model({"x": "-k*x", "z": "k*x - m*z"}, {"y": "x", "w": "z"}, initial={"z": "0"}, start=0)
RNG = np.random.default_rng(5)
VALUES = {
    "y": 5 * np.exp(-TIMES) * np.exp(0.05 * RNG.normal(size=15)),
    "w": 2 * (np.exp(-0.4 * TIMES) - np.exp(-TIMES)) + 0.6 + 0.02 * RNG.normal(size=15),
}
NOISES = [
    None,
    0.1,
    "relative",
    {"y": "lognormal", "w": 0.1},
    {"y": "lognormal(s)", "w": "normal(a + b*w)"},
    {"y": "student(s, 4)", "w": None},
]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("priors", [None, {"k": "normal(1, 0.3)", "m": "lognormal(-1, 1)"}], ids=["flat", "priors"])
def test_the_gradient_is_that_of_the_linear_model(noise, priors):
    problem = oj.Problem(MODEL, oj.Data(TIMES, VALUES), noise=noise, priors=priors, positive=True)
    objective = problem.objective
    theta = np.array([4.5, 0.9, 0.5, 0.2, 0.1, 0.05])[: len(objective)]
    value, gradient = objective.value_and_gradient(theta)
    np.testing.assert_allclose(gradient, objective.linearise(theta).gradient(), rtol=1e-9, atol=1e-9)
    assert value == pytest.approx(objective.value(theta), rel=1e-9)
    held = objective.misfit.evaluate(theta)
    assert value == pytest.approx(objective.misfit.cost(held.residuals, None, held.rest), rel=1e-12)


def test_where_there_is_no_simulation():
    objective = oj.Problem(
        oj.Model({"x": "k*x**2"}, {"y": "x"}), oj.Data(TIMES, {"y": VALUES["y"]}), positive=True
    ).objective
    value, gradient = objective.value_and_gradient([10.0, 10.0])
    assert value == np.inf and np.isnan(gradient).all() and objective.value([10.0, 10.0]) == np.inf
