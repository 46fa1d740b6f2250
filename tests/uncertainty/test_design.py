"""Designs against the formulas of linear regression."""

import math

import numpy as np
import pytest

import odejet as oj
from odejet import Model, ModelError
from tests.fits import PREDATORS, STRAIGHT, driven, predators, refined_fit

TIMES = np.linspace(0, 4, 25)


def slope_error(times, sd):
    return sd / math.sqrt(((times - times.mean()) ** 2).sum())


def test_a_straight_line():
    design = oj.design(STRAIGHT, {"b": 1.5}, {"x": 0.5}, TIMES, 0.3)
    assert design.stderr["b"] == pytest.approx(slope_error(TIMES, 0.3))
    assert design.relative["b"] == pytest.approx(slope_error(TIMES, 0.3) / 1.5)
    at_zero = 0.3 * math.sqrt(1 / 25 + TIMES.mean() ** 2 / ((TIMES - TIMES.mean()) ** 2).sum())
    assert design.stderr["x"] == design.stderr["x(0)"] == pytest.approx(at_zero)


def test_other_times():
    design = oj.design(STRAIGHT, {"b": 1.5}, {"x": 0.5}, TIMES, 0.3)
    ends = np.r_[np.zeros(12), np.full(13, 4.0)]
    assert design.with_times(ends).stderr["b"] == pytest.approx(slope_error(ends, 0.3))
    with pytest.raises(ModelError, match="measure some output there"):
        design.with_times(TIMES + 1)


def test_relative_noise():
    """Constant outputs with errors proportional to their size."""
    model = Model({"x": "0*x"}, {"y": "x", "z": "10*x"})
    design = oj.design(model, {}, {"x": 3.0}, TIMES, {"y": "2%", "z": 0.5})
    information = 25 / (0.02 * 3) ** 2 + 25 * 100 / 0.25
    assert design.stderr["x"] == pytest.approx(1 / math.sqrt(information))


def test_an_output_with_its_own_times():
    model = Model({"x": "b + 0*x"}, {"y": "x", "z": "2*x"})
    few = np.array([0.0, 4.0])
    design = oj.design(model, {"b": 1.5}, {"x": 0.5}, {"z": few}, 0.3)
    assert design.stderr["b"] == pytest.approx(slope_error(few, 0.15))
    assert design.points == 2


def test_what_would_help():
    parameters, states = {"k1": 0.7, "k2": 0.4, "k3": 0.5}, {"r": 1.2, "w": 0.6}
    design = oj.design(PREDATORS, parameters, states, np.linspace(0, 20, 40), 0.05)
    changes = design.changes()
    assert [change.typical for change in changes] == sorted(change.typical for change in changes)
    told = {change.what: change for change in changes}
    assert set(told["twice the points of y1"].factors.values()) <= {
        factor for factor in told["twice the points of y1"].factors.values() if 0.6 < factor < 0.8
    }
    both = told["w measured too"]
    expected = design.with_output("w").stderr
    assert both.factors["k2"] == pytest.approx(expected["k2"] / design.stderr["k2"])
    assert all(factor <= 1 for factor in both.factors.values())
    assert "w measured too" in repr(design) and "w measured too" in design.to_dataframe()


def test_what_nothing_tells_can_be_told_by_another_output():
    model = Model({"x": "-k*x", "z": "-m*z"}, {"y": "x"})
    design = oj.design(model, {"k": 0.5, "m": 0.3}, {"x": 1.0, "z": 2.0}, TIMES, 0.05)
    assert math.isinf(design.stderr["m"])
    change = next(change for change in design.changes() if change.what == "z measured too")
    assert change.factors["m"] == 0 and change.factors["k"] == pytest.approx(1)


def test_the_noise_of_a_further_output_is_as_large_for_its_size():
    design = oj.design(PREDATORS, {"k1": 0.7, "k2": 0.4, "k3": 0.5}, {"r": 1.2, "w": 0.6}, TIMES, 0.05)
    clean = oj.simulate(PREDATORS, design.parameters, design.initial_state, TIMES)
    wanted = 0.05 / clean["y1"].mean() * clean.states["w"].mean()
    assert design.with_output("w").stderr["k2"] == pytest.approx(design.with_output("w", wanted).stderr["k2"])


def test_the_design_of_a_fit_has_its_errors():
    fit = predators()
    assert fit.design().stderr == pytest.approx(dict(fit.stderr), rel=1e-6)
    known = refined_fit(STRAIGHT, oj.Data(TIMES, {"y": 0.5 + 1.5 * TIMES}), [0.5, 1.5], noise=0.2)
    assert known.design().stderr["b"] == pytest.approx(slope_error(TIMES, 0.2))
    driven().design("first").changes()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"noise": {}}, "needs the sd of the noise of 'y'"),
        ({"noise": "relative"}, "needs the sd"),
        ({"noise": -1}, "positive number"),
        ({"times": []}, "non-empty"),
        ({"times": {"q": TIMES}}, "no output 'q'"),
        ({"times": {}}, "at least one output"),
        ({"parameters": {}}, "no value is given for the parameter b"),
    ],
)
def test_what_is_refused(change, why):
    given = {"parameters": {"b": 1.0}, "initial_state": {"x": 1.0}, "times": TIMES, "noise": 0.1} | change
    with pytest.raises(ModelError, match=why):
        oj.design(STRAIGHT, **given)


def test_a_design_that_blows_up():
    with pytest.raises(ModelError, match="cannot be simulated"):
        oj.design(Model({"x": "x**2"}, {"y": "x"}), {}, {"x": 1.0}, TIMES, 0.1)


def test_what_a_design_leaves_open_is_unknown_and_what_is_known_needs_no_design():
    model = Model({"x": "-k*x"}, {"y": "x"}, name="decay")
    assert "unknown" in repr(oj.design(model, {"k": 1.0}, {"x": 2.0}, [0.5], 0.1))
    assert "inf" not in repr(oj.design(model, {"k": 1.0}, {"x": 2.0}, [0.5], 0.1))
    known = Model({"x": "-k*x"}, {"y": "x"}, initial={"x": 1}, fixed={"k": 1}, name="decay")
    with pytest.raises(ModelError, match="everything in decay is known"):
        oj.design(known, {}, {}, [0.0, 1.0], 0.1)
