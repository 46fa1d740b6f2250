"""Models without what stays zero against the whole ones."""

import numpy as np
import pytest

import odejet as oj
from odejet.model import Event, Model
from odejet.simulate.flow import Flow
from odejet.simulate.lean import lean
from odejet.simulate.steady import RestingFlow

DRUG = {
    "R": "s - g*R - on*D*R + off*C",
    "D": "-on*D*R + off*C - k*D",
    "C": "on*D*R - off*C - q*C",
    "P": "m*R - w*P",
}
OUTPUTS = {"y": "a*R + C", "z": "P + D"}


def drugged(dose, **more) -> Model:
    return Model(DRUG, OUTPUTS, initial={"R": 1, "D": "dose", "C": 0, "P": "p0"}, fixed={"dose": dose}, **more)


def test_a_drug_that_is_not_given_leaves_nothing_behind():
    left = lean(drugged(0))
    assert left is not None and list(left.states) == ["R", "P"] and {"on", "off", "k", "q"}.isdisjoint(left.parameters)
    assert lean(drugged(2)) is None


@pytest.mark.parametrize("dose", [0, 2])
def test_trajectories_are_those_of_the_whole_model(dose):
    model, rng = drugged(dose), np.random.default_rng(dose)
    p = np.exp(rng.normal(size=len(model.parameters)))
    times = np.array([0.0, 0.5, 3.0])
    lean_run, whole = (flow(model).run(p, np.zeros(4), times) for flow in (RestingFlow, Flow))
    np.testing.assert_allclose(lean_run.states, whole.states, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(lean_run.outputs, whole.outputs, rtol=1e-12, atol=1e-14)
    free = [flow(model).run(p, np.ones(4), times, free_states=True) for flow in (RestingFlow, Flow)]
    np.testing.assert_array_equal(free[0].outputs, free[1].outputs)  # where every state is unknown, none is zero


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_lose_nothing(seed):
    """Reactions between species of which some are missing at the start, some for good."""
    rng, n = np.random.default_rng(seed), 7
    rates = {f"x{i}": [] for i in range(n)}
    for j in range(9):
        a, b, c = (int(i) for i in rng.integers(n, size=3))
        rates[f"x{a}"].append(f"- k{j}*x{a}*x{b}")
        rates[f"x{c}"].append(f"+ k{j}*x{a}*x{b}")
    model = Model(
        {name: " ".join(parts) or "0" for name, parts in rates.items()},
        {"y": " + ".join(f"{i + 1}*x{i}" for i in range(n))},
        initial={f"x{i}": int(rng.random() < 0.4) for i in range(n)},
    )
    p, times = np.exp(rng.normal(size=len(model.parameters))), np.array([0.0, 1.0, 4.0])
    lean_run, whole = (flow(model).run(p, np.zeros(n), times) for flow in (RestingFlow, Flow))
    np.testing.assert_allclose(lean_run.states, whole.states, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(lean_run.outputs, whole.outputs, rtol=1e-11, atol=1e-13)


def test_what_an_event_brings_is_not_zero():
    event = Event(at=1, set={"D": "D + 1"})
    assert lean(drugged(0, events=[event])) is None
    harmless = Event(at=1, set={"D": "2*D", "P": "P + 1"})
    left = lean(drugged(0, events=[harmless]))
    assert left is not None and list(left.events[0].set) == ["P"]


def test_what_was_there_before_the_start_is_not_zero():
    before = {"R": 1, "D": 0, "C": 0, "P": 0}
    rates = {**DRUG, "D": "infusion + " + DRUG["D"]}
    washed = Model(rates, OUTPUTS, initial="steady", before={**before, "infusion": 1}, fixed={"infusion": 0})
    assert lean(washed) is None
    assert lean(Model(rates, OUTPUTS, initial="steady", before=before, fixed={"infusion": 0})) is not None


def test_what_divides_zero_is_left_to_the_simulation():
    model = Model({"x": "-k*x", "z": "-z"}, {"y": "x/z"}, initial={"x": 1, "z": 0})
    found = oj.simulate(model, {"k": 1.0}, {}, [0.0, 1.0])
    assert found.success and np.isnan(found["y"]).all()


def test_without_an_infection_a_population_is_at_rest():
    """S = b/d, and no infection though one would spread; an event brings it in at t = 2."""
    rates = {"S": "b - d*S - beta*S*I", "I": "beta*S*I - d*I"}
    event = Event(at=2, set={"I": "I + 0.01"})
    model = oj.Model(rates, {"y": "S", "z": "I"}, initial="steady", before={"S": 1, "I": 0}, events=[event])
    values = {"b": 2.0, "d": 0.5, "beta": 1.0}
    found = oj.simulate(model.replace(events=[]), values, {}, [0.0, 5.0], sensitivities=True)
    np.testing.assert_allclose(found["y"], 4.0, rtol=1e-14)
    np.testing.assert_allclose(found.sensitivity("y", "d"), -8.0, rtol=1e-13)
    np.testing.assert_allclose(found.sensitivity("y", "beta"), 0.0, atol=1e-14)
    later = oj.simulate(oj.Model(rates, {"y": "S", "z": "I"}), values, {"S": 4.0, "I": 0.01}, [0.0, 3.0])
    spread = oj.simulate(model, values, {}, [0.0, 2.0, 5.0])
    assert spread.success and list(spread["z"][:2]) == [0.0, 0.0]
    np.testing.assert_allclose(spread["z"][2], later["z"][1], rtol=1e-12)
