"""Rivals: other maxima of the likelihood of a population, which are told beside the best.

Where absorption and elimination may change places, or noise may be shared in two ways, the marginal likelihood has
several maxima, and what is known of the drug may speak for another than the highest.  Searches that ended near each
other are one family; the best of each family, if it is not far below the best of all, is followed to its maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from odejet.numerals import short
from odejet.population.layout import Layout

Array = np.ndarray

APART = 0.4
"""By how much typical values and noise of different maxima differ, in the scale of u: a factor of one and a half."""


@dataclass(frozen=True)
class Rival:
    """Another maximum of the likelihood."""

    values: Mapping[str, float]
    minus_two_log_likelihood: float
    error: float  # of -2 log L
    removed: tuple[str, ...] = ()  # random effects whose variance goes to zero there

    def sentence(self, best: float, most: int = 4) -> str:
        """Tell how far below the best it lies, and where."""
        where = ", ".join(f"{name} {short(value, 3)}" for name, value in list(self.values.items())[:most])
        gone = f", no variability of {', '.join(self.removed)}" if self.removed else ""
        return (
            f"another maximum has -2 log L = {self.minus_two_log_likelihood:.2f} "
            f"({self.minus_two_log_likelihood - best:+.2f}) at {where}{gone}"
        )


class _Ended(Protocol):
    """A search that has ended somewhere."""

    layout: Layout
    u: Array
    value: float


Ended = TypeVar("Ended", bound=_Ended)


def families(searches: Sequence[Ended]) -> list[list[Ended]]:
    """Return searches that ended near each other together, the best family and the best of each first."""
    found: list[list[Ended]] = []
    for one in sorted(searches, key=lambda search: search.value):
        for family in found:
            if not are_apart(one, family[0]):
                family.append(one)
                break
        else:
            found.append([one])
    return found


def are_apart(one: _Ended, other: _Ended) -> bool:
    """Tell if two searches ended at different typical values or noise; variances that are idle may differ anyhow."""
    return bool((np.abs(_place(one) - _place(other)) > APART).any())


def _place(search: _Ended) -> Array:
    layout = search.layout
    return np.concatenate([search.u[: layout.fixed_effects], search.u[layout.noises]])
