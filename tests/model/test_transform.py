"""Models made of other models: their solutions are those that the whole has."""

import numpy as np
import pytest

import odejet as oj
from odejet import Event, Model
from odejet.errors import ModelError
from odejet.model.grammar import parse
from odejet.model.transform import copies, joined, known, renamed, restricted, rewritten

MODEL = Model(
    {"x": "-k*x + a*u + r", "z": "b*x - c*z"},
    {"y": "g*z", "w": "x + h"},
    {"u": "sin(t)"},
    parameters=["h", "g", "c", "b", "a", "k", "r", "dose"],
    initial={"z": "b/c"},
    bounds={"k": (0, 9), "h": (0, 1), "x": (0, 5)},
    fixed={"r": 0, "h": "0.5"},
    events=[Event(at=1, set={"x": "x + dose"}), Event(at="c", set={"r": "r + 1/c"})],
    local=["k"],
    noise={"y": 0.1},
)
VALUES = {"g": 1.5, "c": 0.8, "b": 0.4, "a": 0.3, "k": 0.6, "dose": 2.0}
TIMES = np.linspace(0, 4, 9)


def test_rewritten_keeps_the_equations_and_drops_what_is_for_problems():
    found = rewritten(MODEL)
    assert (found.states, found.outputs, found.inputs, found.events) == (
        MODEL.states, MODEL.outputs, MODEL.inputs, MODEL.events,
    )  # fmt: skip
    assert found.parameters == MODEL.parameters
    assert not found.bounds and not found.local and not found.noise
    given = rewritten(MODEL, bounds=MODEL.bounds, local=MODEL.local, noise=MODEL.noise)
    assert given.local == ("k",) and given.noise == MODEL.noise
    assert given.bounds == {"k": (0, 9), "x": (0, 5)}


def test_what_no_longer_occurs_is_left_out():
    found = rewritten(MODEL, outputs={"w": parse("2*x")}, events=(), bounds=MODEL.bounds, local=["k"])
    # z is still a state, and r a number in its rate.
    assert found.parameters == ("c", "b", "a", "k") and dict(found.fixed) == {"r": 0}
    smaller = rewritten(found, states={"x": found.states["x"]}, initial={})
    assert smaller.parameters == ("a", "k")
    assert rewritten(MODEL, ordered=False).parameters == ("k", "a", "b", "c", "g", "dose")


def test_what_was_before_follows_what_is_there():
    steady = Model({"x": "p - k*x", "z": "q*x - z"}, {"y": "x", "w": "s*z"}, initial="steady", before={"p": 1, "s": 2})
    assert dict(restricted(steady, ["y"]).before) == {"p": steady.before["p"]}
    with pytest.raises(ModelError, match="before"):
        rewritten(steady, outputs={"y": steady.outputs["y"]}, before=steady.before)


def test_restricted():
    found = restricted(MODEL, ["y"])
    assert list(found.outputs) == ["y"] and "h" not in found.fixed
    whole = oj.simulate(MODEL, VALUES, {"x": 1.0}, TIMES)
    assert np.array_equal(oj.simulate(found, VALUES, {"x": 1.0}, TIMES)["y"], whole["y"])


def test_known():
    found = known(MODEL, {"k": 2, "nobody": 3})
    assert found.fixed["k"] == 2 and "k" not in found.parameters


def test_renamed():
    """Also where a name is that of a table, and where two names are exchanged."""
    new = {"x": "z", "z": "x", "k": "states", "r": "fixed", "y": "initial", "dose": "events", "u": "name"}
    found = renamed(MODEL, new)
    values = {new.get(name, name): value for name, value in VALUES.items()}
    whole = oj.simulate(MODEL, VALUES, {"x": 1.0}, TIMES)
    there = oj.simulate(found, values, {"z": 1.0}, TIMES)
    assert np.array_equal(there["initial"], whole["y"]) and np.array_equal(there.states["x"], whole.states["z"])
    assert renamed(found, {other: name for name, other in new.items()}) == rewritten(MODEL)


def test_copies_side_by_side():
    taken = {*MODEL.states, *MODEL.outputs, *MODEL.inputs, *MODEL.parameters, *MODEL.fixed, "x_hot"}
    first = rewritten(MODEL, events=(), fixed={**MODEL.fixed})
    ((second, names),) = copies(first, ["_hot"], taken)
    assert names["x"] == "x_hot_" and names["z"] == "z_hot"
    both = joined([first, second], first.parameters)
    assert both.parameters == first.parameters
    assert list(both.states) == ["x", "z", "x_hot_", "z_hot"]
    values = {name: VALUES[name] for name in both.parameters}
    found = oj.simulate(both, values, {"x": 1.0, "x_hot_": 3.0}, TIMES)
    for start, name in ((1.0, "y"), (3.0, names["y"])):
        alone = oj.simulate(first, values, {"x": start}, TIMES)
        assert found[name] == pytest.approx(alone["y"], rel=1e-9)


def test_more_entries_than_a_file_may_have():
    """Models that are made of models are as large as they have to be."""
    many = Model({"x": " + ".join(f"k{i}" for i in range(400))}, {"y": "x"}, fixed={f"k{i}": i for i in range(400)})
    whole = joined(
        [renamed(many, {name: f"{name}_{i}" for name in (*many.states, *many.outputs, *many.fixed)}) for i in range(4)]
    )
    assert len(whole.fixed) == 1600
