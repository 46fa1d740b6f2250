"""Console: exit statuses, complaints, and what goes to stdout."""

from __future__ import annotations

import os
import sys
from enum import IntEnum

from odejet import startup
from odejet.errors import ModelError


class Status(IntEnum):
    """Exit statuses; those of interruptions are what shells use."""

    DONE = 0
    UNCERTIFIED = 1
    BAD_INPUT = 2
    UNSOLVED = 3
    INTERRUPTED = startup.INTERRUPTED
    BROKEN_PIPE = 141


def complain(message: str, status: Status) -> int:
    print(f"odejet: {message}", file=sys.stderr)
    return status


def told(*files: str) -> None:
    """Which files were written."""
    for file in files:
        print(f"written: {file}", file=sys.stderr)


def put(*chunks: bytes) -> None:
    """Onto stdout, in UTF-8 whatever the terminal is set to."""
    if sys.stdout is None:
        raise ModelError("stdout is closed; name a file with -o")
    try:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.flush()
    except OSError as error:
        # Python would try once more, and complain, when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ModelError(f"stdout cannot be written ({(error.strerror or 'unknown reason').lower()})") from None
