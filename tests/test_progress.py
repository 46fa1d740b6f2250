"""Progress: told in terminals and to functions, silent in pipes and unless asked for."""

from __future__ import annotations

import io
import sys
import time
import types

import pytest

from odejet import progress
from odejet.progress import WIDTH, Progress, aside


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def waited(told: Terminal, words: str) -> bool:
    """Whether words come onto the screen."""
    end = time.monotonic() + 20
    while words not in told.getvalue() and time.monotonic() < end:
        time.sleep(0.02)
    return words in told.getvalue()


@pytest.mark.parametrize(("wanted", "stream"), [(True, io.StringIO), (False, Terminal)])
def test_silent(monkeypatch, wanted, stream):
    told = stream()
    monkeypatch.setattr("sys.stderr", told)
    with Progress(wanted) as progress:
        progress.stage("smooth")
        assert not aside("compiling")
    assert told.getvalue() == ""


def test_told_in_a_terminal(monkeypatch):
    told = Terminal()
    monkeypatch.setattr("sys.stderr", told)
    with Progress(True, 120.0) as progress:
        progress.stage("smooth")
        progress.note("3 of 12")
        assert waited(told, "s of at most 120 s: smoothing the data, 3 of 12")
        assert aside("compiling")
        assert waited(told, "s: compiling")
        aside("")
    assert told.getvalue().endswith("\r\x1b[2K")  # nothing is left of it


def test_told_to_a_function():
    told: list[str] = []
    with Progress(told.append) as progress:
        progress.stage("smooth")
        progress.stage("refine")
    assert told == ["smooth", "refine"]


def test_the_bar_is_the_share_of_the_time_that_is_used(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("odejet.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr", Terminal())
    with Progress(True, 40.0) as progress:
        clock[0] += 10
        assert progress.line(200).count("━") == WIDTH // 4
        aside("compiling")
        clock[0] += 20  # is not counted
        assert progress.line(200).count("━") == WIDTH // 4 and "10 s of at most 40 s: compiling" in progress.line(200)
        aside("")
        clock[0] += 500
        assert progress.line(200).count("━") == WIDTH
        assert len(progress.line(30)) == 29


def test_a_notebook_shows_it_without_codes_of_terminals(monkeypatch):
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(progress, "EVERY_NOTEBOOK", 0.01)
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.Progress(True, 10.0) as shown:
        shown.stage("smooth")
        time.sleep(0.2)
    assert "smoothing the data" in written.getvalue() and "\x1b" not in written.getvalue()
    shell = None
    assert not progress.is_notebook()
