"""PEtab files that nobody should believe: one sentence each, and nothing outside the folder is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import odejet as oj
from odejet.cli import main

pytest.importorskip("yaml", reason="PEtab needs pyyaml")
pytest.importorskip("libsbml", reason="PEtab needs python-libsbml")

EXAMPLE = Path(__file__).parents[3] / "examples" / "petab"


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(EXAMPLE, tmp_path / "problem"))


def edited(folder: Path, name: str, old: str, new: str) -> Path:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return folder / "problem.yaml"


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("problem.yaml", "- parameters.tsv", "- ../parameters.tsv", "outside the folder of the problem"),
        ("problem.yaml", "- parameters.tsv", "- /etc/passwd", "outside the folder of the problem"),
        ("problem.yaml", "location: model.xml", "location: http://localhost/m.xml", "is an address"),
        ("problem.yaml", "location: model.xml", "location: file:///etc/passwd", "is an address"),
        ("problem.yaml", "- parameters.tsv", "- nothing.tsv", "there is no such file"),
        ("problem.yaml", "format_version: 2.0.0", "format_version: 3.1", "must be 1 or 2, not '3.1'"),
        ("problem.yaml", "format_version: 2.0.0", "a: &a [1]\nb: *a\nformat_version: 2.0.0", "has an alias"),
        ("problem.yaml", "format_version: 2.0.0", "[" * 5000, "nested more than 20 deep"),
        ("problem.yaml", "format_version: 2.0.0", "!!python/object/apply:os.system [ls]", "this is not YAML"),
        ("problem.yaml", "language: sbml", "language: bngl", "the model is in 'bngl'"),
        ("parameters.tsv", "parameterId", "parameter", "there is no column 'parameterId'"),
        ("parameters.tsv", "Km\t0.001\t1000.0", "Km\tlow\t1000.0", "line 3: the lowerBound 'low' is not a number"),
        ("parameters.tsv", "Km\t0.001\t1000.0", "Km\t2\t1", "the lowerBound 2 of 'Km' must be below"),
        ("parameters.tsv", "Km\t", "Vmax\t", "line 3: 'Vmax' is there twice"),
        ("parameters.tsv", "Km\t", "K m\t", "'K m' is no id"),
        ("parameters.tsv", "Km\t", "Kn\t", "'Km' has no value; add it to the parameter table"),
        ("observables.tsv", "scale * P", "scale * Q", "there is no 'Q'"),
        ("observables.tsv", "scale * P", "scale * P)", "an operator is missing here"),
        ("observables.tsv", "scale * P", "__import__('os')", "has no place in a formula of PEtab"),
        ("observables.tsv", "scale * P", "(" * 500 + "P" + ")" * 500, "nested more than 60 deep"),
        ("observables.tsv", "log-normal", "log-cauchy", "there is no noiseDistribution 'log-cauchy'"),
        ("observables.tsv", "\tsigma\t", "\tsigma + S\t", "the noise of 'product' depends on 'S'"),
        ("measurements.tsv", "product\tlow", "produkt\tlow", "no observable 'produkt'; did you mean 'product'?"),
        ("measurements.tsv", "product\tlow", "product\tlaw", "no experiment 'law'; did you mean 'low'?"),
        ("measurements.tsv", "0.5305", "nan", "nothing stands in the column 'measurement'"),
        ("measurements.tsv", "0.5305", "inf", "must be numbers"),
        ("measurements.tsv", "0.5305\t", "0.5305\t3", "the formulas need 0 noiseParameters, and 1 are given"),
        ("conditions.tsv", "dose\t1", "doze\t1", "'dose' has no value"),
        ("conditions.tsv", "dose\t1", "S\tS + 1", "begins with 'S' as a function of itself"),
        ("experiments.tsv", "low_0", "medium", "there is no condition 'medium'"),
        ("experiments.tsv", "low\t0.0", "low\tsoon", "the time 'soon' is not a number"),
        ("model.xml", "<sbml", "<!DOCTYPE sbml [<!ENTITY a 'a'>]><sbml", "document type or entities"),
    ],
)
def test_a_file_that_is_wrong_gets_one_sentence(folder, name, old, new, sentence):
    path = edited(folder, name, old, new)
    with pytest.raises((oj.ModelError, oj.DataError)) as caught:
        oj.read_petab(path)
    message = str(caught.value)
    assert sentence in message and str(folder) in message
    assert len(message.splitlines()) <= 3


def test_a_link_that_leads_outside_is_not_followed(folder, tmp_path):
    secret = tmp_path / "secret.tsv"
    secret.write_text("parameterId\testimate\n")
    (folder / "parameters.tsv").unlink()
    (folder / "parameters.tsv").symlink_to(secret)
    with pytest.raises(oj.ModelError, match="outside the folder"):
        oj.read_petab(folder / "problem.yaml")


def test_a_table_that_is_too_large_is_not_read(folder, monkeypatch):
    monkeypatch.setattr("odejet.io.petab.files.MAX_TABLE", 100)
    with pytest.raises(oj.ModelError, match="larger than"):
        oj.read_petab(folder / "problem.yaml")


# --- the command line


def test_commands_take_problems(folder, tmp_path, capsys):
    assert main(["convert", str(folder / "problem.yaml"), str(tmp_path / "again")]) == 0
    assert (
        oj.read_petab(tmp_path / "again" / "problem.yaml").unknowns == oj.read_petab(EXAMPLE / "problem.yaml").unknowns
    )
    assert main(["fit", str(tmp_path / "again" / "problem.yaml"), "--noise", "0.1"]) == 2
    assert "leave out --noise" in capsys.readouterr().err
    assert main(["convert", str(folder / "problem.yaml"), str(folder)]) == 2
    assert "this is the folder of the problem" in capsys.readouterr().err
    assert main(["fit", "examples/lotka_volterra.toml"]) == 2
    assert "needs data" in capsys.readouterr().err


def test_the_example_is_fitted():
    fit = oj.fit(oj.read_petab(EXAMPLE / "problem.yaml"))
    assert fit.certified
    low, high = fit.interval("decay")
    assert low < 0.1 < high  # with which the data were made


def test_problems_of_ours_are_written_with_all_that_petab_can_say(tmp_path):
    model = oj.Model({"x": "-k*x + u", "y": "k*x - m*y"}, {"a": "x", "b": "s*y"}, inputs={"u": "exp(-t)"})
    first = oj.Data([0, 1, 2], {"a": [3, 2, 1], "b": [1, 2, 3]}, noise={"b": [0.1, 0.2, 0.1]}, name="first")
    second = oj.Data(
        [0, 1, 4],
        {"a": [5, 2, 1]},
        name="second",
        initial={"y": "2*m"},
        values={"k": "kk"},
        events=[oj.Event(at=2, set={"x": "x + 1"})],
    )
    problem = oj.Problem(
        model, oj.Data.join([first, second]), (1e-3, 10), noise={"a": "laplace(w)"}, priors={"m": "normal(1, 0.5)"}
    )
    values = dict(zip(problem.unknowns, [3.0, 1.0, 5.0, 0.5, 0.7, 1.5, 0.8, 0.3], strict=True))
    again = oj.read_petab(problem.to_petab(tmp_path / "written"))
    names = {"x(0) in first": "x_first_0", "y(0) in first": "y_first_0", "x(0) in second": "x_second_0"}
    names |= {name: name for name in problem.unknowns if name not in names}
    names["k"] = "k_value"
    renamed = {names[name]: value for name, value in values.items()}
    assert set(again.unknowns) == set(renamed)
    assert again.log_likelihood(renamed) == pytest.approx(problem.log_likelihood(values), rel=1e-9)
    assert again.log_posterior(renamed) == pytest.approx(problem.log_posterior(values), rel=1e-9)


@pytest.mark.parametrize("law", ["poisson", "student(s, 4)", "ar1(s, rho)"])
def test_what_petab_cannot_say_is_refused(law, tmp_path):
    problem = oj.Problem(oj.Model({"x": "-k*x"}, {"y": "x"}), oj.Data([0, 1, 2], {"y": [4, 2, 1]}), noise=law)
    with pytest.raises(oj.ModelError, match="which PEtab does not have"):
        problem.to_petab(tmp_path / "never")
    assert not (tmp_path / "never").exists()
