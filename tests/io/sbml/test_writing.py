"""Models as SBML: what is written is read again, and libsbml finds nothing wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("libsbml", reason="the reader of SBML is not installed")

import libsbml

import odejet as oj
from odejet.io.sbml import network_of_text
from odejet.io.sbml.building import model_of
from odejet.model import expressions
from odejet.model.grammar import parse
from tests.strategies import is_expression, texts

PHARMACOKINETICS = oj.Model(
    {"gut": "-ka*gut", "blood": "ka*gut/V - k*blood + 0.1*sin(t)"},
    {"y": "log(1 + blood)*sqrt(2)", "low": "piecewise(1, blood < 2 and t > 1, 0)"},
    initial={"gut": "D/2", "blood": 0.25},
    fixed={"V": 2.5, "D": -3e-7},
    events=[
        oj.Event(at=12, set={"gut": "gut + 100"}),
        oj.Event(when="blood > 3 and t < 4", set={"blood": "blood/2"}),
    ],
    name="pharmacokinetics",
)


def read_again(model: oj.Model) -> oj.Model:
    return model_of(network_of_text(model.to_sbml()))


def test_delays_are_written_and_read():
    model = oj.Model(
        {"x": "-k*x(t - tau)", "z": "x(t - 1) - z"},
        {"y": "x + z(t - tau)"},
        initial={"x": 1, "z": 0},
        fixed={"tau": 0.7, "k": 2},
    )
    again, times = read_again(model), np.linspace(0, 4, 9)
    assert np.array_equal(oj.simulate(again, times=times)["y"], oj.simulate(model, times=times)["y"])
    with pytest.raises(oj.ModelError, match="history"):
        model.replace(history={"x": "1 + t"}).to_sbml()


def test_what_is_written_is_read():
    assert read_again(PHARMACOKINETICS) == PHARMACOKINETICS.replace(start=0)


def test_libsbml_finds_no_error():
    document = libsbml.readSBMLFromString(PHARMACOKINETICS.to_sbml())
    document.checkConsistency()
    errors = [document.getError(i) for i in range(document.getNumErrors())]
    assert [error.getMessage() for error in errors if error.getSeverity() >= libsbml.LIBSBML_SEV_ERROR] == []


@settings(max_examples=40, deadline=None)
@given(texts(["x", "y", "k"], ["exp", "sin", "tanh"]).filter(is_expression))
def test_expressions_keep_their_value(text):
    model = oj.Model({"x": text, "y": "k"}, initial={"x": 1, "y": 2})
    values = {"x": 0.7, "y": 1.3, "k": 0.4}

    def value(expression):
        try:
            return expressions.evaluate(expression, values, np)
        except (ArithmeticError, ValueError):
            return np.nan

    with np.errstate(all="ignore"):
        assert np.isclose(value(parse(text)), value(read_again(model).states["x"]), rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("abs(0 - x) + sign(0 - x)", 1.0),
        ("min(x, 3, 1)", 1.0),
        ("floor(x/3) + ceil(x/3)", 1.0),
        ("piecewise(5, not x > 3, 1)", 5.0),
        ("x**(-2)", 0.25),
        ("0.1 + 1e-30 + 1e30*0", 0.1),
    ],
)
def test_what_switches_keeps_its_value(text, value):
    again = read_again(oj.Model({"x": text}, initial={"x": 2}))
    found = expressions.evaluate(again.states["x"], {"x": 2.0}, np)
    assert np.isclose(found, value, rtol=1e-14)


def test_inputs_are_written_out_and_repeated_events_one_by_one():
    model = oj.Model(
        {"x": "u - x"},
        inputs={"u": "cos(t)"},
        initial={"x": 0},
        events=[oj.Event(at=1, every=2, count=3, set={"x": "x + 1"})],
    )
    again = read_again(model)
    assert str(again.states["x"]) == "cos(t) - x" and len(again.events) == 3
    times = np.linspace(0, 7, 15)
    one, other = (oj.simulate(it, {}, {}, times).states["x"] for it in (model, again))
    assert np.allclose(one, other, rtol=1e-12)


def test_the_order_of_events_at_one_time_is_kept():
    model = oj.Model(
        {"x": "1", "y": "0"},
        initial={"x": 0, "y": 1},
        events=[oj.Event(when="x > 1", set={"y": "y + 1"}), oj.Event(when="x > 1", set={"y": "3*y"})],
    )
    for it in (model, read_again(model)):
        assert oj.simulate(it, {}, {}, [0, 2]).states["y"][-1] == 6


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (oj.Model({"x": "u"}, inputs={"u": None}), "the input 'u' is sampled, which SBML cannot say"),
        (oj.Model({"x": "1 - x"}, initial="steady"), "starts in its steady state, which SBML cannot say"),
        (oj.Model({"x": "1"}, events=[oj.Event(at=1, every=1, set={"x": "0"})]), "event 1: SBML has no events that re"),
    ],
)
def test_what_cannot_be_written(model, reason, tmp_path):
    with pytest.raises(oj.ModelError, match=reason):
        model.to_sbml(tmp_path / "model.xml")
    assert not list(tmp_path.iterdir())


def test_letters_beyond_ascii_get_ids():
    again = read_again(oj.Model({"β": "-λ*β"}, initial={"β": 1}))
    assert list(again.states) == ["_u03b2"] and again.parameters == ("_u03bb",)
