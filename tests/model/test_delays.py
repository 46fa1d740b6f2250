"""Delays in the language: how they are written, refused, and brought to one form."""

from __future__ import annotations

import pytest

import odejet as oj
from odejet.errors import ModelError
from odejet.model.delays import resolved
from odejet.model.transform import renamed, restricted


def states(rate: str, **tables):
    return oj.Model(states={"x": rate}, **tables)


def test_two_spellings_are_one_model():
    assert states("-k*x(t - tau)") == states("-k*delay(x, tau)")
    assert states("x(t - a - 2*b)") == states("delay(x, a + 2*b)")
    assert states("-k*x(t - tau)").unknowns == ("x", "k", "tau")


@pytest.mark.parametrize(
    ("rate", "sentence"),
    [
        ("-k*delay(x, -1)", "negative"),
        ("-k*x(t + 1)", "negative"),
        ("-k*delay(x, x)", "depends on the state 'x'"),
        ("-k*x(t - t/2)", "changes in time and may vanish"),
        ("-k*x'(t - 1)", "neutral"),
        ("-k*delay(der(x), 1)", "neutral"),
        ("-k*delay(y, 1)", "'y' is an output"),
        ("-k*x(t)", "the value at t has no parentheses"),
        ("-k*delay(x)", "delay takes what is delayed and by how much"),
        ("delay(x, min(a, 1))", "too involved"),
    ],
)
def test_what_cannot_be_solved_is_refused_in_one_sentence(rate, sentence):
    with pytest.raises(ModelError, match=sentence) as told:
        states(rate, outputs={"y": "x"})
    assert str(told.value).startswith("[states] x: ")


def test_a_known_delay_is_not_negative():
    with pytest.raises(ModelError, match="the delay 'tau' is negative"):
        states("-k*x(t - tau)", fixed={"tau": -1})
    assert states("-k*x(t + tau)", fixed={"tau": -1}).is_delayed


def test_a_delay_has_no_place_in_initial_values_and_events():
    with pytest.raises(ModelError, match="right-hand sides of states and in outputs only"):
        states("-x", initial={"x": "delay(k, 1)"})
    with pytest.raises(ModelError, match="right-hand sides of states and in outputs only"):
        states("-x", events=[oj.Event(when="delay(x, 1) > 2", set={"x": 0})])


def test_history_is_an_expression_of_time_and_gives_the_first_value():
    model = states("-x(t - 1)", history={"x": "a + t"})
    assert model.start == 0
    assert str(model.initial["x"]) == "a + 0"
    assert model.unknowns == ("a",)
    assert (
        states("-x(t - 1)", history={"x": "a + t"}, initial={"x": 3}).initial["x"]
        == states("1", initial={"x": 3}).initial["x"]
    )
    for history, sentence in (({"z": "1"}, "not a state"), ({"x": "max(t, 1)"}, "no branches"), ({"x": "x"}, "'x' is")):
        with pytest.raises(ModelError, match=sentence):
            states("-x(t - 1)", history=history)
    with pytest.raises(ModelError, match="no equation looks back"):
        states("-x", history={"x": "1"})


def test_written_and_read_again():
    model = states("-k*x(t - tau) + u(t - 2)", inputs={"u": "sampled, hold"}, history={"x": "a*exp(t)"})
    assert oj.Model.from_toml_text(model.to_toml()) == model
    assert "delay" in model.latex()


def test_delays_of_expressions_are_those_of_their_names():
    model = oj.Model(
        states={"x": "-delay(x*u + t*k, tau)", "z": "delay(delay(x, 1), b) + delay(x, 0) + w(t - tau)"},
        outputs={"y": "x"},
        inputs={"u": None, "w": "sin(3*t)"},
    )
    found = resolved(model)
    assert str(found.states["x"]) == "-(delay(x, tau)*delay(u, tau) + (t - tau)*k)"
    assert str(found.states["z"]) == "delay(x, 1 + b) + x + sin(3*(t - tau))"


def test_histories_follow_their_states():
    model = oj.Model(
        states={"x": "-x(t - 1)", "z": "-z"}, outputs={"y": "x", "w": "z"}, history={"x": "a + t"}, initial={"z": 1}
    )
    assert renamed(model, {"x": "xx"}).history.keys() == {"xx"}
    assert restricted(model, ["y"]).history == model.history


def test_identify_answers_where_a_delay_stands_beside_a_switch():
    assert oj.identify(states("-k*x(t - tau)*piecewise(1, t < 2, 0.5)", outputs={"y": "x"})).reason
