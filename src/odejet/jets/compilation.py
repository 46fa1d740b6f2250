"""Compilation: says that kernels are being compiled, and keeps a clock that stands still meanwhile.

Kernels are kept on disk, so this happens once per installation.  Whoever limits time does so by `now`: the first fit on
a machine is to give the same answer as the second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event


class _Clock(event.Listener):
    """Runs while any kernel of ours is compiled; kernels that are compiled for another count within that one."""

    def __init__(self) -> None:
        self.told, self.depth, self.began, self.spent = False, 0, 0.0, 0.0

    def start(self) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1

    def stop(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.perf_counter() - self.began

    def on_start(self, happening: event.Event) -> None:
        if _ours(happening):
            if not self.told:
                self.told = True
                print("odejet: compiling its kernels for this machine, once per installation ...", file=sys.stderr)
            self.start()

    def on_end(self, happening: event.Event) -> None:
        if _ours(happening):
            self.stop()


def _ours(happening: event.Event) -> bool:
    return happening.data["dispatcher"].py_func.__module__.startswith("odejet.")


_CLOCK = _Clock()
event.register("numba:compile", _CLOCK)


def seconds() -> float:
    """What compiling has taken in this process so far."""
    return _CLOCK.spent


def now() -> float:
    """Seconds by a clock that stands still while kernels are compiled."""
    return (_CLOCK.began if _CLOCK.depth else time.perf_counter()) - _CLOCK.spent


@contextmanager
def counted() -> Iterator[None]:
    """Around a compilation of which numba tells nothing."""
    _CLOCK.start()
    try:
        yield
    finally:
        _CLOCK.stop()
