"""Compilation: says that kernels are being compiled, stops the clock meanwhile, and keeps a place for them.

Kernels are kept on disk, so this happens once per installation.  They stand beside their sources or, where these cannot
be written, in the user's own cache; where that cannot be written either, in a temporary folder.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba

from odejet import clock
from odejet.jets.numba_internals import WITHOUT_REFERENCES, WholeCompiler, event, forgiving
from odejet.progress import aside


class _Listener(event.Listener):
    """Stops the clock while any kernel of ours is compiled; those that are compiled for another count within that one.

    Meanwhile nothing looks for garbage in cycles: a compiler makes many objects that stay, and looking through them
    again and again would take a tenth of its time.
    """

    def __init__(self) -> None:
        self.collects, self.told, self.count = False, False, 0

    def start(self) -> None:
        if clock.stop():
            self.collects = gc.isenabled()
            gc.disable()

    def stop(self) -> None:
        if clock.go_on():
            aside("")
            if self.collects:
                gc.enable()

    def on_start(self, happening: event.Event) -> None:
        if _ours(happening):
            self.count += 1
            shown = aside(f"compiling kernels for this machine, once per installation ({self.count} so far)")
            if not shown and not self.told:
                self.told = True
                print("odejet: compiling its kernels for this machine, once per installation ...", file=sys.stderr)
            self.start()

    def on_end(self, happening: event.Event) -> None:
        if _ours(happening):
            self.stop()


def _ours(happening: event.Event) -> bool:
    return happening.data["dispatcher"].py_func.__module__.startswith("odejet.")


_LISTENER = _Listener()
event.register("numba:compile", _LISTENER)


def seconds() -> float:
    """Return what compiling has taken in this process so far."""
    return clock.stood_still()


@contextmanager
def counted() -> Iterator[None]:
    """Around a compilation of which numba tells nothing."""
    _LISTENER.start()
    try:
        yield
    finally:
        _LISTENER.stop()


def _probe() -> None:
    """Never called: whether it can be kept tells whether kernels can."""


def find_place() -> None:
    """Let numba keep kernels in a temporary folder if it has no other."""
    try:
        numba.njit(_probe, cache=True)
    except RuntimeError:
        numba.config.CACHE_DIR = folder = _temporary_folder()
        print(
            f"odejet: neither its own folder nor the user's cache can be written, so its compiled kernels are kept in "
            f"{folder}; set NUMBA_CACHE_DIR to choose another",
            file=sys.stderr,
        )


def _temporary_folder() -> str:
    """Return one folder for all processes of this user, closed to others: what is kept there is executed."""
    try:
        parent = tempfile.gettempdir()
        if hasattr(os, "getuid"):
            folder = Path(parent) / f"odejet-kernels-{os.getuid()}"
            with suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
                found = folder.lstat()
                closed = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
                if closed and os.access(folder, os.W_OK):
                    return str(folder)
        return tempfile.mkdtemp(prefix="odejet-kernels-")
    except OSError:
        raise ImportError(
            "odejet keeps compiled kernels on disk and finds no folder that can be written; set NUMBA_CACHE_DIR to one"
        ) from None


find_place()

OPTIONS = {"error_model": "numpy", **WITHOUT_REFERENCES}
"""Kernels divide as NumPy does, without an exception, and make no arrays."""


def compiled(function: Callable[..., Any], pipeline_class: type = WholeCompiler) -> Any:
    """Decorate what Python calls: compiled once per installation, kept in the place found above, and run without
    Python's lock, so that experiments can be simulated side by side."""
    options = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, **OPTIONS}
    return forgiving(numba.njit(function, pipeline_class=pipeline_class, **options))
