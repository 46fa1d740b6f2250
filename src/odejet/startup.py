"""Startup: Ctrl-C while the command line is still being imported ends it in one line.

Importing takes a good part of a second, in which nobody catches a KeyboardInterrupt yet.  Where odejet runs as the
program, a handler of its own answers until `begun` is called; a library leaves signals alone.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import PurePath
from types import FrameType

INTERRUPTED = 130
"""The exit status that shells use for it."""


def is_program() -> bool:
    """Whether this process is `odejet ...` or `python -m odejet ...`."""
    if PurePath(sys.argv[0]).stem == "odejet":
        return True
    words = sys.orig_argv[1:]
    return sys.argv[0] == "-m" and "-m" in words and words[words.index("-m") + 1 :][:1] == ["odejet"]


def begun() -> None:
    """From here on an interruption is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    # At once: imports that are under way would turn an exception into a traceback.
    os.write(2, b"odejet: interrupted\n")
    os._exit(INTERRUPTED)


if is_program() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)
