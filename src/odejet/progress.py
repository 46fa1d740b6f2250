"""Progress: a line that says what a fit is doing, in terminals only."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """Shows the present stage while it is entered as a context; silent in pipes and unless asked for."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()
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
        if self._status is not None:
            self._status.update(text)
