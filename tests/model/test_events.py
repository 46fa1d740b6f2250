"""Events as a model holds them: what they are, what they refuse, and that they are part of the model."""

import pickle

import pytest

import odejet as oj
from odejet import Event, Model, ModelError
from odejet.model.expressions import Symbol, evaluate, names
from odejet.model.grammar import parse, parse_condition

DOSES = Event(at="tlag", every=12, count=3, set={"gut": "gut + dose"})
SPIKE = Event(when="x > 30 and not t < 2", set={"x": "c", "inflow": 2})


def pharmacokinetics(**changes) -> Model:
    arguments = {
        "states": {"gut": "-ka*gut", "x": "ka*gut - k*x + inflow"},
        "outputs": {"y": "x"},
        "fixed": {"inflow": 0},
        "events": [DOSES, SPIKE],
    }
    return Model(**(arguments | changes))


def test_names_in_events_are_parameters():
    assert pharmacokinetics().parameters == ("ka", "k", "tlag", "dose", "c")
    assert not pharmacokinetics().is_smooth
    assert pharmacokinetics(events=[]).is_smooth
    assert not Model({"x": "-abs(x)"}).is_smooth


def test_events_are_part_of_the_model():
    model = pharmacokinetics()
    assert model == pharmacokinetics()
    assert model != pharmacokinetics(events=[SPIKE, DOSES])
    assert model.key != pharmacokinetics(events=[DOSES]).key
    assert model.replace(name="other").events == model.events
    assert pickle.loads(pickle.dumps(model)) == model
    assert pharmacokinetics(events=[event.to_dict() for event in model.events]) == model
    assert "when x > 30" in repr(model)


def test_an_event_is_a_value():
    assert Event(at=[1, "a"], set={"x": 2}) == Event(at=["1", "a"], set={"x": "2"})
    assert len({DOSES, SPIKE, pickle.loads(pickle.dumps(SPIKE))}) == 2
    with pytest.raises(AttributeError, match="does not change"):
        DOSES.count = 5
    assert repr(DOSES) == "Event(at='tlag', every='12', count=3, set={'gut': 'gut + dose'})"


def test_names_are_replaced():
    moved = DOSES.substituted({"tlag": Symbol("lag"), "dose": Symbol("big")})
    assert moved == Event(at="lag", every=12, count=3, set={"gut": "gut + big"})
    assert SPIKE.substituted({"x": Symbol("z")}).when == parse_condition("z > 30 and not t < 2")


REFUSED = [
    ({"at": 1}, "an event sets at least one state or parameter"),
    ({"set": {"x": 1}}, "give one of at and when"),
    ({"at": 1, "when": "x > 1", "set": {"x": 1}}, "give one of at and when"),
    ({"when": "x > 1", "every": 2, "set": {"x": 1}}, "begins at a time"),
    ({"at": [1, 2], "every": 2, "set": {"x": 1}}, "begins at one time"),
    ({"at": 1, "every": -2, "set": {"x": 1}}, "after a positive time"),
    ({"at": 1, "count": 2, "set": {"x": 1}}, "give every, too"),
    ({"at": 1, "every": 2, "count": 0, "set": {"x": 1}}, "a whole number from 1"),
    ({"at": [], "set": {"x": 1}}, "has no times"),
    ({"at": {}, "set": {"x": 1}}, "expected an expression"),
    ({"when": "x + 1", "set": {"x": 1}}, "this is no condition"),
    ({"at": 1, "seen": "yes", "set": {"x": 1}}, "true or false, not 'yes'"),
    ({"at": "x", "set": {"x": 1}}, "'x' is a state; give a condition"),
    ({"at": "t", "set": {"x": 1}}, "'t' is the time; give a condition"),
    ({"at": 1, "set": {"z": 1}}, "there is no 'z'"),
    ({"at": 1, "set": {"z": "z + 1"}}, "there is no 'z'"),
    ({"at": 1, "set": {"y": 1}}, "'y' is an output, and events set states and parameters alone"),
    ({"at": 1, "set": {"t": 1}}, "reserved"),
    ({"at": 1, "set": {"x": "y"}}, "'y' is an output; write its expression"),
    ({"at": 1, "set": {"x": "2*"}}, "set x: the expression ends early"),
    ({"at": 1, "sett": {}}, "unknown key 'sett'; did you mean 'set'?"),
    (3, "expected an event, not int"),
]


@pytest.mark.parametrize(("event", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_nonsense_gets_one_sentence(event, message):
    with pytest.raises(ModelError) as caught:
        pharmacokinetics(events=[DOSES, event])
    assert "[events] event 2" in str(caught.value)
    assert message in str(caught.value)


def test_misspelt_names_are_found_where_parameters_are_listed():
    with pytest.raises(ModelError, match="unknown name 'kk'; did you mean 'k'"):
        Model({"x": "-k*x"}, parameters=["k"], events=[Event(at=1, set={"x": "kk"})])
    with pytest.raises(ModelError, match="must be a list of events"):
        Model({"x": "-k*x"}, events="at 3")


def test_switches_read_as_printed_and_have_their_values():
    values = {"x": -1.5, "y": 2.0, "t": 6.0}
    cases = [
        ("piecewise(1, t > 5 and not (x > 0 or y >= 3), 2*x)", 1.0),
        ("piecewise(1, t < 5, 2, 0 < y <= 2, 3)", 2.0),
        ("min(x, y, 3) + abs(x)", 0.0),
        ("max(0, x)**2 + floor(x) + ceil(x)", -3.0),
        ("sign(x)*sign(0)+sign(y)", 1.0),
        ("piecewise(1, x != y, 0) + piecewise(1, x == y, 0)", 1.0),
    ]
    for text, expected in cases:
        expression = parse(text)
        assert parse(str(expression)) == expression
        assert evaluate(expression, values, None) == expected
    assert set(names(parse("piecewise(a, b > c, d)"))) == {"a", "b", "c", "d"}
    assert oj.Event is Event
