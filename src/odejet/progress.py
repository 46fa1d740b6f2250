"""Progress: what is being done and how far it is, as a line in terminals or told to whoever asked.

The bar is the share of the time limit that is used up: nobody knows beforehand how much of a search is needed, but it
will not take longer than this.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable

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
}
"""What a stage does, for people."""

WIDTH = 24
"""Characters of the bar."""

EVERY, EVERY_NOTEBOOK = 0.2, 1.0
"""Seconds between two looks of the line, in terminals and in notebooks."""


class Progress:
    """Shows the present stage while it is entered as a context, in terminals and notebooks; silent in pipes and unless
    asked for.

    A function in place of a truth value is called with the name of every stage.
    """

    def __init__(self, wanted: bool | Callable[[str], object], limit: float | None = None) -> None:
        self._tell = wanted if callable(wanted) else None
        self._notebook = is_notebook()
        self._wanted = not callable(wanted) and wanted and (self._notebook or sys.stderr.isatty())
        self._limit = limit
        self._stage, self._note, self._aside = "starting", "", ""
        self._began, self._paused, self._aside_began = 0.0, 0.0, 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self._wanted:
            self._began = time.monotonic()
            _LIVE.append(self)
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            _LIVE.remove(self)
            self._over.set()
            self._thread.join()
            self._thread = None

    def stage(self, name: str) -> None:
        """What is done from now on."""
        if self._tell is not None:
            self._tell(name)
        self._stage, self._note = WORDS.get(name, name), ""

    def note(self, words: str) -> None:
        """How far the stage is."""
        self._note = words

    def line(self, columns: int) -> str:
        """The line as it stands now, in so many columns."""
        seconds = self._seconds()
        share = min(seconds / self._limit, 1.0) if self._limit else 0.0
        full = round(WIDTH * share)
        bar = f"{'━' * full}{'─' * (WIDTH - full)} " if self._limit else ""
        words = self._aside or ", ".join(filter(None, (self._stage, self._note)))
        most = f" of at most {self._limit:.0f} s" if self._limit else ""
        return f"{bar}{seconds:.0f} s{most}: {words}"[: columns - 1]

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

    def _run(self) -> None:
        out, clear, before = sys.stderr, "\x1b[2K", 0
        while not self._over.wait(EVERY_NOTEBOOK if self._notebook else EVERY):
            line = self.line(shutil.get_terminal_size().columns)
            if self._notebook:  # it has no codes of terminals: what stands there is written over
                clear, line, before = "", line.ljust(before), len(line)
            _put(out, f"\r{clear}{line}")
        _put(out, "\r" + (clear or f"{' ' * before}\r"))


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook, which shows what is written though it is no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


_LIVE: list[Progress] = []  # those on the screen, the last on top


def aside(words: str) -> bool:
    """Tell in the line on the screen of something that no stage asked for and no limit counts, until it is told that
    there are no more words; False if there is no line."""
    for one in _LIVE[-1:]:
        one._set_aside(words)
    return bool(_LIVE)


def _put(out: object, text: str) -> None:
    try:
        out.write(text)  # type: ignore[attr-defined]
        out.flush()  # type: ignore[attr-defined]
    except UnicodeEncodeError:
        _put(out, text.encode("ascii", "replace").decode())
    except (OSError, ValueError):  # the terminal is gone
        return
