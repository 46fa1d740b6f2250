"""Curves: inputs whose values at knots are unknowns, read, named and written out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import odejet as oj
from odejet.jets.curves import basis
from odejet.model.curves import pieces, read, written
from odejet.model.expressions import evaluate

STATES = {"x": "-beta*x"}


def model(curve: str, **more):
    return oj.Model(STATES, {"y": "x"}, inputs={"beta": curve}, initial={"x": 1}, **more)


def test_the_value_at_a_knot_is_a_parameter_named_by_its_time():
    assert model("spline(knots=[0, 0.5, 30])").parameters == ("beta[0]", "beta[0.5]", "beta[30]")
    assert model("steps(at=[-1, 7])").parameters == ("beta[-1]", "beta[7]")
    assert model("spline(every=7)").parameters == ()


def test_values_may_stand_in_bounds_fixed_values_expressions_and_equations():
    told = oj.Model(
        {"x": "-beta*x + beta[0]"},
        {"y": "x"},
        inputs={"beta": "spline(knots=[0, 10, 20])"},
        bounds={"beta": (0, 5), "beta[10]": (1, 2)},
        fixed={"beta[20]": 0.5},
        expressions={"change": "beta[10]/beta[0]"},
        local=["beta"],
    )
    assert told.parameters == ("beta[0]", "beta[10]")
    problem = oj.Problem(told, oj.Data([0, 5, 10, 20], {"y": [1, 1, 1, 1]}), priors={"beta": "normal(1, 1)"})
    assert problem.bounds["beta[0]"] == (0, 5)
    assert problem.bounds["beta[10]"] == (1, 2)
    assert problem.local == problem.unknowns[1:] == ("beta[0]", "beta[10]")


@pytest.mark.parametrize("curve", ["spline(knots=[0, 30, 60], positive)", "spline(every=7.5)", "steps(at=[0, 1e-3])"])
def test_files_keep_curves_as_they_are_written(curve):
    told = model(curve)
    assert str(told.curves["beta"]) == str(read("beta", curve))
    assert oj.Model.from_toml_text(told.to_toml()) == told.replace(name="model")
    assert f"beta(t) = {told.curves['beta']}" in str(told)


@pytest.mark.parametrize("kind", ["spline", "steps"])
def test_basis_functions_add_up_to_one_and_are_one_at_their_knot(kind):
    curve = read("u", f"{kind}({'knots' if kind == 'spline' else 'at'}=[0, 1, 4, 6, 7])")
    knots, functions = np.array(curve.knots), basis(curve)
    times = np.linspace(-5, 20, 301)
    assert np.allclose(sum(one(times) for one in functions), 1, rtol=0, atol=1e-14)
    assert np.allclose([one(knots) for one in functions], np.eye(5), rtol=0, atol=1e-14)
    for one in functions:  # the ends hold
        assert (one(np.array([-3.0])) == one(knots[:1])).all()
        assert (one(np.array([12.0])) == one(knots[-1:])).all()


def test_a_spline_is_every_parabola_through_its_values():
    curve = read("u", "spline(knots=[0, 1, 4, 6, 7])")
    knots, inside = np.array(curve.knots), np.linspace(0, 7, 71)
    for power in range(3):
        found = sum(value * one(inside) for value, one in zip(knots**power, basis(curve), strict=True))
        assert np.allclose(found, inside**power, rtol=0, atol=1e-12)


def test_a_spline_has_no_kinks_between_its_ends():
    curve = read("u", "spline(knots=[0, 2, 3, 7, 8, 11])")
    for i, row in enumerate(pieces(curve)[:-2]):
        width = Fraction(repr(curve.knots[i + 1])) - Fraction(repr(curve.knots[i]))
        for k, polynomial in enumerate(row):
            value = sum(c * width**j for j, c in enumerate(polynomial))
            slope = sum(j * c * width ** (j - 1) for j, c in enumerate(polynomial) if j)
            following = pieces(curve)[i + 1][k]
            assert [value, slope] == following[:2]


@pytest.mark.parametrize(
    "curve", ["spline(knots=[0, 2, 3, 7])", "spline(knots=[1, 5], positive)", "steps(at=[0, 2, 3])"]
)
def test_a_curve_written_in_the_language_is_the_one_that_drives_simulations(curve):
    told = model(curve)
    rng = np.random.default_rng(1)
    values = dict(zip(told.parameters, rng.uniform(0.2, 2, len(told.parameters)), strict=True))
    times = np.linspace(-1, 9, 101)
    found = oj.simulate(told, values, {}, times, start=-1)["beta"]
    text = written(told.curves["beta"], "beta")
    expected = [evaluate(text, {**values, "t": float(t)}, math) for t in times]
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ("spline(knots=[0, 30, 20])", "must be in order of time, but 20 follows 30"),
        ("spline(knots=[0, 0])", "must be in order"),
        ("spline(knots=[3])", "needs two times at least"),
        ("spline(knots=3)", "is a list of times"),
        ("spline(knots=[0, soon])", "must be numbers, not 'soon'"),
        ("spline(knot=[0, 1])", "did you mean 'knots'"),
        ("steps(knots=[0, 1])", "it has at, every, positive"),
        ("spline(every=0)", "every must be positive"),
        ("spline()", "either knots=[...]"),
        ("spline(every=1, knots=[0, 1])", "either knots=[...]"),
        ("spline(every=1, every=2)", "given twice"),
        ("spline(every=1, positive=yes)", "write 'positive' alone"),
        ("spline(knots=[1, 1.0000000000000002])", "so close that they are one"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(curve, words):
    with pytest.raises(oj.ModelError, match=r"^\[inputs\] beta: ") as refused:
        model(curve)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ("spline(knots=[0, 30])", "the knot at t = 30 is after the last measurement at 10; leave it out"),
        ("spline(knots=[-1, 3])", "the knot at t = -1 is before the start at 0; leave it out"),
        ("steps(at=[5, 7])", "the first step begins at t = 5, after the start at 0"),
        ("spline(every=20)", "is longer than the data"),
        ("spline(every=1e-6)", "500 is the limit"),
    ],
)
def test_knots_that_no_data_tell_of_are_refused(curve, words):
    with pytest.raises(oj.ModelError) as refused:
        oj.Problem(model(curve), oj.Data([0, 5, 10], {"y": [1, 2, 3]}))
    assert words in str(refused.value)


def test_members_of_a_set_have_curves_of_their_own():
    told = oj.Model(
        {"x[i]": "-beta[i]*x[i]"},
        {"y[i]": "x[i]"},
        inputs={"beta[i]": "steps(at=[0, 5])"},
        sets={"age": ["child", "adult"]},
    )
    assert told.parameters == ("beta[child,0]", "beta[child,5]", "beta[adult,0]", "beta[adult,5]")
    values = dict(zip(told.parameters, (0.1, 0.2, 0.3, 0.4), strict=True))
    found = oj.simulate(told, values, {"x[child]": 1, "x[adult]": 1}, [0, 10])
    assert found["y[child]"][1] == pytest.approx(np.exp(-1.5), rel=1e-12)
    assert found["y[adult]"][1] == pytest.approx(np.exp(-3.5), rel=1e-12)
