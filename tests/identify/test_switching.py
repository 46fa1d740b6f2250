"""Identifiability of models that switch: ranks of modes against sensitivities along solutions that visit them."""

import numpy as np
import pytest

import odejet as oj
from odejet import Model
from odejet.identify.switching import MOST, TooMany, modes
from odejet.model.expressions import names
from tests.identify.drawn import switching

THRESHOLD = Model({"x": "piecewise(-k*x, x > a, -b*x)"}, {"y": "x"})


def kinds(model: Model, **asked) -> dict[str, str]:
    verdict = oj.identify(model, **asked)
    return {name: quantity.told for name, quantity in verdict.items()}


def test_what_every_mode_tells_has_no_other_values_nearby():
    """abs(x) tells x but for its sign, which is no `global`."""
    verdict = oj.identify(Model({"x": "-k*x"}, {"y": "abs(x)"}))
    assert {q.told for q in verdict.values()} == {"at least local"}
    assert {q.values for q in verdict.values()} == {None}
    assert verdict.solutions is None
    assert "another mode" in verdict.reason and "by 2 modes" in verdict.message


def test_what_some_modes_tell_depends_on_those_that_are_visited():
    verdict = oj.identify(THRESHOLD)
    assert kinds(THRESHOLD) == {"x": "global", "k": "undecided", "b": "undecided", "a": "undecided"}
    assert "known where x - a > 0" in verdict["k"].reason
    assert "known where x - a < 0" in verdict["b"].reason
    assert "known where" not in verdict["a"].reason
    assert not verdict["a"].tested


def test_what_no_mode_tells_is_lost_unless_switches_tell_it():
    model = Model({"x": "-a*b*max(x - c, 0) + d", "z": "e"}, {"y": "x"})
    assert kinds(model, functions=["a*b", "a/b"]) == {
        "x": "global", "z": "none", "a": "none", "b": "none", "c": "undecided", "d": "undecided", "e": "none",
        "a*b": "undecided", "a/b": "none",
    }  # fmt: skip


def test_modes_that_tell_different_parts():
    """In one mode a + b is told, in the other a - b: neither a nor b in a mode, both in the two."""
    model = Model({"x": "piecewise(a + b, x > 1, a - b)"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "a": "undecided", "b": "undecided"}


def test_all_modes_that_the_time_chooses_are_visited():
    model = Model({"x": "piecewise(p, t < 5, q) - k*m*x"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "p": "global", "q": "global", "k": "none", "m": "none"}
    assert oj.identify(model).reason == ""
    # Never before zero.
    model = Model({"x": "piecewise(p, t < -5, q)"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "p": "undecided", "q": "global"}


def test_values_that_several_intervals_leave_are_not_counted():
    """Before 5 the square of a is told, from then on its cube: together a, which is not found."""
    model = Model({"x": "piecewise(a**2, t < 5, a**3)"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "a": "at least local"}
    assert "together" in oj.identify(model)["a"].reason
    model = Model({"x": "piecewise(a**2, t < 5, a)"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "a": "global"}


def test_from_known_values_the_first_interval_alone_is_known():
    """At 5 x is what it was at the start, but in general nothing is known of it there."""
    model = Model({"x": "piecewise(0, t < 5, -k*x)"}, {"y": "g*x"}, initial={"x": 1})
    assert kinds(model) == {"k": "undecided", "g": "global"}


def test_time_and_states_choose_together():
    """From 5 on k is told in both modes; before, only where x is positive."""
    model = Model({"x": "piecewise(-m*max(x, 0), t < 5, -k*x + max(x, 0))"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "m": "undecided", "k": "at least local"}


def test_of_states_the_start_is_meant():
    """Before 5 the output does not tell z; from then on k and m could be exchanged, were k not known from before."""
    model = Model({"x": "piecewise(0, t < 5, z) - k*x", "z": "-m*z"}, {"y": "x"})
    assert kinds(model) == {"x": "global", "z": "undecided", "k": "global", "m": "global"}


def test_numbers_that_one_mode_alone_has_are_known_in_their_mixture():
    model = Model({"x": "-p*x + piecewise(p*x, x > a, c*x)"}, {"y": "g*x"}, initial={"x": -1}, fixed={"c": 2})
    assert "p" not in oj.identify(model).names("none")


def test_generic_inputs_may_switch():
    model = Model({"x": "u - k*x"}, {"y": "x/V"}, inputs={"u": "piecewise(1, t < 5, 0)"})
    assert kinds(model) == {"x": "global", "k": "global", "V": "global"}
    # V is known while it is on, and then x too whenever.
    assert kinds(model, inputs="actual") == {"x": "global", "k": "global", "V": "global"}


def test_known_values_at_the_start():
    """They choose the first mode, which is known then."""
    model = Model({"x": "-k*max(x, 0)/c"}, {"y": "g*x"}, initial={"x": 1}, fixed={"c": 2})
    assert kinds(model) == {"k": "global", "g": "global"}
    # Not where it begins at the switch, or where a dose comes first.
    assert kinds(model.replace(initial={"x": 0}, states={"x": "p - k*max(x, 0)/c"}))["k"] == "undecided"
    dosed = model.replace(initial={"x": 0}, events=[oj.Event(at=0, set={"x": "x + 3"})])
    assert kinds(dosed) == {"k": "undecided", "g": "at least local"}


def test_bounds_may_choose_the_first_mode():
    model = Model({"h": "-k*sqrt(max(h, 0))"}, {"y": "h"})
    assert kinds(model) == {"h": "global", "k": "undecided"}
    assert "known where h > 0" in oj.identify(model)["k"].reason
    assert kinds(model.replace(bounds={"h": (0, 10)})) == {"h": "global", "k": "global"}
    data = oj.Data(np.arange(5.0), {"y": np.ones(5)})
    assert oj.identify(oj.Problem(model, data, positive=True))["k"].kind == "global"
    threshold = Model({"x": "piecewise(-k*x, x > a, -b*x)"}, {"y": "x"}, bounds={"x": (2, 3), "a": (0.5, 1)})
    assert kinds(threshold) == {"x": "global", "k": "global", "b": "undecided", "a": "undecided"}


def test_outputs_may_show_the_mode():
    """The sign of h is known, and in both modes k and q have one value."""
    model = Model({"h": "q*u - k*sqrt(abs(h))"}, {"y": "h"}, inputs={"u": None})
    assert kinds(model) == {"h": "global", "q": "global", "k": "global"}
    # Seen by its size alone, h has two signs.
    assert kinds(model.replace(outputs={"y": "abs(h)"}))["h"] == "at least local"


def test_of_what_cannot_be_evaluated_nothing_is_said():
    """A logarithm or a power of zero in one mode, roots of a number and of its opposite in two."""
    for rate in ("-k*log(max(h, 0))", "-k*max(h, 0)**n", "-k*sqrt(abs(h - a))", "-k/max(h, 0)"):
        verdict = oj.identify(Model({"h": rate}, {"y": "h"}))
        assert not verdict.names("none"), rate


def test_doses_into_a_model_that_switches():
    dose = oj.Event(at=0, every=12, set={"x": "x + 100"})
    model = Model({"x": "-k*max(x, 0) - m*x"}, {"y": "x/V"}, events=[dose])
    assert kinds(model)["V"] == "at least local"


def test_modes():
    assert [mode.label for mode in modes(THRESHOLD)] == ["x - a > 0", "x - a < 0"]
    nested = Model({"x": "piecewise(max(x, p), x > 1, -x)"}, {"y": "x"})
    assert len(list(modes(nested))) == 3
    shared = Model({"x": "piecewise(p, x > 1, q)", "z": "piecewise(q, x > 1, p)"}, {"y": "x", "w": "z"})
    assert len(list(modes(shared))) == 2  # one condition, one sign


def test_too_many_modes():
    rate = " + ".join(f"max(x, k{i})" for i in range(5))
    model = Model({"x": rate}, {"y": "x"})
    with pytest.raises(TooMany):
        list(modes(model))
    assert str(MOST) in oj.identify(model).reason
    assert not oj.identify(Model({"x": "-k*floor(x)"}, {"y": "x"}))["k"].tested


VISITING = [
    (THRESHOLD, {"k": 0.7, "b": 0.3, "a": 1.0}, {"x": 2.0}),
    (Model({"x": "-a*b*max(x - c, 0) - d"}, {"y": "x"}), {"a": 0.7, "b": 1.3, "c": 1.0, "d": 0.2}, {"x": 2.0}),
    (
        Model({"x": "-k*x + z", "z": "piecewise(p*q, x < c, -r*z)"}, {"y": "s*x"}),
        {"k": 0.5, "p": 0.6, "q": 0.9, "c": 1.0, "r": 0.4, "s": 1.2},
        {"x": 1.6, "z": 0.1},
    ),
    (
        Model({"x": "min(a*x, b*z)", "z": "-c*z"}, {"y": "x"}),
        {"a": 0.5, "b": 1.0, "c": 0.3},
        {"x": 1.0, "z": 1.5},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "parameters", "states"), VISITING)
def test_sensitivities_along_solutions_agree(model, parameters, states):
    """What is lost is so along a solution through all modes, and what is at least local is not."""
    times = np.linspace(0, 5, 60)
    values = {**states, **parameters}

    def outputs(at: dict[str, float]) -> np.ndarray:
        own = {name: at[name] for name in parameters}
        solved = oj.simulate(model, own, {name: at[name] for name in states}, times)
        return np.concatenate([solved.outputs[name] for name in model.outputs])

    columns = []
    for name in model.unknowns:
        step = 1e-5
        up, down = ({**values, name: values[name] + sign * step} for sign in (1, -1))
        columns.append((outputs(up) - outputs(down)) / (2 * step))
    jacobian = np.array(columns).T
    scale = np.linalg.norm(jacobian)
    verdict = oj.identify(model)
    for i, name in enumerate(model.unknowns):
        others = np.delete(jacobian, i, axis=1)
        rest = jacobian[:, i] - others @ np.linalg.lstsq(others, jacobian[:, i], rcond=1e-7)[0]
        is_lost = np.linalg.norm(rest) < 1e-5 * scale
        if verdict[name].kind == "none":
            assert is_lost, name
        elif verdict[name].tested:
            assert not is_lost, name


def shares(model: Model, rng: np.random.Generator) -> np.ndarray | None:
    """Of the derivative of all outputs by each unknown, the part that those by the others do not explain."""
    times = np.linspace(0, 4, 81)
    parameters = {name: rng.uniform(0.3, 1.8) for name in model.parameters}
    states = {name: rng.uniform(-1.5, 2.5) for name in model.free_states}
    solved = oj.simulate(model, parameters, states, times, True, start=0.0, tolerance=1e-11)
    if not solved.success:
        return None
    columns = [np.concatenate([solved.sensitivity(y, name) for y in model.outputs]) for name in model.unknowns]
    jacobian = np.array(columns).T / np.maximum(np.linalg.norm(columns, axis=1), 1e-300)
    found = []
    for i in range(len(columns)):
        others = np.delete(jacobian, i, axis=1)
        explained = others @ np.linalg.lstsq(others, jacobian[:, i], rcond=1e-8)[0] if others.size else 0.0
        found.append(float(np.linalg.norm(jacobian[:, i] - explained)))
    return np.array(found)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_verdicts_of_drawn_models_agree_with_sensitivities(first):
    """No value is said to be lost that a solution tells, and none to be known that no solution tells."""
    for seed in range(first, first + 15):
        model = switching(seed)
        verdict = oj.identify(model, budget=5, engine="exact") if model.unknowns else {}
        timed = {name for event in model.events for time in (*event.at, event.every) if time for name in names(time)}
        rng = np.random.default_rng(seed)
        found = [share for _ in range(4) if (share := shares(model, rng)) is not None]
        for i, name in enumerate(model.unknowns if found else ()):
            most = max(share[i] for share in found)
            if verdict[name].kind == "none":
                assert most < 1e-4, (seed, name)
            elif (
                verdict[name].tested and name not in timed
            ):  # a jump between two measurements is seen, but has no slope
                assert most > 1e-9, (seed, name)
