"""Antimony: networks written by hand, and models by the suffix of their files."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("antimony", reason="the reader of Antimony is not installed")
pytest.importorskip("libsbml", reason="the reader of SBML is not installed")

import odejet as oj
from odejet.cli import main
from odejet.io import antimony

CHAIN = """
model chain
  S -> P; k*S
  k = 0.5; S = 2; P = 0
  y := 3*P
end
"""


def test_a_delay(tmp_path):
    (tmp_path / "late.ant").write_text("model late\n  S -> ; k*S\n  k = 0.5; S = 2\n  y := delay(S, 1)\nend\n")
    found = oj.simulate(oj.read_antimony(tmp_path / "late.ant"), times=[0.0, 0.5, 2.0, 3.0])["y"]
    assert np.abs(found - 2 * np.exp(-0.5 * np.array([0.0, 0.0, 1.0, 2.0]))).max() < 1e-14


def test_a_chain(tmp_path):
    (tmp_path / "chain.ant").write_text(CHAIN)
    model = oj.read_antimony(tmp_path / "chain.ant", free=["k"])
    assert model.unknowns == ("k",) and list(model.outputs) == ["y"]
    times = np.linspace(0, 3, 7)
    assert np.allclose(oj.simulate(model, {"k": 0.5}, {}, times)["y"], 6 * (1 - np.exp(-0.5 * times)), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("S -> ; k*", "this is not Antimony"),
        ('import "/etc/passwd"\n' + CHAIN, "import reads other files"),
        ('/**/import "/etc/passwd"\n' + CHAIN, "import reads other files"),
        ('// a comment\rimport "/etc/passwd"\n' + CHAIN, "import reads other files"),
        (CHAIN.strip() + ' import "/etc/passwd"', "import reads other files"),
        ('function f(x) x end; import "/etc/passwd"\n' + CHAIN, "import reads other files"),
        ("x = " + "(" * 5000 + "1" + ")" * 5000, "nested more than"),
        ("x = 1\0", "NUL"),
    ],
)
def test_one_sentence(text, reason, tmp_path):
    path = tmp_path / "model.ant"
    path.write_text(text)
    with pytest.raises(oj.ModelError, match=reason) as refusal:
        oj.read_antimony(path)
    assert str(refusal.value).startswith(str(path)) and "\n" not in str(refusal.value)


def test_import_is_a_word_in_comments_and_text(tmp_path):
    path = tmp_path / "model.ant"
    path.write_text("# import nothing\n// import nothing\n/* import\nnothing */" + CHAIN + 'chain is "import duty"\n')
    assert list(oj.read_antimony(path).states) == ["S", "P"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on open files")
def test_the_library_cannot_open_files(tmp_path):
    """What the reader of tokens did not see would still find no file to read."""
    (tmp_path / "other.ant").write_text(CHAIN)
    done, told = antimony._child(f'import "{tmp_path}/other.ant"\nx = 1', "read", "model")
    assert not done and "cannot be read" in told


def test_submodels_of_any_size_end_in_a_sentence(monkeypatch):
    monkeypatch.setattr(antimony, "SECONDS", 5)
    levels = "".join(f"model m{i}()\n a: m{i - 1}(); b: m{i - 1}();\nend\n" for i in range(1, 25))
    with pytest.raises(oj.ModelError, match="make the model smaller"):
        antimony.parse("model m0()\n x = 1; x' = 1\nend\n" + levels + "model *main()\n a: m24();\nend\n")


def test_a_long_sum():
    terms = " + ".join(f"{i}*x" for i in range(1500))
    model = antimony.parse(f"model m\n x' = a*({terms})\n x = 1; a = 0\nend")
    assert list(model.states) == ["x"]


def test_converted_all_the_way_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chain.ant").write_text(CHAIN)
    for one, other in (("chain.ant", "a.xml"), ("a.xml", "b.toml"), ("b.toml", "c.ant"), ("c.ant", "d.sbml")):
        assert main(["convert", one, other, "-q"]) == 0
    times = np.linspace(0, 3, 4)
    for model in (oj.Model.from_toml("b.toml"), oj.read_sbml("d.sbml")):
        assert np.allclose(oj.simulate(model, {}, {}, times)["y"], 6 * (1 - np.exp(-0.5 * times)), rtol=1e-12)


def test_conversions_that_cannot_be(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chain.ant").write_text(CHAIN)
    for out, reason in (("chain.ant", "this is the model file"), ("chain.m", "must end in one of .toml, .xml")):
        assert main(["convert", "chain.ant", out]) == 2
        assert reason in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["chain.ant"]


def test_a_network_starts_at_zero_wherever_it_is_fitted(tmp_path, monkeypatch):
    """The first measurement is at t = 1, and the initial value holds at 0: in Python as in the shell."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decay.ant").write_text("model decay\n species x; x = 1; J: x -> ; k*x; k = 0.1\nend")
    times = np.arange(1.0, 7.0)
    values = np.exp(-0.5 * times) + 1e-3 * np.random.default_rng(0).standard_normal(6)
    (tmp_path / "data.csv").write_text("time,x\n" + "".join(f"{t},{x}\n" for t, x in zip(times, values, strict=True)))
    model = oj.read_antimony("decay.ant", free=["k"]).replace(outputs={"x_measured": "x"})
    assert model.start == 0
    assert np.allclose(oj.simulate(model, {"k": 0.5}, {}, times)["x_measured"], np.exp(-0.5 * times), rtol=1e-12)
    fit = oj.fit(model, oj.Data(times, {"x_measured": values}), positive=True)
    assert main(["fit", "decay.ant", "data.csv", "--free", "k", "--positive", "--json", "fit.json", "-q"]) in (0, 1)
    assert abs(fit.values["k"] - 0.5) < 2e-3 and np.isclose(oj.Fit.load("fit.json").values["k"], fit.values["k"])
    told = oj.Problem(model, oj.Data(times, {"x_measured": values}, start=1.0))
    assert told.experiments[0].start == 1.0
    assert oj.Model.from_toml_text(model.to_toml()) == model


def test_a_fit_of_a_network(tmp_path, monkeypatch, capsys):
    """A column named like a species is data of it; what is to be found is named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chain.ant").write_text(CHAIN)
    times = np.linspace(1, 6, 21)
    noise = 1e-3 * np.random.default_rng(0).standard_normal((2, 21))
    rows = zip(times, 2 * np.exp(-0.5 * times) + noise[0], 6 * (1 - np.exp(-0.5 * times)) + noise[1], strict=True)
    (tmp_path / "data.csv").write_text("time,S,y\n" + "".join(f"{t},{s},{y}\n" for t, s, y in rows))
    assert main(["fit", "chain.ant", "data.csv"]) == 2
    assert "say what to find, as in --free k" in capsys.readouterr().err
    assert main(["fit", "chain.ant", "data.csv", "--free", "k", "--json", "fit.json", "-q"]) == 0
    fit = oj.Fit.load("fit.json")
    assert abs(fit.values["k"] - 0.5) < 5e-3 and "S_measured" in fit.model.outputs
