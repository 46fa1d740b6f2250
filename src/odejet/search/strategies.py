"""Strategies: those that a fit may use, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from odejet.errors import ModelError
from odejet.search.local_search import IteratedLocalSearch
from odejet.search.multistart import Multistart
from odejet.search.pieces import MultipleShooting
from odejet.search.portfolio import BOX
from odejet.search.proposals import AlgebraicStarts
from odejet.search.windows import GrowingWindows


class Named(Protocol):
    """A frozen class of settings."""

    @property
    def name(self) -> str: ...


EVERY: tuple[Named, ...] = (AlgebraicStarts(), *BOX, MultipleShooting())
"""All strategies as they are used by default."""

NAMES = tuple(one.name for one in EVERY)

_KINDS = (AlgebraicStarts, Multistart, GrowingWindows, IteratedLocalSearch, MultipleShooting)


def chosen(wanted: Sequence[str | Named] | None) -> tuple[Named, ...]:
    """The strategies that are meant, by name or as values with settings of their own; all by default."""
    if wanted is None:
        return EVERY
    if isinstance(wanted, str) or not wanted:
        raise ModelError(f"strategies must be a list of some of {', '.join(map(repr, NAMES))}")
    known = dict(zip(NAMES, EVERY, strict=True))
    for one in wanted:
        if one not in known and not isinstance(one, _KINDS):
            raise ModelError(f"there is no strategy {one!r}; there are {', '.join(NAMES)}")
    values = [known[one] if isinstance(one, str) else one for one in wanted]
    names = [one.name for one in values]
    if len(set(names)) < len(names):
        raise ModelError(f"strategies: {next(name for name in names if names.count(name) > 1)} is given twice")
    return tuple(values)
