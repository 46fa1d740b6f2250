"""README and docs tell the truth: what they show runs, and says what they say it says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import matplotlib
import numpy as np
import pandas
import pytest

from odejet import Model
from odejet.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
PAGES = {
    "README": ROOT / "README.md",
    "start": ROOT / "docs" / "start.md",
    "command line": ROOT / "docs" / "cli.md",
    "model language": ROOT / "docs" / "model-language.md",
    "sbml": ROOT / "docs" / "sbml.md",
}
NOISE = ROOT / "docs" / "noise.md"


def blocks(page: str, language: str) -> list[str]:
    text = PAGES[page].read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.startswith("odejet ")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A directory with the examples in it, as in a copy of the repository."""
    matplotlib.use("agg")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("output"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", ["README", "model language", "sbml"])
def test_python_runs(page):
    assert blocks(page, "python")
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), {})


def test_readme_is_two_screens():
    (code,) = blocks("README", "python")
    assert len([line for line in code.splitlines() if line.strip() and not line.startswith("import")]) <= 5
    assert len(PAGES["README"].read_text(encoding="utf-8").splitlines()) <= 100


def test_readme_command_is_that_of_the_reference():
    (line,) = commands("README")
    assert line in {command.replace(" --json fit.json", "") for command in commands("command line")}


def test_commands_run(elsewhere, capsys):
    assert len(commands("command line")) == 11
    for line in commands("command line"):
        assert main(shlex.split(line)[1:]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Model lotka_volterra\n")
    assert "\nlotka_volterra: certified" in out
    assert "\ntime,y1\n0.0,1.5\n" in out
    assert np.loadtxt(elsewhere / "data.csv", delimiter=",", skiprows=1).shape == (101, 2)
    for name in ("data.png", "fit.json", "fit.html", "again.html", "bands.csv", "lotka_volterra.xml"):
        assert (elsewhere / name).exists()


def test_every_command_is_in_the_reference():
    known = [command.__name__.rpartition(".")[2] for command in COMMANDS]
    page = PAGES["command line"].read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)) == sorted(known)


def test_the_model_to_start_with_is_that_of_the_example():
    first, more = blocks("start", "toml")
    shown, example = Model.from_toml_text(first), Model.from_toml("examples/lotka_volterra.toml")
    assert (shown.states, shown.outputs) == (example.states, example.outputs)
    assert Model.from_toml_text(f"{first}\n{more}").unknowns == ("r", "k1", "k2")


def test_language_reference_commands_run(elsewhere, capsys):
    (elsewhere / "chemostat.toml").write_text(blocks("model language", "toml")[0], encoding="utf-8")
    assert len(commands("model language")) == 2
    for line in commands("model language"):
        assert main(shlex.split(line)[1:]) == 0
    assert "5 unknowns: s(0), mu, K, s_in, x0" in capsys.readouterr().out
    assert (elsewhere / "chemostat.csv").read_text().startswith("time,density,log_substrate\n")


def test_language_reference_quotes_real_messages(elsewhere, capsys):
    answers = [text for text in blocks("model language", "text") if text.startswith("odejet: ")]
    assert len(answers) > 5
    mistakes = blocks("model language", "toml")[-len(answers) :]  # those before are models that work
    for mistake, answer in zip(mistakes, answers, strict=True):
        (elsewhere / "model.toml").write_text(mistake, encoding="utf-8")
        assert main(["show", "model.toml"]) == 2
        assert capsys.readouterr().err == answer


def test_sbml_commands_run(elsewhere, capsys):
    assert len(commands("sbml")) == 4
    for line in commands("sbml"):
        assert main(shlex.split(line)[1:]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Model enzyme\n") and "\nenzyme: certified" in out


def test_the_example_runs(elsewhere, capsys):
    code = (elsewhere / "examples" / "lotka_volterra.py").read_text(encoding="utf-8")
    exec(compile(code, "example", "exec"), {"__file__": str(elsewhere / "examples" / "lotka_volterra.py")})
    output = elsewhere / "examples" / "output"
    assert [path.name for path in output.iterdir()] == ["lotka_volterra.html"]
    assert str(output / "lotka_volterra.html") in capsys.readouterr().out


def test_example_data_come_from_their_script(elsewhere):
    measured = ("theophylline", "hare_lynx", "influenza", "repeated_doses_given")  # by people, not by a script
    paths = [path for path in (elsewhere / "examples").glob("*.csv") if path.stem not in measured]
    before = {path: pandas.read_csv(path) for path in paths}
    assert len(before) == 13
    script = elsewhere / "examples" / "make_data.py"
    code = compile(script.read_text(encoding="utf-8"), "make_data", "exec")
    exec(code, {"__file__": str(script), "__name__": "__main__"})
    for path, table in before.items():
        pandas.testing.assert_frame_equal(pandas.read_csv(path), table, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["decay", "sirt", "two_experiments"])
def test_more_examples_fit(name, elsewhere, capsys):
    assert main(["fit", f"examples/{name}.toml", f"examples/{name}.csv", "--positive"]) == 0
    assert ("known in combination" in capsys.readouterr().out) == (name == "decay")


def test_the_page_on_noise_runs(capsys):
    code = re.findall(r"^```python\n(.*?)^```$", NOISE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(code) == 3
    exec(compile("\n".join(code), "noise", "exec"), {})
    scale, *_, likelihood = (line.split() for line in capsys.readouterr().out.splitlines())
    assert 0.2 < float(scale[0]) < 0.25
    assert float(likelihood[0]) + float(likelihood[1]) == pytest.approx(float(likelihood[2]))
