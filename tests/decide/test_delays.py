"""Fits of models that look back in time: delays are found without bounds, and what cannot be decided is said."""

from __future__ import annotations

import numpy as np
import pytest

import odejet as oj

POPULATION = oj.Model({"x": "r*x*(1 - x(t - tau)/K)"}, {"y": "x"}, name="Hutchinson")
PLANT = oj.Model({"x": "(K*u(t - d) - x)/T"}, {"y": "x"}, {"u": "sampled"}, initial={"x": 0}, name="plant")
STEPS = np.array([0, 5, 5, 20, 20, 32, 32, 60.0]), np.array([0, 0, 1, 1, -0.5, -0.5, 0.7, 0.7])


def measured(model, values, initial, times, noise, seed=0, **options):
    curve = next(iter(oj.simulate(model, values, initial, times, **options).outputs.values()))
    return curve + noise * np.abs(curve).max() * np.random.default_rng(seed).standard_normal(len(times))


def agrees(fit, truth):
    return all(abs(fit.values[name] - value) < 4 * fit.stderr[name] for name, value in truth.items())


def test_a_delay_is_found_without_bounds():
    times, truth = np.linspace(0, 20, 40), {"r": 0.8, "K": 2.0, "tau": 1.7}
    data = oj.Data(times, {"y": measured(POPULATION, truth, {"x": 0.5}, times, 0.03)})
    problem = oj.Problem(POPULATION, data)
    assert problem.bounds["tau"] == (0.02, 20.0)
    assert oj.Problem(POPULATION, data, bounds={"tau": (0, 5)}).bounds["tau"] == (0, 5)
    fit = oj.fit(problem)
    assert fit.certified and agrees(fit, truth)
    assert "look back in time" in str(oj.identify(POPULATION))


def test_the_dead_time_of_a_plant():
    times, truth = np.linspace(0, 60, 60), {"K": 2.0, "d": 3.3, "T": 5.0}
    values = measured(PLANT, truth, {}, times, 0.05, inputs={"u": STEPS})
    fit = oj.fit(PLANT, oj.Data(times, {"y": values}, inputs={"u": STEPS}))
    assert fit.certified and agrees(fit, truth)


@pytest.mark.slow
def test_intervals_bands_and_files(tmp_path):
    times, truth = np.linspace(0, 60, 60), {"K": 2.0, "d": 3.3, "T": 5.0}
    values = measured(PLANT, truth, {}, times, 0.05, inputs={"u": STEPS})
    fit = oj.fit(PLANT, oj.Data(times, {"y": values}, inputs={"u": STEPS}))
    low, high = fit.profile("d").interval()
    assert low < 3.3 < high
    predicted = fit.predict(np.linspace(0, 60, 7))
    assert np.isfinite(predicted["y"].low).all()
    fit.report(tmp_path / "fit.html")


def test_two_experiments_with_doses_share_a_delay():
    model = oj.Model(
        {"C": "-k*C", "E": "kin - kout*E*(1 + S*C(t - tau))"},
        {"c": "C", "e": "E"},
        initial={"C": 0, "E": "kin/kout"},
        name="effect",
    )
    truth = {"k": 0.3, "kin": 4.0, "kout": 0.5, "S": 0.3, "tau": 2.0}
    times, rng, parts = np.linspace(0.5, 24, 20), np.random.default_rng(0), []
    for label, amount in (("low", 10.0), ("high", 30.0)):
        given = model.replace(events=[oj.Event(at=[0, 8], set={"C": f"C + {amount}"})])
        sim = oj.simulate(given, truth, {}, times, start=0.0)
        series = {name: values * (1 + 0.03 * rng.standard_normal(len(times))) for name, values in sim.outputs.items()}
        doses = {"time": [0, 8], "state": ["C", "C"], "amount": [amount, amount]}
        parts.append(oj.Data(times, series, doses=doses, start=0, name=label))
    fit = oj.fit(model, oj.Data.join(parts), noise="relative")
    assert fit.certified and agrees(fit, truth)
