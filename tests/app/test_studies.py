"""Studies: what is kept survives, whole, and two programs do not share a folder."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    "content",
    [b'{"changed": NaN}', b'{"name": "\\ud800"}', b'{"changed": 1e999}', b'{"changed": "x", "turn": "y"}', b"{"],
)
def test_one_damaged_study_hides_no_other_and_is_kept(content: bytes, folder: Folder) -> None:
    whole, study = folder.create("whole", {}, {}), folder.create("damaged", {}, {})
    (study.path / "study.json").write_bytes(content)
    shown = {one.id: one.read() for one in folder}
    assert set(shown) == {whole.id, study.id}
    json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()
    assert study.save("again", {}, 0, "me", 1) == 1
    (beside,) = study.path.glob("study-damaged-*.json")
    assert beside.read_bytes() == content and study.read()["name"] == "again"
    study.save("again", {}, 1, "me", 2)
    assert len(list(study.path.glob("study-damaged-*.json"))) == 1


@pytest.mark.parametrize(
    "content", [b"{", b'{"state": "running"}', b'{"state": 3}', b'{"state": "done", "ended": 2}', b'{"began": NaN}']
)
def test_a_damaged_fit_leaves_its_study_usable(content: bytes, folder: Folder) -> None:
    study = folder.create("s", {}, {})
    number = study.new_fit({"state": "done", "began": 1.0, "ended": 2.0})
    path = study.path / "fits" / str(number)
    (path / "state.json").write_bytes(content)
    (path / "result.json").write_text('{"certified": true}')
    assert len(Fits().states(study)) == 1
    fits = Fits()
    fits.recover(folder)
    (shown,) = fits.states(study)
    assert shown["state"] == "done" and shown["number"] == number
    json.dumps(shown, allow_nan=False)


def test_folders_that_are_no_fits(folder: Folder) -> None:
    study = folder.create("s", {}, {})
    for name in ("\N{ARABIC-INDIC DIGIT THREE}", "007", "x", "0"):
        (study.path / "fits" / name).mkdir(parents=True)
    (study.path / "fits" / "5").write_text("a file")
    Fits().recover(folder)
    assert study.fits() == []


def test_what_killed_saves_leave_is_swept_away(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "studies")
    study = folder.create("s", {}, {"data.csv": b"time,y\n"})
    number = study.new_fit({"state": "done"})
    left = [
        study.path / ".study.json-0123abcd",
        study.files / ".data.csv-0123abcd",
        study.fit(number) / ".state.json-0123abcd",
        study.fit(number) / ".odejet-0123456789abcdef",
    ]
    for path in left:
        path.write_text("half")
    own = study.files / "notes-0123abcd.txt"
    own.write_text("whole")
    folder.close()
    again = Folder(tmp_path / "studies")
    assert not any(path.exists() for path in left) and own.exists()
    assert [one.id for one in again] == [study.id]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/studies", b'{"name": "\\ud800"}'),
        ("POST", "/api/studies", b'{"example": ["decay"]}'),
        ("POST", "/api/studies", b'{"name": 7}'),
        ("PUT", "/api/studies/{id}", b'{"revision": 1, "draft": {"text": "\\udfff"}}'),
        ("PUT", "/api/studies/{id}", b'{"revision": 1, "draft": {"limit": NaN}}'),
        ("PUT", "/api/studies/{id}", b'{"revision": 1, "name": "s", "draft": {"values": {"k": 1' + b"0" * 400 + b"}}}"),
        ("PUT", "/api/studies/{id}", b'{"revision": 1, "name": ["s"], "draft": {}}'),
        ("POST", "/api/studies/{id}/take", b'{"files": [{}]}'),
        ("POST", "/api/studies/{id}/compare", b'{"fits": [-1]}'),
        ("POST", "/api/studies/{id}/look", b'{"draft": {"data": {"a": 1}}}'),
    ],
)
def test_requests_that_no_page_sends_get_a_sentence(method: str, path: str, body: bytes, folder: Folder) -> None:
    pytest.importorskip("starlette", reason="the page needs odejet[app], which is missing")
    study = folder.create("s", {}, {})
    status, answer = asked(folder, method, path.replace("{id}", study.id), body)
    assert status in (404, 422) and json.loads(answer)["refused"]


def test_a_damaged_study_can_be_opened(folder: Folder) -> None:
    pytest.importorskip("starlette", reason="the page needs odejet[app], which is missing")
    study = folder.create("s", {}, {})
    (study.path / "study.json").write_text('{"name": "s", "revision": 4, "draft": {"text": 5}}')
    status, answer = asked(folder, "GET", f"/api/studies/{study.id}", b"")
    assert status == 200 and json.loads(answer)["draft"]["text"] == ""
    assert asked(folder, "GET", "/api/start", b"")[0] == 200


def asked(folder: Folder, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """The answer of the program to one request."""
    from odejet.app.server import application

    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    headers = [(b"host", b"127.0.0.1:1"), (b"origin", b"http://127.0.0.1:1")]
    scope = {"type": "http", "method": method, "path": f"/token{path}", "query_string": b"", "headers": headers}
    asked = application(folder, "token", 1)({**scope, "http_version": "1.1", "scheme": "http"}, receive, send)
    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop of its own in this one
        thread.submit(asyncio.run, asked).result()
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])
