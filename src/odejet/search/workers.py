"""Workers: an executor whose processes answer ahead of their turn what a search will ask.

A search asks an object one question after the other.  What it will probably ask next is known, so others answer that
meanwhile, and it goes on by itself with what they have not begun.  Answers depend on nothing but the question and are
taken in the order in which the search asks, so that it goes the same way for any number of workers; what nobody asks
for in the end is dropped.  An answer that is lost, or that takes much longer than others did, is given here instead.

The executor is that of `concurrent.futures`, a pool of processes (`pool`), threads or a cluster.  It carries bytes
alone.  What is heavy in an object is kept by those who answer, and sent to one only who lacks it.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import pickle
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from odejet import journal, processes
from odejet.clock import now
from odejet.objective.noise_model import Simulator
from odejet.search import pool
from odejet.smooth.threads import one_thread

PATIENCE = 1.0
"""Seconds of work before anybody else is asked: processes take about one to start."""

ROOM = 1.0
"""Seconds beyond its limit after which an answer is not waited for."""

LEAST_WAIT, WAIT = 2.0, 3.0
"""Seconds for which an answer is waited for, and times the longest that one took so far, if that is more."""

FORGOTTEN = 512
"""Answers that nobody has asked for, beyond which the oldest is dropped."""

LOOK = 10.0
"""Seconds between two looks at how many workers a cluster has."""

KEPT = 4
"""Objects that a worker keeps: it may serve several searches in turn."""


class Timed(Protocol):
    """What workers are asked about: it keeps to a deadline by `clock.now`."""

    deadline: float


Asked = Callable[[Any, Any], Any]
"""A function of an importable module, of the object and an item."""


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of an object about an item, and what tells it from others."""

    key: Hashable
    asked: Asked
    item: Any
    wanted: Callable[[Any], bool] = _always  # asked before a worker begins


@dataclass(eq=False)
class _Pending:
    """A question that somebody was asked."""

    question: Question
    future: Future[bytes]
    reply: tuple[Any] | None = None  # once it was read
    is_lost: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.is_lost or self.future.done())


@dataclass(eq=False)
class Ahead:
    """Answers to a question about one item after the other; None for one that is not wanted when it has its turn."""

    workers: Workers
    questions: Sequence[Question]
    turn: int = 0

    def __iter__(self) -> Iterator[Any]:
        self.workers.foresee(self, self.questions)
        for question in self.questions:
            self.turn += 1
            yield self.workers.ask(question) if question.wanted(question.item) else None
        self.workers.foresee(self, ())

    @property
    def upcoming(self) -> list[Any]:
        """The next answers, as far as they are there."""
        answers = []
        for question in self.questions[self.turn :]:
            if (known := self.workers.known(question.key)) is None:
                break
            answers.append(known)
        return answers


class Workers:
    """Those who answer for one object beside this process, which alone does it without an executor."""

    def __init__(self, subject: Timed, executor: Executor | None = None) -> None:
        self.subject, self.executor, self.began = subject, executor, now()
        self.keeper = journal.keeper()  # of what others find too
        self.longest = 0.0  # seconds that an answer took
        self.heard = self.silent = False  # whether any answer came, and whether the last one waited for did not
        self._topics: dict[Hashable, deque[Question]] = {}
        self._pending: OrderedDict[Hashable, _Pending] = OrderedDict()
        self._running: list[Future[bytes]] = []
        self._lock = threading.RLock()
        self._news = threading.Event()  # somebody may have nothing to do
        self._feeder: threading.Thread | None = None
        self._package: _Package | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.executor = None
            for future in self._running:
                future.cancel()
            self._pending.clear()
            self._topics.clear()
        self._news.set()

    def ahead(self, asked: Asked, items: Iterable[Any], wanted: Callable[[Any], bool] = _always) -> Ahead:
        """Return what a function says of the object and every item, in order; nothing is done here before it is asked
        for."""
        topic = object()
        return Ahead(self, [Question((topic, i), asked, item, wanted) for i, item in enumerate(items)])

    def foresee(self, topic: Hashable, questions: Iterable[Question]) -> None:
        """Have workers answer what will probably be asked on a topic, in place of what was foreseen before."""
        if self.executor is None:
            return
        with self._lock:
            self._topics.pop(topic, None)
            if waiting := deque(one for one in questions if one.key not in self._pending):
                self._topics[topic] = waiting
        self.feed()

    def ask(self, question: Question) -> Any:
        """Return the answer of whoever was asked, or the one that this process finds."""
        if self.executor is None and not self._pending:
            return question.asked(self.subject, question.item)
        with self._lock:
            pending = self._pending.pop(question.key, None)
            for topic, waiting in self._topics.items():
                self._topics[topic] = deque(one for one in waiting if one.key != question.key)
        self.feed()
        if pending is not None and (reply := self._reply(pending)) is not None:
            return reply[0]
        return question.asked(self.subject, question.item)

    def known(self, key: Hashable) -> Any:
        """Return an answer that is there and was not asked for yet; None where there is none."""
        pending = self._pending.get(key)
        if pending is None or pending.is_open:
            return None
        reply = self._reply(pending)
        return None if reply is None else reply[0]

    # --- who does what ---

    def feed(self) -> None:
        """Ask those who have nothing to do."""
        if (executor := self.executor) is None or now() - self.began <= PATIENCE or journal.is_replaying():
            return
        most = min(capacity(executor), 1 if self.silent else math.inf)
        with self._lock:
            for pending in [one for one in self._pending.values() if not one.is_lost and _lacks(one.future)]:
                self._submit(executor, pending.question, whole=True)
            while self.executor is not None and self._open() < most and (question := self._next()) is not None:
                self._submit(executor, question, whole=not self.heard)

    def _open(self) -> int:
        """How many questions are being worked at, also those that nobody waits for any more."""
        self._running = [future for future in self._running if not future.done()]
        return len(self._running)

    def _next(self) -> Question | None:
        """What is to be done next: topics have their turns, so that none waits for another."""
        for topic in list(self._topics):
            waiting = self._topics.pop(topic)
            while waiting:
                question = waiting.popleft()
                if question.key not in self._pending and question.wanted(question.item):
                    self._topics[topic] = waiting  # as the last
                    return question
        return None

    def _submit(self, executor: Executor, question: Question, whole: bool) -> None:
        if self._package is None:
            self._package = _Package.of(self.subject)
        message = self._package.message(question, self.subject.deadline - now(), whole, self.keeper is not None)
        try:
            future = executor.submit(answer, message)
        except (RuntimeError, BrokenExecutor):  # it is shut down or broken, and will not come back
            self.executor = None
            return
        self._running.append(future)
        self._pending[question.key] = _Pending(question, future)
        while len(self._pending) > FORGOTTEN:
            self._pending.popitem(last=False)[1].future.cancel()
        if self._feeder is None:
            self._feeder = threading.Thread(target=self._keep_feeding, daemon=True)
            self._feeder.start()
        future.add_done_callback(self._arrived)

    def _arrived(self, future: Future[bytes]) -> None:
        """Take note of an answer, in a thread of the executor that has other things to do."""
        if not future.cancelled() and future.exception() is None and not _lacks(future):
            self.heard, self.silent = True, False
        self._news.set()

    def _keep_feeding(self) -> None:
        """Go on as soon as somebody has nothing to do, also while this process is busy."""
        while self.executor is not None:
            self._news.wait()
            self._news.clear()
            self.feed()

    def _reply(self, pending: _Pending) -> tuple[Any] | None:
        """What somebody answers, once it is there; None where it is lost."""
        if pending.reply is not None or pending.is_lost:
            return pending.reply
        # Who has not said anything yet has much to read first.
        patience = max(LEAST_WAIT, WAIT * self.longest) if self.heard and not self.silent else 0.0
        left = min(patience, self.subject.deadline - now() + ROOM, processes.LONGEST)
        try:
            reply = pending.future.result(max(left, 0.0))
        except TimeoutError:
            self.silent = self.heard and not pending.future.cancel()
        except BrokenExecutor:
            self.executor = None
        except Exception:  # whatever went wrong there is tried again here
            pass
        else:
            if reply != _LACKING:
                told, seconds, kept = pickle.loads(reply)
                if self.keeper is not None:
                    for key, content in kept:
                        self.keeper.keep(key, content)
                self.longest = max(self.longest, seconds)
                pending.reply = (told,)
        pending.is_lost = pending.reply is None
        return pending.reply


def capacity(executor: Executor) -> float:
    """Return how many questions an executor can work at, as far as it says."""
    if isinstance(executor, pool.Pool):
        return executor.ready
    if isinstance(executor, Cluster):
        return executor.workers
    return int(getattr(executor, "_max_workers", 0) or os.cpu_count() or 1)


class Cluster(Executor):
    """A Dask client as an executor that knows how many workers there are at the time."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._executor: Executor = client.get_executor(pure=False)
        self._workers, self._looked = 0, -math.inf

    @property
    def workers(self) -> int:
        """How many threads all workers have; they may come and go."""
        if now() - self._looked > LOOK:
            self._workers, self._looked = sum(self.client.nthreads().values()), now()
        return self._workers

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._executor.submit(function, *arguments, **named)


def executor_of(given: Any) -> Executor | None:
    """Return the executor that is meant: itself, or that of a Dask client; None where it is neither."""
    client = getattr(given, "_client", given)  # of the executor that a Dask client makes
    if hasattr(client, "get_executor") and hasattr(client, "nthreads"):
        return Cluster(client)
    return given if isinstance(given, Executor) else None


# --- what is sent ---

_LACKING = b"lacking"


def _lacks(future: Future[bytes]) -> bool:
    """Whether a worker has answered that it lacks the object."""
    return future.done() and not future.cancelled() and future.exception() is None and future.result() == _LACKING


class _Apart(pool._Pickler):
    """Leaves out what is heavy, under a name."""

    heavy: dict[str, bytes]

    def persistent_id(self, thing: Any) -> str | None:
        if not isinstance(thing, Simulator):
            return None
        name, content = _dumped_apart(thing)
        self.heavy[name] = content
        return name


_SENT: weakref.WeakKeyDictionary[Simulator, tuple[str, bytes]] = weakref.WeakKeyDictionary()


def _dumped_apart(thing: Simulator) -> tuple[str, bytes]:
    """The name of what is heavy, and its bytes."""
    if thing not in _SENT:
        content = pool.dumped(thing)
        _SENT[thing] = hashlib.blake2b(content, digest_size=16).hexdigest(), content
    return _SENT[thing]


@dataclass(frozen=True, eq=False)
class _Package:
    """An object as bytes, and what is heavy in it."""

    name: str
    content: bytes
    heavy: Mapping[str, bytes]

    @classmethod
    def of(cls, subject: Timed) -> _Package:
        buffer = io.BytesIO()
        pickler = _Apart(buffer, pickle.HIGHEST_PROTOCOL)
        pickler.heavy = {}
        pickler.dump(subject)
        content = buffer.getvalue()
        return cls(hashlib.blake2b(content, digest_size=16).hexdigest(), content, pickler.heavy)

    def message(self, question: Question, seconds: float, whole: bool, kept: bool = False) -> bytes:
        parts = (self.content, self.heavy) if whole else None
        return pool.dumped((self.name, parts, question.asked, question.item, seconds, kept))


class _Unpickler(pickle.Unpickler):
    """Takes what is heavy from what this process keeps."""

    def __init__(self, content: bytes, heavy: Mapping[str, bytes], kept: dict[str, Any]) -> None:
        super().__init__(io.BytesIO(content))
        self.heavy, self.kept = heavy, kept

    def persistent_load(self, name: str) -> Any:
        if name not in self.kept:
            self.kept[name] = pickle.loads(self.heavy[name])
        return self.kept[name]


@dataclass
class _Desk(threading.local):
    """What a thread that answers keeps; objects are not made for two at a time."""

    subjects: OrderedDict[str, Any] = field(default_factory=OrderedDict)
    heavy: OrderedDict[str, Any] = field(default_factory=OrderedDict)


_DESK = _Desk()


def answer(message: bytes) -> bytes:
    """Answer a question about an object, wherever this runs."""
    begin = now()
    name, parts, asked, item, seconds, kept = pickle.loads(message)
    if name not in _DESK.subjects and parts is None:
        return _LACKING
    if name not in _DESK.subjects:
        content, heavy = parts
        _DESK.subjects[name] = _Unpickler(content, heavy, _DESK.heavy).load()
    for shelf in (_DESK.subjects, _DESK.heavy):
        while len(shelf) > KEPT:
            shelf.popitem(last=False)
    if processes.is_child():
        processes.end_after(seconds + ROOM)
    subject = _DESK.subjects[name]
    subject.deadline = begin + seconds
    notes = journal.Notes()
    with one_thread(), journal.kept_by(notes if kept else None):
        told = asked(subject, item)
    return pool.dumped((told, now() - begin, notes.kept))
