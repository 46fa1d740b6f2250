"""What happens in an experiment, as events of its own model."""

import pytest

import odejet as oj
from odejet.problem import Problem

MODEL = oj.Model({"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, {"y": "blood/V"}, initial={"gut": 0, "blood": 0})


def data(name="experiment1", **known):
    return oj.Data([0.0, 1.0, 2.0, 3.0, 4.0], {"y": [0.0, 1.0, 2.0, 1.0, 0.5]}, name=name, **known)


def own(model, given):
    return Problem(model, given).conditions[0].model


def test_doses_are_events_and_infusions_have_a_rate():
    found = own(MODEL, data(doses={"time": [0, 1], "state": ["1", "blood"], "amount": 10, "duration": ["", 2]}))
    assert found.events == (
        oj.Event(at=0, set={"gut": "gut + 10"}),
        oj.Event(at=1, set={"infusion_blood": "infusion_blood + 10/2"}),
        oj.Event(at="1 + 2", set={"infusion_blood": "infusion_blood - 10/2"}),
    )
    assert found.fixed == {"infusion_blood": 0} and "infusion_blood" in str(found.states["blood"])
    assert found.parameters == MODEL.parameters


def test_events_of_the_experiment_come_first_and_names_that_are_new_are_unknowns():
    model = MODEL.replace(
        events=[oj.Event(at=1, set={"gut": "gut + 1"})],
        experiments={"hot": {"events": [{"at": 2, "set": {"gut": "gut + F"}}], "ka": 2}},
    )
    assert oj.Model.from_toml_text(model.to_toml()) == model
    both = oj.Data.join([data("hot", events=[oj.Event(at="lag", set={"gut": 0})]), data("cold")])
    problem = Problem(model, both)
    hot, cold = (condition.model for condition in problem.conditions)
    assert [str(event) for event in hot.events] == [
        "at t = 2: gut = gut + F",
        "at t = lag: gut = 0",
        "at t = 1: gut = gut + 1",
    ]
    assert cold.events == model.events
    assert set(problem.unknowns) == {"ka", "ke", "V", "F", "lag"}


def test_known_values_are_put_into_events_too():
    given = data(doses={"time": "lag", "state": "gut", "amount": "F*5"}, values={"F": "2*V", "lag": 0.5})
    found = own(MODEL, given)
    assert found.events == (oj.Event(at="lag", set={"gut": "gut + (2*V)*5"}),)
    assert float(found.fixed["lag"]) == 0.5


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({"doses": {"time": 0, "state": "gutt", "amount": 1}}, "a dose goes to 'gutt', which is no state.*gut"),
        ({"doses": {"time": 0, "state": "3", "amount": 1}}, "a dose goes to state number 3, but there are 2"),
        ({"doses": {"time": -1, "state": "1", "amount": 1}, "start": 0}, "a dose is given at t = -1, before the start"),
        ({"events": [oj.Event(at=-1, set={"gut": 1})]}, "an event happens at t = -1, before the start at 0"),
        ({"events": [oj.Event(at=1, set={"stomach": 1})]}, "there is no 'stomach'"),
        ({"events": "now"}, "events must be a list"),
        ({"events": [oj.Event(at=1, set={"ka": 1})], "values": {"ka": "2*ke"}}, "an event sets 'ka', which is 2"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(known, sentence):
    with pytest.raises(oj.DataError, match=sentence):
        Problem(MODEL, data(**known))


def test_nonsense_in_a_model_names_the_experiment():
    with pytest.raises(oj.ModelError, match=r"\[experiments.hot\] .*unknown key 'att'"):
        MODEL.replace(experiments={"hot": {"events": [{"att": 1, "set": {"gut": 0}}]}})
