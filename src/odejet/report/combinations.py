"""Combinations: identifiable combinations as people write them.

Exact arithmetic leaves whole numbers of any length in front of terms and below them.  A combination is as well known as
any multiple of it, so that numbers are divided by the largest and rounded, for the eye only.
"""

from __future__ import annotations

import re

from odejet.numerals import short

DIGITS = 4
"""Of a coefficient that is shown."""

_LONG = re.compile(r"(?<![\w.])\d{5,}|\d\.\d{4,}|\de\d")
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?")
_TERMS = re.compile(r"\s+(?=[+-]\s)")
_OPERATORS = re.compile(r"(?<!\*)([*/])(?!\*)")
_COMMON = 1e-3, 1e5
"""Sizes of the largest coefficient that may stand as they are."""


def readable(text: str) -> str:
    """A combination with short numbers; as it is, if they are short already or stand in parentheses."""
    if not _LONG.search(text) or "(" in text:
        return text
    terms = [_term(one) for one in _TERMS.split(text.strip())]
    largest = max(abs(number) for number, _ in terms)
    unit = 1.0 if _COMMON[0] <= largest < _COMMON[1] or not largest else largest
    shown = ""
    for number, factors in terms:
        size = short(abs(number) / unit, DIGITS)
        product = factors
        if size != "1" or factors[:1] in ("", "/"):
            product = size + ("" if factors[:1] in ("", "/") else "*") + factors
        sign = "-" if number < 0 else "+"
        shown += f" {sign} {product}" if shown else f"{'-' * (number < 0)}{product}"
    return shown


def _term(text: str) -> tuple[float, str]:
    """The number in front of a term, and the factors after it; those below begin with a stroke."""
    sign = -1.0 if text.startswith("-") else 1.0
    parts = _OPERATORS.split(text.lstrip("+- "))
    number = sign
    above: list[str] = []
    below: list[str] = []
    for operator, part in zip(["*", *parts[1::2]], parts[::2], strict=True):
        if _NUMBER.fullmatch(part):
            number = number * float(part) if operator == "*" else number / float(part)
        else:
            (above if operator == "*" else below).append(part)
    return number, "*".join(above) + "".join(f"/{part}" for part in below)
