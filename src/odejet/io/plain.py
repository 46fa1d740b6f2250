"""Plain: numbers, texts and lists in a document that somebody else may have written, each read as what it must be.

What is something else is a `TypeError` or a `ValueError`, which whoever reads the document turns into a sentence.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def real(value: Any, nothing: float | None = None) -> float:
    """A finite number, or what null means here."""
    if value is None and nothing is not None:
        return nothing
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    try:
        found = float(value)
    except OverflowError:
        raise TypeError("not a number") from None
    if not math.isfinite(found):
        raise TypeError("not a number")
    return found


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def array(values: Any, shape: tuple[int, ...], nothing: float | None = None) -> np.ndarray:
    """Numbers of this shape, -1 being any length; null is `nothing`, if it may stand there."""
    if not isinstance(values, list | tuple):
        raise TypeError("not a list")
    if len(shape) > 1:
        rows = [array(row, shape[1:], nothing) for row in values]
        found = np.array(rows, dtype=float).reshape((len(rows), *shape[1:]))
    else:
        found = np.array([real(value, nothing) for value in values], dtype=float)
    if shape[0] >= 0 and len(found) != shape[0]:
        raise ValueError("not of this length")
    return found
