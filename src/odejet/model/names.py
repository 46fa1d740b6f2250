"""Names: what states, outputs, inputs and parameters may be called.

A name is an identifier, which may have an index in brackets: `S[3]`, `C[2,5]`, `beta[0.5]`.
"""

from __future__ import annotations

import keyword
import re
import unicodedata

from odejet.errors import ModelError, clipped
from odejet.model.expressions import FUNCTIONS, MAX_NAME, RESERVED

_INDEXED = re.compile(r"(?P<base>\w+)\[(?P<index>[\w.,+\- ]+)\]")


def split(name: str) -> tuple[str, str]:
    """Return a name without its index, and the index with its brackets; empty where it has none."""
    base, bracket, index = name.partition("[")
    return base, bracket + index


def ended(name: str, ending: str) -> str:
    """Return a name with an ending, which stands before its index."""
    base, index = split(name)
    return base + ending + index


def checked_name(name: str) -> str:
    """The name as Python spells it (the micro sign and the Greek mu are one letter), refused if it cannot be one."""
    normal = unicodedata.normalize("NFKC", name)
    if len(normal) > MAX_NAME:
        raise ModelError(f"the name {clipped(name)} is longer than {MAX_NAME} characters; shorten it")
    if told := _INDEXED.fullmatch(normal):
        return f"{checked_name(told['base'])}[{told['index'].replace(' ', '')}]"
    # Python's identifiers hold a few characters, such as the middle dot, that tokens do not.
    if not (normal.isidentifier() and re.fullmatch(r"\w+", normal)):
        reason = "use letters, digits and underscores, with no digit first"
        raise ModelError(f"{clipped(name)} is not a name; {reason}")
    if normal in RESERVED or keyword.iskeyword(normal):
        raise ModelError(
            f"the name '{normal}' is reserved ({_why_reserved(normal)}); choose another, such as '{normal}_'"
        )
    return normal


def _why_reserved(name: str) -> str:
    if name in FUNCTIONS:
        return "it is a function"
    return "it is a word of Python" if keyword.iskeyword(name) else "the time is written t"
