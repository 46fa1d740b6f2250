"""Equations: a model in lines as people write it on paper, and the place of each line.

    r' = k1*r - k2*r*w     a state; dr/dt = ... says the same
    r(0) = 1.5             what it is at the start, where that is known
    u(t) = sin(2*t)        an input: a function of time, or the word sampled
    k1 = 0.4               a parameter that is known
    y1 = r                 an output: whatever else stands on the left

What follows # or // is a comment.  Bounds, noise and the rest of a model have no lines; a model that has more than
equations is written as TOML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odejet.errors import ExpressionError, ModelError, clipped
from odejet.model import Model, entries
from odejet.model.expressions import number

MAX_CHARACTERS = 1_000_000

_NAME = r"[^\W\d]\w*"
_LEFT = re.compile(
    rf"\s*(?:d(?P<fraction>{_NAME})\s*/\s*dt|(?P<name>{_NAME})\s*(?P<mark>['′]|\(\s*0\s*\)|\(\s*t\s*\))?)\s*$"
)
_COMMENT = re.compile(r"#|//(?!\s*\d)")
_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?(\s*/\s*[0-9]+\.?[0-9]*)?\s*")
_EXPECTED = "a line is r' = ..., r(0) = ..., u(t) = ..., or a name, = and its expression"


@dataclass(frozen=True)
class Line:
    """One equation: the entry of a model that it is, and where its right-hand side begins."""

    table: str  # "states", "outputs", "initial", "inputs" or "fixed"
    name: str
    value: str
    row: int  # counted from one
    column: int  # counted from zero


def parse(text: str, name: str = "model") -> Model:
    """The model in a text; a mistake is an `ExpressionError` or `ModelError` that names the entry or the line."""
    tables: dict[str, dict[str, str]] = {}
    for line in read_lines(text):
        table = tables.setdefault(line.table, {})
        if line.name in table:
            raise ExpressionError("this is given twice; remove one of them", line.value, 0, f"line {line.row}")
        table[line.name] = line.value
    if not tables.get("states"):
        raise ModelError("a model needs at least one state; write a line such as x' = -k*x")
    entries.check_sizes(tables)
    return Model(**{"states": {}, **tables}, name=name)


def read_lines(text: str) -> list[Line]:
    """The equations of a text, in its order."""
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"the text is longer than {MAX_CHARACTERS} characters, which no model needs")
    return list(_lines(text))


def _lines(text: str) -> Iterator[Line]:
    for row, whole in enumerate(text.splitlines(), 1):
        comment = _COMMENT.search(whole)
        line = whole[: comment.start()] if comment else whole
        if not line.strip():
            continue
        left, equals, right = line.partition("=")
        where, place = f"line {row}", len(line) - len(line.lstrip())
        if not equals:
            raise ExpressionError(f"there is no =; {_EXPECTED}", line, place, where)
        found = _LEFT.match(left)
        if found is None:
            raise ExpressionError(f"{clipped(left.strip())} cannot stand on the left; {_EXPECTED}", line, place, where)
        column = len(left) + 1 + len(right) - len(right.lstrip())
        if not right.strip():
            raise ExpressionError("nothing stands to the right of =", line, len(line.rstrip()), where)
        yield Line(_table(found, right), found["fraction"] or found["name"], right.strip(), row, column)


def _table(left: re.Match[str], right: str) -> str:
    if left["fraction"] or left["mark"] in ("'", "′"):
        return "states"
    if left["mark"]:
        return "initial" if "0" in left["mark"] else "inputs"
    return "fixed" if _NUMBER.fullmatch(right) else "outputs"


# --- writing ----------------------------------------------------------------------------------------------------------


def write(model: Model) -> str | None:
    """The lines of a model; None for one that is more than its equations, or that lines would not tell apart."""
    told: Mapping[str, Any] = model.to_dict()
    beyond = ("before", "history", "bounds", "experiments", "noise", "priors", "local", "events")
    if any(told[table] for table in beyond) or model.steady or model.start is not None:
        return None
    if any(_NUMBER.fullmatch(str(value)) for value in model.outputs.values()):
        return None
    driven = {name: entries.SAMPLED if value is None else str(value) for name, value in told["inputs"].items()}
    groups = (
        [f"{name}' = {value}" for name, value in model.states.items()],
        [f"{name}(t) = {value}" for name, value in driven.items()],
        [f"{name} = {value}" for name, value in model.outputs.items()],
        [f"{name}(0) = {value}" for name, value in model.initial.items()],
        [f"{name} = {number(value)}" for name, value in model.fixed.items()],
    )
    return "\n\n".join("\n".join(group) for group in groups if group) + "\n"
