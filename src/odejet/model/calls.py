"""Calls: texts such as `lognormal(log(0.3), 0.5)`, a name with arguments that are expressions."""

from __future__ import annotations

import re

from odejet.errors import ExpressionError, ModelError, clipped
from odejet.model.expressions import Expression
from odejet.model.grammar import parse

_HEAD = re.compile(r"\s*([^\W\d]\w*)\s*")


def parse_call(text: str, refused: dict[str, str] | None = None) -> tuple[str, tuple[Expression, ...] | None]:
    """The name and the arguments of a call; None in place of arguments where it has no parentheses.

    `refused` maps names that may not stand in an argument to the reason.
    """
    head = _HEAD.match(text)
    if head is None:
        raise ModelError(f"{clipped(text)} does not begin with a name, as in lognormal(0.1)")
    rest = text[head.end() :].rstrip()
    if not rest:
        return head[1], None
    if not (rest.startswith("(") and rest.endswith(")")):
        raise ExpressionError("arguments stand in parentheses, as in lognormal(0.1)", text, head.end())
    return head[1], tuple(parse(part, refused=refused) for part in _split(rest[1:-1], text))


def _split(inside: str, text: str) -> list[str]:
    """The parts between commas that stand in no inner parentheses; none of nothing."""
    parts, depth, begin = [], 0, 0
    for i, character in enumerate(inside):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            raise ExpressionError("a parenthesis closes too early", text, text.index(inside) + i)
        if character == "," and not depth:
            parts.append(inside[begin:i])
            begin = i + 1
    return [*parts, inside[begin:]] if inside.strip() else []
