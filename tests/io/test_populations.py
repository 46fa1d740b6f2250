"""Populations in files: TOML, the command line and reports."""

from __future__ import annotations

import json

import numpy as np
import pytest

import odejet as oj
from odejet.__main__ import main

MODEL = """
name = "decay"

[states]
x = "-k*x"

[outputs]
y = "x"

[initial]
x = 10

[noise]
y = "normal(s)"

[population]
random = { k = "lognormal" }
covariates = { k = "k*(WT/70)^beta" }
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(4)
    lines = ["ID,TIME,DV,WT"]
    for subject in range(12):
        weight, k = 50 + 4 * subject, 0.3 * np.exp(0.3 * rng.standard_normal())
        rows = [(t, 10 * np.exp(-k * t) + 0.2 * rng.standard_normal()) for t in (0.0, 1.0, 2.0, 4.0, 7.0)]
        lines += [f"{subject},{t},{y},{weight}" for t, y in rows]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "model.toml").write_text(MODEL)
    return tmp_path


def test_a_population_is_read_from_toml(files) -> None:
    population = oj.Population.from_toml(files / "model.toml", oj.Data.from_csv(files / "data.csv"))
    assert population.names == ("k", "beta", "omega_k", "s")
    assert oj.Model.from_toml(files / "model.toml").name == "decay"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"there is no table \[population\]"),
        ('[population]\nrandm = { k = "normal" }\n', "'randm' is not known; did you mean 'random'"),
        ('[population]\ncovariates = { k = "k*WT" }\n', "random is missing"),
        (
            '[population]\nrandom = { q = "normal" }\n',
            r"model.toml \[population\]: random: the model has no parameter 'q'",
        ),
    ],
)
def test_a_bad_table_is_refused_with_its_file(files, text, message) -> None:
    (files / "model.toml").write_text(MODEL[: MODEL.index("[population]")] + text)
    with pytest.raises(oj.ModelError, match=message):
        oj.Population.from_toml(files / "model.toml", oj.Data.from_csv(files / "data.csv"))


def test_the_command_line_fits_a_population(files, capsys) -> None:
    written, page = files / "fit.json", files / "fit.html"
    arguments = ["fit", files / "model.toml", files / "data.csv", "--json", written, "--report", page]
    status = main([str(one) for one in arguments])
    assert status in (0, 1)
    shown = capsys.readouterr().out
    assert "omega_k" in shown
    assert "explains the data: yes" in shown
    assert json.loads(written.read_text())["population"]["k"]["value"] == pytest.approx(0.3, rel=0.3)
    text = page.read_text()
    assert "omega_k" in text and "visual predictive check of" in text and "NPDE of" in text


def test_options_that_a_population_has_in_its_file_are_refused(files, capsys) -> None:
    status = main(["fit", str(files / "model.toml"), str(files / "data.csv"), "--local", "k"])
    assert status == 2
    assert "leave out --local" in capsys.readouterr().err
