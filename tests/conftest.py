"""Settings shared by all tests."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.app.browser import CHROMIUM, FLAGS

# The same examples on every run, so that a failure is never a matter of luck; no deadline: kernels may be compiling.
settings.register_profile("odejet", derandomize=True, deadline=None)
settings.load_profile("odejet")


@pytest.fixture(autouse=True)
def clock_on_the_wall():
    """Benchmarks let limits count processor seconds: that must not outlast the test which runs them."""
    yield
    if (clock := sys.modules.get("odejet.clock")) is not None:
        clock.time = time


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One for all tests of a process: Playwright cannot be started twice in it."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the page is looked at with Playwright, which is missing"
    )
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()
