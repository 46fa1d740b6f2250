"""Signs: those of switching functions at a place, as far as rounding lets one tell.

A function that is zero to rounding is *open*: its sign just after is for the equations to say, one of two, or zero, or
held at zero between them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from odejet.jets.crossings import ROUNDING, SHAKEN
from odejet.model.expressions import Expression, evaluate, names
from odejet.model.modes import Branches
from odejet.simulate.program import Undecided

SLIDE = 2
"""In place of a sign: the function is held at zero."""

_WHOLE = 1e-9  # a number as near to a whole one is that


class Open(Exception):
    """A switching function that vanishes here and of which no sign is assumed."""

    def __init__(self, g: Expression) -> None:
        self.g = g


def opened(g: Expression) -> int:
    """No sign is known."""
    raise Open(g)


def in_turn(options: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """All choices of signs, those first that hold no function at zero but the ones that were held before."""
    options = tuple(options)
    yield tuple([each[0] for each in options])  # mostly the one that is taken

    def held(signs: tuple[int, ...]) -> int:
        return sum(sign == SLIDE != first[0] for sign, first in zip(signs, options, strict=True))

    yield from sorted(itertools.product(*options), key=held)[1:]


def branches_at(
    value_of: Callable[[str], float],
    size_of: Callable[[str], float | None],
    assumed: Mapping[Expression, int] | None,
    after: Callable[[Expression], int] = opened,
) -> Branches:
    """Signs where names have values, as they are or, with some assumed, as they are just after; the sizes are those
    that states and the time have had, to which rounding is relative, and None for what does not move.  `after` tells
    the sign of a function that vanishes, if it can."""

    def value(g: Expression, at: Mapping[str, float]) -> float:
        try:
            return float(evaluate(g, at, math))
        except (ArithmeticError, ValueError, TypeError):
            return math.nan

    def sign(g: Expression) -> int:
        if assumed is not None and g in assumed:
            return assumed[g]
        values = {name: value_of(name) for name in names(g)}
        here = value(g, values)
        if assumed is None:
            return (here > 0) - (here < 0)
        noise, moves = 0.0, False
        for name, number in values.items():
            size = size_of(name)
            moves = moves or size is not None
            if size:
                noise += abs(value(g, {**values, name: number + SHAKEN * size}) - here)
        if math.isnan(here):
            raise Undecided
        if abs(here) <= ROUNDING * noise or here == 0:
            if not moves:
                return 0  # a function of parameters alone stays zero
            return after(g)
        return 1 if here > 0 else -1

    def whole(argument: Expression) -> int:
        here = value(argument, {name: value_of(name) for name in names(argument)})
        if not math.isfinite(here):
            raise Undecided
        near = round(here)
        return near if abs(here - near) <= _WHOLE * max(1.0, abs(here)) else math.floor(here)

    return Branches(sign, whole)
