"""Drafts: what was put together on the page is the problem that a script would pose."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from odejet import Data, DataError, Model, ModelError, Problem, simulate
from odejet.app import child, examples, mistakes, posing, takes, views
from odejet.app.drafts import Draft
from odejet.errors import ExpressionError
from odejet.result import Fit

LINES = "r' = k1*r - k2*r*w\nw' = k2*r*w - k3*w\ny1 = r"
TRUTH = {"k1": 0.6, "k2": 0.5, "k3": 0.3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study's files: noisy counts under names of their own."""
    times = np.linspace(0, 20, 61)
    model = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r"})
    counts = simulate(model, TRUTH, {"r": 1.5, "w": 0.5}, times)["y1"] + 0.01 * np.random.default_rng(1).normal(size=61)
    rows = "".join(f"{t};{y:.4f};sunny\n".replace(".", ",") for t, y in zip(times, counts, strict=True))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "counts.csv").write_text(f"Day;Rabbits;weather\n{rows}")
    return tmp_path / "files"


def ask(do: str, folder: Path, draft: Draft | None = None, **more: object) -> dict:
    question = {"do": do, "folder": str(folder), "name": "prey", **more}
    return child.answer(question | ({} if draft is None else {"draft": draft.to_dict()}), lambda told: None)


def test_a_draft_comes_back_the_same() -> None:
    draft = Draft(text=LINES, bounds={"k1": (0.0, None)}, doses=({"time": "0"},), local=("k1",), start=-1.0)
    told = json.loads(json.dumps(draft.to_dict()))
    assert Draft.read(told).key == draft.key
    for wrong in ({"language": "lisp"}, {"bounds": {"k1": 3}}, {"positive": 1}, {"doses": {}}, {"limit": -1}, [], "x"):
        with pytest.raises(DataError, match=r"form|table"):
            Draft.read(wrong)


def test_columns_find_their_outputs(folder: Path) -> None:
    draft = Draft(text=LINES, data="counts.csv", titles={"weather": ""}, positive=True)
    problem = posing.problem_of(draft, folder, "prey")
    assert problem.unknowns == ("r(0)", "w(0)", "k1", "k2", "k3")
    assert problem.experiments[0].outputs["y1"].values[0] == pytest.approx(1.5, abs=0.05)
    assert set(problem.bounds.values()) == {(0.0, math.inf)}


def test_data_that_make_no_sense_yet_leave_the_model_alone(folder: Path) -> None:
    draft = Draft(text=LINES, data="counts.csv", titles={"Rabbits": "", "weather": ""})
    seen = ask("look", folder, draft)["answer"]
    assert "no column is an output of the model" in seen["trouble"] and "ready" not in seen
    assert [one["label"] for one in seen["unknowns"]] == ["r(0)", "w(0)", "k1", "k2", "k3"] and not seen["series"]
    assert ask("move", folder, key=seen["key"], values={"k1": 0.5})["answer"]["curves"][0]["outputs"]["y1"]
    assert ask("know", folder, draft)["answer"]["message"].startswith("everything can be known")


def test_a_column_may_measure_a_state(folder: Path) -> None:
    draft = Draft(text=LINES.rpartition("\n")[0], data="counts.csv", titles={"Day": "time", "Rabbits": "r"})
    problem = posing.problem_of(draft, folder, "prey")
    assert {name: str(value) for name, value in problem.model.outputs.items()} == {"r_measured": "r"}
    assert list(problem.experiments[0].outputs) == ["r_measured"]


def test_what_is_known_is_posed(folder: Path) -> None:
    draft = Draft(
        text=LINES + "\nw(0) = 0.5",
        data="counts.csv",
        titles={"Day": "time", "Rabbits": "y1"},
        bounds={"k1": (0.1, None), "gone": (0.0, 1.0)},
        fixed={"k3": "0.3", "also gone": "2", "k2": ""},
        free=("w",),
        noise={"y1": "2%"},
        start=-1.0,
    )
    problem = posing.problem_of(draft, folder, "prey")
    expected = Problem(
        Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r"}),
        Data(*_columns(folder), start=-1.0),
        bounds={"k1": (0.1, math.inf)},
        fixed={"k3": 0.3},
        noise={"y1": "2%"},
    )
    assert problem.unknowns == expected.unknowns == ("r(-1)", "w(-1)", "k1", "k2")
    assert problem.bounds == expected.bounds
    values = dict(zip(problem.unknowns, (1.2, 0.6, 0.5, 0.5), strict=True))
    assert problem.log_likelihood(values) == expected.log_likelihood(values)


def _columns(folder: Path) -> tuple[list[float], dict[str, list[float]]]:
    rows = [line.replace(",", ".").split(";") for line in (folder / "counts.csv").read_text().splitlines()[1:]]
    return [float(row[0]) for row in rows], {"y1": [float(row[1]) for row in rows]}


@pytest.mark.parametrize("key", examples.EXAMPLES)
def test_examples_pose_a_problem(key: str) -> None:
    draft = takes.example(examples.EXAMPLES[key])
    posing.problem_of(draft, examples.folder(), key).check_points()
    assert draft.language == "equations"


def test_doses_of_an_example_are_those_of_its_file() -> None:
    draft = takes.example(examples.EXAMPLES["doses"])
    problem = posing.problem_of(draft, examples.folder(), "doses")
    here = examples.folder()
    data = Data.from_csv(here / "repeated_doses.csv", doses=here / "repeated_doses_given.csv").starting(0)
    expected = Problem(Model.from_toml(here / "repeated_doses.toml"), data, {"V1": (10, 100)}, positive=True)
    values = {"ka": 0.9, "CL": 4.0, "V1": 20.0, "Q": 3.0, "V2": 30.0, "tlag": 0.6}
    assert problem.bounds == expected.bounds
    assert problem.log_likelihood(values) == pytest.approx(expected.log_likelihood(values), rel=1e-12)


# --- mistakes ---


@pytest.mark.parametrize(
    ("language", "text", "place"),
    [
        ("equations", "x' = -k*x\ny = 2*x^2", (2, 7, 1)),
        ("equations", "x' = -k*x\n\n what", (3, 1, 4)),
        ("equations", "x' = -k*x\nz(0) = 3", (2, 7, 1)),
        ("toml", '[states]\nx = "-k*x"\n[outputs]\ny = "2*x^2"', (4, 8, 1)),
        ("toml", "[states]\nx = -k*x", (2, 4, 1)),
        ("antimony", "model m\n J: S -> P; k*S\n S = = 5\nend", (3, 0, 1)),
    ],
)
def test_a_mistake_is_shown_where_it_is(language: str, text: str, place: tuple[int, int, int]) -> None:
    draft = Draft(language=language, text=text)
    with pytest.raises(ModelError) as caught:
        posing.plain_model(draft, "m")
    found = mistakes.located(caught.value, draft)
    assert (found["row"], found["column"], found["length"]) == place


def test_sentences_are_short() -> None:
    error = ExpressionError("the character '^' is not allowed; an expression may hold numbers", "x^2", 1)
    assert mistakes.told(error) == "The character '^' is not allowed."


# --- views ---


def test_curves_are_simulations(folder: Path) -> None:
    draft = Draft(text=LINES, data="counts.csv", titles={"weather": ""})
    seen = ask("look", folder, draft)["answer"]
    assert seen["ready"] and seen["titles"] == {"Day": "time", "Rabbits": "y1", "weather": ""}
    assert [row["label"] for row in seen["unknowns"]] == ["r(0)", "w(0)", "k1", "k2", "k3"]
    assert len(seen["series"][0]["times"]) == 61
    values = {"r(0)": 1.5, "w(0)": 0.5, **TRUTH}
    (curve,) = ask("move", folder, key=seen["key"], values=values)["answer"]["curves"]
    model = Model({"r": "k1*r - k2*r*w", "w": "k2*r*w - k3*w"}, {"y1": "r"})
    expected = simulate(model, TRUTH, {"r": 1.5, "w": 0.5}, curve["times"])
    np.testing.assert_allclose(curve["outputs"]["y1"], expected["y1"], rtol=1e-5)
    assert curve["explained"]["y1"] > 0.999
    assert ask("move", folder, key="no such", values=values)["answer"] == {"forgotten": True}


def test_data_that_are_replaced_are_seen(folder: Path) -> None:
    draft = Draft(text=LINES, data="counts.csv", titles={"weather": ""})
    before = ask("look", folder, draft)["answer"]
    (folder / "counts.csv").write_text("Day,Rabbits\n0,1\n1,2\n2,3\n3,4\n4,4\n5,7\n")
    after = ask("look", folder, draft)["answer"]
    assert after["key"] != before["key"] and len(after["series"][0]["times"]) == 6


def test_a_model_alone_has_curves_and_a_verdict(tmp_path: Path) -> None:
    draft = Draft(text="x' = -k*x\ny = s*x", span=4.0, fixed={"k": "0.5"})
    seen = ask("look", tmp_path, draft)["answer"]
    assert "ready" not in seen and [row["label"] for row in seen["unknowns"]] == ["x(0)", "s"]
    (curve,) = ask("move", tmp_path, key=seen["key"], values={"x(0)": 2.0, "s": 3.0})["answer"]["curves"]
    assert curve["outputs"]["y"][-1] == pytest.approx(6 * math.exp(-2), rel=1e-6)
    verdict = ask("know", tmp_path, draft)["answer"]
    assert {label: one["kind"] for label, one in verdict["quantities"].items()} == {"x(0)": "none", "s": "none"}


def test_more_unknowns_than_measurements_are_told(folder: Path) -> None:
    (folder / "counts.csv").write_text("Day,Rabbits\n0,1\n1,2\n")
    seen = ask("look", folder, Draft(text=LINES, data="counts.csv"))["answer"]
    assert "2 measurements for 5 unknowns" in seen["trouble"] and "ready" not in seen


def test_languages_say_the_same() -> None:
    draft = Draft(text=LINES + "\nk3 = 0.3")
    model = posing.plain_model(draft, "prey")
    toml = takes.translated(draft, "toml", "prey")
    assert posing.plain_model(Draft(language="toml", text=toml), "prey") == model
    assert (
        posing.plain_model(Draft(text=takes.translated(Draft(language="toml", text=toml), "equations", "p")), "prey")
        == model
    )


# --- files ---


def test_files_are_known_by_what_they_are(folder: Path) -> None:
    here = examples.folder()
    for name in ("enzyme.ant", "lotka_volterra.toml", "repeated_doses_given.csv"):
        (folder / name).write_bytes((here / name).read_bytes())
    draft, _ = takes.take(Draft(), folder, ["lotka_volterra.toml", "counts.csv"])
    assert (draft.language, draft.data) == ("toml", "counts.csv")
    draft, notes = takes.take(draft, folder, ["repeated_doses_given.csv"])
    assert draft.doses[0]["time"] == "tlag" and notes == ["repeated_doses_given.csv: 1 doses"]
    draft, _ = takes.take(draft, folder, ["enzyme.ant"])
    assert draft.language == "antimony"
    (folder / "sheet.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match="save its table there as CSV"):
        takes.take(draft, folder, ["sheet.xlsx"])


def test_a_petab_problem_is_taken_whole(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    for path in (examples.folder() / "petab").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    draft, _ = takes.take(Draft(), tmp_path, sorted(path.name for path in tmp_path.iterdir()))
    assert (draft.language, draft.file) == ("petab", "problem.yaml")
    seen = ask("look", tmp_path, draft)["answer"]
    assert seen["ready"] and seen["series"]


# --- fits ---


def test_a_fit_and_the_script_that_does_the_same(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "fit"
    into.mkdir()
    draft = Draft(text=LINES, data="counts.csv", titles={"weather": ""}, bounds={"k1": (0.01, None)}, positive=True)
    told: list[dict] = []
    question = {"do": "run", "folder": str(folder), "name": "prey", "draft": draft.to_dict(), "into": str(into)}
    answer = child.answer(question, told.append)["answer"]
    assert answer["certified"] and {"identify", "refine", "report"} <= {one["stage"] for one in told}
    found = Fit.load(into / "fit.json")
    for name, value in TRUTH.items():
        assert found.parameters[name] == pytest.approx(value, abs=5 * found.stderr[name])
    shown = json.loads((into / "result.json").read_text())
    assert shown["certified"] and [row["label"] for row in shown["rows"]] == list(found.labels)
    assert (into / "report.html").read_text().startswith("<!DOCTYPE html>")
    again = tmp_path / "again"
    again.mkdir()
    for name in ("fit.py", "model.toml", "data.csv"):
        (again / name).write_bytes((into / name).read_bytes())
    script = (again / "fit.py").read_text().replace('fit.report("report.html")\n', "")
    source = str(Path(child.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=again,
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "certified" in done.stdout
    # Sums depend in the last digit on where in memory a process has its arrays.
    assert Fit.load(again / "fit.json").values == pytest.approx(found.values, rel=1e-12)
    compared = ask("compare", folder, fits={"Fit 1": str(into / "fit.json"), "Fit 2": str(again / "fit.json")})
    assert [row["weight"] for row in compared["answer"]["rows"]] == ["50 %", "50 %"]


def test_views_and_data_have_as_many_points_as_a_picture_shows(folder: Path) -> None:
    rows = "".join(f"{i},{math.sin(i / 500)}\n" for i in range(5000))
    (folder / "counts.csv").write_text(f"Day,Rabbits\n{rows}")
    seen = ask("look", folder, Draft(text=LINES, data="counts.csv"))["answer"]
    (series,) = seen["series"]
    assert series["count"] == 5000 and len(series["times"]) <= views.MOST_POINTS


def test_combinations_of_many_experiments_are_told_once() -> None:
    names = {"a in hot": "a_hot", "b in hot": "b_hot", "a in cold": "a_cold", "b in cold": "b_cold", "c": "c"}
    found = views._told_once(["a_hot*b_hot", "a_cold*b_cold", "a_hot/a_cold", "c*b_hot", "c + 1"], names)
    assert found == ["a*b", "a_hot/a_cold", "c*b", "c + 1"]
