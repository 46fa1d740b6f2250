"""The program, a browser, and the page in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.browser import CHROMIUM, PATIENCE, Program, alive, started, until, watch


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    pytest.importorskip("uvicorn", reason="the page needs odejet[app], which is missing")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium to look at the page with")
    if not Path("/proc/self/stat").exists():
        pytest.skip("processes are watched in /proc")
    folder = tmp_path_factory.mktemp("studies")
    found = Program(folder, *started(folder))
    yield found
    stats = [Path(f"/proc/{pid}/stat") for pid in found.children()]
    found.end()
    until(lambda: not any(map(alive, stats)), "children outlive the program")


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    found = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    found.set_default_timeout(PATIENCE)
    yield found
    found.close()


@pytest.fixture
def page(context: Any, program: Program) -> Iterator[Any]:
    """The page; whatever it throws, or asks of others, fails the test."""
    found = context.new_page()
    complaints: list[str] = []
    watch(found, complaints)
    found.goto(program.address)
    yield found
    assert complaints == []
