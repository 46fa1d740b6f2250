"""Clock: the seconds that limits of time count, by a clock that stands still while kernels are compiled.

Compiling happens once per installation, and the first fit on a machine is to give the same answer as the second.
"""

from __future__ import annotations

import time

_HURRY = 1e7
"""Seconds by which the clock is put forward: longer than any limit."""


class _Clock:
    """How often the clock was stopped within a stop, since when it stands still, and for how long it did before."""

    depth, began, spent = 0, 0.0, 0.0
    ahead = 0.0  # seconds by which it was put forward, so that all limits are over
    skipped = 0.0  # seconds that it counts without their having passed


def now() -> float:
    """Return seconds since some time in the past, less those for which the clock stood still."""
    return worked() + _Clock.ahead


def worked() -> float:
    """Return the same as if the clock had never been put forward: for telling how long something took."""
    return (_Clock.began if _Clock.depth else time.perf_counter()) - _Clock.spent + _Clock.skipped


def skip(seconds: float) -> None:
    """Count seconds that somebody has worked before."""
    _Clock.skipped += seconds


def hurry() -> None:
    """Put the clock forward until `calm`: all limits that were set are over, and everything ends with what it has."""
    _Clock.ahead = _HURRY


def calm() -> None:
    """Put the clock back."""
    _Clock.ahead = 0.0


def is_hurried() -> bool:
    """Return whether the clock was put forward."""
    return _Clock.ahead > 0


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
