"""Journal: what was written comes back, what was not written to its end does not, and other files stay as they are."""

from __future__ import annotations

import json
import os
import zlib

import numpy as np
import pytest

from odejet import clock
from odejet.errors import DataError
from odejet.journal import _HEAD, Journal, Notes, digest, is_replaying, keeper, kept_by, packed, unpacked

TITLE = {"problem": "decay", "seed": 3}
KEYS = [digest("question", number) for number in range(4)]


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "fit.ckpt")


def write(path, *contents: bytes) -> int:
    """The size of a file with these results."""
    journal = Journal(path, TITLE)
    for key, content in zip(KEYS, contents, strict=False):
        journal.keep(key, content)
    journal.close(keep=True)
    return os.path.getsize(path)


def recalled(path) -> list[bytes | None]:
    journal = Journal(path, TITLE)
    found = [journal.recall(key) for key in KEYS]
    journal.close(keep=True)
    return found


def test_results_come_back(path):
    write(path, b"one", b"", b"three")
    assert recalled(path) == [b"one", b"", b"three", None]


def test_a_result_cut_off_at_any_byte_is_left_out_and_written_over(path):
    sizes = [write(path), write(path, b"first")]
    whole = write(path, b"first", b"second result")
    with open(path, "rb") as file:
        content = file.read()
    assert sizes[1] < whole - len(b"first")  # twice the first, once the second
    for size in range(sizes[1], whole + 1):
        with open(path, "wb") as file:
            file.write(content[:size])
        assert recalled(path) == [b"first", b"second result" if size == whole else None, None, None]
    with open(path, "wb") as file:
        file.write(content[: whole - 1])
    write(path, b"", b"", b"third")
    assert recalled(path)[2] == b"third"


def test_a_damaged_result_ends_the_journal(path):
    write(path, b"one", b"two", b"three")
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content.replace(b"two", b"owt"))
    assert recalled(path) == [b"one", None, None, None]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"time,y\n0,1\n", "no checkpoint of odejet, and is left as it is"),
        (b"", "no checkpoint of odejet"),
        (b"[" * 100_000, "no checkpoint of odejet"),
        (json.dumps({"kind": "odejet checkpoint", "form": 99}).encode() + b"\n", "another version of odejet"),
    ],
)
def test_other_files_are_refused_and_left_as_they_are(path, content, words):
    with open(path, "wb") as file:
        file.write(content)
    with pytest.raises(DataError, match=words):
        Journal(path, TITLE)
    with open(path, "rb") as file:
        assert file.read() == content


def test_the_journal_of_something_else_is_refused_by_what_differs(path):
    write(path, b"one")
    with pytest.raises(DataError, match="of another fit: its seed differs; name another file"):
        Journal(path, {**TITLE, "seed": 4})
    assert recalled(path)[0] == b"one"


def test_two_do_not_write_one_file(path):
    pytest.importorskip("fcntl")
    first = Journal(path, TITLE)
    with pytest.raises(DataError, match="another fit is writing"):
        Journal(path, TITLE)
    first.close(keep=False)
    assert not os.path.exists(path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        Journal(str(tmp_path / "nowhere" / "fit.ckpt"), TITLE)


def test_the_clock_comes_to_where_it_was(path):
    journal = Journal(path, TITLE)
    clock.skip(100.0)
    journal.keep(KEYS[0], b"late")
    journal.close(keep=True)
    begin = clock.now()
    journal = Journal(path, TITLE)
    assert journal.is_replaying and clock.now() - begin < 50
    journal.recall(KEYS[0])
    assert 100 <= clock.now() - begin < 150 and not journal.is_replaying
    journal.close(keep=False)


def test_a_full_disk_ends_the_journal_not_the_work(path):
    journal = Journal(path, TITLE)
    os.close(journal.file.fileno())
    with pytest.warns(UserWarning, match="goes on without a checkpoint"):
        journal.keep(KEYS[0], b"one")
    journal.keep(KEYS[1], b"two")
    assert journal.recall(KEYS[0]) is None


def test_a_keeper_is_there_while_it_is_entered():
    notes = Notes()
    assert keeper() is None
    with kept_by(notes):
        assert keeper() is notes and not is_replaying()
        notes.keep(KEYS[0], b"one")
    assert keeper() is None and notes.kept == [(KEYS[0], b"one")] and notes.recall(KEYS[0]) is None


def test_numbers_texts_and_arrays_come_back_exactly():
    values = {
        "cost": np.float64(0.1) + 0.2,
        "none": None,
        "far": float("inf"),
        "words": "a\nb",
        "truth": np.array([True, False]),
        "matrix": np.arange(6.0).reshape(2, 3).T / 7,
        "nothing": np.empty((0, 3)),
        "counts": [(1, 2), (3, 4)],
    }
    found = unpacked(packed(values))
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[name], value)
            assert found[name].shape == value.shape and found[name].dtype == value.dtype
    assert [found[name] for name in ("cost", "none", "far", "words")] == [0.1 + 0.2, None, float("inf"), "a\nb"]
    assert found["counts"] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kind", ["O", "<U9", "<f4", 3])
def test_arrays_of_other_things_are_refused(kind):
    with pytest.raises(ValueError, match="neither of numbers"):
        unpacked(json.dumps({"z": {"kind": kind, "shape": [1]}}).encode() + b"\n" + bytes(80))


def test_keys_tell_parts_from_each_other():
    assert digest("ab", "c") != digest("a", "bc") and digest(1.0) != digest(1)
    assert digest(np.array([1.0, 2.0]), "x") == digest(np.array([1.0, 2.0]), "x")


def test_a_pipe_is_no_checkpoint(path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(path)
    with pytest.raises(DataError, match="this is no file"):
        Journal(path, TITLE)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_a_result_at_no_time_ends_the_journal(path, seconds):
    """The clock is put to the time of a result: one that nobody can have written is not believed."""
    write(path, b"one")
    with open(path, "ab") as file:
        file.write(_HEAD.pack(3, zlib.crc32(KEYS[1] + b"two"), seconds, KEYS[1]) + b"two")
    assert recalled(path) == [b"one", None, None, None]
