"""Lines: what a long measurement has found so far, one line of JSON per task.

A task whose line is there is done: stopping and starting again repeats nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> list[Any]:
    """The lines of a file; none if it is not there yet, and then its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def add(path: Path, line: Any) -> None:
    """Write a line as soon as it is known."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
