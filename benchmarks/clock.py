"""Clock: limits of time by the processor's own seconds, for measurements on a machine that others use too."""

from __future__ import annotations

import time
from types import SimpleNamespace

try:
    from odejet import clock
except ImportError:  # older code keeps its clock there
    from odejet.jets import compilation as clock  # type: ignore[no-redef]


def by_processor() -> None:
    """Let limits of time count processor seconds of this process, compiling apart, in place of those on the wall."""
    clock.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
