"""Pool: processes of this machine as an executor.

The processes are fresh ones, not copies of this one, which may have threads, and know nothing of the program that asks,
which needs no guard against being run again in them.  They are started when there is something to do, end with this
process or when the pool is shut down, and their memory is limited.  One that dies is replaced, a few times.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from types import MappingProxyType
from typing import IO, Any, TypeVar

from odejet import processes
from odejet.smooth.threads import one_thread

T = TypeVar("T")

MEMORY = 1_200_000_000
"""Bytes that one process may take."""

RESTARTS = 8
"""Processes that are started in place of others: a question that ends every one of them is given up."""

_HEADER = struct.Struct("<q")

_Job = tuple["Future[Any]", bytes]


class Pool(Executor):
    """So many processes, each of which does one thing at a time."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._members = [_Member(self._jobs) for _ in range(count)]
        self._lock = threading.Lock()
        self._restarts = RESTARTS
        self._is_shut = False

    @property
    def ready(self) -> int:
        """How many processes stand ready or work; who asks has them started."""
        with self._lock:
            if not self._is_shut:
                for member in self._members:
                    if member.is_fresh or (member.is_lost and self._restarts > 0):
                        self._restarts -= member.is_lost
                        member.start()
        return sum(member.is_ready for member in self._members)

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Have a function of an importable module called in one of the processes."""
        if self._is_shut:
            raise RuntimeError("the pool is shut down")
        self.ready  # noqa: B018  # processes that are missing are started
        future: Future[T] = Future()
        self._jobs.put((future, dumped((function, arguments, named))))
        if all(member.is_lost for member in self._members):
            self._refuse_all()
        return future

    def _refuse_all(self) -> None:
        """Nobody is left who would take what waits."""
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None and job[0].set_running_or_notify_cancel():
                job[0].set_exception(BrokenProcessPool("no process is left"))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes at once, whatever they do."""
        with self._lock:
            self._is_shut = True
        for _ in self._members:
            self._jobs.put(None)
        for member in self._members:
            member.end()
        self._refuse_all()


class _Member:
    """One process, and the thread that hands it what there is to do."""

    def __init__(self, jobs: SimpleQueue[_Job | None]) -> None:
        self.jobs = jobs
        self.process: subprocess.Popen[bytes] | None = None
        self.is_fresh, self.is_ready, self.is_lost = True, False, False

    def start(self) -> None:
        self.is_fresh = self.is_lost = False
        try:
            self.process = processes.start("odejet.search.pool", memory=MEMORY)
        except processes.NotStarted:
            self.is_lost = True
            return
        threading.Thread(target=self._serve, args=(self.process,), daemon=True).start()

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        if read(process.stdout) is None:
            self._lose(process)
            return
        self.is_ready = True
        while (job := self.jobs.get()) is not None:
            future, question = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                write(process.stdin, question)
                reply = read(process.stdout)
            except (OSError, ValueError):
                reply = None
            if reply is None:
                self._lose(process)  # first, so that whoever asks again has another one started
                future.set_exception(processes.Ended("the process ended before it answered"))
                return
            _settle(future, reply)

    def _lose(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self.is_ready, self.is_lost = False, True

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def _settle(future: Future[Any], reply: bytes) -> None:
    """Hand over what a process says of what it was asked."""
    is_answer, told = pickle.loads(reply)
    if is_answer:
        future.set_result(told)
    else:
        future.set_exception(processes.Ended(told))


class _Pickler(pickle.Pickler):
    """Views of dictionaries are sent as what they show."""

    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda view: (MappingProxyType, (dict(view),))}


def dumped(message: Any, pickler: type[pickle.Pickler] = _Pickler) -> bytes:
    """Return an object as bytes."""
    buffer = io.BytesIO()
    pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    return buffer.getvalue()


def write(pipe: IO[bytes], message: bytes) -> None:
    """Write a message into a pipe."""
    pipe.write(_HEADER.pack(len(message)) + message)
    pipe.flush()


def read(pipe: IO[bytes]) -> bytes | None:
    """Return the next message; None at the end of the pipe."""
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    size = _HEADER.unpack(header)[0]
    message = pipe.read(size)
    return message if len(message) == size else None


# --- in the child ---


def main() -> None:
    """Do what is asked until nobody asks any more."""
    processes.be_child()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks decides what an interruption means
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    write(answers, b"ready")
    with one_thread():
        while (message := read(questions)) is not None:
            function, arguments, named = pickle.loads(message)
            try:
                reply = dumped((True, function(*arguments, **named)))
            except Exception as error:
                reply = dumped((False, f"{type(error).__name__}: {error}"))
            write(answers, reply)


if __name__ == "__main__":
    main()
