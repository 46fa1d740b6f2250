"""TOML: reading what somebody else wrote, and writing it back.

Reading goes through the standard library's `tomllib`, with decimals kept exact; writing needs only the few kinds of
value that a model holds.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from odejet.errors import ModelError
from odejet.io import files

MAX_BYTES = 1_000_000

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DOTTED = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){8}")
_QUOTED = re.compile(
    r""""{3}(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}"""
    r"""|'{3}(?:[^']|'{1,2}(?!'))*+'{3,5}"""
    r'''|"(?:[^"\\\n]|\\.)*+"'''
    r"""|'[^'\n]*+'"""
    r"""|\#[^\n]*+""",
    re.DOTALL,
)
"""Strings and comments, as TOML delimits them."""


class Literal(str):
    """Text that is already TOML, such as a number."""


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a model file, or one sentence on why there is none."""
    return files.read_text(path, MAX_BYTES)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    files.write_all({os.fspath(path): lambda file: file.write(text.encode())})


def loads(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text; decimals come as `Decimal`, so that 0.1 is one tenth."""
    _check_keys(text, where)
    try:
        # With a line end at the end, errors there are given by line and not as "at end of document".
        return tomllib.loads(text + "\n", parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{where}: this is not TOML: {_sentence(error)}") from None
    # Lists nested deeper than the interpreter's stack, and integers longer than Python converts.
    except (RecursionError, ValueError):
        raise ModelError(f"{where}: a value is too long or nested too deeply for a model") from None


def _check_keys(text: str, where: str) -> None:
    """Refuse keys of many dotted parts, for which `tomllib` takes memory quadratic in their number."""
    outside = _QUOTED.sub(lambda quoted: "s" if quoted.group()[0] in "\"'" else "", text)
    if _DOTTED.search(outside):
        raise ModelError(f"{where}: a key has many dotted parts; a model has plain names in tables such as [states]")


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        # Its exponent alone is beyond what decimals hold; the model refuses infinity at its place.
        return Decimal("Infinity")


_HINTS = {
    "Invalid value": "expressions stand in quotes",
    "Invalid statement": "a line is a name, = and a value, and a name with other letters than a to z stands in quotes",
}


def _sentence(error: Exception) -> str:
    text = str(error)
    hint = next((hint for start, hint in _HINTS.items() if text.startswith(start)), None)
    return text[:1].lower() + text[1:] + (f"; {hint}" if hint else "")


def dumps(document: Mapping[str, Any]) -> str:
    """TOML of texts, numbers, lists of them, `Literal`s, tables and lists of tables; empty tables are left out."""
    return "\n\n".join(_sections(document, "")) + "\n"


def _sections(table: Mapping[str, Any], name: str) -> Iterator[str]:
    """A table under its heading, then the tables in it."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    if lines:
        yield "\n".join([f"[{name}]", *lines] if name else lines)
    for key, value in table.items():
        path = f"{name}.{_key(key)}" if name else _key(key)
        if isinstance(value, Mapping):
            yield from _sections(value, path)
        elif _is_tables(value):
            for one in value:
                yield "\n".join([f"[[{path}]]", *(f"{_key(k)} = {_value(v)}" for k, v in one.items())])


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _value(value: object) -> str:
    match value:
        case Literal():
            return str(value)
        case str():
            return _quoted(value)
        case float() | int():
            return repr(value)
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_value(item) for item in value) + "]"
        case _:
            raise AssertionError(f"a model holds no {type(value).__name__}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
