"""Settings shared by all tests."""

import sys
import time

import pytest
from hypothesis import settings

# The same examples on every run, so that a failure is never a matter of luck; no deadline: kernels may be compiling.
settings.register_profile("odejet", derandomize=True, deadline=None)
settings.load_profile("odejet")


@pytest.fixture(autouse=True)
def clock_on_the_wall():
    """Benchmarks let limits count processor seconds: that must not outlast the test which runs them."""
    yield
    if (compilation := sys.modules.get("odejet.jets.compilation")) is not None:
        compilation.time = time
