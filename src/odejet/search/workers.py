"""Workers: processes beside this one that do what comes next ahead of its turn.

A search asks an object the same kind of question about one start after the other.  What is asked next is known, so
other processes answer it meanwhile.  Answers are taken in their order and depend on nothing but the question, so that
they are the same for any number of workers; one that is lost is given here instead.

The processes are fresh ones, not copies of this one, which may have threads.  They are started when the work turns out
to be long, end with this process, with its time limit or on an interruption, and their memory is limited.
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
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import IO, Any, Protocol

from odejet import processes
from odejet.clock import now
from odejet.smooth.threads import one_thread

PATIENCE = 1.0
"""Seconds of work before processes are started, which takes each of them about a second."""

MEMORY = 1_200_000_000
"""Bytes that one process may take."""

ROOM = 1.0
"""Seconds beyond its limit after which a process is not waited for."""

_HEADER = struct.Struct("<q")


class Timed(Protocol):
    """What workers are asked about: it keeps to a deadline by `clock.now`."""

    deadline: float


class Workers:
    """Processes that answer for one object."""

    def __init__(self, subject: Timed, count: int) -> None:
        self.subject, self.count, self.began = subject, count, now()
        self.workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.end()

    def ahead(
        self, asked: Callable[[Any, Any], Any], items: Sequence[Any], wanted: Callable[[Any], bool] = lambda _: True
    ) -> Iterator[Any]:
        """What a function says of the object and every item, in order; None of one that is not wanted when it has its
        turn.  Nothing is done here before it is asked for."""
        given, upcoming = dict[int, _Answer](), 0
        for i, item in enumerate(items):
            upcoming = max(upcoming, i + 1)
            for worker in self._idle():
                while upcoming < len(items) and not wanted(items[upcoming]):
                    upcoming += 1
                if upcoming < len(items):
                    given[upcoming] = worker.ask(self.subject, asked, items[upcoming])
                    upcoming += 1
            if not wanted(item):
                yield None
            elif i in given and (reply := given[i].wait(self.subject.deadline - now())) is not None:
                yield pickle.loads(reply)
            else:
                yield asked(self.subject, item)

    def _idle(self) -> list[_Worker]:
        """Those that have nothing to do; they are started once the work turns out to be long."""
        if not self.workers and self.count and now() - self.began > PATIENCE:
            self.workers = [_Worker() for _ in range(self.count)]
        return [worker for worker in self.workers if worker.is_idle]


class _Answer:
    """What a worker will say, or None where it is lost."""

    def __init__(self, worker: _Worker) -> None:
        self.worker, self.is_there = worker, threading.Event()
        self.reply: bytes | None = None

    def give(self, reply: bytes | None) -> None:
        self.reply = reply
        self.is_there.set()

    def wait(self, seconds: float) -> bytes | None:
        if not self.is_there.wait(min(max(seconds, 0.0) + ROOM, processes.LONGEST)):
            self.worker.end()
        return self.reply


class _Worker:
    """One process: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.asked: _Answer | None = _Answer(self)  # the first says that it is ready
        self.knows: object = None  # the object that it was told of
        try:
            self.process = processes.start("odejet.search.workers", memory=MEMORY)
        except processes.NotStarted:  # then all is done here
            return
        threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True).start()

    def _listen(self, answers: IO[bytes]) -> None:
        while (reply := _read(answers)) is not None:
            asked, self.asked = self.asked, None
            if asked is not None:
                asked.give(reply)
        if (asked := self.asked) is not None:
            asked.give(None)

    @property
    def is_idle(self) -> bool:
        return self.process is not None and self.process.poll() is None and self.asked is None

    def ask(self, subject: Timed, asked: Callable[[Any, Any], Any], item: Any) -> _Answer:
        """The answer that it will give."""
        assert self.process is not None and self.process.stdin is not None
        told = subject if self.knows is not subject else None
        self.asked = answer = _Answer(self)
        try:
            _write(self.process.stdin, _dumped((told, asked, item, subject.deadline - now())))
        except (OSError, pickle.PicklingError, TypeError):
            self.end()
            answer.give(None)
        self.knows = subject
        return answer

    def end(self) -> None:
        if self.process is not None:
            process, self.process = self.process, None
            process.kill()
            process.wait()


class _Pickler(pickle.Pickler):
    """Views of dictionaries are sent as what they show."""

    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda view: (MappingProxyType, (dict(view),))}


def _dumped(message: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    return buffer.getvalue()


def _write(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_HEADER.pack(len(message)) + message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    """The next message; None at the end of the pipe."""
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    size = _HEADER.unpack(header)[0]
    message = pipe.read(size)
    return message if len(message) == size else None


def main() -> None:
    """Answer questions until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks decides what an interruption means
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    subject: Any = None
    _write(answers, b"ready")
    with one_thread():
        while (message := _read(questions)) is not None:
            told, asked, item, seconds = pickle.loads(message)
            subject = subject if told is None else told
            processes.end_after(seconds + ROOM)
            subject.deadline = now() + seconds
            _write(answers, _dumped(asked(subject, item)))


if __name__ == "__main__":
    main()
