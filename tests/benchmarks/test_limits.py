"""Limits: tasks in processes of their own are measured and ended, and the table tells who kept to them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import collection, limits
from problems.chains import POINTS


def line(task="fit-5", seconds=4.0, megabytes=300.0, **more):
    facts = {"states": 2, "unknowns": 4, "points": 40, "outcome": "certified"}
    return {"model": "m", "task": task, "seconds": seconds, "megabytes": megabytes, **facts, **more}


def test_there_are_many_models_even_without_the_published_ones(monkeypatch):
    monkeypatch.setattr(collection, "FOLDER", Path("nowhere"))
    assert len(limits.subjects()) >= 20


def test_a_chain_passes_on_what_it_takes():
    """What leaves one state enters the next, so that the total falls by the last step alone."""
    subject = limits.chain(3, 1)
    found = subject.model.states
    assert list(map(str, found.values())) == [
        "-v1*x1/(k1 + x1)",
        "v1*x1/(k1 + x1) - v2*x2/(k2 + x2)",
        "v2*x2/(k2 + x2) - v3*x3/(k3 + x3)",
    ]
    assert list(limits.chain(7, 3).model.outputs) == ["y1", "y4", "y7"]
    assert subject.points == 3 * POINTS


def test_data_are_the_same_in_every_process():
    first, again = (limits.of_zoo("goodwin").data.experiments[0].outputs for _ in range(2))
    assert all(np.array_equal(first[name].values, again[name].values) for name in first)


def test_a_task_in_a_process_of_its_own():
    found = limits.watched("chain-5-all", "identify-5")
    assert found["outcome"] == "0 of 15 undecided" and found["states"] == 5
    assert 50 < found["megabytes"] < limits.MEMORY and 0 < found["seconds"] < 60


def test_what_takes_too_long_or_too_much_is_ended(monkeypatch):
    monkeypatch.setattr(limits, "READING", 0.0)
    monkeypatch.setattr(limits, "PATIENCE", 1.0)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    began = time.perf_counter()
    ended, sleeper.returncode, _ = limits._waited(sleeper.pid, 0.5)
    assert ended == "no answer after 1.5 s" and sleeper.returncode < 0 and time.perf_counter() - began < 50
    monkeypatch.setattr(limits, "PATIENCE", 60.0)
    monkeypatch.setattr(limits, "MOST_MEMORY", 100)
    glutton = "import time; x = bytearray(300_000_000); x[::4096] = b'x' * len(x[::4096]); time.sleep(60)"
    eater = subprocess.Popen([sys.executable, "-c", glutton], start_new_session=True)
    ended, eater.returncode, peak = limits._waited(eater.pid, 5.0)
    assert ended == "took more than 100 MB" and eater.returncode < 0 and peak > 100


def test_a_table_tells_what_broke_its_limits():
    assert limits.held(line()) and limits.held(line(seconds=6.9)) and limits.held(line("fit-30", seconds=31.0))
    assert not limits.held(line(seconds=7.1)) and not limits.held(line(megabytes=2100.0))
    assert not limits.held({"model": "m", "task": "fit-5", "megabytes": 100.0, "ended": "no answer after 65 s"})
    lines = [
        line(seconds=7.5),
        line("fit-30", megabytes=2100.0),
        {"model": "n", "task": "fit-5", "left_out": "it is odd"},
    ]
    text = limits.table(lines)
    assert "nothing else to do" in text and "had 8 processes to run" in limits.table([line(load=8.2)])
    assert "fit-5 0 of 1, fit-30 0 of 1" in text
    assert "| m | 2 | 4 | 40 | **7.5** | 300 | certified | 4.0 | **2100** | certified |" in text
    assert "n is left out: it is odd." in text
