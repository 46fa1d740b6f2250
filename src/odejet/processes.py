"""Processes: work in child processes that limits of time and memory end.

Libraries written in C cannot be interrupted, may end the whole process, and may ask for any amount of memory; a child
can be ended without harm.

    completed(command, data, seconds=30, memory=2e9)      a program: its status and what it wrote
    run(function, *arguments, seconds=30, memory=2e9)     a function of an importable module: what it returns
    start(module, memory=2e9)                             a module that answers questions until its stdin ends

Arguments of a function are pickled.  What it returns is plain: None, numbers, text, bytes, and lists, tuples and
dictionaries of these; nothing that comes from a child is executed.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

LONGEST = 1e6
"""Seconds that a timer of the system can be set to."""

ROOM = 1.0
"""Seconds beyond its limit after which a child ends itself, should nobody be left who ends it."""


class Ended(RuntimeError):
    """A child ended without an answer; the message says how."""


class TimedOut(Ended):
    """The time was over."""


class NotStarted(Ended):
    """There is no such program, or there is no room for another process."""


@dataclass(frozen=True)
class Completed:
    """The status of a program that ended within its time, and what it wrote."""

    status: int
    output: bytes
    errors: bytes


def completed(
    command: Sequence[str], data: bytes = b"", *, seconds: float, memory: float, folder: str | None = None
) -> Completed:
    """Run a program on some data, in a folder; `TimedOut` if it takes longer."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        with subprocess.Popen(command, env=environment(), cwd=folder, **pipes) as process:  # type: ignore[call-overload]
            limit_memory(process.pid, memory)
            try:
                output, errors = process.communicate(data, max(min(seconds, threading.TIMEOUT_MAX), 0.01))
            except subprocess.TimeoutExpired:
                raise TimedOut(f"{command[0]} took more than {seconds:g} s") from None
            finally:
                process.kill()
    except OSError as error:
        raise NotStarted(error.strerror) from None
    return Completed(process.returncode, output, errors)


def run(function: Callable[..., Any], *arguments: Any, seconds: float, memory: float) -> Any:
    """Call a function of a module in a process of its own, and return what it returns."""
    command = [sys.executable, "-c", "from odejet import processes; processes.answer()"]
    question = pickle.dumps((function.__module__, function.__qualname__, arguments, min(seconds, LONGEST)))
    done = completed(command, question, seconds=seconds, memory=memory)
    if done.status:
        raise Ended(f"the process ended with status {done.status}: {_last_line(done.errors)}")
    return _Plain(io.BytesIO(done.output)).load()


def start(module: str, *, memory: float) -> subprocess.Popen[bytes]:
    """Start a process that runs a module, with pipes to ask and to be answered by."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen([sys.executable, "-m", module], env=environment(), **pipes)  # type: ignore[call-overload]
    except OSError as error:
        raise NotStarted(error.strerror) from None
    limit_memory(process.pid, memory)
    return process


def environment() -> dict[str, str]:
    """The environment of a child that finds the same modules as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def limit_memory(process: int, size: float) -> None:
    """Limit the memory that a process may take, where the system can be told."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(process, resource.RLIMIT_DATA, (int(size), int(size)))
            resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))


def _last_line(text: bytes) -> str:
    return next(reversed(text.decode(errors="replace").strip().splitlines()), "")[:200]


# --- in the child ---


def answer() -> None:
    """Answer the question on stdin."""
    # What libraries print must not come between.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    module, name, arguments, seconds = pickle.load(sys.stdin.buffer)
    end_after(seconds)
    function: Any = __import__(module, fromlist=["_"])
    for part in name.split("."):
        function = getattr(function, part)
    pickle.dump(function(*arguments), out)
    out.close()


def be_child() -> None:
    """Take note that this process is a child, which serves another and which limits may end."""
    _CHILD.set()


def is_child() -> bool:
    """Return whether this process is a child."""
    return _CHILD.is_set()


_CHILD = threading.Event()


def end_after(seconds: float) -> None:
    """Have the system end this process even if the one that started it is gone and nothing here looks at the clock."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 0.0), LONGEST) + ROOM)


class _Plain(pickle.Unpickler):
    """Plain values alone, for whatever happened to the process that wrote them."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise Ended(f"a child answered with {module}.{name}, which is not plain")
