"""Lags: starts of equations that look back are near the truth, and where there are none."""

import numpy as np
import pytest

import odejet as oj
from odejet.budget import Budget
from odejet.problem import Problem
from odejet.problem.stretches import stretch
from odejet.search.lags import candidates, is_lagged
from odejet.search.refine import refine
from odejet.smooth import fit_series

BLOWFLIES = oj.Model({"N": "P*N(t - tau)*exp(-N(t - tau)/N0) - d*N"}, {"y": "N"})
EFFECT = oj.Model(
    {"C": "-k*C + u", "E": "kin - kout*E*(1 + S*C(t - tau))"},
    {"c": "C", "e": "E"},
    {"u": "sampled"},
    initial={"C": 0},
    history={"C": 0},
)
PULSES = np.array([0, 1, 1, 9, 9, 11, 11, 30.0]), np.array([8, 8, 0, 0, 6, 6, 0, 0.0])


def starts(problem, noise):
    smoothed = {(c.experiment.name, y): fit_series(one) for c in problem.conditions for y, one in stretch(c).items()}
    return candidates(problem, smoothed, np.array(noise), problem.frame(), Budget.within(60))


def test_a_delay_among_oscillations():
    """Values and delays as Nicholson's blowflies have them; a search meets this optimum in few of its starts."""
    truth = {"P": 8.0, "tau": 15.0, "N0": 400.0, "d": 0.16}
    times, rng = np.linspace(0, 240, 121), np.random.default_rng(0)
    clean = oj.simulate(BLOWFLIES, truth, {"N": 300.0}, times)["y"]
    problem = Problem(BLOWFLIES, oj.Data(times, {"y": clean * np.exp(0.1 * rng.normal(size=121))}), noise="lognormal")
    assert is_lagged(problem)
    found = starts(problem, [0.1])
    assert {one.part for one in found} == {"", "even", "odd"}
    best = min(found, key=lambda one: problem.misfit.score(one.z))
    values = dict(zip(problem.unknowns, best.z.tolist(), strict=True))
    for name, value in truth.items():
        assert values[name] == pytest.approx(value, rel=0.3), name


def test_experiments_with_inputs_and_a_history():
    truth = {"k": 0.3, "kin": 4.0, "kout": 0.5, "S": 0.3, "tau": 2.0}
    times, rng = np.linspace(0, 30, 61), np.random.default_rng(1)
    inputs = {"one": {"u": PULSES}, "two": {"u": (PULSES[0], 0.5 * PULSES[1])}}
    every = []
    for name, own in inputs.items():
        sim = oj.simulate(EFFECT, truth, {"E": 8.0}, times, inputs=own)
        noisy = {y: v + 0.02 * np.abs(v).max() * rng.normal(size=len(v)) for y, v in sim.outputs.items()}
        every.append(oj.Data(times, noisy, inputs=own, name=name))
    problem = Problem(EFFECT, every)
    assert is_lagged(problem)
    best = min(starts(problem, [0.2, 0.2]), key=lambda one: problem.misfit.score(one.z))
    frame, labels = problem.frame(), {"E(0) in one": 8.0, "E(0) in two": 8.0}
    found = refine(problem.misfit, best.z, frame=frame)
    assert found.cost < refine(problem.misfit, problem.layout.vector({**labels, **truth}), frame=frame).cost + 0.01


@pytest.mark.slow
def test_two_delays_are_tried_together():
    model = oj.Model({"x": "-a*x(t - tau) - b*x(t - sigma)"}, {"y": "x"}, bounds={"tau": (0.2, 3), "sigma": (0.2, 3)})
    times = np.linspace(0, 20, 101)
    clean = oj.simulate(model, {"a": 0.8, "tau": 1.0, "b": 0.3, "sigma": 2.2}, {"x": 1.0}, times)["y"]
    problem = Problem(model, oj.Data(times, {"y": clean + 0.01 * np.random.default_rng(0).normal(size=101)}))
    scores = [problem.misfit.score(one.z) for one in starts(problem, [0.01])]
    assert min(scores) < problem.misfit.score(problem.layout.vector({"x(0)": 1, "a": 0, "b": 0, "tau": 1, "sigma": 1}))


@pytest.mark.parametrize(
    "model",
    [
        oj.Model({"x": "-k*x"}, {"y": "x"}),
        oj.Model({"x": "-k*x(t - tau)"}, {"y": "2*x"}),
        oj.Model({"x": "-k*x(t - tau)", "z": "x - z"}, {"y": "x"}),
        oj.Model({"x": "-k*x(t - tau)"}, {"y": "x"}, events=[oj.Event(at=2, set={"x": 1})]),
        oj.Model({"x": "-k*x(t - tau)"}, {"y": "increment(x)"}),
    ],
    ids=["no delay", "scaled", "hidden", "event", "increment"],
)
def test_where_there_are_no_such_starts(model):
    assert not is_lagged(Problem(model, oj.Data(np.arange(1, 20.0), {"y": np.exp(-np.arange(19.0))}, start=0)))
