"""Fits of long records that begin with their first part."""

import numpy as np
import pytest

import odejet as oj
from odejet.decide import beginning
from problems.driven import MOTOR, held

MACHINE = {"R": 2.0, "K": 0.1, "L": 0.5, "b": 0.05, "J": 0.02}
STEP = 0.05


def record(count: int) -> oj.Data:
    rng = np.random.default_rng(3)
    volts = np.repeat(rng.choice([0, 6.0, 12.0], count // 4), 4)
    current, speed = held(volts, STEP, **MACHINE) + 0.02 * rng.standard_normal((2, count))
    return oj.Data(STEP * np.arange(count), {"current": current, "speed": speed}, inputs={"V": volts})


def test_the_first_part_has_its_own_measurements_and_inputs():
    problem = oj.Problem(MOTOR, record(beginning.LONG + 400), bounds={"R": (0.1, 10)}, priors={"b": "lognormal(-3, 1)"})
    first = beginning.beginning(problem)
    assert first is not None and first.unknowns == problem.unknowns and first.bounds == problem.bounds
    one, whole = first.experiments[0], problem.experiments[0]
    assert {len(series) for series in one.outputs.values()} == {beginning.FIRST}
    assert np.array_equal(one.outputs["speed"].values, whole.outputs["speed"].values[: beginning.FIRST])
    theta = np.array([MACHINE[name] for name in problem.unknowns])
    assert np.isfinite(first.objective.value(theta))


def test_short_records_are_searched_whole():
    assert beginning.beginning(oj.Problem(MOTOR, record(400))) is None


def test_a_fit_begins_with_a_part_and_ends_with_all(monkeypatch):
    monkeypatch.setattr(beginning, "LONG", 1000)
    monkeypatch.setattr(beginning, "FIRST", 200)
    fit = oj.fit(MOTOR, record(2000))
    assert fit.certified and fit.stages["beginning"] > 0
    assert "the first part of the records was searched by itself" in fit.search.sentence
    for name, value in MACHINE.items():
        assert abs(fit.parameters[name] - value) < 4 * fit.stderr[name]
        assert fit.parameters[name] == pytest.approx(value, rel=0.01)
