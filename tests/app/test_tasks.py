"""Tasks: posterior, population and models of a draft are those that Python gives, and a zip does them again."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import odejet as oj
from odejet.app import archives, posing, tasks
from odejet.app.drafts import Draft
from odejet.app.studies import Study
from odejet.cli import main
from tests.app.test_drafts import ask

DECAY = "x' = -k*x\ny = x"
BOLUS = "c' = -Cl/V*c\ncp = c/V\nc(0) = 0"


@pytest.fixture
def decay(tmp_path: Path) -> Path:
    times = np.linspace(0, 4, 15)
    values = 5 * np.exp(-0.7 * times) + 0.05 * np.random.default_rng(3).normal(size=15)
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "decay.csv").write_text(
        "time,y\n" + "".join(f"{t:.4g},{v:.5f}\n" for t, v in zip(times, values, strict=True))
    )
    return folder


@pytest.fixture
def subjects(tmp_path: Path) -> Path:
    """Ten subjects with one dose each, in the columns of NONMEM."""
    rng = np.random.default_rng(5)
    rows = ["ID,TIME,AMT,DV,WT"]
    for number in range(1, 11):
        clearance, volume = 2 * np.exp(0.3 * rng.normal()), 20 * np.exp(0.2 * rng.normal())
        rows.append(f"{number},0,100,.,{60 + number}")
        for time in (0.5, 1, 2, 4, 8, 12, 24):
            value = 100 / volume * np.exp(-clearance / volume * time) * np.exp(0.05 * rng.normal())
            rows.append(f"{number},{time},.,{value:.4f},{60 + number}")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "bolus.csv").write_text("\n".join(rows) + "\n")
    return folder


def zipped(tmp_path: Path, folder: Path, draft: Draft) -> Path:
    """A study on disk as the page exports it."""
    study = Study(folder.parent)
    study.save("A study", draft.to_dict(), None)
    path = tmp_path / "study.zip"
    path.write_bytes(archives.packed(study))
    return path


def ran(folder: Path, draft: Draft, into: Path) -> tuple[dict, dict]:
    into.mkdir()
    answer = ask("run", folder, draft, into=str(into))
    assert "answer" in answer, answer
    return answer["answer"], json.loads((into / tasks.RESULT).read_text())


# --- posterior ---


def test_a_posterior_has_draws_and_a_report(decay: Path, tmp_path: Path) -> None:
    pytest.importorskip("walnutpie")
    draft = Draft(text=DECAY, data="decay.csv", positive=True, task="posterior", priors={"k": "lognormal(0, 1)"})
    told, shown = ran(decay, draft, tmp_path / "out")
    assert told["certified"] and told["word"] == "chains agree"
    draws = oj.Posterior.load(tmp_path / "out" / tasks.DRAWS)
    rows = {row["label"]: row for row in shown["rows"]}
    assert float(rows["k"]["value"]) == pytest.approx(draws["k"].mean(), rel=0.01)
    assert draws.problem.priors["k"] == "lognormal(0, 1)"
    band = shown["bands"][0]["outputs"]["y"]
    assert all(low <= value <= high for low, value, high in zip(band["low"], band["values"], band["high"], strict=True))
    assert "density of k" in (tmp_path / "out" / tasks.REPORT).read_text()


# --- models ---


def test_models_are_compared_by_switches(decay: Path, tmp_path: Path) -> None:
    draft = Draft(
        text="x' = -k*x + b\ny = x",
        data="decay.csv",
        task="models",
        switches={"b": "0", "gone": "1"},
        method="exhaustive",
        limit=20,
    )
    _, shown = ran(decay, draft, tmp_path / "out")
    names = [row[0] for row in shown["models"]["rows"]]
    assert len(names) == 2 and "b" in names
    selection = oj.select(posing.problem_of(draft, decay, "d"), switches={"b": 0}, method="exhaustive", time_limit=20)
    assert names == [one.name for one in selection]
    none = ask("run", decay, Draft(text=DECAY, data="decay.csv", task="models"), into=str(tmp_path / "out"))
    assert "no switch is checked" in none["refused"].lower()


# --- populations ---


def test_a_population_of_a_nonmem_table_predicts_a_new_subject(subjects: Path, tmp_path: Path) -> None:
    draft = Draft(
        text=BOLUS,
        data="bolus.csv",
        task="population",
        random={"Cl": "lognormal", "V": "lognormal", "gone": "normal"},
        noise={"cp": "lognormal(s)"},
        bounds={"Cl": (0.01, 100.0), "V": (1.0, 1000.0)},
        limit=60,
    )
    _, shown = ran(subjects, draft, tmp_path / "out")
    values = {row["label"]: float(row["value"]) for row in shown["rows"]}
    assert values["Cl"] == pytest.approx(2, rel=0.3) and values["V"] == pytest.approx(20, rel=0.2)
    assert len(shown["bands"]) == 10
    new = {"end": 24, "doses": [{"time": "0", "state": "c", "amount": "200"}], "draft": draft.to_dict()}
    told = ask("predict", subjects, into=str(tmp_path / "out"), experiment=new)["answer"]
    band = told["outputs"]["cp"]
    rate = values["Cl"] / values["V"]
    assert band["values"][1:] == pytest.approx(
        200 / values["V"] * np.exp(-rate * np.array(told["times"][1:])), rel=0.02
    )
    outer, inner = band["outer_high"][10] - band["outer_low"][10], band["high"][10] - band["low"][10]
    assert outer > 1.5 * inner > 0


def test_what_a_population_lacks_is_said(subjects: Path) -> None:
    with pytest.raises(oj.ModelError, match="check those that do"):
        posing.population_of(Draft(text=BOLUS, data="bolus.csv"), subjects, "p")
    with pytest.raises(oj.DataError, match="several subjects"):
        posing.population_of(Draft(text=BOLUS), subjects, "p")


# --- new experiments ---


def test_a_new_dose_is_predicted_as_python_does(decay: Path, tmp_path: Path) -> None:
    draft = Draft(text=DECAY, data="decay.csv", positive=True)
    ran(decay, draft, tmp_path / "out")
    new = {"end": 6, "initial": {"x": "1"}, "doses": [{"time": "2", "state": "x", "amount": "3"}]}
    asked = {"into": str(tmp_path / "out"), "experiment": new | {"draft": draft.to_dict()}}
    told = ask("predict", decay, **asked)["answer"]
    fit = oj.Fit.load(tmp_path / "out" / tasks.FIT)
    doses = [{"time": 2, "state": "x", "amount": 3}]
    beside = fit.predict(told["times"], oj.Data(None, {}, start=0, initial={"x": 1}, doses=doses))["y"]
    band = told["outputs"]["y"]
    assert band["values"] == pytest.approx(beside.values.tolist(), rel=1e-5)
    assert band["high"] == pytest.approx(beside.high.tolist(), rel=1e-4)
    assert max(band["values"]) > 3
    for wrong, words in (({"end": -1}, "must end after"), ({"end": 5, "initial": {"z": "1"}}, "z")):
        refused = ask("predict", decay, into=asked["into"], experiment=wrong | {"draft": draft.to_dict()})["refused"]
        assert words in refused


# --- archives ---


def test_a_zip_comes_back_and_the_command_line_runs_it(
    decay: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = Draft(text=DECAY, data="decay.csv", positive=True)
    path = zipped(tmp_path, decay, draft)
    back = archives.unpacked(path.read_bytes(), "study.zip")
    assert back.draft == draft and back.files == {"decay.csv": (decay / "decay.csv").read_bytes()}
    taken = tmp_path / "other"
    taken.mkdir()
    (taken / "study.zip").write_bytes(path.read_bytes())
    assert Draft.read(ask("take", taken, Draft(), files=["study.zip"])["answer"]["draft"]) == draft
    assert (taken / "decay.csv").is_file()
    assert main(["run", str(path), "-o", str(tmp_path / "out")]) == 0
    fit = oj.Fit.load(tmp_path / "out" / "fit.json")
    assert fit.certified and fit.parameters["k"] == pytest.approx(0.7, abs=0.05)
    assert {one.name for one in (tmp_path / "out").iterdir()} == {
        "fit.json",
        "result.json",
        "report.html",
        "fit.py",
        "model.toml",
        "data.csv",
    }
    assert "certified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK nothing", "cannot be read"),
        ({"other.txt": b"x"}, "no study.json"),
        ({"study.json": b"[]"}, "no study.json"),
        ({"study.json": b'{"name": "a", "draft": {"data": "d.csv"}}'}, "d.csv of the study is missing"),
        ({"study.json": b'{"name": "a", "draft": {}}', "files/../../x": b""}, "no name for a file"),
        ({"study.json": b'{"name": "a", "draft": {"task": "dance"}}'}, "form"),
    ],
)
def test_zips_of_strangers_get_a_sentence(
    content: bytes | dict[str, bytes], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.zip"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as packed:
            for name, data in content.items():
                packed.writestr(name, data)
        path.write_bytes(buffer.getvalue())
    assert main(["run", str(path)]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["study.zip"]


def test_a_zip_that_grows_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST", 1000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("study.json", '{"name": "a", "draft": {}}')
        packed.writestr("files/zeros.csv", b"0" * 100_000)
    with pytest.raises(oj.DataError, match="larger than"):
        archives.unpacked(buffer.getvalue(), "study.zip")


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_whose_size_nobody_could_limit_is_refused(packing: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as packed:
        packed.writestr("study.json", '{"name": "a", "draft": {}}')
    with pytest.raises(oj.DataError, match="unusual way"):
        archives.unpacked(buffer.getvalue(), "study.zip")


def test_a_zip_that_was_damaged_gets_a_sentence() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("study.json", '{"name": "a", "draft": {}}')
        packed.writestr("files/d.csv", "t,y\n" * 1000)
    content = bytearray(buffer.getvalue())
    inside = content.find(b"files/d.csv") + len("files/d.csv")
    content[inside : inside + 8] = b"\xff" * 8
    with pytest.raises(oj.DataError, match="cannot be read"):
        archives.unpacked(bytes(content), "study.zip")
