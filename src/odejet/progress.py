"""Progress: what is being done and how far it is, as a line in terminals, a bar in notebooks, or told to whoever asked.

The bar is the share of the work that is done where that can be counted, or else the share of the time limit that is
used up: nobody knows beforehand how much of a search is needed, but it will not take longer than this.  Sessions in
which somebody sits and waits are told without being asked, of whatever takes longer than two seconds.
"""

from __future__ import annotations

import html
import importlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WORDS = {
    "look": "trying a first few starts",
    "identify": "finding out what can be known",
    "smooth": "smoothing the data",
    "algebra": "solving for candidates",
    "rank": "ranking candidates",
    "refine": "refining candidates",
    "alternatives": "looking for other solutions",
    "multistart": "searching the whole box",
    "stretches": "fitting the stretches between events",
    "draws": "drawing from the posterior",
}
"""What a stage does, for people."""

WIDTH = 24
"""Characters of the bar."""

EVERY = 0.2
"""Seconds between two looks of the line."""

PATIENCE = 2.0
"""Seconds that somebody waits before asking what is being done."""

Wanted = bool | Callable[[str], object] | None
"""True and False are orders, None leaves it to the session, and a function is called with every stage."""


class Progress:
    """Shows the present stage while it is entered as a context, in terminals and notebooks; silent in pipes."""

    def __init__(self, wanted: Wanted = None, limit: float | None = None, words: str = "starting") -> None:
        self._tell = wanted if callable(wanted) else None
        self._notebook = is_notebook()
        # What is part of something longer, which is on the screen, is told of there.
        asked = (is_awaited() and not _SCREEN.live) if wanted is None else bool(wanted)
        self._wanted = self._tell is None and asked and (self._notebook or sys.stderr.isatty())
        self._patience = PATIENCE if wanted is None else 0.0
        self._limit, self._share = limit, -1.0
        self._stage, self._note, self._aside = words, "", ""
        self._began, self._paused, self._aside_began = 0.0, 0.0, 0.0
        self._place: _Line | _Cell | None = None  # on the screen

    def __enter__(self) -> Progress:
        if self._wanted:
            self._began = time.monotonic()
            _SCREEN.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._wanted:
            _SCREEN.remove(self)

    def stage(self, name: str) -> None:
        """What is done from now on."""
        if self._tell is not None:
            self._tell(name)
        self._stage, self._note = WORDS.get(name, name), ""

    def note(self, words: str) -> None:
        """How far the stage is."""
        self._note = words

    def share(self, done: float, words: str = "") -> None:
        """How much of the work is done, from 0 to 1."""
        self._share, self._note = done, words

    def line(self, columns: int) -> str:
        """The line as it stands now, in so many columns."""
        full = round(WIDTH * max(self._done(), 0.0))
        bar = f"{'━' * full}{'─' * (WIDTH - full)} " if self._done() >= 0 else ""
        return f"{bar}{self.words()}"[: columns - 1]

    def page(self) -> str:
        """The same for notebooks, which need no widget for it."""
        done = self._done()
        value = f' value="{done:.3f}"' if done >= 0 else ""  # without a value it is a bar that moves to and fro
        bar = f'<progress max="1"{value} aria-label="progress" style="width:12em;vertical-align:middle"></progress>'
        return f"<div>{bar} {html.escape(self.words())}</div>"

    def _done(self) -> float:
        """The share that is done, negative where nobody knows."""
        if self._share >= 0:
            return min(self._share, 1.0)
        return min(self._seconds() / self._limit, 1.0) if self._limit else -1.0

    def words(self) -> str:
        """How long it has taken, and what is being done."""
        words = self._aside or ", ".join(filter(None, (self._stage, self._note)))
        most = f" of at most {self._limit:.0f} s" if self._limit else ""
        return f"{self._seconds():.0f} s{most}: {words}"

    def _seconds(self) -> float:
        """Since the beginning, without what was done aside."""
        now = time.monotonic()
        return now - self._began - self._paused - (now - self._aside_began if self._aside else 0.0)

    def _set_aside(self, words: str) -> None:
        if words and not self._aside:
            self._aside_began = time.monotonic()
        elif self._aside and not words:
            self._paused += time.monotonic() - self._aside_began
        self._aside = words

    def _look(self) -> None:
        """Bring the screen up to date."""
        if time.monotonic() - self._began < self._patience:
            return
        if self._place is None:
            self._place = _Cell() if self._notebook else _Line()
        self._place.put(self)

    def _clear(self) -> None:
        if self._place is not None:
            self._place.clear()
            self._place = None


class _Line:
    """The last line of a terminal."""

    def put(self, progress: Progress) -> None:
        _put(f"\r\x1b[2K{progress.line(shutil.get_terminal_size().columns)}")

    def clear(self) -> None:
        _put("\r\x1b[2K")


class _Cell:
    """What is under a cell of a notebook, as HTML that is written over."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._words = ""

    def put(self, progress: Progress) -> None:
        if (words := progress.words()) != self._words:  # at most once a second: a page is told over the net
            self._words = words
            self._show(progress.page())

    def clear(self) -> None:
        self._show("")

    def _show(self, page: str) -> None:
        contents = {"text/html": page, "text/plain": ""}
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(contents, raw=True, display_id=True)
        else:
            self._handle.update(contents, raw=True)


@contextmanager
def doing(words: str, wanted: Wanted = None, limit: float | None = None) -> Iterator[Progress]:
    """Say what is being done while it is done; as a decorator, whenever a function is called."""
    with Progress(wanted, limit, words) as shown:
        yield shown


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook, which shows what is written though it is no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def is_awaited() -> bool:
    """Whether somebody waits for the answer: in a notebook, or at the prompt of an interpreter."""
    return hasattr(sys, "ps1") or is_notebook()


class _Screen:
    """What is on the screen, and the thread that keeps it up to date: one for all that follow each other closely."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.live: list[Progress] = []  # the last is on top
        self.thread: threading.Thread | None = None

    def add(self, progress: Progress) -> None:
        with self.lock:
            self.live.append(progress)
            if self.thread is None:
                self.thread = threading.Thread(target=self._watch, daemon=True)
                self.thread.start()

    def remove(self, progress: Progress) -> None:
        with self.lock:
            if progress in self.live:
                self.live.remove(progress)
                progress._clear()

    def _watch(self) -> None:
        while True:
            time.sleep(EVERY)
            with self.lock:
                if not self.live:
                    self.thread = None
                    return
                self.live[-1]._look()


_SCREEN = _Screen()
if hasattr(os, "register_at_fork"):  # a process that was forked has neither the thread nor the screen
    os.register_at_fork(after_in_child=_SCREEN.__init__)  # type: ignore[misc]


def aside(words: str) -> bool:
    """Tell in the line on the screen of something that no stage asked for and no limit counts, until it is told that
    there are no more words; False if there is no line."""
    for one in _SCREEN.live[-1:]:
        one._set_aside(words)
    return bool(_SCREEN.live)


def _put(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except UnicodeEncodeError:
        _put(text.encode("ascii", "replace").decode())
    except (OSError, ValueError):  # the terminal is gone
        return
