"""Many values at once are those one by one."""

import numpy as np
import pytest

import odejet as oj
from odejet.clock import now

TIMES = np.linspace(0.0, 3.0, 9)
FALLING = 40 * np.exp(-0.8 * TIMES)
DECAY = oj.Model({"x": "-k*x"}, {"y": "x"})
COUNTS = np.round(FALLING)


def points(problem, count=20):
    """Values of which some are impossible."""
    rng = np.random.default_rng(4)
    typical = [{"x(0)": 40.0, "k": 0.8}.get(label, 0.2) for label in problem.unknowns]
    found = np.array(typical) * np.exp(rng.normal(size=(count, len(typical))))
    found[3] = -1.0
    found[4] = 1e9
    return found


def agree(problem):
    objective = problem.objective
    thetas = points(problem)
    found = objective.values(thetas)
    one_by_one = np.array([objective.value(theta) for theta in thetas])
    assert np.isfinite(found).sum() >= 10
    np.testing.assert_allclose(found, one_by_one, rtol=1e-11)


@pytest.mark.parametrize(
    "noise",
    [None, 0.3, "2%", "normal(s)", "normal(s + b*y)", "lognormal(s)", "student(s, 4)", "laplace(s)", "gamma(s)"]
    + ["poisson", "negbinomial(s)", "binomial(60)", "betabinomial(60, s)", "ar1(s, rho)"],
)
def test_laws(noise):
    values = COUNTS if noise and noise.__class__ is str and ("bin" in noise or "poi" in noise) else FALLING + 0.1
    agree(oj.Problem(DECAY, oj.Data(TIMES, {"y": values}), noise=noise, positive=True))


def test_priors():
    priors = {"k": "lognormal(0, 1)", "x": "truncated(student(40, 9, 5), 1, 90)", "s": "gamma(2, 0.1)"}
    agree(oj.Problem(DECAY, oj.Data(TIMES, {"y": FALLING}), noise="normal(s)", positive=True, priors=priors))


@pytest.mark.parametrize("kind", ["doses", "input", "experiments", "steady", "zero state", "censored", "stiff"])
def test_models(kind):
    model, data, noise = DECAY, oj.Data(TIMES, {"y": FALLING}), 0.5
    if kind == "doses":
        data = oj.Data(TIMES, {"y": FALLING}, doses={"time": [1.0], "state": ["x"], "amount": [10]})
    elif kind == "input":
        model = oj.Model({"x": "u - k*x"}, {"y": "x"}, inputs={"u": "sin(t)"})
    elif kind == "experiments":
        data = [oj.Data(TIMES[i:], {"y": FALLING[i:]}, name=f"e{i}") for i in range(3)]
    elif kind == "steady":
        model = oj.Model({"x": "x - k*x**2"}, {"y": "x"}, initial="steady")
    elif kind == "zero state":
        model = oj.Model({"x": "-k*x + z", "z": "-z"}, {"y": "x"}, initial={"z": "0"})
    elif kind == "censored":
        data, noise = oj.Data(TIMES, {"y": ["<80", *FALLING[1:].tolist()]}), "normal(s)"
    elif kind == "stiff":
        model = oj.Model({"x": "-k*x + 1e5*(z - x)", "z": "1e5*(x - z) - z"}, {"y": "x"}, initial={"z": "1"})
    agree(oj.Problem(model, data, noise=noise, positive=True))


def test_what_there_is_no_time_for_is_not_looked_at():
    problem = oj.Problem(DECAY, oj.Data(TIMES, {"y": FALLING}), noise=0.3, positive=True)
    thetas = points(problem)[5:]
    assert np.isnan(problem.objective.values(thetas, until=now() - 1)).all()
