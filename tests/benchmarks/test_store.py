"""Results on disk: whole or not there, the same packed and unpacked, and never of other settings."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks import pack
from benchmarks.cells import PENALTY, Cell
from benchmarks.store import Result, Store, Timing, write_whole
from odejet import DataError

CELL = Cell("seir", 1e-08, 3)
RESULT = Result("odejet", CELL, 0.25, -12.5, 7, "certified, at once", Timing(1.5, 1.25, 0.5, 0.75), {"a": 0.1})
NOTHING = Result("shade", replace(CELL, noise=0.0), PENALTY, math.inf, 0, 'no "answer"', Timing(1.0, 1.0), None)


@pytest.mark.parametrize("result", [RESULT, NOTHING])
def test_a_result_survives_its_file(tmp_path, result):
    store = Store(tmp_path)
    store.save(result)
    (found,) = store.load()
    assert (found.method, found.cell, found.error, found.cost) == (
        result.method, result.cell, result.error, result.cost
    )  # fmt: skip
    assert (found.values, found.ending) == (result.values, result.ending)
    assert found.timing.seconds == result.timing.seconds
    assert store.done() == {(result.method, result.cell)}


def test_packed_results_are_the_same_and_count_as_done(tmp_path):
    store, packed = Store(tmp_path / "cells"), tmp_path / "packed"
    store.claim({"protocol": {"seed": 1}, "budget": {}})
    store.save(RESULT)
    store.save(NOTHING)
    assert pack.main(["--results", str(store.directory), "--to", str(packed)]) == 0
    found = Store(packed)
    assert found.done() == store.done() and found.settings() == store.settings()
    ours, nothing = found.load()
    assert ours == replace(RESULT, values=None)
    assert math.isinf(nothing.cost) and math.isnan(nothing.timing.found_at) and nothing.ending == NOTHING.ending


def test_a_file_of_a_cell_goes_before_the_table(tmp_path):
    store = Store(tmp_path)
    store.save(RESULT)
    store.pack(tmp_path)
    store.save(replace(RESULT, error=0.5))
    assert [result.error for result in store.load()] == [0.5]


def test_other_settings_are_refused(tmp_path):
    store = Store(tmp_path)
    store.claim({"seed": 1})
    store.claim({"seed": 1})
    with pytest.raises(DataError, match="has other settings than asked for; give another directory with --results"):
        store.claim({"seed": 2})


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    write_whole(path, "whole")

    def broken(_):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(OSError, match="full"):
        write_whole(path, "another")
    assert path.read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 2
    Store(tmp_path).clean()
    assert list(tmp_path.iterdir()) == [path]
