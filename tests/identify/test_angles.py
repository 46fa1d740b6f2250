"""Angles: what is seen by its sine and cosine alone."""

import odejet as oj
from odejet import Model
from odejet.identify import angles

CLOCK = {"x1": "1", "x2": "cos(x1)"}


def test_an_angle_is_known_but_for_whole_turns():
    verdict = oj.identify(Model(CLOCK, {"y1": "sin(x1)/b", "y2": "x2"}))
    assert {name: verdict[name].kind for name in ("x1", "x2", "b")} == {"x1": "local", "x2": "global", "b": "global"}
    assert verdict["x1"].values is None and "whole turns" in verdict["x1"].sentence
    assert verdict.combinations == ("sin(x1)", "cos(x1)")
    assert verdict.generate is True
    assert verdict.reason == "" and verdict.solutions is None
    assert "x1(0) but for whole turns" in verdict.message
    assert verdict.to_dict()["quantities"]["x1"]["values"] is None


def test_a_turn_that_is_seen_is_no_turn():
    """x1 itself is in the rate of x2."""
    states = {"x1": "1", "x2": "cos(x1) + x1"}
    assert angles.pairs(Model(states, {"y": "x2"})) == {}
    assert angles.pairs(Model(CLOCK, {"y": "sin(x1 + c)"})) == {}
    assert angles.pairs(Model({"x": "w"}, {"y": "sin(x)"})) == {"x": ("sin(x)", "cos(x)")}


def test_a_sine_alone_leaves_two_angles():
    """sin(a) of a constant angle does not tell the sign of cos(a)."""
    verdict = oj.identify(Model({"x": "-sin(a)*x"}, {"y": "x"}))
    assert verdict["a"].kind == "undecided"
    assert verdict.generate is None


def test_the_direction_is_not_known():
    """x -> pi - x, w -> -w gives the same sine at all times."""
    verdict = oj.identify(Model({"x": "w"}, {"y": "sin(x)"}))
    assert verdict["x"].kind == verdict["w"].kind == "undecided"
