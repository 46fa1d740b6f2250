"""Models of many parts against the same models written out by hand."""

import numpy as np
import pytest

import odejet as oj
from odejet.errors import ModelError
from odejet.model.tape import build

AGES = range(1, 11)
CONTACTS = [[round(1 / (1 + abs(i - j)), 4) for j in AGES] for i in AGES]
SIZES = [1000 + i for i in AGES]
GROUPS = """
sets = {age = 10}
states."S[i]" = "-force[i]*S[i]"
states."I[i]" = "force[i]*S[i] - g*I[i]"
outputs."y[i]" = "I[i]"
expressions."force[i]" = "b*sum(j, C[i,j]*I[j]/N[j])"
"""
KNOWN = {"C": CONTACTS, "N": SIZES}


def _by_hand():
    force = {i: "b*(" + " + ".join(f"C[{i},{j}]*I[{j}]/N[{j}]" for j in AGES) + ")" for i in AGES}
    states = {f"S[{i}]": f"-({force[i]})*S[{i}]" for i in AGES}
    states |= {f"I[{i}]": f"({force[i]})*S[{i}] - g*I[{i}]" for i in AGES}
    fixed = {f"C[{i},{j}]": CONTACTS[i - 1][j - 1] for i in AGES for j in AGES}
    return oj.Model(states, {f"y[{i}]": f"I[{i}]" for i in AGES}, fixed=fixed | {f"N[{i}]": SIZES[i - 1] for i in AGES})


def test_ten_age_groups_have_the_tape_of_the_model_written_by_hand():
    assert len(GROUPS.strip().splitlines()) <= 6
    model = oj.Model(
        {"S[i]": "-force[i]*S[i]", "I[i]": "force[i]*S[i] - g*I[i]"},
        {"y[i]": "I[i]"},
        expressions={"force[i]": "b*sum(j, C[i,j]*I[j]/N[j])"},
        sets={"age": 10},
        fixed=KNOWN,
    )
    short, long = build(model), build(_by_hand())
    for name in ("code", "terms", "parameters", "states", "outputs", "initial", "split"):
        assert np.array_equal(getattr(short, name), getattr(long, name))
    assert short.constants == long.constants
    in_file = oj.Model.from_toml_text(GROUPS)
    assert in_file.states == model.states
    assert set(in_file.parameters) >= {"b", "g", "C[3,4]", "N[10]"}


def test_a_chain_has_a_first_member_of_its_own():
    chain = oj.Model(
        {"A[1]": "-k*A[1]", "A[i]": "k*(A[i-1] - A[i])"},
        {"y": "A[4]"},
        sets={"place": 4},
        initial={"A[1]": "D", "A[i]": 0},
        bounds={"k": [0, 10]},
        events=[oj.Event(at=50, set={"A[i]": "A[i]/2"})],
    )
    assert list(chain.states) == ["A[1]", "A[2]", "A[3]", "A[4]"]
    assert chain.unknowns == ("k", "D")
    assert len(chain.events[0].set) == 4
    times = np.linspace(0, 10, 11)
    exact = 3 * times**3 / 6 * np.exp(-times)
    assert oj.simulate(chain, {"k": 1, "D": 3}, times=times)["y"] == pytest.approx(exact, abs=1e-13)


def test_several_sets_are_told_apart():
    model = oj.Model(
        {"x[i in age, p in place]": "-sum(q in place, m[p,q]*x[i,q])"},
        {"y[place]": "sum(i in age, x[i,place])"},
        sets={"age": ["young", "old"], "place": 3},
        fixed={"m[p in place, q in place]": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]},
        noise={"y[p in place]": "normal(s[p])"},
        local=[],
    )
    assert list(model.states)[3] == "x[old,1]"
    assert str(model.outputs["y[2]"]) == "x[young,2] + x[old,2]"
    assert model.noise["y[3]"] == "normal(s[3])"
    assert model.fixed["m[2,3]"] == 6


def test_files_keep_what_was_written_out():
    model = oj.Model({"x[i]": "-k[i]*x[i]"}, {"y[i]": "f[i]"}, expressions={"f[i]": "2*x[i]"}, sets={"n": 2})
    assert oj.Model.from_toml_text(model.to_toml()) == model
    assert oj.Model.from_dict(model.to_dict()) == model
    assert model.replace(name="other").expressions == model.expressions


def test_named_expressions_are_predicted_and_have_intervals():
    model = oj.Model(
        {"S": "-force*S", "I": "force*S - g*I"},
        {"y": "I"},
        expressions={"R0": "b/g", "force": "b*I/N", "spread": "force/g"},
        initial={"S": "N - 5", "I": 5},
        fixed={"N": 1000},
    )
    times = np.linspace(0, 30, 31)
    truth = oj.simulate(model, {"b": 0.6, "g": 0.2}, times=times)
    assert truth["spread"] == pytest.approx(3 * truth["y"] / 1000, rel=1e-13)
    assert list(model.outputs) == ["y"]
    noise = np.random.default_rng(2).normal(0, 4, len(times))
    fit = oj.fit(model, oj.Data(times, {"y": truth["y"] + noise}))
    low, high = fit.interval("R0")
    assert low < 3 < high and fit.interval("b/g") == pytest.approx((low, high))
    assert "named: R0 " in fit.summary()
    band = fit.predict(times)["force"]
    assert np.all((band.low <= band.values) & (band.values <= band.high))
    with pytest.raises(ModelError, match=r"fit\.predict has its course"):
        fit.interval("force")
    assert "force" not in fit.problem.measurements.outputs


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"states": {"x[i]": "-x[j]"}, "sets": {"a": 3}}, "'j' is neither an index here nor a member"),
        ({"states": {"x[i]": "-x[i-1]"}, "sets": {"a": 3}}, "out of range where i is 1: a has 1 to 3"),
        ({"states": {"x[i]": "-x[4]"}, "sets": {"a": 3}}, "the index 4 is out of range: a has 1 to 3"),
        ({"states": {"x[i]": "-sum(j in b, x[j])"}, "sets": {"a": 3}}, "there is no set 'b'"),
        ({"states": {"x[i]": "-x[i]"}, "sets": {"a": 3, "b": 2}}, "one of several sets; write 'i in a'"),
        ({"states": {"x": "-sum(j, x)"}}, "the model has none; declare it"),
        ({"states": {"x[i]": "-sum(i, x[i])"}, "sets": {"a": 3}}, "has a meaning here already"),
        ({"states": {"x[i]": "-sum(x[i])"}, "sets": {"a": 3}}, "sum takes an index"),
        ({"states": {"x[i]": "-k[i]*x[i]"}, "sets": {"a": 3}, "fixed": {"k": [1, 2]}}, "3 members for 2 values"),
        ({"states": {"x": "-f*x"}, "expressions": {"f": "g", "g": "f"}}, "defined by itself (f -> g -> f)"),
        ({"states": {"x": "-f*x"}, "expressions": {"f": "k", "q": "z"}}, "no equation uses 'z'"),
        ({"states": {"x": "-f*x"}, "expressions": {"x": "k"}}, "in [states] already"),
        ({"states": {"x": "-x"}, "sets": {"a": 0}}, "1 to 1000 members"),
        ({"states": {"x": "-x"}, "sets": {"a": ["b", "b"]}}, "names of their own"),
        ({"states": {"x": "-x"}, "sets": {"a": 2.5}}, "a number of members"),
        ({"states": {"x": "-k[)*x"}}, "is not allowed"),
        ({"states": {"x": "k in 3"}}, "a condition is no number"),
    ],
)
def test_nonsense_gets_a_sentence(given, words):
    with pytest.raises(ModelError) as caught:
        oj.Model(outputs={}, **given)
    assert words in str(caught.value)
