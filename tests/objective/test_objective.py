"""The public objective: exact gradients of everything that can be posed, on both scales, for other people's tools."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import odejet as oj
from odejet.objective.objective import Objective, Scaled

TIMES = np.linspace(0.25, 4, 16)
DECAY = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": "x0"}, parameters=["k", "x0"])


def wavy(size: float = 5.0) -> np.ndarray:
    """Measurements that no model fits exactly, all positive."""
    return size * np.exp(-0.5 * TIMES) * (1 + 0.1 * np.sin(7 * TIMES)) + 0.2


def problem(model: oj.Model = DECAY, values: np.ndarray | None = None, **options: object) -> oj.Problem:
    return oj.Problem(model, oj.Data(TIMES, {"y": wavy() if values is None else values}, start=0), **options)


def differences(
    function: Callable[[np.ndarray], float], x: np.ndarray, sizes: np.ndarray, width: float = 0.04
) -> np.ndarray:
    """The gradient by central differences, extrapolated from five widths: rounding is what is left."""
    slopes = []
    for i, size in enumerate(sizes):
        step = np.zeros(len(x))
        table = []
        for level in range(5):
            step[i] = width * size / 2**level
            row = [(function(x + step) - function(x - step)) / (2 * step[i])]
            for k, below in enumerate(table[-1] if table else (), start=1):
                row.append(row[-1] + (row[-1] - below) / (4**k - 1))
            table.append(row)
        slopes.append(table[-1][-1])
    return np.array(slopes)


def check_gradient(objective: Objective | Scaled, x: np.ndarray, sizes: np.ndarray, width: float = 0.04) -> None:
    value, gradient = objective.value_and_gradient(x)
    assert value == pytest.approx(objective.value(x), rel=1e-12)
    # Relative to the gradient, or to what the value changes by as a whole.
    unit = np.abs(gradient) + 1e-3 * abs(value) / sizes
    np.testing.assert_array_less(np.abs(gradient - differences(objective.value, x, sizes, width)), 1e-9 * unit)


LAWS = [
    "normal(s)",
    "normal(s + 0.1*y)",
    "lognormal(s)",
    "log10normal(s)",
    "laplace(s)",
    "loglaplace(s)",
    "log10laplace(s)",
    "student(s, 4)",
    "poisson",
    "negbinomial(s)",
    "binomial(40)",
    "betabinomial(40, s)",
    "gamma(s)",
    "ar1(s, rho)",
    "ar1(s, 0.4)",
    "ar1(0.3, exp(-1/tau))",
    "logar1(s, rho)",
    "logar1(s, s)",
    "relative",
    "lognormal",
    0.3,
    None,
]


@pytest.mark.parametrize("law", LAWS)
def test_the_gradient_of_every_law(law: str | float | None) -> None:
    counts = law in ("poisson", "negbinomial(s)", "binomial(40)", "betabinomial(40, s)")
    asked = problem(values=np.round(4 * wavy()) if counts else None, noise=law)
    theta = np.array([0.6, 20.0 if counts else 5.5, 0.35, 0.2])[: len(asked.unknowns)]
    width = 4e-3 if "laplace" in str(law) else 0.04  # no residual may change its sign on the way
    check_gradient(asked.objective, theta, theta, width)
    scaled = asked.objective.scaled()
    check_gradient(scaled, scaled.from_natural(theta), np.ones(len(theta)), width)


PRIORS = [
    "normal(1, 0.2)",
    "lognormal(log(0.3), 0.5)",
    "laplace(1, 0.4)",
    "loglaplace(0.1, 0.5)",
    "cauchy(1, 0.3)",
    "gamma(2, 0.4)",
    "exponential(0.7)",
    "chisquare(3)",
    "rayleigh(0.5)",
    "uniform(0.1, 2)",
    "loguniform(0.1, 2)",
]


@pytest.mark.parametrize("prior", PRIORS)
def test_the_gradient_of_every_prior(prior: str) -> None:
    theta = np.array([0.6, 5.5])
    check_gradient(problem(priors={"k": prior}).objective, theta, theta)


def decay(rate: str = "-k*x", output: str = "x", initial: object = None, **options: object) -> oj.Model:
    return oj.Model({"x": rate}, {"y": output}, initial={"x": "x0"} if initial is None else initial, **options)


MODELS = {
    "an event in time": (decay(events=[oj.Event(at="x0/4", set={"x": "x + k"})]), [0.6, 5.5]),
    "an event of the state": (decay(events=[oj.Event(when="x < 2", set={"x": "x + 1"})]), [0.6, 5.5]),
    "a switch": (decay("-k*max(x, 1.5)"), [0.6, 5.5]),
    "a change of input": (decay("-k*x + piecewise(c, t < 2, 0)", initial={"x": 1}), [0.6, 5.5]),
    "a steady state": (
        decay("c - k*x + u", initial="steady", inputs={"u": "piecewise(3, t > 1, 0)"}, parameters=["k", "c"]),
        [0.6, 2.5],
    ),
    "a scale and an offset": (decay(output="a*x + b", initial={"x": 1}, parameters=["k", "a", "b"]), [0.6, 5.5, 0.3]),
    "an unknown that may be negative": (decay("-k*x + c", initial={"x": 5}), [0.6, -0.4]),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("noise", [None, "lognormal(s)"])
def test_the_gradient_of_every_kind_of_model(kind: str, noise: str | None) -> None:
    model, values = MODELS[kind]
    asked = problem(model, noise=noise)
    theta = np.array([*values, 0.3][: len(asked.unknowns)])
    # No event may pass a measurement on the way.
    check_gradient(asked.objective, theta, np.abs(theta), 2e-3 if "event" in kind else 0.01)


@pytest.mark.parametrize("noise", [None, "normal(s)", "lognormal(s)", "normal(s + 0.1*y)", 0.3])
def test_the_gradient_without_scales_that_follow_from_all_else(noise: str | float | None) -> None:
    model = oj.Model({"x": "-k*x", "w": "k*x - m*w"}, {"y": "a*w + b"}, initial={"x": 1, "w": 0.2})
    whole = problem(model, noise=noise, positive=True).objective
    short = whole.without_scales()
    assert short.names == ("k", "m")
    theta = np.array([0.6, 1.3])
    check_gradient(short, theta, theta, 0.02)
    # At the best scales the value is that of all unknowns, and no other scales are better.
    found = short.misfit.evaluate(theta)
    full = short.misfit.embedding.filled(theta, found.eliminated.values)
    assert whole.value(full) == pytest.approx(short.value(theta), rel=1e-9)
    assert whole.value(full * np.where(np.arange(len(full)) < 2, 1, 1.01)) > short.value(theta)
    assert problem().objective.without_scales().names == ("k", "x0")


def test_the_gradient_of_several_experiments_with_priors_on_what_is_local() -> None:
    data = oj.Data.of(
        experiment
        for i in range(3)
        for experiment in oj.Data(TIMES, {"y": wavy(4 + i)}, start=0, name=f"e{i}").experiments
    )
    asked = oj.Problem(DECAY, data, local=["x0"], priors={"x0": "lognormal(1.5, 0.5)"}, noise="lognormal(s)")
    theta = np.array([4.0, 5.0, 6.0, 0.5, 0.2])
    check_gradient(asked.objective, theta, theta)


def test_the_value_is_the_posterior_and_half_the_squares_where_noise_is_known() -> None:
    asked = problem(noise=0.3)
    theta = np.array([0.6, 5.5])
    values = dict(zip(asked.unknowns, theta, strict=True))
    assert asked.objective.value(theta) == pytest.approx(-asked.log_posterior(values), rel=1e-14)
    exact = -stats.norm.logpdf(wavy(), 5.5 * np.exp(-0.6 * TIMES), 0.3).sum()
    assert asked.objective.value(theta) == pytest.approx(exact, rel=1e-12)
    residuals = asked.objective.residuals(theta)
    constant = len(TIMES) * math.log(0.3 * math.sqrt(2 * math.pi))
    assert 0.5 * residuals @ residuals + constant == pytest.approx(exact, rel=1e-12)


def test_levels_that_are_not_known_are_most_likely_or_held() -> None:
    objective, theta = problem().objective, np.array([0.6, 5.5])
    level = objective.noise_at(theta)
    residuals = wavy() - 5.5 * np.exp(-0.6 * TIMES)
    assert level[0] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-10)
    held = objective.with_noise(level)
    assert held.value(theta) == pytest.approx(objective.value(theta), rel=1e-12)
    check_gradient(held, theta, theta)
    assert held.value(theta * 1.1) > objective.value(theta * 1.1)
    with pytest.raises(oj.ModelError, match="one positive number for each of y"):
        objective.with_noise([1.0, 2.0])


def test_the_linear_model_has_the_gradient_and_the_information() -> None:
    objective, theta = problem(noise=0.3, priors={"k": "normal(1, 0.2)"}).objective, np.array([0.6, 5.5])
    linear = objective.linearise(theta)
    np.testing.assert_allclose(linear.gradient(), objective.value_and_gradient(theta)[1], rtol=1e-13)
    np.testing.assert_allclose(linear.rmatvec(linear.residuals), linear.gradient())
    move = np.array([1e-6, -1e-6])
    np.testing.assert_allclose(linear.matvec(move), objective.residuals(theta + move) - linear.residuals, atol=1e-9)
    np.testing.assert_allclose(objective.fisher(theta), linear.factor().T @ linear.factor(), rtol=1e-12)


def test_densities_of_either_scale_belong_together() -> None:
    asked = problem(MODELS["an unknown that may be negative"][0], positive=["k"])
    natural, scaled = asked.objective, asked.objective.scaled()
    theta = np.array([0.6, -0.4])
    x = scaled.from_natural(theta)
    np.testing.assert_allclose(scaled.to_natural(x), theta)
    by_x = np.array([scaled.to_natural(x + h) - scaled.to_natural(x - h) for h in 1e-5 * np.eye(2)]) / 2e-5
    assert scaled.log_jacobian(x) == pytest.approx(math.log(abs(np.linalg.det(by_x))), rel=1e-8)
    assert scaled.log_posterior(x) == pytest.approx(natural.log_posterior(theta) + scaled.log_jacobian(x))
    np.testing.assert_allclose(
        scaled.log_jacobian_gradient(x), differences(scaled.log_jacobian, x, np.ones(2)), rtol=1e-9
    )
    assert scaled.log_jacobian(x, [0]) == pytest.approx(math.log(0.6))
    assert scaled.log_jacobian_gradient(x, [0]).tolist() == [1.0, 0.0]


def test_what_cannot_be_is_infinite_and_says_why() -> None:
    objective = problem(bounds={"k": (0, 2)}).objective
    assert objective.value([3.0, 5.0]) == math.inf
    value, gradient = objective.value_and_gradient([3.0, 5.0])
    assert value == math.inf and np.isnan(gradient).all()
    assert objective.why([3.0, 5.0]) == "k = 3 is outside its bounds, 0 to 2"
    assert objective.why([1.0, 5.0]) is None
    blown = oj.Model({"x": "k*x**2"}, {"y": "x"}, initial={"x": 1})
    explosive = problem(blown).objective
    assert explosive.value([5.0]) == math.inf
    assert "without bound" in str(explosive.why([5.0]))
    with pytest.raises(oj.ModelError, match="no objective at these values"):
        explosive.linearise([5.0])
    with pytest.raises(oj.ModelError, match="theta must have 2 numbers"):
        objective.value([1.0])


def test_it_goes_to_other_processes() -> None:
    objective, theta = problem(noise="lognormal(s)").objective, [0.6, 5.5, 0.2]
    again = pickle.loads(pickle.dumps(objective))
    assert again.names == objective.names
    assert again.value(theta) == objective.value(theta)


def test_the_objective_and_the_problem_give_one_reason() -> None:
    model = oj.Model({"x": "a*x**2"}, {"y": "x"}, initial={"x": 1})
    short, long = (
        oj.Data([0.0, 0.5], {"y": [1.0, 2.0]}, name="short"),
        oj.Data([0.0, 2.0], {"y": [1.0, 3.0]}, name="long"),
    )
    problem = oj.Problem(model, oj.Data.of([short.experiments[0], long.experiments[0]]), noise=0.1)
    reason = problem.objective.why([1.0])
    assert reason is not None and reason.startswith("long: ") and reason == problem.why({"a": 1.0})
    assert problem.objective.why([0.1]) is None and problem.why({"a": 0.1}) is None
