"""Scales: sizes of unknowns from the units of the data."""

import numpy as np
import pytest

import odejet as oj
from odejet import Data, Model, Problem

PREDATORS = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y": "r"})
UNITS = {"r": (1, 0), "w": (1, 0), "k1": (0, -1), "k2": (-1, -1), "k3": (0, -1)}
"""Powers of the unit of the values and of that of the time."""


def sizes(model: Model, values: float, time: float) -> dict[str, float]:
    times = np.linspace(0, 10, 11)
    problem = Problem(model, Data(times * time, {"y": values * (2 + np.sin(times))}))
    return {unknown.name: size for unknown, size in zip(problem.layout, problem.sizes.tolist(), strict=True)}


@pytest.mark.parametrize(("values", "time"), [(1e30, 1.0), (1e-30, 1.0), (1.0, 1e30), (1e12, 1e-20)])
def test_sizes_change_with_the_units(values, time):
    before, after = sizes(PREDATORS, 1.0, 1.0), sizes(PREDATORS, values, time)
    for name, (of_values, of_time) in UNITS.items():
        assert after[name] / before[name] == pytest.approx(values**of_values * time**of_time, rel=1e-3)


def test_terms_of_one_kind_have_one_size():
    found = sizes(Model({"s": "-V*s/(K + s)"}, {"y": "s"}), 1e6, 1.0)
    assert found["K"] == pytest.approx(found["s"], rel=1e-3)
    assert found["V"] == pytest.approx(found["s"] / 2.0, rel=1e-2)  # a fifth of the span of ten


def test_what_bounds_hold_needs_no_size():
    data = Data([0.0, 1, 2, 3, 4], {"y": [1e9, 2e9, 1e9, 2e9, 1e9]})
    assert (Problem(PREDATORS, data, bounds=(1e-5, 10)).sizes == 1.0).all()


@pytest.mark.parametrize(("values", "time"), [(1e30, 1.0), (1e-30, 1.0), (1.0, 1e30), (1.0, 1e-30), (1e30, 1e-30)])
def test_a_fit_is_the_same_in_other_units(values, time):
    model = Model({"s": "-V*s/(K + s)"}, {"y": "s"})
    times = np.linspace(0, 6, 30)
    y = oj.simulate(model, {"V": 1.0, "K": 0.7}, {"s": 3.0}, times)["y"]
    y += 0.01 * np.random.default_rng(0).normal(size=30)
    plain, other = oj.fit(model, Data(times, {"y": y})), oj.fit(model, Data(times * time, {"y": y * values}))
    assert plain.certified and other.certified
    for name, unit in (("s", values), ("V", values / time), ("K", values)):
        assert other.values[name] == pytest.approx(plain.values[name] * unit, rel=1e-4)
        assert other.stderr[name] == pytest.approx(plain.stderr[name] * unit, rel=1e-3)


def test_values_whose_squares_no_number_holds():
    with pytest.raises(oj.DataError, match="'y': values of size 3e-160 have squares that no number holds"):
        Data([0, 1], {"y": [1e-160, 3e-160]})


def test_sparse_normal_equations_give_the_sizes_of_the_dense_ones(monkeypatch):
    chain = {"x1": "u - k1*x1"} | {f"x{i}": f"k{i - 1}*x{i - 1} - k{i}*x{i}" for i in range(2, 12)}
    problem = oj.Problem(oj.Model(chain, {"y": "c*x11"}), oj.Data(np.arange(0, 5.0), {"y": np.full(5, 3e4)}))
    dense = problem.sizes.copy()
    monkeypatch.setattr("odejet.problem.scales.LARGE", 0)
    sparse = oj.Problem(problem.model, problem.data).sizes
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)


def test_bounded_unknowns_need_no_sizes(monkeypatch):
    monkeypatch.setattr("odejet.problem.problem.scales", None)  # would raise
    model = oj.Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 2}, bounds={"k": (0.1, 10)})
    problem = oj.Problem(model, oj.Data(np.arange(0, 5.0), {"y": np.exp(-np.arange(0, 5.0))}))
    np.testing.assert_array_equal(problem.sizes, 1.0)
