"""Studies: what is kept survives, whole, and two programs do not share a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from odejet import DataError
from odejet.app.fits import INTERRUPTED, Fits
from odejet.app.studies import Changed, Folder, Missing, checked_file


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "studies")


def test_a_study_is_there_after_a_restart(folder: Folder) -> None:
    study = folder.create("Prey & predators", {"text": "x' = -k*x"}, {"data.csv": b"time,y\n0,1\n"})
    assert study.save("Prey", {"text": "x' = -2*x"}, 1) == 2
    folder.close()
    again = Folder(folder.path).study(study.id)
    told = again.read()
    assert (told["name"], told["revision"], told["draft"]) == ("Prey", 2, {"text": "x' = -2*x"})
    assert (again.files / "data.csv").read_bytes() == b"time,y\n0,1\n"


def test_the_second_tab_does_not_overwrite_the_first(folder: Folder) -> None:
    study = folder.create("s", {}, {})
    study.save("s", {"text": "one"}, 1)
    with pytest.raises(Changed):
        study.save("s", {"text": "two"}, 1)
    assert study.read()["draft"] == {"text": "one"}


def test_a_tab_that_closes_need_not_wait_for_what_it_sent_before(folder: Folder) -> None:
    study = folder.create("s", {}, {})
    assert study.save("s", {"text": "first"}, 1, "tab", 1) == 2
    assert study.save("s", {"text": "third"}, 1, "tab", 3) == 3
    assert study.save("s", {"text": "second"}, 1, "tab", 2) == 3  # it was overtaken
    assert study.read()["draft"] == {"text": "third"}
    study.save("s", {"text": "of another"}, 3, "other", 1)
    with pytest.raises(Changed):
        study.save("s", {"text": "fourth"}, 3, "tab", 4)


def test_one_program_at_a_time(folder: Folder) -> None:
    pytest.importorskip("fcntl")
    with pytest.raises(DataError, match="another odejet app works in this folder"):
        Folder(folder.path)


def test_a_damaged_study_is_one_without_a_draft(folder: Folder) -> None:
    study = folder.create("s", {}, {})
    for content in (b"{", b"[]", b'{"draft": 3, "revision": "x", "name": 7}', b"\xff", b"[" * 100_000):
        (study.path / "study.json").write_bytes(content)
        assert study.read()["draft"] == {} and study.read()["revision"] == 0
        assert [one.id for one in folder] == [study.id]


@pytest.mark.parametrize(
    "name", ["../x.csv", "a/b.csv", "..", ".hidden", "a\0b", "", "x" * 200, "con\n.csv", "a\\b.csv"]
)
def test_names_of_files_are_plain(name: str, folder: Folder) -> None:
    with pytest.raises(DataError, match="no name for a file"):
        checked_file(name)


@pytest.mark.parametrize("id", ["..", "removed", "", "a/../b", "NoSuch", "no-such"])
def test_only_studies_are_studies(id: str, folder: Folder) -> None:
    (folder.path / "removed").mkdir(exist_ok=True)
    with pytest.raises(Missing):
        folder.study(id)


def test_what_is_removed_can_be_found_again(folder: Folder) -> None:
    study = folder.create("s", {"text": "x"}, {})
    folder.remove(study)
    assert list(folder) == []
    assert next(path.name for path in (folder.path / "removed").iterdir()).startswith(study.id)


def test_a_fit_that_nobody_works_on_was_interrupted(folder: Folder) -> None:
    study = folder.create("s", {}, {})
    first, second = (
        study.new_fit({"state": "running", "began": 1.0}),
        study.new_fit({"state": "running", "result": True}),
    )
    Fits().recover(folder)
    assert (study.state(first)["state"], study.state(second)["state"]) == (INTERRUPTED, "done")
