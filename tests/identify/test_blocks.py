"""Experiments in one model: what few of them decide, all do."""

import pytest

import odejet as oj
from odejet import Model
from odejet.budget import Budget
from odejet.identify import blocks, local
from odejet.identify.globally import Count


def subjects(number: int) -> Model:
    """One compartment with absorption from a gut; the rate of absorption is shared, doses are known."""
    states, outputs, initial = {}, {}, {}
    for i in range(number):
        states |= {f"g{i}": f"-ka*g{i}", f"c{i}": f"ka*g{i}/V{i} - ke{i}*c{i}"}
        outputs[f"y{i}"] = f"c{i}"
        initial |= {f"g{i}": 4.0, f"c{i}": 0}
    return Model(states, outputs, initial=initial)


def test_a_model_falls_into_its_experiments():
    found = blocks.split(subjects(3))
    assert [block.states for block in found] == [("g0", "c0"), ("g1", "c1"), ("g2", "c2")]
    assert [block.outputs for block in found] == [("y0",), ("y1",), ("y2",)]
    assert found[1].parameters == {"ka", "V1", "ke1"}
    assert len(blocks.split(Model({"x": "-a*x", "z": "-b*z"}, {"y": "x + z"}))) == 1


def test_one_subject_has_a_twin_and_several_have_none():
    """Absorption and elimination can be exchanged in one subject, but not in several that share the first."""
    one = oj.identify(subjects(1))
    assert one.solutions == 2
    assert set(one.names("local")) == {"ka", "V0", "ke0"}
    several = oj.identify(subjects(5), functions=["ke0*V0"])
    assert several.solutions == 1
    assert {q.kind for q in several.values()} == {"global"}


def test_blocks_agree_with_the_whole():
    model = subjects(2).replace(outputs={"y0": "c0", "y1": "c1**2"})
    whole = oj.identify(model, engine="elimination")
    assert {name: q.values for name, q in oj.identify(model).items()} == {n: q.values for n, q in whole.items()}


def test_solutions_of_blocks_multiply():
    """Each pair of exponentials can be relabelled by itself."""
    states, outputs = {}, {}
    for i in range(4):
        states |= {f"x{i}": f"-a{i}*k*x{i}", f"z{i}": f"-b{i}*k*z{i}"}
        outputs[f"y{i}"] = f"x{i} + z{i}"
    verdict = oj.identify(Model({**states, "w": "-k*w"}, {**outputs, "y": "w"}))
    assert verdict.solutions == 2**4
    assert verdict["a0"].values == 2
    assert verdict["k"].kind == "global"


@pytest.mark.parametrize("outputs", [{"y0": "c0", "y1": "c1"}, {"y0": "c0 + c1"}])
def test_a_function_of_two_blocks_is_left_to_the_whole(outputs):
    model = subjects(2).replace(outputs=outputs)
    assert oj.identify(model, functions=["V0*V1"])["V0*V1"].kind in ("global", "local")


def test_without_time_nothing_is_counted():
    ranks = local.analyse(local.problem(subjects(2)))
    assert blocks.count(ranks, lambda model, asked: pytest.fail("there is no time"), Budget(work=0)) is None


def test_parameters_that_are_called_like_tables():
    """Blocks that differ in names only are one, whatever their names are."""
    rates = {"x": "-states*x + fixed*x*z", "z": "-outputs*z", "v": "-initial*v + name*v*w", "w": "-inputs*w"}
    model = Model(rates, {"y": "x", "q": "z", "r": "v", "s": "w"})
    ranks = local.analyse(local.problem(model, ["states + outputs"]))
    seen = []

    def decide(part, asked):
        seen.append(part)
        return Count(1, dict.fromkeys((*part.unknowns, *asked), 1), True, 1)

    found = blocks.count(ranks, decide, Budget())
    assert found is not None and found.values == dict.fromkeys((*model.unknowns, "states + outputs"), 1)
    assert len(seen) == 2 and seen[0] == seen[1]  # one more than alike, as one of them is asked for a sum
