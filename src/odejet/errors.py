"""Errors: what is wrong with a model or with data, in one sentence that names the place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """Data that cannot be used; the message says what was given and what to do.

    `where` is the place that the message begins with, such as a line of a file, where that is known.
    """

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class ModelError(ValueError):
    """A model, a name or a value that odejet cannot work with; the message says where and what to do."""


class ExpressionError(ModelError):
    """A text that is not an expression; the message shows the place with a caret."""

    def __init__(self, reason: str, text: str, position: int, where: str = "") -> None:
        self.reason, self.text, self.position, self.where = reason, text, position, where
        super().__init__(reason, text, position, where)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.reason}\n{_excerpt(self.text, self.position)}"

    def at(self, where: str) -> ExpressionError:
        """The same error, said of the place `where` in a model."""
        return ExpressionError(self.reason, self.text, self.position, where)


def _excerpt(text: str, position: int, width: int = 90) -> str:
    """The part of the text around the position, and a caret under it."""
    begin = max(0, min(position - width // 2, len(text) - width))
    end = min(len(text), begin + width)
    shown = "".join(c if c.isprintable() else "?" for c in text[begin:end])
    left, right = ("..." if begin else ""), ("..." if end < len(text) else "")
    return f"    {left}{shown}{right}\n    {' ' * (len(left) + position - begin)}^"


# --- words of messages ---


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """`; did you mean 'k1'?` when one of the known names is close, else nothing."""
    scores = {other: difflib.SequenceMatcher(a=name.lower(), b=other.lower()).ratio() for other in known}
    best = max(scores, key=lambda other: scores[other], default="")
    return f"; did you mean '{best}'?" if scores.get(best, 0) >= cutoff else ""


def clipped(text: str, width: int = 40) -> str:
    """The text quoted, on one line and never long, for messages about what others wrote."""
    return repr(text if len(text) <= width else text[:width] + "...")
