"""Progress: what a fit is doing, as a line in terminals or told to whoever asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Progress:
    """Shows the present stage while it is entered as a context; silent in pipes and unless asked for.

    A function in place of a truth value is called with the name of every stage.
    """

    def __init__(self, wanted: bool | Callable[[str], object]) -> None:
        self._tell = wanted if callable(wanted) else None
        self._wanted = not callable(wanted) and wanted and sys.stderr.isatty()
        self._status: Any = None

    def __enter__(self) -> Progress:
        if self._wanted:
            from rich.console import Console

            self._status = Console(stderr=True).status("starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def stage(self, text: str) -> None:
        if self._tell is not None:
            self._tell(text)
        if self._status is not None:
            self._status.update(text)
