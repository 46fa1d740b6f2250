"""The command `odejet select`: switches on the command line, files, exit statuses, and what makes no sense."""

from __future__ import annotations

import json

import numpy as np
import pytest

import odejet as oj
from odejet.cli import main

MODEL = '[states]\nx = "a - k*x"\n\n[outputs]\ny = "x"\n'


@pytest.fixture
def files(tmp_path):
    times = np.linspace(0, 5, 20)
    values = 3 * np.exp(-0.7 * times) + 0.02 * np.random.default_rng(2).normal(size=20)
    (tmp_path / "model.toml").write_text(MODEL)
    rows = [f"{t},{y}" for t, y in zip(times, values, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["time,y", *rows]) + "\n")
    return tmp_path


def test_switches_are_selected_and_the_best_fit_is_written(files, capsys):
    best = files / "best.json"
    status = main(
        ["select", str(files / "model.toml"), str(files / "data.csv"), "--switch", "a=0", "--json", str(best)]
    )
    out, err = capsys.readouterr()
    assert status == 0 and out.splitlines()[2].startswith("none")
    assert "odejet: none: AICc" in err and f"written: {best}" in err
    fit = oj.Fit.load(best)
    assert fit.labels == ("x(0)", "k") and json.loads(best.read_text())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["data.csv"], "say what the model may do without, as in --switch k5=0"),
        (["data.csv", "--switch", "b=0"], "the switch 'b' is no unknown"),
        (["data.csv", "--switch", "a"], "--switch"),
        (["data.csv", "--switch", "a=0", "--total", "3"], "this is for PEtab Select problems; leave out --total"),
        (["data.csv", "--switch", "a=0", "--json", "nowhere/best.json"], "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(files, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(files)
    assert main(["select", "model.toml", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and sentence in err and err.count("\n") == 1


def test_a_petab_problem_says_the_method_itself(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main(["select", "problem.yaml", "--method", "forward"]) == 2
    assert "this is told by a PEtab Select problem itself; leave out --method" in capsys.readouterr().err
