"""Interruption: a first Ctrl-C ends what is under way with what it has found so far, a second one ends it at once.

While a search runs, an interruption puts the clock forward: every stage ends as if its time were over, and hands over
what it has.  A library handles Ctrl-C only where Python itself would; SIGTERM, by which clusters end what has run for
too long, is for the command line.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from odejet import clock


@contextmanager
def gentle() -> Iterator[None]:
    """Let Ctrl-C put the clock forward, once."""
    with _handled(signal.SIGINT, signal.default_int_handler):
        try:
            yield
        finally:
            clock.calm()


@contextmanager
def termination() -> Iterator[None]:
    """Let SIGTERM put the clock forward, once."""
    with _handled(signal.SIGTERM, signal.SIG_DFL):
        yield


@contextmanager
def _handled(number: signal.Signals, usual: object) -> Iterator[None]:
    """Handle a signal in the main thread, unless somebody else does."""
    before = signal.getsignal(number)
    if threading.current_thread() is not threading.main_thread() or before is not usual:
        yield
        return
    signal.signal(number, _hurry)
    try:
        yield
    finally:
        signal.signal(number, before)


def _hurry(number: int, frame: FrameType | None) -> None:
    if clock.is_hurried():
        raise KeyboardInterrupt
    clock.hurry()
