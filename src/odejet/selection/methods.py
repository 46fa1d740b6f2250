"""Methods: which of the models that switches make are fitted, and in what order.

exhaustive  all of them
forward     from the smallest: whichever switch improves the criterion most is turned on, until none does
backward    from the largest: whichever improves it most is turned off, until none does
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from odejet.errors import ModelError
from odejet.selection.candidate import Candidate

On = frozenset[str]
Evaluate = Callable[[Sequence[On]], list[Candidate]]
"""Fits of several models at once, each fitted only once however often it is asked for."""

MOST = 4096
"""Models that an exhaustive selection may have: twelve switches."""


def exhaustive(names: Sequence[str], evaluate: Evaluate, _criterion: str) -> None:
    """Fit all, small ones first."""
    if 2 ** len(names) > MOST:
        count = f"{len(names)} switches make {2 ** len(names):,} models"
        raise ModelError(f"{count}; use method='forward' or 'backward', or fewer switches")
    sets = [frozenset(on) for size in range(len(names) + 1) for on in itertools.combinations(names, size)]
    # By size, so that every fit can begin anew from the smaller ones it contains.
    for _, group in itertools.groupby(sets, key=len):
        evaluate(list(group))


def forward(names: Sequence[str], evaluate: Evaluate, criterion: str) -> None:
    """Turn on one switch after the other."""
    _stepwise(frozenset(), lambda on: [on | {name} for name in names if name not in on], evaluate, criterion)


def backward(names: Sequence[str], evaluate: Evaluate, criterion: str) -> None:
    """Turn off one switch after the other."""
    _stepwise(frozenset(names), lambda on: [on - {name} for name in names if name in on], evaluate, criterion)


def _stepwise(start: On, neighbours: Callable[[On], list[On]], evaluate: Evaluate, criterion: str) -> None:
    (best,) = evaluate([start])
    while asked := neighbours(best.estimated):
        found = min(evaluate(asked), key=lambda one: (one.criterion(criterion), one.parameters))
        if not found.criterion(criterion) < best.criterion(criterion):
            return
        best = found


METHODS: Mapping[str, Callable[[Sequence[str], Evaluate, str], object]] = {
    "forward": forward,
    "backward": backward,
    "exhaustive": exhaustive,
}


def checked_method(name: str) -> str:
    if name not in METHODS:
        raise ModelError(f"method must be one of {', '.join(METHODS)}, not {name!r}")
    return name
