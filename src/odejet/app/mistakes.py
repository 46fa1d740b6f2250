"""Mistakes: the sentence that an error is, and the place in the text of a model that it speaks of."""

from __future__ import annotations

import re
from typing import Any

from odejet.app.drafts import Draft
from odejet.errors import DataError, ExpressionError, ModelError
from odejet.io import equations

_ENTRY = re.compile(r"\[([\w.]+)\] ([^\s:\[\]]+)")
_ROW = re.compile(r"\bline (\d+)(?:, column (\d+))?")
_WORD = re.compile(r"\w+|\S")


def told(error: ModelError | DataError | OSError, folder: str = "") -> str:
    """An error as one sentence, in the words of the page; files of the folder are called by their names alone."""
    if isinstance(error, ExpressionError):
        reason = error.reason.partition("; an expression may hold")[0]
        in_text = not error.where or _ENTRY.search(error.where) or _ROW.search(error.where)
        return _spoken(reason if in_text else f"{error.where}: {reason}")
    if isinstance(error, OSError):
        return f"A file cannot be read or written ({(error.strerror or 'unknown reason').lower()})."
    first = str(error).splitlines()[0].replace(f"{folder}/", "") if folder else str(error).splitlines()[0]
    return _spoken(re.sub(r"^model:? (?=\[)|^model: ", "", first))


def _spoken(text: str) -> str:
    """Words as a sentence; one that begins with the name of a file leaves that as it is."""
    begin = text[:1].upper() if text.partition(" ")[0].isalpha() else text[:1]
    return begin + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def located(error: ModelError | DataError, draft: Draft) -> dict[str, Any]:
    """The sentence with the row (from one), the column (from zero) and the length of what it is about, if they are
    known."""
    found: dict[str, Any] = {"message": told(error)}
    place = _place(error, draft)
    if place is None:
        return found
    row, column = place
    lines = draft.text.splitlines()
    if not 1 <= row <= len(lines):
        return found
    word = _WORD.match(lines[row - 1], column)
    return found | {"row": row, "column": column, "length": len(word.group()) if word else 1}


def _place(error: ModelError | DataError, draft: Draft) -> tuple[int, int] | None:
    position = error.position if isinstance(error, ExpressionError) else 0
    where = error.where if isinstance(error, ExpressionError) else str(error).splitlines()[0]
    entry = _ENTRY.search(where)
    if entry is not None:
        begin = _entry(draft, entry[1], entry[2])
        return None if begin is None else (begin[0], begin[1] + position)
    row = _ROW.search(where)
    if row is None:
        return None
    return int(row[1]), int(row[2]) - 1 if row[2] else position


def _entry(draft: Draft, table: str, name: str) -> tuple[int, int] | None:
    """Where the value of an entry begins."""
    if draft.language == "equations":
        try:
            lines = equations.read_lines(draft.text)
        except ModelError:
            return None
        return next(((one.row, one.column) for one in lines if (one.table, one.name) == (table, name)), None)
    if draft.language != "toml":
        return None
    within = ""
    for row, line in enumerate(draft.text.splitlines(), 1):
        heading = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if heading:
            within = heading[1]
        value = re.match(rf"""\s*["']?{re.escape(name)}["']?\s*=\s*["']*""", line)
        if value and within == table:
            return row, value.end()
    return None
