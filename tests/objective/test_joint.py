"""Scales and offsets with noise that depends on the output: the most likely ones, beside SciPy's."""

import numpy as np
import pytest
from scipy.optimize import minimize

import odejet as oj
from odejet.objective.projection import projected
from odejet.problem import Problem
from odejet.search.refine import refine

TIMES = np.linspace(0, 10, 40)
MODEL = oj.Model({"x": "r*x*(1 - x)"}, {"y": "a*x + b"})


def posed(seed, noise="normal(s + q*y)"):
    """A course with a constant and a relative part of the noise."""
    rng = np.random.default_rng(seed)
    truth = {"r": 0.9, "a": 10 ** rng.uniform(-2, 2), "b": 10 ** rng.uniform(-2, 2)}
    clean = oj.simulate(MODEL, truth, {"x": 0.05}, TIMES)["y"]
    values = clean + (0.02 * truth["a"] + 0.1 * clean) * rng.normal(size=len(TIMES))
    return Problem(MODEL, oj.Data(TIMES, {"y": values}), noise={"y": noise}, bounds=(1e-6, 1e4))


NOISES = ("normal(s + q*y)", "normal(sqrt(s**2 + (q*y)**2))", "lognormal(s + q/(1 + y))", "normal(s + q*sqrt(y))")


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seed", range(8))
def test_none_are_likelier(seed, noise):
    problem, rng = posed(seed, noise), np.random.default_rng(seed)
    part = projected(problem.misfit, problem.frame())
    assert [problem.unknowns[i] for i in part.embedding.gone] == ["a", "b", "s", "q"]
    z = np.exp(rng.normal(np.log([0.05, 0.9]), 0.3))
    found = part.evaluate(z)
    ours = problem.misfit.cost(found.residuals, rest=found.rest)

    def cost(logs):
        there = problem.misfit.evaluate(part.embedding.filled(z, np.exp(logs)), jacobian=False)
        return problem.misfit.cost(there.residuals, rest=there.rest) if there.complete else 1e6

    low, high = (np.log(side[part.embedding.gone]) for side in (problem.frame().low, problem.frame().high))
    first = np.log(found.eliminated.values)
    starts = [first, np.clip(first + rng.normal(size=4), low, high)]
    theirs = min(minimize(cost, one, bounds=list(zip(low, high, strict=True))).fun for one in starts)
    assert ours <= theirs + 1e-6


def test_a_refinement_ends_where_it_does_with_all_unknowns(monkeypatch):
    problem = posed(3)
    start = np.array([0.02, 0.5, 1.0, 1.0, 0.1, 0.1])
    short = refine(problem.misfit, start, frame=problem.frame())
    monkeypatch.setattr("odejet.search.refine.projected", lambda *_: None)
    whole = refine(problem.misfit, start, frame=problem.frame())
    assert short.cost == pytest.approx(whole.cost, abs=1e-5)
    np.testing.assert_allclose(short.z, whole.z, rtol=1e-3)
    assert short.jacobian.shape == whole.jacobian.shape
    assert short.evaluations <= whole.evaluations


def test_outputs_without_scales_have_their_noise_found_too():
    model = oj.Model({"x": "r*x*(1 - x)"}, {"y": "a*x", "w": "x", "v": "x**2"})
    rng, clean = np.random.default_rng(2), oj.simulate(model, {"r": 0.9, "a": 3.0}, {"x": 0.05}, TIMES)
    values = {name: clean[name] * (1 + 0.1 * rng.normal(size=len(TIMES))) for name in clean.outputs}
    noise = {"y": "normal(s + q*y)", "w": "normal(c + d*w)", "v": "normal(c + e*v)"}
    problem = Problem(model, oj.Data(TIMES, values), noise=noise, bounds=(1e-6, 1e4))
    part = projected(problem.misfit, problem.frame())
    assert {problem.unknowns[i] for i in part.embedding.gone} == {"a", "s", "q", "d", "e"}  # c belongs to two outputs
    found = part.evaluate(np.array([0.05, 0.9, 0.02]))
    full = part.embedding.filled(np.array([0.05, 0.9, 0.02]), found.eliminated.values)
    assert np.isfinite(full).all()
    gradient = found.residuals @ found.eliminated.jacobian.dense()
    np.testing.assert_allclose((gradient * full)[part.embedding.gone], 0, atol=1e-4)
