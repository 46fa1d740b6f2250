"""Clock: limits of time by the processor's own seconds, for measurements on a machine that others use too."""

from __future__ import annotations

import time
from types import SimpleNamespace

from odejet.jets import compilation


def by_processor() -> None:
    """Let limits of time count processor seconds of this process, compiling apart, in place of those on the wall."""
    compilation.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
