"""Clock: the seconds that limits of time count, by a clock that stands still while kernels are compiled.

Compiling happens once per installation, and the first fit on a machine is to give the same answer as the second.
"""

from __future__ import annotations

import time


class _Clock:
    """How often the clock was stopped within a stop, since when it stands still, and for how long it did before."""

    depth, began, spent = 0, 0.0, 0.0


def now() -> float:
    """Return seconds since some time in the past, less those for which the clock stood still."""
    return (_Clock.began if _Clock.depth else time.perf_counter()) - _Clock.spent


def stop() -> bool:
    """Stop the clock until `go_on`; return whether it was running."""
    running = _Clock.depth == 0
    if running:
        _Clock.began = time.perf_counter()
    _Clock.depth += 1
    return running


def go_on() -> bool:
    """End the last stop; return whether the clock runs again."""
    _Clock.depth -= 1
    running = _Clock.depth == 0
    if running:
        _Clock.spent += time.perf_counter() - _Clock.began
    return running


def stood_still() -> float:
    """Return the seconds for which the clock has stood still in this process."""
    return _Clock.spent
