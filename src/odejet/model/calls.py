"""Calls: laws such as `lognormal(log(0.3), 0.5)`, a name with expressions for arguments, as texts and as values."""

from __future__ import annotations

import re
from typing import NamedTuple

from odejet.errors import ExpressionError, ModelError, clipped
from odejet.model.expressions import Expression
from odejet.model.grammar import parse
from odejet.model.wellformed import IllFormed, well_formed

_HEAD = re.compile(r"\s*([^\W\d]\w*)\s*")


class Call(NamedTuple):
    """A name and its arguments; None in place of these where it has no parentheses."""

    name: str
    arguments: tuple[Expression, ...] | None = None

    @property
    def checked(self) -> Call:
        """The call with arguments as a text would have them; what no text may say is refused."""
        try:
            return Call(self.name, self.arguments and tuple(map(well_formed, self.arguments)))
        except IllFormed:
            return parse_call(str(self))

    def __str__(self) -> str:
        return self.name if self.arguments is None else f"{self.name}({', '.join(map(str, self.arguments))})"


def parse_call(text: str, refused: dict[str, str] | None = None) -> Call:
    """The call in a text; `refused` maps names that may not stand in an argument to the reason."""
    head = _HEAD.match(text)
    if head is None:
        raise ModelError(f"{clipped(text)} does not begin with a name, as in lognormal(0.1)")
    rest = text[head.end() :].rstrip()
    if not rest:
        return Call(head[1])
    if not (rest.startswith("(") and rest.endswith(")")):
        raise ExpressionError("arguments stand in parentheses, as in lognormal(0.1)", text, head.end())
    return Call(head[1], tuple(parse(part, refused=refused) for part in split(rest[1:-1], text)))


def split(inside: str, text: str) -> list[str]:
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
