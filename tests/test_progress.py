"""Progress: told in terminals and to functions, silent in pipes and unless asked for."""

from __future__ import annotations

import io
import sys
import time
import types

import pytest

from odejet import progress
from odejet.progress import WIDTH, Progress, aside, doing


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


@pytest.fixture
def notebook(monkeypatch):
    """A notebook as IPython has it, and what is shown under its cell, by display."""
    shown: list[list[dict[str, str]]] = []

    def display(contents, raw, display_id):
        assert raw and display_id
        shown.append([contents])
        return types.SimpleNamespace(update=lambda contents, raw: shown[-1].append(contents))

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    return shown


def until(true) -> None:
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    assert true()


def test_a_notebook_shows_a_bar_that_goes(notebook):
    with Progress(True, 10.0) as shown:
        shown.stage("<smooth>")
        until(lambda: notebook)
        shown.share(0.25)
        until(lambda: 'value="0.250"' in notebook[0][-1]["text/html"])
    assert "&lt;smooth&gt;" in notebook[0][0]["text/html"] and "<progress" in notebook[0][0]["text/html"]
    assert len(notebook) == 1 and notebook[0][-1]["text/html"] == ""  # nothing is left of it


def test_whoever_waits_is_told_without_asking(notebook, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.3)
    with doing("something short"):
        pass
    assert notebook == []
    with doing("something long"), doing("a part of it"):
        until(lambda: notebook)
    assert "something long" in notebook[0][0]["text/html"] and len(notebook) == 1


def test_programs_are_silent_unless_they_ask(monkeypatch):
    told = Terminal()
    monkeypatch.setattr("sys.stderr", told)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.delattr(sys, "ps1", raising=False)
    with doing("something long"):
        time.sleep(0.5)
    assert told.getvalue() == ""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with doing("something long"):
        assert waited(told, "something long")
    assert told.getvalue().endswith("\r\x1b[2K")
