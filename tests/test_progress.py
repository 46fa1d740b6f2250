"""Progress: told in terminals, silent in pipes and unless asked for."""

from __future__ import annotations

import io

import pytest

from odejet.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("wanted", "stream"), [(True, io.StringIO), (False, Terminal)])
def test_silent(monkeypatch, wanted, stream):
    told = stream()
    monkeypatch.setattr("sys.stderr", told)
    with Progress(wanted) as progress:
        progress.stage("smooth")
    assert told.getvalue() == ""


def test_told_in_a_terminal(monkeypatch):
    told = Terminal()
    monkeypatch.setattr("sys.stderr", told)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(True) as progress:
        progress.stage("smooth")
        progress._status._live.refresh()
    assert "smooth" in told.getvalue()
